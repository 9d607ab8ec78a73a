//! A row of RocksDB's logs with a part missing: what MANIFEST, numbers and commits prove is told, and a row that is whole
//! leaves no doubt.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::coding::{put_varint32, put_varint64};
use base::{FamilyId, FileNumber, SeqNo};
use testkit::engine::backup::{BackupEngine, BackupOptions, RestoreOptions};
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::export::ExportOptions;
use testkit::engine::options::WalRecoveryMode;
use testkit::engine::version::edit::VersionEdit;
use testkit::engine::version::edit_codec::encode_record;
use testkit::engine::{
    Db, Doubt, ErrorKind, FamilyOptions, LockLimits, LockTable, OpenOptions, OtherFamilies, Patience, Pessimistic,
    PreparedTransactions, TableWriter, repair,
};
use testkit::run::DIR;
use vfs::{Fault, FaultCode, FaultVfs, IfExists, IoClass, MemoryVfs, Rule, Vfs};
use wal::framed::FramedWriter;

use crate::common::copy;
use crate::rocksdb_lost_logs::table;

pub const F: FamilyId = FamilyId(1);
const COMPARATOR: &str = "leveldb.BytewiseComparator";

pub fn path(name: &str) -> PathBuf {
    Path::new(DIR).join(name)
}

pub fn log_path(number: u64) -> PathBuf {
    path(&format!("{}.log", FileNumber(number)))
}

pub fn append(vfs: &MemoryVfs, path: &Path, records: &[Vec<u8>]) {
    let file = match vfs.exists(path).unwrap() {
        true => vfs.open_append(path).unwrap(),
        false => vfs.create(path, IfExists::Fail).unwrap(),
    };
    let mut writer = FramedWriter::new(file, IoClass::Log);
    records.iter().for_each(|record| writer.append(record).unwrap());
    writer.sync().unwrap();
}

pub fn edit(change: impl FnOnce(&mut VersionEdit)) -> Vec<u8> {
    let mut edit = VersionEdit { next_file: Some(FileNumber(30)), ..VersionEdit::default() };
    change(&mut edit);
    encode_record(&[edit])
}

/// Names log `number` as the first that `family` needs; `last` is in tables.
pub fn flushed(family: FamilyId, number: u64, last: u64) -> Vec<u8> {
    edit(|edit| {
        edit.family = family;
        (edit.log_number, edit.last_seq) = (Some(FileNumber(number)), Some(SeqNo(last)));
    })
}

pub fn kept_from(number: u64) -> Vec<u8> {
    edit(|edit| edit.min_log_to_keep = Some(FileNumber(number)))
}

/// A write batch.
fn batch(first: u64, count: u32, changes: &[&[u8]]) -> Vec<u8> {
    [&first.to_le_bytes()[..], &count.to_le_bytes(), &changes.concat()].concat()
}

/// Each number puts a key of its own, its digit, into family "f".
pub fn put(seq: u64) -> Vec<u8> {
    batch(seq, 1, &[&[5, 1, 1, b'0' + seq as u8, 1, b'v']])
}

pub const MANIFEST: &str = "MANIFEST-000005";

/// RocksDB's database with the families "default" and "f", in a MANIFEST of this number. Nothing is flushed.
pub fn begun(manifest: u64) -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    vfs.create_dir_all(Path::new(DIR)).unwrap();
    let name = format!("MANIFEST-{}", FileNumber(manifest));
    vfs.write_file(&path("CURRENT"), format!("{name}\n").as_bytes()).unwrap();
    let first = edit(|edit| {
        edit.comparator = Some(COMPARATOR.to_owned());
        (edit.log_number, edit.last_seq) = (Some(FileNumber(0)), Some(SeqNo(0)));
    });
    let second = edit(|edit| {
        (edit.family, edit.add_family) = (F, Some("f".to_owned()));
        edit.comparator = Some(COMPARATOR.to_owned());
        (edit.log_number, edit.max_family) = (Some(FileNumber(4)), Some(1));
    });
    append(&vfs, &path(&name), &[first, second]);
    vfs
}

/// Three logs, of which "f" needs all. "default" was flushed twice, each time for the next log.
pub fn database() -> Arc<MemoryVfs> {
    let vfs = begun(5);
    let edits = [flushed(FamilyId::DEFAULT, 10, 3), kept_from(4), flushed(FamilyId::DEFAULT, 12, 6), kept_from(4)];
    append(&vfs, &path(MANIFEST), &edits);
    for (number, first) in [(4, 1), (10, 4), (12, 7)] {
        append(&vfs, &log_path(number), &[put(first), put(first + 1), put(first + 2)]);
    }
    vfs
}

pub fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    let other_families = OtherFamilies::OpenWith(Box::default());
    OpenOptions { vfs: vfs.clone(), adopt_rocksdb: true, other_families, ..OpenOptions::default() }
}

pub fn is_whole(vfs: &Arc<MemoryVfs>) -> bool {
    let how = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
    check(Path::new(DIR), &how, &mut |_| {}).unwrap().is_whole()
}

/// The doubts of an open, which every other way to read the directory shares.
pub fn doubts(vfs: &Arc<MemoryVfs>, what: &str) -> Vec<Doubt> {
    let doubts = Db::open(DIR, &options(&copy(vfs))).unwrap().recovery_doubts();
    assert_eq!(is_whole(vfs), doubts.is_empty(), "{what}, check: {doubts:?}");
    let salvaged = copy(vfs);
    let mut how = options(&salvaged);
    how.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
    let by_salvage = Db::open(DIR, &how).unwrap().recovery_doubts();
    assert_eq!(by_salvage.is_empty(), doubts.is_empty(), "{what}, salvage: {by_salvage:?}");
    let repaired = copy(vfs);
    let lost_nothing = repair(DIR, &options(&repaired)).unwrap().lost_nothing();
    assert_eq!(lost_nothing, doubts.is_empty(), "{what}, repair");
    doubts
}

#[track_caller]
pub fn is_told_for_f(vfs: &Arc<MemoryVfs>, what: &str) {
    let doubts = doubts(vfs, what);
    let families: Vec<_> = doubts.iter().map(|doubt| doubt.family.as_deref()).collect();
    assert!(!families.is_empty() && families.iter().all(|family| *family == Some("f")), "{what}: {doubts:?}");
}

/// Cuts a log before its record `keep`, counted from 0. Each of `put` has 25 bytes.
pub fn cut(vfs: &MemoryVfs, number: u64, keep: usize) {
    vfs.truncate(&log_path(number), 25 * keep).unwrap();
}

#[test]
fn whole_row_leaves_no_doubt() {
    let vfs = database();
    assert!(doubts(&vfs, "whole").is_empty());
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    let f = db.family("f").unwrap();
    let has = |key: u8| db.get(&f, &[b'0' + key], &Default::default()).unwrap().is_some();
    assert!((1..10).all(has));
}

