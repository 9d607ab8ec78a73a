//! Checkpoints in RocksDB's form (exports without verification): made while writers go on, with and without a flush, and opened
//! again. What RocksDB itself finds in them: the program `differential`, step `Exchange`.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use testkit::engine::check::{CheckOptions, check};
use testkit::engine::export::{ExportOptions, ExportSummary};
use testkit::engine::vfs::{CrashPolicy, MemoryVfs, RealVfs, Vfs};
use testkit::engine::{
    Db, ErrorKind, FamilyOptions, IngestOptions, OpenOptions, ReadOptions, TableWriter, WriteBatch, WriteOptions,
};

const NAMES: [&str; 3] = ["default", "second", "counts"];

/// Memtables become tables of our own format as they are.
const CONVERTED: &str = "trie:{\"convert_to_sst\":\"kFileMmap\"}";

fn options(memtable: &str) -> OpenOptions {
    let of = |name: &str| FamilyOptions {
        write_buffer_size: 256 << 10,
        memtable_factory: memtable.into(),
        merge_operator: (name == "counts").then(|| testkit::engine::merge::by_name("uint64add").unwrap()),
        ..FamilyOptions::default()
    };
    let mut options = OpenOptions::create_if_missing();
    for name in NAMES {
        options = options.family(name, of(name));
    }
    options.db.create_missing_column_families = true;
    options.db.log_file_bytes = 256 << 10;
    options.db.large_batch_bytes = 64 << 10;
    options
}

fn copy(db: &Db, dir: &Path, flush_from_log_bytes: u64) -> ExportSummary {
    let options = ExportOptions { skip_verification: true, flush_from_log_bytes, ..ExportOptions::default() };
    db.export(dir, &options).unwrap()
}

/// Batch `n` puts key `n` into two families, and counts in the third. Some batches are large.
fn write(db: &Db, n: u64) {
    let mut batch = WriteBatch::new();
    let value = vec![n as u8; if n % 50 == 7 { 70_000 } else { 200 }];
    batch.put(db.family("default").unwrap().id(), &n.to_be_bytes(), &value);
    batch.merge(db.family("counts").unwrap().id(), b"batches", &1u64.to_le_bytes());
    batch.put(db.family("second").unwrap().id(), &n.to_be_bytes(), &value);
    db.write(&batch, &WriteOptions::default()).unwrap();
}

/// The number of batches. Panics where one is there in part, twice, or out of order.
fn batches(db: &Db) -> u64 {
    let counts = ["default", "second"].map(|name| {
        let mut entries = db.iter(&db.family(name).unwrap(), &ReadOptions::default()).unwrap();
        let mut count = 0u64;
        let mut valid = entries.seek_to_first();
        while valid {
            assert_eq!(entries.key(), count.to_be_bytes(), "a hole in {name}");
            count += 1;
            valid = entries.next();
        }
        entries.status().unwrap();
        count
    });
    assert_eq!(counts[0], counts[1], "a batch is there in part");
    let counted = db.get(&db.family("counts").unwrap(), b"batches", &ReadOptions::default()).unwrap();
    let counted = counted.map_or(0, |bytes| u64::from_le_bytes(bytes[..].try_into().unwrap()));
    assert_eq!(counted, counts[0], "an operand was lost, or counts twice");
    counts[0]
}

fn flush(db: &Db, name: &str) {
    db.flush(&[&db.family(name).unwrap()]).unwrap();
}

/// Ends the writer when dropped, by a panic too: who panics waits for it.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn one_under_writes_is_a_prefix_of_the_history() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db"), &options("skip_list")).unwrap();
    let (written, ended) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                write(&db, written.load(Ordering::Relaxed));
                written.fetch_add(1, Ordering::Release);
            }
        });
        let _ends = Ends(&ended);
        for round in 0..12 {
            let path = dir.path().join(format!("copy{round}"));
            let before = written.load(Ordering::Acquire);
            copy(&db, &path, if round % 2 == 0 { 0 } else { u64::MAX });
            let after = written.load(Ordering::Acquire);
            let report = check(&path, &CheckOptions::default(), &mut |_| {}).unwrap();
            assert!(report.is_whole() && report.is_rocksdbs, "{:?}", report.problems);
            let opened = Db::open(&path, &options("skip_list")).unwrap();
            let found = batches(&opened);
            assert!((before..=after + 1).contains(&found), "{found} of {before} to {after}");
            write(&opened, found);
            assert_eq!(batches(&opened), found + 1, "it goes on");
        }
    });
    assert_eq!(batches(&db), written.into_inner(), "the original is what it was");
}

