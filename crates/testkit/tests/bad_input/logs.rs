//! WALs: truncated, missing, or with inconsistent batches.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{FileNumber, SeqNo};
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::{Db, ErrorKind, repair};
use testkit::run::DIR;
use vfs::{CrashPolicy, MemoryVfs, Vfs};
use wal::{FILE_HEADER_BYTES, LogConfig, LogFile, RecordKind};

use crate::common::{Contents, INGESTS, PLAIN, SCRIPT, Subject, copy, database, files, options, read, refused};

/// The last WAL with records.
fn last_log(vfs: &MemoryVfs) -> PathBuf {
    files(vfs, ".splog").pop().expect("there is a log")
}

#[test]
fn a_log_with_a_tail_of_zeros_is_whole() {
    for subject in [PLAIN, INGESTS] {
        let whole = subject.database();
        let expected = subject.read(&copy(&whole)).unwrap();
        let path = last_log(&whole);
        let len = whole.read_file(&path).unwrap().len();
        for more in [1, 511, 4096, 1 << 20] {
            let vfs = copy(&whole);
            vfs.truncate(&path, len + more).unwrap();
            assert_eq!(subject.read(&vfs).unwrap(), expected);
        }
    }
}

/// States after each write held only by the last WAL, which may end after any of them.
fn states(subject: Subject) -> Vec<Contents> {
    let lines: Vec<_> = subject.script.lines().collect();
    let is_settled = |line: &&str| line.trim().starts_with("flush ") || line.trim() == "reopen";
    let settled = lines.iter().rposition(is_settled).unwrap();
    let after = |end: usize| {
        let script = lines.iter().take(end).copied().collect::<Vec<_>>().join("\n");
        subject.read(&subject.after(&script)).unwrap()
    };
    (settled + 1..=lines.len()).map(after).collect()
}

#[test]
fn a_cut_log_gives_a_prefix_or_an_error() {
    for subject in [PLAIN, INGESTS] {
        let whole = subject.database();
        let prefixes = states(subject);
        let path = last_log(&whole);
        let len = whole.read_file(&path).unwrap().len();
        for cut in 0..len {
            let vfs = copy(&whole);
            vfs.truncate(&path, cut).unwrap();
            match subject.read(&vfs) {
                Ok(contents) => assert!(prefixes.contains(&contents), "cut to {cut} of {len} bytes: {contents:?}"),
                Err(error) => {
                    let named = (error.kind(), error.path());
                    assert_eq!(named, (ErrorKind::Corruption, Some(&*path)), "cut to {cut}: {error:?}");
                    assert!(error.offset().is_some(), "{error:?}");
                }
            }
        }
    }
}

/// A database with writes in several unflushed WALs, as a kill leaves it.
pub fn with_several_logs() -> Arc<MemoryVfs> {
    with_logs_of(30)
}

/// The files after a kill, with `writes` writes, seven in each WAL.
pub fn with_logs_of(writes: u32) -> Arc<MemoryVfs> {
    let (vfs, db) = with_unsynced_logs_of(writes);
    db.sync_log().unwrap();
    let killed = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
    assert!(files(&killed, ".splog").len() >= 4, "{:?}", files(&killed, ".splog"));
    killed
}

fn with_unsynced_logs_of(writes: u32) -> (Arc<MemoryVfs>, Db) {
    let vfs = MemoryVfs::new(1);
    let mut options = crate::common::profile().open_options(vfs.clone(), ["users"]);
    for (_, family) in &mut options.families {
        family.write_buffer_size = 1 << 20;
    }
    let db = Db::open(DIR, &options).unwrap();
    let family = db.default_family();
    for number in 0..writes {
        db.put(&family, &number.to_be_bytes(), &[number as u8; 9000], &Default::default()).unwrap();
    }
    (vfs, db)
}