#[test]
fn log_that_the_manifest_needs_is_missed() {
    for number in [4, 10] {
        let vfs = database();
        vfs.remove_file(&log_path(number)).unwrap();
        is_told_for_f(&vfs, &format!("log {number} is gone"));
        let vfs = database();
        vfs.truncate(&log_path(number), 0).unwrap();
        is_told_for_f(&vfs, &format!("log {number} is empty"));
        let vfs = database();
        vfs.write_file(&log_path(number), &[0; 75]).unwrap();
        is_told_for_f(&vfs, &format!("log {number} is zeros"));
    }
}

#[test]
fn log_that_lost_its_end_between_two_records_is_told() {
    for number in [4, 10] {
        for keep in [1, 2] {
            let vfs = database();
            cut(&vfs, number, keep);
            is_told_for_f(&vfs, &format!("log {number} has {keep} records"));
            let vfs = database();
            let mut bytes = vfs.read_file(&log_path(number)).unwrap();
            bytes[25 * keep..].fill(0);
            vfs.write_file(&log_path(number), &bytes).unwrap();
            is_told_for_f(&vfs, &format!("log {number} has {keep} records and zeros"));
        }
    }
}

/// A crash of RocksDB's cuts the last log so; another one only if what follows goes on where it ends.
#[test]
fn log_that_ends_inside_a_record_before_others_is_told() {
    for number in [4, 10] {
        let vfs = database();
        vfs.truncate(&log_path(number), 25 * 2 + 9).unwrap();
        is_told_for_f(&vfs, &format!("log {number} is cut off"));
    }
    let vfs = database();
    vfs.truncate(&log_path(12), 25 * 2 + 9).unwrap();
    assert!(doubts(&vfs, "the last log").is_empty());
    let vfs = begun(5);
    append(&vfs, &log_path(4), &[put(1), put(2), put(3)]);
    vfs.truncate(&log_path(4), 25 * 2 + 9).unwrap();
    append(&vfs, &log_path(10), &[put(3), put(4)]);
    assert!(doubts(&vfs, "RocksDB went on").is_empty());
}

/// A disk put a block in the place of another. What was read before ends in what follows: one record of right checksums.
#[test]
fn record_that_is_malformed_counts_as_damage() {
    let long = |seq: u64| {
        let key = format!("{seq:05}");
        let value = vec![b'v'; 20 + seq as usize * 7 % 100];
        batch(seq, 1, &[&[5, 1, 5], key.as_bytes(), &[value.len() as u8], &value])
    };
    let vfs = begun(5);
    append(&vfs, &log_path(4), &(1..1500).map(long).collect::<Vec<_>>());
    let mut bytes = vfs.read_file(&log_path(4)).unwrap();
    bytes.copy_within(32768..65536, 65536);
    vfs.write_file(&log_path(4), &bytes).unwrap();
    let simple = begun(5);
    append(&simple, &log_path(4), &[long(1), batch(2, 2, &[&[5, 1, 1, b'1', 1, b'v']]), long(1499)]);
    for vfs in [vfs, simple] {
        assert!(!doubts(&vfs, "malformed").is_empty());
        for mode in [WalRecoveryMode::PointInTime, WalRecoveryMode::SkipAnyCorruptedRecords] {
            let mut how = options(&copy(&vfs));
            how.db.wal_recovery_mode = mode;
            let db = Db::open(DIR, &how).unwrap();
            let f = db.family("f").unwrap();
            let has = |key: &[u8]| db.get(&f, key, &Default::default()).unwrap().is_some();
            assert!(has(b"00001"));
            assert_eq!(has(b"01499"), mode == WalRecoveryMode::SkipAnyCorruptedRecords);
        }
    }
}

/// A rescue does not go on without what an undamaged log holds.
#[test]
fn record_of_an_unknown_kind_or_policy_is_refused() {
    let two = batch(1, 2, &[&[5, 1, 1, b'1', 1, b'v'], &[5, 1, 1, b'2', 1, b'v']]);
    for records in [[put(1), batch(2, 1, &[&[18, 10, 1, b'T']])], [two, put(2)]] {
        let vfs = begun(5);
        append(&vfs, &log_path(4), &records);
        let mut how = options(&vfs);
        assert_eq!(Db::open(DIR, &how).err().unwrap().kind(), ErrorKind::Unsupported);
        assert_eq!(repair(DIR, &options(&copy(&vfs))).unwrap_err().kind(), ErrorKind::Unsupported);
        how.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
        assert_eq!(Db::open(DIR, &how).err().unwrap().kind(), ErrorKind::Unsupported);
    }
}

/// The doubt is of replay, behind which the logs are gone.
#[test]
fn repair_that_is_cut_off_forgets_no_doubt() {
    let whole = database();
    cut(&whole, 4, 2);
    for nth in 1.. {
        let vfs = copy(&whole);
        let faulty = FaultVfs::new(vfs.clone());
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).nth(nth).sticky());
        let ended = repair(DIR, &OpenOptions { vfs: faulty, ..options(&vfs) });
        let report = repair(DIR, &options(&vfs)).unwrap();
        assert!(!report.lost_nothing(), "call {nth}: {report}");
        if ended.is_ok() {
            return;
        }
    }
}

/// A copying tool mixed it in.
#[test]
fn log_of_another_database_is_told_and_passed_over() {
    let vfs = database();
    append(&vfs, &log_path(20), &[put(5), put(8)]);
    let foreign = vfs.read_file(&log_path(20)).unwrap();
    assert!(!is_whole(&vfs), "check");
    let error = Db::open(DIR, &options(&copy(&vfs))).err().expect("it is of another history");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Unsupported, Some(&*log_path(20))), "{error}");
    assert!(error.message().contains("another database's") && error.message().contains("WritePrepared"), "{error}");
    let salvaged = copy(&vfs);
    let mut how = options(&salvaged);
    how.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
    let doubts = Db::open(DIR, &how).unwrap().recovery_doubts();
    let repaired = copy(&vfs);
    let report = repair(DIR, &options(&repaired)).unwrap();
    for (vfs, doubts) in [(salvaged, doubts), (repaired, report.doubts)] {
        assert!(doubts.len() == 1 && doubts[0].family.is_none() && doubts[0].keys.is_none(), "{doubts:?}");
        assert_eq!(vfs.read_file(&path("lost/000020.log")).unwrap(), foreign);
        let db = Db::open(DIR, &options(&vfs)).unwrap();
        let f = db.family("f").unwrap();
        assert!((1..10).all(|key: u8| db.get(&f, &[b'0' + key], &Default::default()).unwrap().is_some()));
    }
}

const OPTIONS: &str = "[Version]\n  rocksdb_version=11.9.0\n  options_file_version=1.1\n[DBOptions]\n  wal_dir=/wal\n\
                       [CFOptions \"default\"]\n  write_buffer_size=r\n[TableOptions/BlockBasedTable \"default\"]\n";