/// The log has what tables have, too: those records are left out, and those around them keep their numbers.
#[test]
fn families_may_be_flushed_at_different_numbers() {
    for flushed in NAMES {
        let vfs = MemoryVfs::new(1);
        let options = OpenOptions { vfs: vfs.clone(), ..options("skip_list") };
        let db = Db::open("/db", &options).unwrap();
        (0..10).for_each(|n| write(&db, n));
        flush(&db, flushed);
        (10..20).for_each(|n| write(&db, n));
        let counts = db.family("counts").unwrap();
        db.flush(&[&db.family("second").unwrap(), &counts]).unwrap();
        write(&db, 20);
        let last = copy(&db, Path::new("/copy"), u64::MAX).last_seq;
        assert_eq!(last, db.latest_sequence_number());
        drop(db);
        let opened = Db::open("/copy", &options).unwrap();
        assert_eq!(batches(&opened), 21, "{flushed}");
        assert_eq!(opened.latest_sequence_number(), last);
    }
}

/// As backups and state stores tell tables by their names.
#[test]
fn a_tables_name_stands_for_one_content_from_copy_to_copy() {
    for memtable in ["skip_list", CONVERTED] {
        let dir = tempfile::tempdir().unwrap();
        let mut path = dir.path().join("db");
        let mut known = BTreeMap::new();
        let mut written = 0;
        for round in 0..6 {
            let db = Db::open(&path, &options(memtable)).unwrap();
            for _ in 0..2 {
                (0..100).for_each(|n| write(&db, written + n));
                written += 100;
                flush(&db, "default");
                let next = dir.path().join(format!("copy{round}-{written}"));
                let summary = copy(&db, &next, if round % 2 == 0 { 0 } else { u64::MAX });
                assert_eq!(summary.rewritten_tables > 0, memtable == CONVERTED);
                record_tables(&path, &mut known);
                record_tables(&next, &mut known);
                path = if round % 3 == 2 { next } else { path };
            }
            db.compact_range(&db.default_family(), None, None, &Default::default()).unwrap();
            record_tables(&path, &mut known);
        }
        assert_eq!(batches(&Db::open(&path, &options(memtable)).unwrap()), written);
    }
}

fn record_tables(dir: &Path, known: &mut BTreeMap<String, Vec<u8>>) {
    for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if name.ends_with(".sst") {
            let Ok(bytes) = std::fs::read(entry.path()) else { continue }; // compacted away meanwhile
            let first = known.entry(name.clone()).or_insert_with(|| bytes.clone());
            assert!(*first == bytes, "{name} in {dir:?} is another table than before");
        }
    }
}

#[test]
fn a_crash_does_not_give_a_name_in_a_copy_to_another_table() {
    let vfs = MemoryVfs::new(1);
    let options_on = |vfs: Arc<dyn Vfs>| OpenOptions { vfs, ..options(CONVERTED) };
    let db = Db::open("/db", &options_on(vfs.clone())).unwrap();
    (0..10).for_each(|n| write(&db, n));
    flush(&db, "default");
    assert!(copy(&db, Path::new("/copy"), u64::MAX).rewritten_tables > 0);
    let tables = |vfs: &dyn Vfs, dir: &str| {
        let names = vfs.read_dir(Path::new(dir)).unwrap().into_iter().filter(|name| name.ends_with(".sst"));
        names.collect::<Vec<_>>()
    };
    let copied = tables(&*vfs, "/copy");
    let left: Arc<dyn Vfs> = vfs.crash_clone(3, CrashPolicy::NothingUnsyncedKept);
    let before = tables(&*left, "/db");
    let again = Db::open("/db", &options_on(left.clone())).unwrap();
    (10..20).for_each(|n| write(&again, n));
    NAMES.iter().for_each(|name| flush(&again, name));
    for name in tables(&*left, "/db").iter().filter(|name| !before.contains(name)) {
        assert!(!copied.contains(name), "{name} is in the copy");
    }
}

#[test]
fn tables_are_links_and_little_else_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let db = Db::open(path("db"), &options("skip_list")).unwrap();
    // A compaction after the copy would leave it the only one with its tables.
    for family in db.families() {
        db.set_options(&family, &[("disable_auto_compactions", "true")]).unwrap();
    }
    (0..1000).for_each(|n| write(&db, n));
    let summary = copy(&db, &path("copy"), 0);
    assert!(summary.tables > 0 && summary.rewritten_tables == 0, "{summary:?}");
    let mut others = 0;
    for entry in std::fs::read_dir(path("copy")).unwrap().map(Result::unwrap) {
        let (name, there) = (entry.file_name(), entry.metadata().unwrap());
        match name.to_string_lossy().ends_with(".sst") {
            true => assert_eq!(there.ino(), std::fs::metadata(path("db").join(&name)).unwrap().ino(), "{name:?}"),
            false => others += there.len(),
        }
    }
    assert!(others < 64 << 10, "{others} bytes");
    // Without a flush the log is there once, as long as the batches in it. None is large: it would be flushed in the background.
    (1008..1057).for_each(|n| write(&db, n));
    copy(&db, &path("with-log"), u64::MAX);
    let logs: Vec<PathBuf> = std::fs::read_dir(path("with-log")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let mut logs = logs.iter().filter(|path| path.extension().is_some_and(|end| end == "log"));
    let bytes = std::fs::metadata(logs.next().unwrap()).unwrap().len();
    assert!(logs.next().is_none() && (20_000..40_000).contains(&bytes), "{bytes}");
}

