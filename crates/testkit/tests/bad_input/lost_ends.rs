//! Files that lost their end, and ingests that lost a part: other files prove it, and a repair says no more than they do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::UserOrder;
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::export::ExportOptions;
use testkit::engine::{
    Db, ErrorKind, FamilyOptions, IngestOptions, OpenOptions, OtherFamilies, ReadOptions, TableWriter, WriteOptions,
    repair,
};
use testkit::random::Random;
use testkit::run::DIR;
use vfs::{CrashPolicy, MemoryVfs, Vfs};

use crate::common::{PLAIN, copy};
use crate::moved_logs::rocksdbs;

fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    let other_families = OtherFamilies::OpenWith(Box::default());
    OpenOptions { vfs: vfs.clone(), other_families, ..OpenOptions::create_if_missing() }
}

fn put(db: &Db, family: &str, key: &str) {
    db.put(&db.family(family).unwrap(), key.as_bytes(), b"v", &WriteOptions::synced()).unwrap();
}

fn has(db: &Db, family: &str, key: &str) -> bool {
    db.get(&db.family(family).unwrap(), key.as_bytes(), &ReadOptions::default()).unwrap().is_some()
}

fn ending(vfs: &MemoryVfs, end: &str) -> Vec<PathBuf> {
    let mut found = vfs.all_files();
    found.retain(|path| path.to_string_lossy().ends_with(end));
    found.sort();
    found
}

fn is_whole(vfs: &Arc<MemoryVfs>) -> bool {
    let options = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
    check(Path::new(DIR), &options, &mut |_| {}).unwrap().is_whole()
}

/// Six synced puts by turns in two families, of which `b` is flushed; killed. The MANIFEST knows that the log was synced.
fn one_flushed() -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    db.create_family("b", FamilyOptions::default()).unwrap();
    for i in 1..=3 {
        put(&db, "default", &format!("a{i}"));
        put(&db, "b", &format!("b{i}"));
    }
    db.flush(&[&db.family("b").unwrap()]).unwrap();
    vfs.crash_clone(1, CrashPolicy::ProcessKilled)
}

#[test]
fn last_log_that_lost_its_end_is_told_by_the_manifest() {
    let whole = one_flushed();
    let [log] = &ending(&whole, ".splog")[..] else { panic!("one log") };
    let bytes = whole.read_file(log).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    for at in (0..used).step_by(8) {
        for is_cut in [true, false] {
            let vfs = copy(&whole);
            match is_cut {
                true => vfs.truncate(log, at).unwrap(),
                false => {
                    let zeroed = [&bytes[..at], &vec![0; bytes.len() - at][..]].concat();
                    vfs.write_file(log, &zeroed).unwrap();
                }
            }
            assert!(!is_whole(&vfs), "{at}");
            let error = Db::open(DIR, &options(&vfs)).err().expect("it is refused");
            assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(log.as_path())), "{at}: {error}");
            let report = repair(DIR, &options(&vfs)).unwrap();
            let is_in_doubt = |family, key: &str| report.is_in_doubt(family, key.as_bytes(), &UserOrder::Bytewise);
            assert!(is_in_doubt("default", "a3"), "{at}: {report:#?}");
            let db = Db::open(DIR, &options(&vfs)).unwrap();
            assert!(["b1", "b2", "b3"].iter().all(|key| has(&db, "b", key)), "{at}");
        }
    }
}