/// A line of RocksDB's options that cannot be read does not hide where the logs are.
#[test]
fn logs_elsewhere_are_missed_whatever_else_the_options_say() {
    let with_options = |text: &str| {
        let vfs = database();
        vfs.create_dir_all(Path::new("/wal")).unwrap();
        for number in [4, 10, 12] {
            let bytes = vfs.read_file(&log_path(number)).unwrap();
            vfs.write_file(&Path::new("/wal").join(log_path(number).file_name().unwrap()), &bytes).unwrap();
            vfs.remove_file(&log_path(number)).unwrap();
        }
        vfs.write_file(&path("OPTIONS-000007"), text.as_bytes()).unwrap();
        vfs
    };
    let adopting = |vfs: &Arc<MemoryVfs>| {
        let mut how = options(vfs);
        how.db.ignore_unsupported_options = true;
        how
    };
    let checked = |vfs: &Arc<MemoryVfs>| {
        check(Path::new(DIR), &CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() }, &mut |_| {})
    };
    let vfs = with_options(OPTIONS);
    let refused = |error: base::Error| assert!(error.message().contains("in /wal"), "{error}");
    refused(checked(&vfs).err().unwrap());
    refused(Db::open(DIR, &adopting(&vfs)).err().unwrap());
    refused(repair(DIR, &options(&vfs)).err().unwrap());

    let vfs = with_options(&OPTIONS.replace("wal_dir", "wal_dis"));
    assert!(!checked(&vfs).unwrap().is_whole());
    let error = Db::open(DIR, &adopting(&vfs)).err().unwrap();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*path("OPTIONS-000007"))), "{error}");
    let mut salvage = adopting(&copy(&vfs));
    salvage.db.wal_recovery_mode = WalRecoveryMode::SkipAnyCorruptedRecords;
    let salvaged = Db::open(DIR, &salvage).unwrap().recovery_doubts();
    for doubts in [salvaged, repair(DIR, &options(&copy(&vfs))).unwrap().doubts] {
        assert!(doubts.iter().any(|doubt| doubt.family.is_none() && doubt.why.contains("wal_dir")), "{doubts:?}");
    }
    let mut told = adopting(&vfs);
    told.db.wal_dir = "/wal".to_owned();
    assert!(Db::open(DIR, &told).unwrap().recovery_doubts().is_empty());
}

/// RocksDB's options have no checksum: nothing tells that such a line is of another version, and defaults are stored.
#[test]
fn line_of_rocksdbs_options_that_cannot_be_read_is_a_loss() {
    let vfs = database();
    let with_f = "[CFOptions \"f\"]\n[TableOptions/BlockBasedTable \"f\"]\n";
    let text = format!("{}{with_f}", OPTIONS.replace("  wal_dir=/wal\n", ""));
    vfs.write_file(&path("OPTIONS-000007"), text.as_bytes()).unwrap();
    assert!(is_whole(&vfs), "it is a note of a check");
    let report = repair(DIR, &options(&copy(&vfs))).unwrap();
    assert!(report.lost_no_key() && !report.lost_nothing(), "{report}");
    assert!(report.lost_options.len() == 1 && report.lost_options[0].contains("write_buffer_size"), "{report}");
    vfs.write_file(&path("OPTIONS-000007"), text.replace("=r\n", "=1M\n").as_bytes()).unwrap();
    assert!(repair(DIR, &options(&vfs)).unwrap().lost_nothing());
}

/// Its MANIFEST notes how long its log is.
#[test]
fn log_of_an_export_is_missed() {
    let vfs = MemoryVfs::new(1);
    let how = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
    let db = Db::open("/source", &how).unwrap();
    for key in [b"a", b"b"] {
        db.put(&db.default_family(), key, b"v", &Default::default()).unwrap();
    }
    let with_log = ExportOptions { flush_from_log_bytes: u64::MAX, ..ExportOptions::default() };
    db.export(DIR, &with_log).unwrap();
    assert!(doubts(&vfs, "whole").is_empty());
    let log =
        vfs.all_files().into_iter().find(|file| file.starts_with(DIR) && file.extension() == Some("log".as_ref()));
    let log = log.unwrap();
    let half = vfs.read_file(&log).unwrap().len() / 2;
    for bytes in [None, Some(0), Some(half)] {
        let vfs = copy(&vfs);
        match bytes {
            None => vfs.remove_file(&log).unwrap(),
            Some(bytes) => vfs.truncate(&log, bytes).unwrap(),
        }
        assert_eq!(doubts(&vfs, &format!("{bytes:?} bytes are left")).len(), 1);
        assert!(repair(DIR, &options(&vfs)).unwrap().is_last_seq_unseen);
    }
    assert!(!repair(DIR, &options(&vfs)).unwrap().is_last_seq_unseen);
}

/// The families that need neither the log nor one behind it lack nothing.
#[test]
fn gap_that_no_family_needs_is_not_told() {
    let vfs = database();
    cut(&vfs, 4, 2);
    append(&vfs, &path(MANIFEST), &[flushed(F, 10, 6), kept_from(10)]);
    assert!(doubts(&vfs, "flushed").is_empty());
}

#[test]
fn unlogged_writes_are_no_lost_ones() {
    let vfs = begun(5);
    append(&vfs, &path(MANIFEST), &[flushed(FamilyId::DEFAULT, 10, 3), kept_from(4)]);
    append(&vfs, &log_path(4), &[put(1), put(3)]); // one between them went to no log
    append(&vfs, &log_path(10), &[put(6), put(7)]);
    assert!(doubts(&vfs, "unlogged writes").is_empty());
}

/// An open of RocksDB's notes the number behind its last log, which is of no log, in a MANIFEST with a larger number. A checkpoint
/// lacks an empty log.
#[test]
fn logs_that_need_not_be_there_are_not_missed() {
    let vfs = begun(20);
    let manifest = path("MANIFEST-000020");
    append(&vfs, &manifest, &[flushed(FamilyId::DEFAULT, 13, 6), flushed(F, 13, 6), kept_from(13)]);
    append(&vfs, &log_path(19), &[put(7), put(8)]);
    assert!(doubts(&vfs, "opened anew").is_empty());
    append(&vfs, &manifest, &[flushed(FamilyId::DEFAULT, 22, 8), flushed(F, 22, 8), kept_from(22)]);
    vfs.remove_file(&log_path(19)).unwrap();
    assert!(doubts(&vfs, "a checkpoint").is_empty());
    // An open that keeps the MANIFEST, whose later log is 27.
    append(&vfs, &manifest, &[flushed(FamilyId::DEFAULT, 23, 7), flushed(F, 23, 8), kept_from(23)]);
    append(&vfs, &log_path(27), &[put(9)]);
    assert!(doubts(&vfs, "opened again").is_empty());
}

/// The record of a log that was synced, in both of RocksDB's forms.
fn tracked(number: u64, bytes: u64, is_new: bool) -> Vec<u8> {
    let mut field = Vec::new();
    put_varint64(&mut field, number);
    put_varint32(&mut field, 2);
    put_varint64(&mut field, bytes);
    put_varint32(&mut field, 1);
    let mut record = Vec::new();
    put_varint32(&mut record, if is_new { 8199 } else { 8196 });
    if is_new {
        put_varint32(&mut record, field.len() as u32);
    }
    record.extend(field);
    record
}

