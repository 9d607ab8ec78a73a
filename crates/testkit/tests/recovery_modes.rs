//! The four recovery modes against every kind of WAL damage: the writes each mode keeps, and the result of a second
//! open, which must be the same.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails where it cannot go on")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::FileNumber;
use testkit::engine::options::WalRecoveryMode;
use testkit::engine::{Db, ErrorKind, OpenOptions, ReadOptions};
use testkit::profile;
use testkit::random::Random;
use testkit::run::DIR;
use vfs::{CrashPolicy, MemoryVfs, Vfs};
use wal::{RecordKind, ReplayOptions};

const MODES: [WalRecoveryMode; 4] = [
    WalRecoveryMode::TolerateCorruptedTailRecords,
    WalRecoveryMode::AbsoluteConsistency,
    WalRecoveryMode::PointInTime,
    WalRecoveryMode::SkipAnyCorruptedRecords,
];

/// Seven writes of 9000 bytes to a log of 64 KiB: write `n` goes to key `n`, nothing is flushed.
const WRITES: u32 = 32;
/// So many were synced, the first in the last log among them.
const SYNCED: u32 = 29;

fn options(vfs: &Arc<MemoryVfs>, mode: WalRecoveryMode) -> OpenOptions {
    let mut options = profile::by_name("tiny").unwrap().open_options(vfs.clone(), [""; 0]);
    options.families.iter_mut().for_each(|(_, family)| family.write_buffer_size = 1 << 20);
    options.db.wal_recovery_mode = mode;
    options
}

/// A write, and where it lies.
struct Written {
    write: u32,
    log: PathBuf,
    /// Of its record.
    start: usize,
    end: usize,
}

/// A database as its process left it, without closing it.
struct Left {
    vfs: Arc<MemoryVfs>,
    writes: Vec<Written>,
    /// Those that hold writes.
    logs: Vec<PathBuf>,
}

fn write_and_leave() -> Left {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs, WalRecoveryMode::PointInTime)).unwrap();
    for write in 0..WRITES {
        db.put(&db.default_family(), &write.to_be_bytes(), &[write as u8 | 1; 9000], &Default::default()).unwrap();
        if write + 1 == SYNCED {
            db.sync_log().unwrap();
        }
    }
    let left = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
    let mut writes = Vec::new();
    let mut logs: Vec<_> =
        left.all_files().into_iter().filter(|path| path.extension() == Some("splog".as_ref())).collect();
    logs.retain(|log| {
        let before = writes.len();
        writes.extend(writes_in(&left, log));
        writes.len() > before
    });
    assert!(logs.len() == 5 && writes.len() == WRITES as usize);
    assert!(writes[28].log == logs[4], "the last log begins with a synced write");
    Left { vfs: left, writes, logs }
}

fn writes_in(vfs: &MemoryVfs, log: &Path) -> Vec<Written> {
    /// Behind the batch's header, the change's tag and the length of its key.
    const KEY_AT: usize = 12 + 2;
    let number = FileNumber(log.file_stem().unwrap().to_string_lossy().parse().unwrap());
    let mut writes = Vec::new();
    wal::replay(vfs, log, &ReplayOptions { number, ..ReplayOptions::default() }, &mut |record| {
        if record.kind == RecordKind::Batch {
            let write = u32::from_be_bytes(record.payload[KEY_AT..KEY_AT + 4].try_into().unwrap());
            let (start, end) = (record.offset as usize, record.payload_offset as usize + record.payload.len());
            writes.push(Written { write, log: log.to_owned(), start, end });
        }
        Ok(())
    })
    .unwrap();
    writes
}

impl Left {
    /// After a power loss without an actual loss: only synced writes are known to have been whole.
    fn after_power_loss(&self) -> Arc<MemoryVfs> {
        self.vfs.crash_clone(2, CrashPolicy::AllKept)
    }

    fn zero(&self, vfs: &MemoryVfs, write: u32, from: usize, len: usize) {
        let written = &self.writes[write as usize];
        let mut bytes = vfs.read_file(&written.log).unwrap();
        let start = written.start + from;
        bytes[start..(start + len).min(written.end)].fill(0);
        vfs.write_file(&written.log, &bytes).unwrap();
    }

    fn writes_of(&self, log: &Path) -> BTreeSet<u32> {
        self.writes.iter().filter(|written| written.log == log).map(|written| written.write).collect()
    }
}