/// The power loss took the end of an unsynced log, and left those behind it (D2).
#[test]
fn logs_behind_a_cut_off_one_are_left_out_told_and_kept() {
    let (vfs, _db) = with_unsynced_logs_of(30);
    let vfs = vfs.crash_clone(1, CrashPolicy::AllKept);
    let logs = files(&vfs, ".splog");
    assert!(logs.len() >= 4, "{logs:?}");
    let len = vfs.read_file(&logs[1]).unwrap().len();
    vfs.truncate(&logs[1], 30_000).unwrap();
    vfs.truncate(&logs[1], len).unwrap();
    let expected = read(&copy(&vfs)).unwrap();
    let last = SeqNo(expected["default"].len() as u64);
    assert!((8..14).contains(&last.0), "{last}");
    let checked = |vfs: &Arc<MemoryVfs>| {
        let options = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
        check(Path::new(DIR), &options, &mut |_| ()).unwrap()
    };
    let left_out = |notes: &[String]| notes.iter().filter(|note| note.contains("so they are left out")).count();
    let before = checked(&vfs);
    assert!(before.is_whole() && before.last_seq == last && before.log_changes == last.0, "{before:?}");
    let count = left_out(&before.notes);
    assert!(count >= 2, "{before:?}");
    let salvaged = copy(&vfs);
    let report = repair(DIR, &options(&vfs)).unwrap();
    assert!(report.lost_nothing() && report.last_seq == last && left_out(&report.notes) == count, "{report}");
    assert_eq!(checked(&vfs).last_seq, last);
    assert_eq!(read(&vfs).unwrap(), expected);
    for log in &logs[2..2 + count] {
        assert!(vfs.exists(&Path::new(DIR).join("lost").join(log.file_name().unwrap())).unwrap(), "{log:?}");
    }
    // Damage before makes the repair a salvage, which takes them with a doubt.
    let mut damaged = salvaged.read_file(&logs[0]).unwrap();
    damaged[32] ^= 1; // of its header
    salvaged.write_file(&logs[0], &damaged).unwrap();
    let report = repair(DIR, &options(&salvaged)).unwrap();
    assert!(!report.doubts.is_empty() && report.last_seq == SeqNo(30) && left_out(&report.notes) == 0, "{report}");
    assert!(read(&salvaged).unwrap()["default"].contains_key(&29u32.to_be_bytes()[..]));
}

#[test]
fn a_log_without_its_header_in_the_middle_is_no_silent_hole() {
    let whole = with_several_logs();
    let logs = files(&whole, ".splog");
    for blank in &logs[..logs.len() - 2] {
        for cut in [0, 1, FILE_HEADER_BYTES as usize - 1] {
            let vfs = copy(&whole);
            vfs.truncate(blank, cut).unwrap();
            assert_eq!(refused(&vfs, blank).kind(), ErrorKind::Corruption);
        }
    }
}

/// Adds a WAL with one record, as a later process would have written it.
pub fn with_record(seq: impl FnOnce(SeqNo) -> SeqNo, count: u32, records: &[u8]) -> (Arc<MemoryVfs>, PathBuf) {
    let vfs = database(SCRIPT);
    let last = Db::open(DIR, &options(&copy(&vfs))).unwrap().latest_sequence_number();
    let numbers = vfs.all_files().into_iter().filter_map(|path| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        name.trim_start_matches(|c: char| !c.is_ascii_digit()).split('.').next()?.parse::<u64>().ok()
    });
    let number = FileNumber(numbers.max().unwrap() + 1);
    let path = Path::new(DIR).join(format!("{number}.splog"));
    let log =
        LogFile::create(&*vfs, &path, number, LogConfig { capacity_bytes: 1 << 16, ..LogConfig::default() }).unwrap();
    let mut batch = seq(last).0.to_le_bytes().to_vec();
    batch.extend(count.to_le_bytes());
    batch.extend(records);
    let reservation = log.try_reserve(batch.len()).unwrap();
    log.append(&reservation, RecordKind::Batch, &[&batch]).unwrap();
    log.publish(reservation.end());
    log.sync().unwrap();
    vfs.sync_dir(Path::new(DIR)).unwrap();
    (vfs, path)
}