#[test]
fn synced_bytes_of_a_log_are_missed() {
    for is_new in [true, false] {
        let whole = database();
        append(&whole, &path(MANIFEST), &[tracked(12, 75, is_new)]);
        assert!(doubts(&whole, "whole").is_empty());
        let vfs = copy(&whole);
        cut(&vfs, 12, 2);
        assert_eq!(doubts(&vfs, "shorter").len(), 1);
        let vfs = copy(&whole);
        vfs.remove_file(&log_path(12)).unwrap();
        assert_eq!(doubts(&vfs, "gone").len(), 1);
        let (tag, field) = if is_new { (8200, &[1, 13][..]) } else { (8197, &[13][..]) };
        let mut forgotten = Vec::new();
        put_varint32(&mut forgotten, tag);
        forgotten.extend(field);
        append(&vfs, &path(MANIFEST), &[forgotten]);
        assert!(doubts(&vfs, "forgotten").is_empty());
    }
}

/// A prepare takes no number, so the log that lost it ends where it should.
#[test]
fn commit_of_a_lost_prepare_is_told() {
    const PREPARE: &[u8] = &[9, 1, 1, b't', 1, b'v', 5, 1, 1, b't', 1, b'v', 10, 1, b'T'];
    let row = |flushed_to: u64| {
        let vfs = begun(5);
        append(&vfs, &path(MANIFEST), &[flushed(FamilyId::DEFAULT, flushed_to, 1), kept_from(4)]);
        append(&vfs, &log_path(4), &[put(1), batch(2, 2, &[PREPARE])]);
        append(&vfs, &log_path(10), &[batch(2, 0, &[&[11, 1, b'T']]), put(4)]);
        vfs
    };
    let vfs = row(10);
    assert!(doubts(&vfs, "whole").is_empty());
    cut(&vfs, 4, 1);
    let found = doubts(&vfs, "the prepare is lost");
    assert!(found.iter().any(|doubt| doubt.family.is_none() && doubt.why.contains("prepare")), "{found:?}");
    // Where a table of a flush has the number, "default" may have all of it, and the prepare's log was let go.
    for (number, is_told) in [(1, true), (2, false), (4, true)] {
        let vfs = row(12);
        cut(&vfs, 4, 1);
        append(&vfs, &log_path(12), &[put(5)]);
        append(&vfs, &path(MANIFEST), &table_that_came_and_went(number));
        assert_eq!(doubts(&vfs, &format!("number {number} in tables")).is_empty(), !is_told);
    }
}

/// Edits of a flush and a compaction that left nothing of its table.
fn table_that_came_and_went(number: u64) -> [Vec<u8>; 2] {
    let flush = edit(|edit| {
        edit.added = vec![(0, Default::default())];
        let (_, meta) = edit.added.first_mut().unwrap();
        (meta.number, meta.file_bytes) = (FileNumber(11), 1);
        (meta.smallest_seq, meta.largest_seq) = (SeqNo(number), SeqNo(number));
        let key = [b"t".to_vec(), (number << 8 | 1).to_le_bytes().to_vec()].concat();
        (meta.smallest, meta.largest) = (key.clone(), key);
    });
    [flush, edit(|edit| edit.deleted = vec![(0, FileNumber(11))])]
}

/// A prepare and a rollback take no number, and none is missing where the next log goes on.
#[test]
fn step_of_a_transaction_that_may_be_lost_is_told() {
    const PREPARE: &[u8] = &[9, 5, 1, 1, b't', 1, b'v', 10, 1, b'T'];
    let marked = batch(1, 1, &[&[13], &[5, 1, 1, b'1', 1, b'v']]);
    let prepared = batch(1, 2, &[PREPARE, &[5, 1, 1, b'1', 1, b'v']]);
    for (first, step, next, is_told) in [
        (marked, batch(2, 1, &[PREPARE]), 2, true),
        (prepared, batch(2, 0, &[&[12, 1, b'T']]), 2, true),
        (put(1), put(2), 3, false),
    ] {
        let row = || {
            let vfs = begun(5);
            append(&vfs, &log_path(4), &[first.clone(), step.clone()]);
            vfs
        };
        let whole = row();
        append(&whole, &log_path(10), &[put(next)]);
        assert!(doubts(&whole, "whole").is_empty());
        let torn = row();
        let bytes = torn.read_file(&log_path(4)).unwrap().len();
        torn.truncate(&log_path(4), bytes - 3).unwrap();
        assert!(doubts(&torn, "a crash tore it").is_empty());
        append(&torn, &log_path(10), &[put(2)]);
        assert!(doubts(&torn, "RocksDB went on").is_empty());
        if !is_told {
            continue;
        }
        // RocksDB that begins the next log has ended the one before.
        append(&torn, &path(MANIFEST), &[flushed(FamilyId::DEFAULT, 10, 1)]);
        assert!(doubts(&torn, "a new family names the log").is_empty());
        append(&torn, &path(MANIFEST), &table(FamilyId::DEFAULT, (1, 1), Some(10)));
        let zeroed = copy(&torn);
        let whole_bytes = zeroed.read_file(&log_path(4)).unwrap();
        let begin = bytes - step.len() - 7;
        zeroed.write_file(&log_path(4), &[&whole_bytes[..begin], &[0; 9]].concat()).unwrap();
        for (vfs, what) in [(torn, "torn before a flush"), (zeroed, "zeros before a flush")] {
            let found = doubts(&vfs, what);
            assert!(found.iter().any(|doubt| doubt.of_prepared), "{what}: {found:?}");
        }
        let damaged = row();
        damaged.flip_bit(&log_path(4), 8 * (bytes as u64 - 3)).unwrap();
        append(&damaged, &log_path(10), &[put(2)]);
        let found = doubts(&damaged, "another log goes on");
        assert!(found.iter().any(|doubt| doubt.of_prepared), "{found:?}");
    }
}

/// "default" needs only the later log, and a transaction that writes to it is prepared in the lost one.
#[test]
fn prepare_in_a_log_that_is_missing_is_told() {
    const PREPARE: &[u8] = &[9, 5, 0, 1, b't', 1, b'v', 10, 1, b'T'];
    let marked = |first: u64| batch(first, 1, &[&[13], &[5, 1, 1, b'0' + first as u8, 1, b'v']]);
    let begin = || {
        let vfs = begun(5);
        append(&vfs, &log_path(4), &[marked(1), batch(2, 1, &[PREPARE])]);
        append(&vfs, &path(MANIFEST), &[flushed(FamilyId::DEFAULT, 10, 1), kept_from(4)]);
        append(&vfs, &log_path(10), &[marked(2)]);
        vfs
    };
    assert!(doubts(&begin(), "whole").is_empty());
    let vfs = begin();
    vfs.remove_file(&log_path(4)).unwrap();
    let found = doubts(&vfs, "the log is gone");
    let is_told = |is: &dyn Fn(&Doubt) -> bool| found.iter().any(is);
    assert!(is_told(&|doubt| doubt.of_prepared) && is_told(&|doubt| doubt.family.as_deref() == Some("f")), "{found:?}");
}

