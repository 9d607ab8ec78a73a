//! What a salvage leaves in doubt: all that may be wrong, and no more.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use testkit::engine::extend::Logger;
use testkit::engine::options::{InfoLogLevel, WalRecoveryMode};
use testkit::engine::{
    Db, ErrorKind, FamilyOptions, OpenOptions, ReadOptions, UserOrder, WriteBatch, WriteOptions, repair,
};
use testkit::run::DIR;
use vfs::{CrashPolicy, MemoryVfs, Vfs};

use crate::common::{copy, files, options};
use crate::cut_repairs::cut_off_at_each_call_with;

/// Two families whose memtables are flushed on request alone, and logs of seven large writes each.
fn roomy(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    let mut options = crate::common::profile().open_options(vfs.clone(), ["users"]);
    for (_, family) in &mut options.families {
        family.write_buffer_size = 1 << 20;
    }
    options
}

/// The lines of the event log.
#[derive(Default)]
struct Collected(Mutex<Vec<String>>);

impl Logger for Collected {
    fn log(&self, _: InfoLogLevel, line: &str) {
        self.0.lock().push(line.to_owned());
    }
}

/// Options of a family that leaves large batches in its queue.
pub fn waiting() -> FamilyOptions {
    FamilyOptions { min_write_buffer_number_to_merge: 8, max_write_buffer_number: 16, ..FamilyOptions::default() }
}

pub fn salvage_with(mut options: OpenOptions) -> Db {
    options.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
    Db::open(DIR, &options).unwrap()
}

fn salvage(vfs: &Arc<MemoryVfs>) -> Db {
    salvage_with(roomy(vfs))
}

/// The keys that are in doubt.
pub fn in_doubt<'k>(db: &Db, keys: &[(&'static str, &'k str)]) -> Vec<(&'static str, &'k str)> {
    let doubts = db.recovery_doubts();
    let is_in_doubt = |(family, key): &&(&str, &str)| {
        doubts.iter().any(|doubt| doubt.covers(family, key.as_bytes(), &UserOrder::Bytewise))
    };
    keys.iter().filter(is_in_doubt).copied().collect()
}

fn put(db: &Db, family: &str, key: &str) {
    db.put(&db.family(family).unwrap(), key.as_bytes(), b"v", &WriteOptions::synced()).unwrap();
}

/// Flips a bit of the record that puts `key`.
fn damage(vfs: &MemoryVfs, key: &str) {
    let hit = files(vfs, ".splog").into_iter().find_map(|log| {
        let bytes = vfs.read_file(&log).unwrap();
        let at = bytes.windows(key.len()).position(|window| window == key.as_bytes())?;
        Some((log, at))
    });
    let (log, at) = hit.expect("it is in a log");
    vfs.flip_bit(&log, at as u64 * 8).unwrap();
}

const KEYS: [(&str, &str); 4] = [("default", "a"), ("default", "z"), ("users", "a"), ("users", "z")];
const OF_DEFAULT: [(&str, &str); 2] = [("default", "a"), ("default", "z")];

/// `users` is flushed between the writes "early" and "late" to both families.
fn half_flushed() -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &roomy(&vfs)).unwrap();
    for key in ["first", "early", "later"] {
        put(&db, "default", &format!("{key}-in-default"));
        put(&db, "users", &format!("{key}-in-users"));
    }
    db.flush(&[&db.family("users").unwrap()]).unwrap();
    for key in ["late", "last"] {
        put(&db, "default", &format!("{key}-in-default"));
        put(&db, "users", &format!("{key}-in-users"));
    }
    copy(&vfs)
}