/// Writes found; each must be whole.
fn contents(db: &Db) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut iterator = db.iter(&db.default_family(), &ReadOptions::default()).unwrap();
    let mut valid = iterator.seek_to_first();
    while valid {
        let write = u32::from_be_bytes(iterator.key().try_into().unwrap());
        assert_eq!(iterator.value(), [write as u8 | 1; 9000]);
        found.insert(write);
        valid = iterator.next();
    }
    iterator.status().unwrap();
    found
}

/// Opens twice in the mode and once in the default mode. Later opens must find the same, and a failed open must change
/// nothing.
fn recovered(vfs: &Arc<MemoryVfs>, mode: WalRecoveryMode) -> Result<BTreeSet<u32>, testkit::engine::Error> {
    let found = match Db::open(DIR, &options(vfs, mode)) {
        Ok(db) => contents(&db),
        Err(error) => {
            let again = Db::open(DIR, &options(vfs, mode)).map(drop).expect_err("it failed before");
            assert_eq!((again.path(), again.offset()), (error.path(), error.offset()), "{error:?}, {again:?}");
            return Err(error);
        }
    };
    for again in [mode, WalRecoveryMode::PointInTime] {
        let db = Db::open(DIR, &options(vfs, again)).unwrap_or_else(|e| panic!("a later open, {again:?}: {e:?}"));
        assert!(contents(&db) == found, "{mode:?}, then {again:?}: {:?} are there, not {found:?}", contents(&db));
    }
    Ok(found)
}

/// What a mode is to make of damage.
enum Outcome {
    Holds(BTreeSet<u32>),
    Refused,
}

use Outcome::{Holds, Refused};

fn prefix(len: u32) -> Outcome {
    Holds((0..len).collect())
}

fn all_but(lost: impl IntoIterator<Item = u32>) -> Outcome {
    let lost: BTreeSet<u32> = lost.into_iter().collect();
    Holds((0..WRITES).filter(|write| !lost.contains(write)).collect())
}

/// `outcomes` are in the order of [`MODES`].
fn check(what: &str, left: &Left, outcomes: [Outcome; 4], damage: impl Fn(&Arc<MemoryVfs>)) {
    for (mode, outcome) in MODES.into_iter().zip(outcomes) {
        let vfs = left.after_power_loss();
        damage(&vfs);
        match (recovered(&vfs, mode), outcome) {
            (Ok(found), Holds(expected)) => assert!(found == expected, "{what}, {mode:?}: {found:?}"),
            (Err(error), Refused) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{what}, {mode:?}: {error:?}");
                assert!(error.path().is_some(), "{what}, {mode:?}: {error:?}");
            }
            (Ok(found), Refused) => panic!("{what}, {mode:?}: not refused, but {found:?} are there"),
            (Err(error), Holds(_)) => panic!("{what}, {mode:?}: {error:?}"),
        }
    }
}

#[test]
fn without_damage_every_mode_keeps_all() {
    let left = write_and_leave();
    check("nothing", &left, [(); 4].map(|()| prefix(WRITES)), |_| ());
    for mode in MODES {
        let found = recovered(&left.vfs.crash_clone(3, CrashPolicy::ProcessKilled), mode).unwrap();
        assert_eq!(found.len(), WRITES as usize, "a killed process, {mode:?}");
    }
}

#[test]
fn zeros_at_the_end_are_no_damage() {
    let left = write_and_leave();
    for more in [1, 4096, 1 << 20] {
        check("zeros at the end", &left, [(); 4].map(|()| prefix(WRITES)), |vfs| {
            let len = vfs.read_file(&left.logs[4]).unwrap().len();
            vfs.truncate(&left.logs[4], len + more).unwrap();
        });
    }
}

#[test]
fn a_torn_tail_is_the_end_for_all_but_the_strict_mode() {
    let left = write_and_leave();
    let ended = || prefix(WRITES - 1);
    for torn_at in [1, 20, 4096, 8000] {
        check("a torn tail", &left, [ended(), Refused, ended(), ended()], |vfs| {
            left.zero(vfs, WRITES - 1, torn_at, usize::MAX / 2);
        });
        check("a tail cut off", &left, [ended(), Refused, ended(), ended()], |vfs| {
            vfs.truncate(&left.logs[4], left.writes[WRITES as usize - 1].start + torn_at).unwrap();
        });
    }
}

#[test]
fn unsynced_writes_end_where_one_is_damaged() {
    let left = write_and_leave();
    let hit = SYNCED + 1;
    let expected = || [prefix(hit), Refused, prefix(hit), all_but([hit])];
    check("an unsynced write", &left, expected(), |vfs| left.zero(vfs, hit, 100, 1));
    check("an unsynced block", &left, expected(), |vfs| left.zero(vfs, hit, 2048, 4096));
    check("an unsynced header", &left, expected(), |vfs| left.zero(vfs, hit, 0, 24));
}