/// Without its copy, a MANIFEST that was cut is told by the header of a log, or by a family that it lacks.
#[test]
fn logs_prove_that_a_manifest_lost_its_end() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    db.create_family("b", FamilyOptions::default()).unwrap();
    put(&db, "b", "b1");
    let vfs = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
    ending(&vfs, ".spmanifest").iter().for_each(|path| vfs.remove_file(path).unwrap());
    let manifest = vfs.all_files().into_iter().find(|path| path.to_string_lossy().contains("MANIFEST")).unwrap();
    let len = vfs.read_file(&manifest).unwrap().len();
    let mut reader = wal::framed::FramedReader::open(&*vfs, &manifest, None, vfs::IoClass::Manifest).unwrap();
    let mut ends = Vec::new();
    while reader.next().unwrap().is_some() {
        ends.push(reader.good_end() as usize);
    }
    for cut in ends.into_iter().filter(|end| *end < len) {
        let vfs = copy(&vfs);
        vfs.truncate(&manifest, cut).unwrap();
        let Err(error) = Db::open(DIR, &options(&vfs)) else {
            // Behind the family's creation only the log's own mention is lost.
            assert!(has(&Db::open(DIR, &options(&vfs)).unwrap(), "b", "b1"), "{cut}");
            continue;
        };
        assert_eq!(error.kind(), ErrorKind::Corruption, "{cut}: {error}");
        assert!(!is_whole(&vfs), "{cut}");
        assert!(!repair(DIR, &options(&vfs)).unwrap().lost_nothing(), "{cut}");
    }
}

/// Bytes that no compression shortens.
pub fn noise(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    (0..100).map(|_| random.below(256) as u8).collect()
}

/// 3 tables of one ingest that stays in the queue, killed.
fn queued() -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    let family = db.default_family();
    db.put(&family, b"t1-000", b"older", &WriteOptions::synced()).unwrap();
    let files = (0..3).map(|table| {
        let path = PathBuf::from(format!("/t{table}.sst"));
        let mut writer = TableWriter::create(vfs.clone(), &path, &FamilyOptions::default()).unwrap();
        (0..300).for_each(|i| writer.put(format!("t{table}-{i:03}").as_bytes(), &noise(i)).unwrap());
        writer.finish().unwrap();
        path
    });
    db.ingest(&family, &files.collect::<Vec<_>>(), &IngestOptions::default()).unwrap();
    vfs.crash_clone(1, CrashPolicy::ProcessKilled)
}

/// Best efforts open without the ingest, and doubt what it brought.
#[test]
fn best_efforts_bear_a_missing_table_of_a_queued_ingest() {
    let vfs = queued();
    let table = ending(&vfs, ".sst").into_iter().find(|path| path.starts_with(DIR)).unwrap();
    vfs.remove_file(&table).unwrap();
    let mut best_efforts = options(&vfs);
    best_efforts.db.best_efforts_recovery = true;
    let db = Db::open(DIR, &best_efforts).unwrap();
    let doubts = db.recovery_doubts();
    for key in (0..3).flat_map(|table| (0..300).map(move |i| format!("t{table}-{i:03}"))) {
        let is_in_doubt = doubts.iter().any(|doubt| doubt.covers("default", key.as_bytes(), &UserOrder::Bytewise));
        assert!(is_in_doubt, "{key}: {doubts:?}");
    }
    let older = db.get(&db.default_family(), b"t1-000", &ReadOptions::default()).unwrap();
    assert!(older.is_some_and(|value| &*value == b"older"));
}

#[test]
fn damaged_block_of_a_queued_ingest_loses_the_block_alone() {
    let whole = queued();
    for table in ending(&whole, ".sst").into_iter().filter(|path| path.starts_with(DIR)) {
        for is_lost in [false, true] {
            let vfs = copy(&whole);
            match is_lost {
                true => vfs.remove_file(&table).unwrap(),
                false => vfs.flip_bit(&table, 8 * 5000).unwrap(),
            }
            let report = repair(DIR, &options(&vfs)).unwrap();
            let db = Db::open(DIR, &options(&vfs)).unwrap();
            let mut lost = Vec::new();
            for key in (0..3).flat_map(|table| (0..300).map(move |i| format!("t{table}-{i:03}"))) {
                let is_in_doubt = report.is_in_doubt("default", key.as_bytes(), &UserOrder::Bytewise);
                assert!(has(&db, "default", &key) || is_in_doubt, "{key}: {report:#?}");
                lost.extend(is_in_doubt.then_some(key));
            }
            drop(db);
            let of_one_table = lost.iter().all(|key| key[..2] == lost[0][..2]);
            let expected = if is_lost { 300..=300 } else { 1..=100 };
            assert!(of_one_table && expected.contains(&lost.len()), "{lost:?}: {report:#?}");
            assert!(repair(DIR, &options(&vfs)).unwrap().found_nothing());
        }
    }
}