/// Every family has left the torn log, which is kept for what is prepared there. Numbers are missing behind it.
#[test]
fn prepare_that_is_torn_off_before_a_gap_is_told() {
    const PREPARE: &[u8] = &[9, 5, 1, 1, b't', 1, b'v', 10, 1, b'T'];
    let vfs = begun(20);
    let edits = [flushed(FamilyId::DEFAULT, 12, 3), flushed(F, 12, 3), kept_from(4)];
    append(&vfs, &path("MANIFEST-000020"), &edits);
    let step = batch(2, 1, &[PREPARE]);
    append(&vfs, &log_path(4), &[batch(1, 1, &[&[13], &[5, 1, 1, b'1', 1, b'v']]), step.clone(), put(2)]);
    append(&vfs, &log_path(10), &[put(3)]);
    append(&vfs, &log_path(12), &[put(4)]);
    assert!(doubts(&vfs, "whole").is_empty());
    let put_bytes = 25;
    let bytes = vfs.read_file(&log_path(4)).unwrap().len();
    vfs.truncate(&log_path(4), bytes - put_bytes - step.len() + 3).unwrap();
    let found = doubts(&vfs, "torn");
    assert!(found.iter().any(|doubt| doubt.of_prepared), "{found:?}");
}

/// A crash tore a write that was not synced. RocksDB went on behind it, and committed what was prepared before.
#[test]
fn commit_behind_a_crash_leaves_no_doubt() {
    const PREPARE: &[u8] = &[9, 5, 1, 1, b't', 1, b'v', 10, 1, b'T'];
    let vfs = begun(5);
    let marked = batch(1, 1, &[&[13], &[5, 1, 1, b'1', 1, b'v']]);
    append(&vfs, &log_path(4), &[marked, batch(2, 1, &[PREPARE]), put(2)]);
    let bytes = vfs.read_file(&log_path(4)).unwrap().len();
    vfs.truncate(&log_path(4), bytes - 3).unwrap();
    append(&vfs, &log_path(10), &[put(2), batch(3, 0, &[&[11, 1, b'T']]), put(4)]);
    assert!(doubts(&vfs, "RocksDB went on").is_empty());
}

/// A `TransactionDB` of RocksDB's that let no log go notes none to keep, and reads what is there, for the transactions that are
/// prepared.
#[test]
fn prepare_in_a_log_that_no_family_needs_is_taken_over() {
    const PREPARE: &[u8] = &[9, 5, 1, 1, b't', 1, b'v', 10, 1, b'T'];
    let made = |end: &[Vec<u8>]| {
        let vfs = begun(5);
        append(&vfs, &path(MANIFEST), &[flushed(FamilyId::DEFAULT, 10, 1), flushed(F, 10, 1)]);
        append(&vfs, &log_path(4), &[batch(1, 1, &[&[13], &[5, 1, 1, b'1', 1, b'v']]), batch(2, 1, &[PREPARE])]);
        append(&vfs, &log_path(10), end);
        vfs
    };
    let open = made(&[put(2)]);
    assert!(doubts(&open, "prepared").is_empty());
    for repairs in [false, true] {
        let vfs = copy(&open);
        if repairs {
            repair(DIR, &options(&vfs)).unwrap();
        }
        let db = Db::open(DIR, &options(&vfs)).unwrap();
        let locks = Arc::new(LockTable::of(&db, LockLimits::default()));
        let how = Pessimistic { patience: Patience { wait_max: None, deadlock_depth: None }, expires_after: None };
        let prepared = PreparedTransactions::of(&db, &locks, how).unwrap();
        assert_eq!(prepared.take_all().len(), 1, "repairs: {repairs}");
    }
    let committed = made(&[batch(2, 0, &[&[11, 1, b'T']]), put(3)]);
    assert!(doubts(&committed, "committed").is_empty());
    let db = Db::open(DIR, &options(&committed)).unwrap();
    assert!(db.get(&db.family("f").unwrap(), b"t", &Default::default()).unwrap().is_some());
    // What it has beside prepared transactions is in tables.
    let damaged = made(&[put(2)]);
    damaged.flip_bit(&log_path(4), 8 * 40).unwrap();
    let found = doubts(&damaged, "damaged");
    assert!(found.iter().all(|doubt| doubt.of_prepared), "{found:?}");
}

/// A commit takes the numbers of what it prepared, though its record counts none.
#[test]
fn tables_of_a_takeover_that_is_cut_off_are_explained_by_commits() {
    const PREPARE: &[u8] = &[9, 5, 1, 1, b'1', 1, b'v', 5, 1, 1, b'2', 1, b'v', 10, 1, b'T'];
    let whole = begun(5);
    let records = [batch(1, 2, &[PREPARE]), put(1), batch(2, 0, &[&[11, 1, b'T']]), put(4)];
    append(&whole, &log_path(4), &records);
    whole.write_file(&path("OPTIONS-000007"), OPTIONS_TEXT.as_bytes()).unwrap();
    assert!(doubts(&whole, "whole").is_empty());
    for nth in 1.. {
        let vfs = copy(&whole);
        let faulty = FaultVfs::new(vfs.clone());
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).nth(nth).sticky());
        let is_opened = Db::open(DIR, &OpenOptions { vfs: faulty, ..options(&vfs) }).is_ok();
        let how = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
        let problems = check(Path::new(DIR), &how, &mut |_| {}).unwrap().problems;
        assert!(problems.is_empty(), "call {nth}: {problems:?}");
        if is_opened {
            return;
        }
        let opened = Db::open(DIR, &options(&copy(&vfs))).unwrap();
        assert!(opened.recovery_doubts().is_empty(), "call {nth}: {:?}", opened.recovery_doubts());
        assert!(repair(DIR, &options(&vfs)).unwrap().lost_nothing(), "call {nth}");
    }
}

/// An open of a `TransactionDB` moves the families on, and not the number of the oldest log to keep.
#[test]
fn kept_log_without_a_prepare_is_no_sign() {
    let vfs = begun(5);
    append(&vfs, &path(MANIFEST), &[flushed(FamilyId::DEFAULT, 10, 1), flushed(F, 10, 1), kept_from(4)]);
    append(&vfs, &log_path(4), &[batch(1, 1, &[&[13], &[5, 1, 1, b'1', 1, b'v']])]);
    append(&vfs, &log_path(10), &[put(2)]);
    assert!(doubts(&vfs, "whole").is_empty());
}

/// A MANIFEST that ends between two records may have lost one that brought the table.
#[test]
fn ingested_table_that_nothing_names_is_kept_and_told() {
    let vfs = database();
    let table = path("000025.sst");
    let mut writer = TableWriter::create(vfs.clone(), &table, &FamilyOptions::default()).unwrap();
    writer.put(b"k", b"v").unwrap();
    writer.finish().unwrap();
    let bytes = vfs.read_file(&table).unwrap();
    assert!(!doubts(&vfs, "an ingest").is_empty());
    drop(Db::open(DIR, &options(&vfs)).unwrap());
    assert_eq!(vfs.read_file(&path("lost/000025.sst")).unwrap(), bytes);
}