#[test]
fn damaged_bytes_leave_the_families_in_doubt_that_are_not_flushed_past_them() {
    for (damaged, expected) in [
        ("first-in-default", &OF_DEFAULT[..]),
        ("early-in-users", &OF_DEFAULT[..]),
        ("late-in-users", &KEYS[..]),
        ("late-in-default", &KEYS[..]),
    ] {
        let vfs = half_flushed();
        damage(&vfs, damaged);
        let log = Arc::new(Collected::default());
        let mut options = roomy(&vfs);
        options.db.info_log = Some(log.clone());
        let db = salvage_with(options);
        assert_eq!(in_doubt(&db, &KEYS), expected, "{damaged}: {:?}", db.recovery_doubts());
        let told = db.property(&db.default_family(), "spillway.recovery-doubts").unwrap();
        assert_eq!(told.lines().count(), db.recovery_doubts().len());
        assert!(told.contains("are damaged"), "{told}");
        db.close().unwrap();
        let lines = log.0.lock();
        assert!(lines.iter().any(|line| line.contains("recovery leaves in doubt: ")), "{lines:?}");
        let again = Db::open(DIR, &roomy(&vfs)).unwrap();
        assert!(again.recovery_doubts().is_empty(), "a later open passes over nothing");
    }
}

#[test]
fn a_salvage_of_what_is_whole_doubts_nothing() {
    for vfs in [half_flushed(), crate::logs::with_several_logs()] {
        assert!(salvage(&copy(&vfs)).recovery_doubts().is_empty());
        // The end that a crash left unfinished.
        let last = files(&vfs, ".splog").into_iter().rfind(|log| !is_blank(&vfs, log)).unwrap();
        let bytes = vfs.read_file(&last).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
        vfs.truncate(&last, end - 3).unwrap();
        assert!(salvage(&vfs).recovery_doubts().is_empty());
    }
}

fn is_blank(vfs: &MemoryVfs, log: &Path) -> bool {
    vfs.read_file(log).unwrap().iter().all(|byte| *byte == 0)
}

/// Logs of large writes: of both families, then, once `users` is flushed, of both again.
fn many_logs() -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &roomy(&vfs)).unwrap();
    let (default, users) = (db.default_family(), db.family("users").unwrap());
    let write = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            let family = if number % 2 == 0 { &default } else { &users };
            db.put(family, &number.to_be_bytes(), &[7; 9000], &WriteOptions::default()).unwrap();
        }
    };
    write(0..20);
    db.flush(&[&users]).unwrap();
    write(20..40);
    db.sync_log().unwrap();
    copy(&vfs)
}

#[test]
fn a_missing_log_leaves_the_families_in_doubt_that_are_not_flushed_past_it() {
    let whole = many_logs();
    let logs: Vec<_> = files(&whole, ".splog").into_iter().filter(|log| !is_blank(&whole, log)).collect();
    assert!(logs.len() >= 5, "{logs:?}");
    let without = |gone: &[PathBuf]| {
        let vfs = copy(&whole);
        gone.iter().for_each(|log| vfs.remove_file(log).unwrap());
        in_doubt(&salvage(&vfs), &KEYS)
    };
    assert_eq!(without(&logs[..1]), OF_DEFAULT);
    assert_eq!(without(&logs[..2]), OF_DEFAULT);
    assert_eq!(without(&logs[1..2]), OF_DEFAULT);
    let last = logs.len() - 1;
    assert_eq!(without(&logs[last - 1..last]), KEYS);
    assert_eq!(without(&logs[1..]), KEYS, "nothing tells how far they went");
}

#[test]
fn a_log_that_lost_its_end_is_no_silent_hole_in_a_salvage() {
    let whole = many_logs();
    let logs: Vec<_> = files(&whole, ".splog").into_iter().filter(|log| !is_blank(&whole, log)).collect();
    for (at, log) in logs[..logs.len() - 1].iter().enumerate() {
        let len = whole.read_file(log).unwrap().len();
        for cut in [0, 1, 127, 128, len / 2] {
            let vfs = copy(&whole);
            vfs.truncate(log, cut).unwrap();
            let found = in_doubt(&salvage(&vfs), &KEYS);
            let expected = if at == 0 { &OF_DEFAULT[..] } else { &found[..] };
            assert!(found == expected && found.starts_with(&OF_DEFAULT), "log {at} cut to {cut}: {found:?}");
        }
    }
}