#[test]
fn damage_to_what_was_synced_is_refused_unless_salvaged() {
    let left = write_and_leave();
    for hit in [0, 3, 6, 7, 10, 13, 20, 27, SYNCED - 1] {
        let expected = || [Refused, Refused, Refused, all_but([hit])];
        check("a synced write", &left, expected(), |vfs| left.zero(vfs, hit, 100, 1));
        check("a synced block", &left, expected(), |vfs| left.zero(vfs, hit, 1024, 4096));
        check("a whole synced write", &left, expected(), |vfs| left.zero(vfs, hit, 0, usize::MAX / 2));
    }
    let two = [5, 19];
    check("two logs", &left, [Refused, Refused, Refused, all_but(two)], |vfs| {
        two.iter().for_each(|&hit| left.zero(vfs, hit, 100, 1));
    });
}

#[test]
fn a_log_that_is_gone_is_refused_unless_salvaged() {
    let left = write_and_leave();
    for log in &left.logs {
        let expected = || [Refused, Refused, Refused, all_but(left.writes_of(log))];
        check("a missing log", &left, expected(), |vfs| vfs.remove_file(log).unwrap());
        check("a damaged file header", &left, expected(), |vfs| vfs.flip_bit(log, 40 * 8).unwrap());
        check("another log's file", &left, expected(), |vfs| {
            let other = left.logs.iter().find(|other| *other != log).unwrap();
            vfs.write_file(log, &vfs.read_file(other).unwrap()).unwrap();
        });
    }
}

/// The unsynced end of the WAL before the last is lost: the writes in the last WAL are no continuation.
#[test]
fn the_strict_mode_refuses_a_log_behind_one_that_was_cut_off() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs, WalRecoveryMode::PointInTime)).unwrap();
    for write in 0..10u32 {
        db.put(&db.default_family(), &write.to_be_bytes(), &[write as u8 | 1; 9000], &Default::default()).unwrap();
    }
    let left = vfs.crash_clone(2, CrashPolicy::AllKept);
    let log = left.all_files().into_iter().find(|path| path.extension() == Some("splog".as_ref())).unwrap();
    let fifth = writes_in(&left, &log).swap_remove(5);
    left.truncate(&log, fifth.start).unwrap();
    for (mode, expected) in MODES.into_iter().zip([Some(0..5), None, Some(0..5), Some(0..5)]) {
        let image = left.crash_clone(1, CrashPolicy::AllKept);
        let salvaged = if mode == WalRecoveryMode::SkipAnyCorruptedRecords { 7..10 } else { 0..0 };
        match (recovered(&image, mode), expected) {
            (Ok(found), Some(kept)) => assert_eq!(found, kept.chain(salvaged).collect(), "{mode:?}"),
            (Err(error), None) => assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*log))),
            (other, _) => panic!("{mode:?}: {other:?}"),
        }
    }
}

#[test]
fn a_crash_leaves_a_prefix_in_every_mode() {
    let left = write_and_leave();
    let mut random = Random::new(7);
    for policy in CrashPolicy::ALL {
        for _ in 0..10 {
            let image = left.vfs.crash_clone(random.below(u64::MAX), policy);
            let copy = || image.crash_clone(1, CrashPolicy::ProcessKilled);
            let found = recovered(&copy(), WalRecoveryMode::PointInTime).unwrap();
            let len = found.len() as u32;
            assert!(found == (0..len).collect() && len >= SYNCED, "{policy:?}: {found:?}");
            let tolerant = recovered(&copy(), WalRecoveryMode::TolerateCorruptedTailRecords).unwrap();
            assert!(tolerant == found, "{policy:?}: {tolerant:?} are not {found:?}");
            let salvaged = recovered(&copy(), WalRecoveryMode::SkipAnyCorruptedRecords).unwrap();
            assert!(salvaged.is_superset(&found), "{policy:?}: {salvaged:?} lack some of {found:?}");
            match recovered(&copy(), WalRecoveryMode::AbsoluteConsistency) {
                Ok(strict) => assert!(strict == found, "{policy:?}: {strict:?} are not {found:?}"),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption, "{policy:?}: {error:?}");
                    assert!(len < WRITES, "{policy:?}: nothing was lost, but {error:?}");
                }
            }
        }
    }
}