/// RocksDB writes the OPTIONS file behind the MANIFEST's record.
#[test]
fn family_that_only_a_later_options_file_has_is_told() {
    let text = format!("{OPTIONS_TEXT}[CFOptions \"g\"]\n[TableOptions/BlockBasedTable \"g\"]\n");
    for (number, is_told) in [(7, false), (31, true)] {
        let vfs = database();
        vfs.write_file(&path(&format!("OPTIONS-{}", FileNumber(number))), text.as_bytes()).unwrap();
        assert_eq!(!doubts(&vfs, &format!("OPTIONS {number}")).is_empty(), is_told);
    }
}

/// The MANIFEST has a family's record before a transaction can write to it.
#[test]
fn prepare_for_a_family_that_the_manifest_lacks_is_told() {
    const PREPARE: &[u8] = &[9, 5, 2, 1, b't', 1, b'v', 10, 1, b'T'];
    let vfs = database();
    append(&vfs, &log_path(12), &[batch(10, 1, &[PREPARE])]);
    assert!(!is_whole(&vfs));
    let error = Db::open(DIR, &options(&copy(&vfs))).err().expect("the MANIFEST's end is missing");
    assert!(error.kind() == ErrorKind::Corruption && error.message().contains("column family 2"), "{error}");
    assert!(!repair(DIR, &options(&vfs)).unwrap().lost_nothing());
}

/// What a repair left that was cut off is no database of ours.
#[test]
fn repair_without_a_manifest_that_is_cut_off_reads_the_logs_again() {
    let whole = database();
    whole.remove_file(&path(MANIFEST)).unwrap();
    for nth in (1..).step_by(3) {
        let vfs = copy(&whole);
        let faulty = FaultVfs::new(vfs.clone());
        faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).nth(nth).sticky());
        let ended = repair(DIR, &OpenOptions { vfs: faulty, ..options(&vfs) });
        repair(DIR, &options(&vfs)).unwrap();
        let db = Db::open(DIR, &options(&vfs)).unwrap();
        let name = db.families().into_iter().map(|family| family.name().to_owned()).find(|name| name != "default");
        let f = db.family(&name.unwrap()).unwrap();
        let has = |key: u8| db.get(&f, &[b'0' + key], &Default::default()).unwrap().is_some();
        assert!((1..10).all(has), "call {nth}");
        if ended.is_ok() {
            return;
        }
    }
}

/// A copy that RocksDB made has no id where its MANIFEST notes none.
#[test]
fn logs_of_a_guest_stay_beside_rocksdbs_database_without_an_id() {
    let logs = [10, 12].map(|number| format!("{}.log", FileNumber(number)));
    for lost in [vec![], vec![MANIFEST], vec![MANIFEST, &logs[0], &logs[1]]] {
        for what in ["destroy", "restore", "repair"] {
            let vfs = database();
            let mut made = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
            drop(Db::open("/ours", &made).unwrap());
            made.db.wal_dir = DIR.to_owned();
            let ours = Db::open("/ours", &made).unwrap();
            ours.put(&ours.default_family(), b"k", b"v", &Default::default()).unwrap();
            drop(ours);
            back_up(&vfs, &database(), 9);
            for name in &lost {
                vfs.remove_file(&path(name)).unwrap();
                vfs.write_file(&path("000040.spmanifest"), b"of a takeover that was cut off").unwrap();
            }
            match what {
                "destroy" => Db::destroy(DIR, None, &(vfs.clone() as Arc<dyn Vfs>)).unwrap(),
                "restore" => {
                    let how = BackupOptions { vfs: vfs.clone(), ..BackupOptions::default() };
                    BackupEngine::open("/backups", &how).unwrap().restore(1, DIR, &RestoreOptions::default()).unwrap();
                }
                _ => {
                    let repaired = repair(DIR, &options(&vfs));
                    // Without a MANIFEST nothing tells whose database it is.
                    assert_eq!(repaired.is_ok_and(|report| report.lost_nothing()), lost.is_empty());
                }
            }
            let ours = Db::open("/ours", &made).unwrap();
            let found = ours.get(&ours.default_family(), b"k", &Default::default()).unwrap();
            assert!(found.is_some(), "{what}, {lost:?} is lost");
        }
    }
}

#[test]
fn best_efforts_believe_the_only_manifest() {
    let vfs = database();
    vfs.remove_file(&path("CURRENT")).unwrap();
    let mut how = options(&vfs);
    how.db.best_efforts_recovery = true;
    assert!(Db::open(DIR, &how).unwrap().recovery_doubts().is_empty());
}

/// A backup of RocksDB's, made after a flush of both families with log 10 as the next one.
fn with_backup(vfs: &MemoryVfs) {
    let made = begun(5);
    let edits = [flushed(FamilyId::DEFAULT, 10, 3), flushed(F, 10, 3), kept_from(10)];
    append(&made, &path(MANIFEST), &edits);
    back_up(vfs, &made, 3);
}

/// Makes a backup of all files of the database in `made`, whose last write is `last`.
pub fn back_up(vfs: &MemoryVfs, made: &MemoryVfs, last: u64) {
    let files: Vec<_> = made.all_files().into_iter().filter(|file| file.starts_with(DIR)).collect();
    let mut meta = format!("1\n{last}\n{}\n", files.len());
    for dir in ["/backups/meta", "/backups/private/1"] {
        vfs.create_dir_all(Path::new(dir)).unwrap();
    }
    for file in files {
        let (name, bytes) = (file.file_name().unwrap().to_str().unwrap(), made.read_file(&file).unwrap());
        vfs.write_file(&Path::new("/backups/private/1").join(name), &bytes).unwrap();
        meta.push_str(&format!("private/1/{name} crc32 {}\n", base::checksum::crc32c(&bytes)));
    }
    vfs.write_file(Path::new("/backups/meta/1"), meta.as_bytes()).unwrap();
}

/// The checksums are right: the damage was there when the backup was made.
#[test]
fn verification_reads_rocksdbs_logs_of_a_backup() {
    let verified = |damage: &dyn Fn(&MemoryVfs)| {
        let vfs = database();
        damage(&vfs);
        back_up(&vfs, &vfs, 9);
        let how = BackupOptions { vfs: vfs.clone(), ..BackupOptions::default() };
        BackupEngine::open("/backups", &how).unwrap().verify(1)
    };
    verified(&|_| {}).unwrap();
    verified(&|vfs| vfs.truncate(&log_path(12), 25 * 2 + 9).unwrap()).unwrap(); // as a crash leaves it
    type Damage = fn(&MemoryVfs);
    let damages: [(u64, Damage); 3] = [
        (10, |vfs| vfs.flip_bit(&log_path(10), 8 * 40).unwrap()),
        (12, |vfs| vfs.flip_bit(&log_path(12), 8 * 5).unwrap()),
        (10, |vfs| vfs.truncate(&log_path(10), 25 * 2 + 9).unwrap()),
    ];
    for (number, damage) in damages {
        let error = verified(&damage).unwrap_err();
        let path = Path::new("/backups/private/1").join(log_path(number).file_name().unwrap());
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*path)), "{error}");
        assert!(error.message().contains("was damaged when it was backed up"), "{error}");
    }
}