pub fn next(last: SeqNo) -> SeqNo {
    SeqNo(last.0 + 1)
}

/// `Put` of "k" = "v" in the default family.
pub const PUT: &[u8] = &[1, 1, b'k', 1, b'v'];

#[test]
fn a_batch_that_tells_the_truth_is_replayed() {
    let (vfs, _) = with_record(next, 1, PUT);
    assert_eq!(read(&vfs).unwrap()["default"][&b"k"[..]], b"v");
}

#[test]
fn batches_in_a_log_that_lie_are_refused_with_file_and_offset() {
    let lies: [(u32, &[u8]); 9] = [
        (0, PUT),
        (2, PUT),
        (u32::MAX, PUT),
        (1, &[]),
        (1, &[1, 0xff, 0xff, 0xff, 0xff, 0x0f, b'k']),
        (1, &[1, 1, b'k', 0xff, 0xff, 0xff, 0xff, 0xff]),
        (1, &[1, 1, b'k', 2, b'v']),
        (1, &[99, 1, b'k']),
        (1, &[5, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, b'k', 1, b'v']),
    ];
    for (count, records) in lies {
        let (vfs, path) = with_record(next, count, records);
        let error = refused(&vfs, &path);
        assert!(matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported), "{error:?}");
        assert!(error.offset().is_some(), "{error:?}");
    }
}

#[test]
fn sequence_numbers_in_a_log_do_not_overflow() {
    let two: Vec<u8> = [PUT, PUT].concat();
    for first in [SeqNo::MAX, SeqNo(SeqNo::MAX.0 + 1), SeqNo(u64::MAX)] {
        let (vfs, path) = with_record(|_| first, 2, &two);
        let error = refused(&vfs, &path);
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error:?}");
    }
    let (vfs, _) = with_record(|_| SeqNo::MAX, 1, PUT);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    let error = db.put(&db.default_family(), b"k", b"w", &Default::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error:?}");
}

#[test]
fn numbers_that_go_backwards_are_refused() {
    let (vfs, path) = with_record(|_| SeqNo(1), 1, PUT);
    match read(&vfs) {
        Err(error) => assert_eq!(error.path(), Some(&*path), "{error:?}"),
        // Number 1 is in tables already, so that the record is passed over.
        Ok(contents) => assert!(!contents["default"].contains_key(&b"k"[..])),
    }
}

/// Records behind zeros were published in the same page cache, however many zeros there are.
#[test]
fn records_behind_zeros_are_told() {
    let options = |vfs: &Arc<MemoryVfs>| {
        let mut options = crate::common::profile().open_options(vfs.clone(), ["users"]);
        options.families.iter_mut().for_each(|(_, family)| family.write_buffer_size = 8 << 20);
        options.db.log_file_bytes = 8 << 20;
        options
    };
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    for key in 0..4000u32 {
        db.put(&db.default_family(), &key.to_be_bytes(), &[7; 1000], &Default::default()).unwrap();
    }
    let whole = copy(&vfs);
    drop(db);
    let path = last_log(&whole);
    for zeros in [1 << 10, 1 << 20, (1 << 20) + 4096, 3 << 20] {
        let vfs = copy(&whole);
        let mut bytes = vfs.read_file(&path).unwrap();
        bytes.get_mut(200_000..200_000 + zeros).unwrap().fill(0);
        vfs.write_file(&path, &bytes).unwrap();
        let error = Db::open(DIR, &options(&copy(&vfs))).err().expect("it is refused");
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*path)), "{zeros}: {error}");
        assert!(!repair(DIR, &options(&copy(&vfs))).unwrap().lost_nothing(), "{zeros}");
        let db = crate::doubts::salvage_with(options(&vfs));
        assert!(!db.recovery_doubts().is_empty(), "{zeros}");
        let last = db.get(&db.default_family(), &3999u32.to_be_bytes(), &Default::default()).unwrap();
        assert!(last.is_some(), "{zeros}");
    }
}