/// A repair keeps RocksDB's logs, and the families in them.
#[test]
fn logs_of_rocksdbs_are_kept_by_a_repair() {
    let whole = MemoryVfs::new(1);
    rocksdbs(&whole, DIR, None);
    let logs = ending(&whole, ".log");
    for lost in [None, Some("CURRENT"), Some("MANIFEST-000005")] {
        let vfs = copy(&whole);
        lost.into_iter().for_each(|name| vfs.remove_file(&Path::new(DIR).join(name)).unwrap());
        let mut options = OpenOptions { adopt_rocksdb: true, ..options(&vfs) };
        let merge_operator = base::merge::by_name("uint64add");
        let family = FamilyOptions { merge_operator, ..FamilyOptions::default() };
        options.other_families = OtherFamilies::OpenWith(Box::new(family));
        let report = repair(DIR, &options).unwrap();
        assert!(lost.is_none_or(|name| name == "CURRENT") == report.lost_nothing(), "{lost:?}: {report:#?}");
        for log in &logs {
            let kept = Path::new(DIR).join("lost").join(log.file_name().unwrap());
            assert_eq!(vfs.read_file(&kept).unwrap(), whole.read_file(log).unwrap(), "{lost:?}");
        }
    }
}

/// RocksDB's directory without a MANIFEST, whose log still has what the tables have: no merge is applied twice.
#[test]
fn merges_are_not_doubled_where_tables_and_logs_of_rocksdbs_overlap() {
    let vfs = MemoryVfs::new(1);
    let merge_operator = base::merge::by_name("stringappend");
    let family = FamilyOptions { merge_operator, ..FamilyOptions::default() };
    let options = OpenOptions {
        adopt_rocksdb: true,
        other_families: OtherFamilies::OpenWith(Box::new(family.clone())),
        ..options(&vfs).family("default", family)
    };
    let db = Db::open("/source", &options).unwrap();
    for operand in ["1", "2"] {
        db.merge(&db.default_family(), b"k", operand.as_bytes(), &WriteOptions::default()).unwrap();
    }
    let with_log = ExportOptions { flush_from_log_bytes: u64::MAX, ..ExportOptions::default() };
    db.export("/log", &with_log).unwrap();
    db.export("/tables", &ExportOptions::default()).unwrap();
    vfs.create_dir_all(Path::new(DIR)).unwrap();
    let is_of = |path: &Path| {
        (path.starts_with("/log") && path.extension() == Some("log".as_ref()))
            || (path.starts_with("/tables") && path.extension() == Some("sst".as_ref()))
    };
    for path in vfs.all_files().into_iter().filter(|path| is_of(path)) {
        vfs.write_file(&Path::new(DIR).join(path.file_name().unwrap()), &vfs.read_file(&path).unwrap()).unwrap();
    }
    let count = |end| ending(&vfs, end).into_iter().filter(|path| path.starts_with(DIR)).count();
    assert_eq!((count(".log"), count(".sst")), (1, 1), "{:?}", vfs.all_files());
    let report = repair(DIR, &options).unwrap();
    assert!(report.is_in_doubt("default", b"k", &UserOrder::Bytewise), "{report:#?}");
    let db = Db::open(DIR, &options).unwrap();
    let value = db.get(&db.default_family(), b"k", &ReadOptions::default()).unwrap();
    assert_eq!(value.as_deref(), Some(&b"1,2"[..]));
}