#[test]
fn restore_keeps_logs_of_rocksdb_only_without_a_gap() {
    let restored = |damage: &dyn Fn(&MemoryVfs)| {
        let vfs = database();
        with_backup(&vfs);
        damage(&vfs);
        let before = vfs.all_files();
        let how = BackupOptions { vfs: vfs.clone(), ..BackupOptions::default() };
        let kept = RestoreOptions { keep_log_files: true, ..RestoreOptions::default() };
        let result = BackupEngine::open("/backups", &how).unwrap().restore(1, DIR, &kept);
        assert!(result.is_ok() || before.iter().all(|file| vfs.exists(file).unwrap()), "nothing is deleted");
        result.map(|()| vfs)
    };
    let vfs = restored(&|_| {}).unwrap();
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    let f = db.family("f").unwrap();
    assert!((4..10).all(|key: u8| db.get(&f, &[b'0' + key], &Default::default()).unwrap().is_some()));
    let damages: [&dyn Fn(&MemoryVfs); 3] =
        [&|vfs| vfs.remove_file(&log_path(10)).unwrap(), &|vfs| cut(vfs, 10, 2), &|vfs| {
            vfs.flip_bit(&log_path(10), 8 * 40).unwrap();
        }];
    for damage in damages {
        assert_eq!(restored(damage).err().unwrap().kind(), ErrorKind::InvalidArgument);
    }
    let commits = |vfs: &MemoryVfs| append(vfs, &log_path(13), &[batch(10, 0, &[&[11, 1, b'T']]), put(11)]);
    let error = restored(&commits).err().unwrap();
    assert!(error.message().contains("commits a transaction whose prepare is"), "{error}");
    // What came since the backup and is in no log.
    let makes_a_family = |vfs: &MemoryVfs| {
        let made = edit(|edit| {
            (edit.family, edit.add_family) = (FamilyId(2), Some("g".to_owned()));
            edit.comparator = Some(COMPARATOR.to_owned());
            (edit.log_number, edit.max_family) = (Some(FileNumber(12)), Some(2));
        });
        append(vfs, &path(MANIFEST), &[made]);
    };
    let writes_to_it = |vfs: &MemoryVfs| append(vfs, &log_path(13), &[batch(10, 1, &[&[5, 2, 1, b'k', 1, b'v']])]);
    let ingests = |vfs: &MemoryVfs| {
        let (made, table) = (MemoryVfs::new(1), path("000030.sst"));
        made.create_dir_all(Path::new(DIR)).unwrap();
        let mut writer = TableWriter::create(made.clone(), &table, &FamilyOptions::default()).unwrap();
        writer.put(b"m", b"v").unwrap();
        writer.finish().unwrap();
        let bytes = made.read_file(&table).unwrap();
        vfs.write_file(&table, &bytes).unwrap();
        let named = edit(|edit| {
            edit.next_file = Some(FileNumber(31));
            edit.added = vec![(6, Default::default())];
            let (_, meta) = edit.added.first_mut().unwrap();
            (meta.number, meta.file_bytes) = (FileNumber(30), bytes.len() as u64);
            let key = [b"m".to_vec(), 1u64.to_le_bytes().to_vec()].concat();
            (meta.smallest, meta.largest) = (key.clone(), key);
        });
        append(vfs, &path(MANIFEST), &[named]);
    };
    let error = restored(&ingests).err().unwrap();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains("was ingested since"), "{error}");
    for what in [
        &makes_a_family as &dyn Fn(&MemoryVfs),
        &|vfs| {
            makes_a_family(vfs);
            writes_to_it(vfs)
        },
        &|vfs| {
            writes_to_it(vfs);
            [&*path("CURRENT"), &*path(MANIFEST)].iter().for_each(|file| vfs.remove_file(file).unwrap());
        },
    ] {
        let error = restored(what).err().unwrap();
        assert!(
            error.kind() == ErrorKind::InvalidArgument && error.message().contains("was made since the backup"),
            "{error}"
        );
    }
}

/// A private tag in a MANIFEST without a fence is corruption.
#[test]
fn restore_to_a_log_directory_leaves_rocksdbs_manifest_as_it_is() {
    let (vfs, made) = (MemoryVfs::new(1), database());
    made.write_file(&path("OPTIONS-000007"), OPTIONS_TEXT.as_bytes()).unwrap();
    back_up(&vfs, &made, 9);
    let how = BackupOptions { vfs: vfs.clone(), ..BackupOptions::default() };
    let apart = RestoreOptions { wal_dir: Some("/logs".into()), ..RestoreOptions::default() };
    BackupEngine::open("/backups", &how).unwrap().restore(1, "/restored", &apart).unwrap();
    let manifest = |dir: &str| vfs.read_file(&Path::new(dir).join(MANIFEST)).unwrap();
    assert_eq!(manifest("/restored"), manifest("/backups/private/1"));
    let mut options = options(&vfs);
    options.db.wal_dir = "/logs".into();
    let checked = CheckOptions { vfs: vfs.clone(), log_dir: Some("/logs".into()), ..CheckOptions::default() };
    let report = check(Path::new("/restored"), &checked, &mut |_| ()).unwrap();
    assert!(report.is_whole() && report.log_batches > 0, "{report:#?}");
    assert!(Db::open("/restored", &options).unwrap().recovery_doubts().is_empty());
}

/// RocksDB backs up no empty log, and its MANIFEST names the last one.
#[test]
fn restore_to_a_log_directory_makes_the_last_log() {
    for (is_empty, wal_dir) in [(true, "/logs"), (true, ""), (false, "/logs")] {
        let (vfs, made) = (MemoryVfs::new(1), database());
        if is_empty {
            made.remove_file(&log_path(12)).unwrap();
        }
        back_up(&vfs, &made, 6);
        let how = BackupOptions { vfs: vfs.clone(), ..BackupOptions::default() };
        let restoring = RestoreOptions { wal_dir: Some(wal_dir.into()), ..RestoreOptions::default() };
        BackupEngine::open("/backups", &how).unwrap().restore(1, "/restored", &restoring).unwrap();
        let log_dir = Some(PathBuf::from(wal_dir)).filter(|dir| dir != Path::new(""));
        let checked = CheckOptions { vfs: vfs.clone(), log_dir, ..CheckOptions::default() };
        let report = check(Path::new("/restored"), &checked, &mut |_| ()).unwrap();
        assert!(report.is_whole(), "{is_empty} {wal_dir}: {report:#?}");
        let mut options = options(&vfs);
        options.db.wal_dir = wal_dir.into();
        // The last log is missed from then on.
        if is_empty && !wal_dir.is_empty() {
            let lost = copy(&vfs);
            lost.remove_file(Path::new("/logs/000012.log")).unwrap();
            let error = Db::open("/restored", &OpenOptions { vfs: lost, ..options.clone() }).err().unwrap();
            assert!(error.message().contains("names log 000012") && error.message().contains("IDENTITY"), "{error}");
        }
        let db = Db::open("/restored", &options).unwrap();
        assert!(db.recovery_doubts().is_empty());
        let f = db.family("f").unwrap();
        assert!((1..7).all(|key: u8| db.get(&f, &[b'0' + key], &Default::default()).unwrap().is_some()));
    }
}