/// No log of RocksDB's can name ingested tables, or has unlogged writes.
#[test]
fn ingests_and_unlogged_writes_are_in_tables_first() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let db = Db::open(path("db"), &options("skip_list")).unwrap();
    (0..20).for_each(|n| write(&db, n));
    let family = db.default_family();
    let table = path("table.sst");
    let mut writer = TableWriter::create(RealVfs::new(), &table, &family.options()).unwrap();
    writer.put(&20u64.to_be_bytes(), b"ingested").unwrap();
    writer.finish().unwrap();
    db.ingest(&family, &[table], &IngestOptions::default()).unwrap();
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    db.put(&family, b"unlogged", b"1", &unlogged).unwrap();
    copy(&db, &path("copy"), u64::MAX);
    let opened = Db::open(path("copy"), &options("skip_list")).unwrap();
    for key in [&20u64.to_be_bytes()[..], b"unlogged", &3u64.to_be_bytes()] {
        assert!(opened.get(&opened.default_family(), key, &ReadOptions::default()).unwrap().is_some(), "{key:?}");
    }
}

#[test]
fn a_log_that_cannot_be_read_is_no_shorter_history() {
    let vfs = MemoryVfs::new(1);
    let options = OpenOptions { vfs: vfs.clone(), ..options("skip_list") };
    let db = Db::open("/db", &options).unwrap();
    (0..5).for_each(|n| write(&db, n));
    let name = vfs.read_dir(Path::new("/db")).unwrap().into_iter().find(|name| name.ends_with(".splog")).unwrap();
    let log = Path::new("/db").join(name);
    let mut bytes = vfs.read_file(&log).unwrap();
    bytes[1000] ^= 1;
    vfs.write_file(&log, &bytes).unwrap();
    let form = ExportOptions { flush_from_log_bytes: u64::MAX, ..ExportOptions::default() };
    let error = db.export("/copy", &form).unwrap_err();
    assert!(error.kind() == ErrorKind::Corruption && error.to_string().contains("flush"), "{error}");
    assert!(!vfs.exists(Path::new("/copy")).unwrap());
    db.export("/copy", &ExportOptions::default()).unwrap();
    assert_eq!(batches(&Db::open("/copy", &options).unwrap()), 5);
}

/// Runs the same life each time; the world is shown before and after the copy.
fn live(flush_bytes: u64, before: impl FnOnce(&Arc<MemoryVfs>), after: impl FnOnce(&Arc<MemoryVfs>)) {
    let memory = MemoryVfs::new(1);
    let db = Db::open("/db", &OpenOptions { vfs: memory.clone(), ..options("skip_list") }).unwrap();
    (0..4).for_each(|n| write(&db, n));
    flush(&db, "default");
    (4..6).for_each(|n| write(&db, n));
    db.sync_log().unwrap();
    before(&memory);
    copy(&db, Path::new("/copy"), flush_bytes);
    after(&memory);
}

#[test]
fn a_crash_anywhere_leaves_the_whole_of_it_or_nothing() {
    for flush_bytes in [0, u64::MAX] {
        let (mut start, mut end) = (0, 0);
        live(flush_bytes, |memory| start = memory.operations(), |memory| end = memory.operations());
        assert!(end - start > 10, "{start} to {end}");
        let mut whole = 0;
        for (operation, policy) in (start..end).flat_map(|at| CrashPolicy::ALL.map(|policy| (at, policy))) {
            let mut image = None;
            let arm = |memory: &Arc<MemoryVfs>| memory.crash_at(operation, operation, policy);
            live(flush_bytes, arm, |memory| image = memory.take_crash_image());
            let vfs: Arc<dyn Vfs> = image.unwrap();
            let open = |dir| Db::open(dir, &OpenOptions { vfs: vfs.clone(), ..options("skip_list") });
            if vfs.exists(Path::new("/copy")).unwrap() {
                assert_eq!(batches(&open("/copy").unwrap()), 6, "{policy:?} at operation {operation}");
                whole += 1;
            }
            let again = open("/db").unwrap();
            assert_eq!(batches(&again), 6, "{policy:?} at operation {operation}");
            if vfs.exists(Path::new("/copy")).unwrap() {
                continue;
            }
            let left = Path::new("/copy.tmp");
            let has = |name: &str| vfs.exists(&left.join(name)).unwrap();
            if has("CURRENT") && !has("INCOMPLETE") {
                vfs.rename(left, Path::new("/copy")).unwrap(); // as the error of a second copy says
                assert_eq!(batches(&open("/copy").unwrap()), 6, "{policy:?} at operation {operation}");
                continue;
            }
            copy(&again, Path::new("/copy"), flush_bytes); // over what the first left
        }
        assert!(whole > 0);
    }
}