/// Replay alone finds the hole: a log that was not known to be synced lost its end, which is no damage, and numbers are missing
/// behind it.
#[test]
fn salvaging_repair_that_is_cut_off_forgets_no_doubt() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &roomy(&vfs)).unwrap();
    for number in 0..16u32 {
        db.put(&db.default_family(), &number.to_be_bytes(), &[7; 9000], &WriteOptions::default()).unwrap();
    }
    let whole = vfs.crash_clone(1, CrashPolicy::AllKept);
    let log = files(&whole, ".splog").swap_remove(0);
    whole.truncate(&log, whole.read_file(&log).unwrap().len() / 2).unwrap();
    let salvaging = |vfs: &Arc<MemoryVfs>| {
        let mut options = roomy(vfs);
        options.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
        options
    };
    let report = repair(DIR, &salvaging(&copy(&whole))).unwrap();
    assert!(report.logs.is_empty() && report.lost.is_empty() && !report.doubts.is_empty(), "{report}");
    cut_off_at_each_call_with(salvaging, &whole, |nth, vfs| {
        let report = repair(DIR, &salvaging(&vfs)).unwrap();
        assert!(!report.lost_nothing(), "call {nth}: {report}");
    });
}

#[test]
fn a_lost_large_batch_leaves_its_families_in_doubt() {
    let vfs = MemoryVfs::new(1);
    let large = |vfs: &Arc<MemoryVfs>| {
        let mut options = roomy(vfs);
        options.db.large_batch_bytes = 4096;
        options.families.iter_mut().for_each(|(_, family)| *family = waiting());
        options
    };
    let db = Db::open(DIR, &large(&vfs)).unwrap();
    put(&db, "default", "before");
    let mut batch = WriteBatch::new();
    (0..100u32).for_each(|n| batch.put(db.family("users").unwrap().id(), &n.to_be_bytes(), &[7; 100]));
    db.write(&batch, &WriteOptions::default()).unwrap();
    put(&db, "default", "after");
    let file = files(&vfs, ".spbatch").pop().expect("it is in a file of its own");
    for cut in [None, Some(5000)] {
        let vfs = copy(&vfs);
        match cut {
            None => vfs.remove_file(&file).unwrap(),
            Some(len) => vfs.truncate(&file, len).unwrap(),
        }
        let error = Db::open(DIR, &large(&vfs)).map(drop).expect_err("it lacks a batch");
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*file)), "{error}");
        let way_out = "open with wal_recovery_mode=kSkipAnyCorruptedRecords, which goes on without what cannot be read";
        assert!(error.message().ends_with(way_out) && !error.message().contains("salvages"), "{error}");
        assert_eq!(in_doubt(&salvage_with(large(&vfs)), &KEYS), KEYS[2..]);
    }
    // Another database's file is in its place.
    let other = MemoryVfs::new(2);
    let db = Db::open(DIR, &large(&other)).unwrap();
    put(&db, "default", "before");
    db.write(&batch, &WriteOptions::default()).unwrap();
    let exchanged = copy(&vfs);
    exchanged.write_file(&file, &other.read_file(&files(&other, ".spbatch").pop().unwrap()).unwrap()).unwrap();
    let error = Db::open(DIR, &large(&copy(&exchanged))).err().expect("it lacks the batch");
    assert!(error.kind() == ErrorKind::Corruption && error.message().contains("of the database"), "{error}");
    assert_eq!(in_doubt(&salvage_with(large(&copy(&exchanged))), &KEYS), KEYS[2..]);
    assert!(!repair(DIR, &large(&exchanged)).unwrap().lost_nothing());
    // The record is lost, and the batch is there still.
    files(&vfs, ".splog").iter().for_each(|log| vfs.remove_file(log).unwrap());
    let killed = copy(&vfs);
    let bytes = killed.read_file(&file).unwrap();
    let report = repair(DIR, &large(&killed)).unwrap();
    let kept = Path::new(DIR).join("lost").join(file.file_name().unwrap());
    assert!(!report.lost_nothing() && killed.read_file(&kept).unwrap() == bytes, "{report}");
}

#[test]
fn a_batch_of_another_length_than_it_says_leaves_its_keys_in_doubt() {
    let of_k = [("default", "a"), ("default", "k"), ("users", "k")];
    let (vfs, _) = crate::logs::with_record(crate::logs::next, 2, crate::logs::PUT);
    assert_eq!(in_doubt(&salvage_with(options(&vfs)), &of_k), of_k[1..2]);
    let (vfs, _) = crate::logs::with_record(crate::logs::next, 1, &[1, 1, b'k', 2, b'v']);
    assert_eq!(in_doubt(&salvage_with(options(&vfs)), &of_k), of_k, "nothing tells its keys");
}