/// Nothing in RocksDB's logs tells whose they are.
#[test]
fn restore_beside_rocksdbs_database_leaves_its_logs_alone() {
    let (vfs, log) = (MemoryVfs::new(1), Path::new("/logs/000013.log"));
    back_up(&vfs, &database(), 9);
    vfs.create_dir_all(Path::new("/logs")).unwrap();
    append(&vfs, log, &[put(10)]);
    let how = BackupOptions { vfs: vfs.clone(), ..BackupOptions::default() };
    let engine = BackupEngine::open("/backups", &how).unwrap();
    let apart = RestoreOptions { wal_dir: Some("/logs".into()), ..RestoreOptions::default() };
    let error = engine.restore(1, "/restored", &apart).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some(log)), "{error}");
    let made = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
    drop(Db::open("/restored", &made).unwrap());
    engine.restore(1, "/restored", &apart).expect_err("a database of ours is replaced");
    assert!(vfs.exists(log).unwrap());
    let lose = |lost: &str| vfs.remove_file(&Path::new("/restored").join(lost)).unwrap();
    for lost in [None, Some("CURRENT")] {
        engine.restore(1, "/restored", &RestoreOptions::default()).unwrap();
        lost.into_iter().for_each(lose);
        engine.restore(1, "/restored", &apart).expect_err("a copy has its logs beside its tables");
        assert!(vfs.exists(log).unwrap());
    }
    vfs.remove_file(log).unwrap();
    engine.restore(1, "/restored", &apart).unwrap();
    // Over a database of RocksDB's with its logs there, also one that cannot be read.
    for lost in [None, Some("CURRENT"), Some(MANIFEST)] {
        lost.into_iter().for_each(lose);
        append(&vfs, log, &[put(10)]);
        engine.restore(1, "/restored", &apart).unwrap();
        assert!(!vfs.exists(log).unwrap(), "{lost:?}");
    }
}

/// The backup tells no id.
#[test]
fn restore_of_rocksdbs_backup_leaves_logs_of_ours_alone() {
    let vfs = MemoryVfs::new(1);
    back_up(&vfs, &database(), 9);
    let mut made = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
    made.db.wal_dir = "/logs".to_owned();
    let ours = Db::open("/ours", &made).unwrap();
    ours.put(&ours.default_family(), b"k", b"v", &Default::default()).unwrap();
    drop(ours);
    let how = BackupOptions { vfs: vfs.clone(), ..BackupOptions::default() };
    let apart = RestoreOptions { wal_dir: Some("/logs".into()), ..RestoreOptions::default() };
    BackupEngine::open("/backups", &how).unwrap().restore(1, "/restored", &apart).unwrap();
    let ours = Db::open("/ours", &made).unwrap();
    assert!(ours.get(&ours.default_family(), b"k", &Default::default()).unwrap().is_some());
}

pub const OPTIONS_TEXT: &str = "[Version]\n  rocksdb_version=11.9.0\n  options_file_version=1.1\n[DBOptions]\n[CFOptions \"default\"]\n\
                            [TableOptions/BlockBasedTable \"default\"]\n[CFOptions \"f\"]\n[TableOptions/BlockBasedTable \"f\"]\n";

/// A restore of backup 1 that keeps logs is refused, and changes nothing.
fn keeps_no_logs(vfs: &Arc<MemoryVfs>, what: &str) {
    let how = BackupOptions { vfs: vfs.clone(), ..BackupOptions::default() };
    let keep = RestoreOptions { keep_log_files: true, ..RestoreOptions::default() };
    let before = vfs.all_files();
    let error = BackupEngine::open("/backups", &how).unwrap().restore(1, DIR, &keep).expect_err(what);
    let is_told = error.message().contains("one is RocksDB's");
    assert!(error.kind() == ErrorKind::InvalidArgument && is_told, "{what}: {error}");
    assert_eq!(vfs.all_files(), before, "{what}");
}

/// Leaves the lock, and the files of this end.
fn lose_all_but(vfs: &MemoryVfs, end: &str) {
    let stays = |file: &PathBuf| [end, "LOCK"].iter().any(|end| file.to_str().unwrap().ends_with(end));
    let lost = vfs.all_files().into_iter().filter(|file| file.starts_with(DIR) && !stays(file));
    lost.for_each(|file| vfs.remove_file(&file).unwrap());
}

/// RocksDB's state does not replay our logs.
#[test]
fn logs_of_a_takeover_do_not_follow_rocksdbs_backup() {
    for what in ["a database", "logs alone", "the mark of a restore"] {
        let vfs = database();
        with_backup(&vfs);
        let db = Db::open(DIR, &options(&vfs)).unwrap();
        db.put(&db.default_family(), b"k", b"v", &Default::default()).unwrap();
        drop(db);
        if what != "a database" {
            lose_all_but(&vfs, ".splog");
        }
        if what == "the mark of a restore" {
            vfs.write_file(&path("INCOMPLETE"), b"an unfinished restore of backup 1\nlogs kept\n").unwrap();
        }
        assert!(vfs.all_files().iter().any(|file| file.to_str().unwrap().ends_with(".splog")), "{what}");
        keeps_no_logs(&vfs, what);
    }
}

/// Nor does our state replay RocksDB's, which went on with an export. No number is missing.
#[test]
fn logs_of_rocksdb_do_not_follow_a_backup_of_ours() {
    let vfs = database();
    let how = BackupOptions { vfs: vfs.clone(), ..BackupOptions::default() };
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    BackupEngine::open("/backups", &how).unwrap().create_new_backup(&db, true).unwrap();
    drop(db);
    lose_all_but(&vfs, "LOCK");
    append(&vfs, &log_path(900), &[put(10)]);
    keeps_no_logs(&vfs, "an export");
}

/// Without a MANIFEST nothing tells which OPTIONS file was the last.
#[test]
fn repair_without_a_manifest_keeps_every_options_file() {
    let vfs = database();
    let names = ["OPTIONS-000007", "OPTIONS-000009"];
    names.iter().for_each(|name| vfs.write_file(&path(name), OPTIONS_TEXT.as_bytes()).unwrap());
    ["CURRENT", MANIFEST].iter().for_each(|name| vfs.remove_file(&path(name)).unwrap());
    repair(DIR, &options(&vfs)).unwrap();
    let is_there = |name: &&str| [path(name), path("lost").join(name)].iter().any(|path| vfs.exists(path).unwrap());
    assert!(names.iter().all(is_there), "{:?}", vfs.all_files());
}