/// CURRENT, MANIFEST and copy of an earlier instant beside the last ones: the last ones count.
#[test]
fn current_that_went_back_does_not_take_the_database_back() {
    let vfs = MemoryVfs::new(1);
    let write = |key: &str| {
        let db = Db::open(DIR, &options(&vfs)).unwrap();
        let how = WriteOptions { disable_wal: true, ..WriteOptions::default() };
        db.put(&db.default_family(), key.as_bytes(), b"v", &how).unwrap();
        db.flush(&[&db.default_family()]).unwrap();
        db.close().unwrap();
    };
    write("earlier");
    let names_manifest = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy();
        name == "CURRENT" || name.starts_with("MANIFEST") || name.ends_with(".spmanifest")
    };
    let earlier: Vec<_> = vfs.all_files().into_iter().filter(names_manifest).collect();
    let earlier: Vec<_> = earlier.into_iter().map(|path| (vfs.read_file(&path).unwrap(), path)).collect();
    write("later");
    earlier.iter().for_each(|(bytes, path)| vfs.write_file(path, bytes).unwrap());
    assert!(is_whole(&vfs));
    for _ in 0..2 {
        let db = Db::open(DIR, &options(&vfs)).unwrap();
        assert!(has(&db, "default", "earlier") && has(&db, "default", "later"));
    }
}

/// A salvage keeps no damaged log for a transaction that is prepared: the next open meets no damage.
#[test]
fn repair_with_a_lost_log_keeps_what_is_prepared_and_no_lost_log() {
    let script = "create users\nbegin z put users k 1\nreopen\nbegin x put default k 2\nreopen\nput default l 3 sync";
    let whole = PLAIN.after(script);
    let logs = ending(&whole, ".splog");
    assert!(logs.len() >= 3, "{logs:?}");
    for log in logs {
        let vfs = copy(&whole);
        vfs.remove_file(&log).unwrap();
        let options = PLAIN.options(&vfs);
        repair(DIR, &options).unwrap();
        let again = repair(DIR, &options).unwrap();
        assert!(again.found_nothing(), "{}: {again:#?}", log.display());
        Db::open(DIR, &options).unwrap();
    }
}

/// A log's header is synced before the MANIFEST or a later log names the log. Without it, or with zeros in its place, the log is
/// damaged; an intact header with nothing behind it is a log as it was made.
#[test]
fn named_log_without_a_header_is_damaged() {
    let vfs = MemoryVfs::new(1);
    let mut how = options(&vfs);
    how.db.log_file_bytes = 64 << 10;
    let db = Db::open(DIR, &how).unwrap();
    let value = [7; 5000];
    let unsynced = WriteOptions::default(); // no place that was synced proves the newest log
    (0..40u32).for_each(|key| db.put(&db.default_family(), &key.to_be_bytes(), &value, &unsynced).unwrap());
    let whole = copy(&vfs);
    let named = testkit::engine::version::recover::recover(&*whole, Path::new(DIR)).unwrap().wal_range.unwrap();
    let logs = ending(&whole, ".splog");
    let is_named =
        |path: &&PathBuf| path.file_stem().unwrap().to_string_lossy().parse::<u64>().unwrap() <= named.last().0;
    let logs: Vec<_> = logs.iter().filter(is_named).collect();
    assert!(logs.len() > 1, "{logs:?}");
    for log in logs {
        for bytes in [0, 100, whole.read_file(log).unwrap().len()] {
            let vfs = copy(&whole);
            vfs.write_file(log, &vec![0; bytes]).unwrap();
            assert!(!is_whole(&vfs), "{}, {bytes}", log.display());
            let error = Db::open(DIR, &options(&vfs)).err().expect("it is refused");
            assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&**log)), "{bytes}: {error}");
            assert!(!repair(DIR, &options(&vfs)).unwrap().lost_nothing(), "{}, {bytes}", log.display());
        }
    }
}

/// A write that was cut off ends the last log: nothing proves that more was there, and the report says where it ended.
#[test]
fn repair_notes_where_a_cut_off_log_ends() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    let unsynced = WriteOptions::default();
    ["a", "b"].iter().for_each(|key| db.put(&db.default_family(), key.as_bytes(), &noise(1), &unsynced).unwrap());
    let vfs = copy(&vfs);
    drop(db);
    let [log] = &ending(&vfs, ".splog")[..] else { panic!("one log") };
    let used = vfs.read_file(log).unwrap().iter().rposition(|byte| *byte != 0).unwrap();
    vfs.truncate(log, used - 20).unwrap();
    let report = repair(DIR, &options(&vfs)).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("ends at byte")), "{report}");
}