/// A copy has no place for doubts.
#[test]
fn copy_beside_a_writer_leaves_nothing_out() {
    let vfs = half_flushed();
    damage(&vfs, "early-in-default");
    let mut options = roomy(&vfs);
    options.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
    let error = Db::checkpoint_beside(DIR, &options, Path::new("/copy")).expect_err("it would lack a write");
    let is_told = error.message().contains("copy through that program, or close it first");
    assert!(is_told && error.kind() == ErrorKind::Corruption && !vfs.exists(Path::new("/copy")).unwrap(), "{error}");
}

#[test]
fn a_reader_that_salvages_has_the_same_doubts_and_changes_nothing() {
    let vfs = half_flushed();
    damage(&vfs, "early-in-default");
    let before = vfs.all_files();
    let db = salvage_with(OpenOptions { read_only: true, ..roomy(&vfs) });
    assert_eq!(in_doubt(&db, &KEYS), OF_DEFAULT);
    let found = db.get(&db.default_family(), b"later-in-default", &ReadOptions::default()).unwrap();
    assert_eq!(found.as_deref(), Some(&b"v"[..]));
    assert_eq!(vfs.all_files(), before);
}

#[test]
fn a_family_made_behind_the_damage_is_not_in_doubt() {
    let vfs = half_flushed();
    let db = Db::open(DIR, &roomy(&vfs)).unwrap();
    db.create_family("made", FamilyOptions::default()).unwrap();
    put(&db, "made", "in-made");
    drop(db);
    damage(&vfs, "late-in-default");
    let mut options = roomy(&vfs);
    options.families.push(("made".to_owned(), FamilyOptions::default()));
    let db = salvage_with(options);
    assert_eq!(in_doubt(&db, &[&KEYS[..], &[("made", "a")]].concat()), KEYS);
}

/// Behind a lost log a commit takes an earlier batch of its name: that one's families are in doubt, too, though what they
/// lost is in tables.
#[test]
fn commit_behind_a_lost_log_doubts_the_batch_at_hand() {
    let script = "begin z put default a 1; put users b 1\nreopen\nend z\nbegin z put default c 1; put default d 1\n\
                  put users e 1\nflush users\nreopen\nend z\nput default f 1 sync";
    let vfs = crate::common::PLAIN.after(&format!("create users\n{script}"));
    let logs = files(&vfs, ".splog");
    let lost = logs.iter().find(|log| vfs.read_file(log).unwrap().windows(3).any(|part| part == b"\x01e\x01"));
    vfs.remove_file(lost.expect("the log with users' e")).unwrap();
    let db = salvage(&vfs);
    let doubts = db.recovery_doubts();
    let found = db.get(&db.family("users").unwrap(), b"b", &Default::default()).unwrap();
    assert!(
        found.is_some() && doubts.iter().any(|doubt| doubt.covers("users", b"b", &UserOrder::Bytewise)),
        "{doubts:?}"
    );
}

/// All keys are in tables. No table tells of a transaction that was prepared, committed or rolled back in a damaged part of the log.
#[test]
fn lost_steps_of_transactions_are_in_doubt() {
    let script = "begin kept put users k 1\nbegin lost put default prepared-key 1\nput default a 1\nput users a 1\n\
                  flush default users\nput default z 1 sync";
    for is_missing in [false, true] {
        let vfs = crate::common::PLAIN.after(script);
        let [log] = &files(&vfs, ".splog")[..] else { panic!("one log") };
        match is_missing {
            false => damage(&vfs, "prepared-key"),
            true => vfs.remove_file(log).unwrap(),
        }
        let db = salvage(&vfs);
        let doubts = db.recovery_doubts();
        assert!(doubts.iter().any(|doubt| doubt.of_prepared || is_missing && doubt.family.is_none()), "{doubts:?}");
        let keys = in_doubt(&db, &KEYS);
        assert_eq!(keys.is_empty(), !is_missing, "{doubts:?}");
        let kept = Path::new(DIR).join("lost").join(log.file_name().unwrap());
        assert!(is_missing || vfs.exists(&kept).unwrap(), "{:?}", vfs.all_files());
    }
}
