//! Tables that become part of a database: seen at once, whole, by nobody who looks at an older state, and there again
//! after a reopen.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::options::{DbOptions, FamilyOptions};
use testkit::engine::vfs::RealVfs;
use testkit::engine::{
    Db, Family, IngestOptions, IngestProgress, IngestRequest, OpenOptions, ReadOptions, TableWriter, WriteBatch,
    WriteOptions,
};

fn options() -> OpenOptions {
    let db = DbOptions { create_if_missing: true, ..DbOptions::default() };
    OpenOptions { db, ..OpenOptions::default() }
}

/// A table of these keys, each with `value`.
fn table(dir: &Path, name: &str, keys: impl IntoIterator<Item = u32>, value: &str) -> PathBuf {
    let path = dir.join(name);
    let mut writer = TableWriter::create(RealVfs::new(), &path, &FamilyOptions::default()).expect("new");
    for key in keys {
        writer.put(format!("k{key:05}").as_bytes(), value.as_bytes()).expect("ascending");
    }
    writer.finish().expect("written");
    path
}

fn get(db: &Db, family: &Arc<Family>, key: u32) -> Option<String> {
    let found = db.get(family, format!("k{key:05}").as_bytes(), &ReadOptions::default()).expect("readable");
    found.map(|value| String::from_utf8(value.to_vec()).expect("text"))
}

fn put(db: &Db, family: &Arc<Family>, key: u32, value: &str) {
    db.put(family, format!("k{key:05}").as_bytes(), value.as_bytes(), &WriteOptions::default()).expect("written");
}

fn scan(db: &Db, family: &Arc<Family>, options: &ReadOptions) -> Vec<(String, String)> {
    let mut iterator = db.iter(family, options).expect("iterator");
    let mut all = Vec::new();
    iterator.seek_to_first();
    while iterator.valid() {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
        all.push((text(iterator.key()), text(iterator.value())));
        iterator.next();
    }
    iterator.status().expect("readable");
    all
}

#[test]
fn an_ingest_is_seen_at_once_and_after_a_reopen_and_not_by_older_snapshots() {
    let dir = tempfile::tempdir().expect("temp");
    let at = dir.path().join("db");
    let db = Db::open(&at, &options()).expect("open");
    let family = db.default_family();
    (0..100).for_each(|key| put(&db, &family, key, "old"));
    let before = db.snapshot();
    let over = table(dir.path(), "over.sst", (50..150).step_by(2), "over");
    let apart = table(dir.path(), "apart.sst", 500..600, "apart");
    let report = db.ingest(&family, std::slice::from_ref(&over), &IngestOptions::default()).expect("ingested");
    assert_eq!((report.under, report.above, report.tables), (0, 1, 1), "it overlaps the memtable");
    let report = db.ingest(&family, &[apart], &IngestOptions::default()).expect("ingested");
    assert_eq!((report.under, report.above, report.tables), (1, 0, 1), "it does not");
    put(&db, &family, 60, "new");
    let check = |db: &Db, family: &Arc<Family>| {
        assert_eq!(get(db, family, 49).as_deref(), Some("old"));
        assert_eq!(get(db, family, 51).as_deref(), Some("old"));
        assert_eq!(get(db, family, 50).as_deref(), Some("over"));
        assert_eq!(get(db, family, 60).as_deref(), Some("new"));
        assert_eq!(get(db, family, 148).as_deref(), Some("over"));
        assert_eq!(get(db, family, 550).as_deref(), Some("apart"));
        assert_eq!(scan(db, family, &ReadOptions::default()).len(), 100 + 25 + 100);
    };
    check(&db, &family);
    let of_before = ReadOptions { snapshot: Some(before.clone()), ..ReadOptions::default() };
    let check_before = |db: &Db| {
        let seen = scan(db, &family, &of_before);
        assert_eq!(seen.len(), 100);
        assert!(seen.iter().all(|(_, value)| value == "old"));
    };
    check_before(&db);
    drop(db.close());
    let db = Db::open(&at, &options()).expect("reopen");
    let family = db.default_family();
    check(&db, &family);
    db.flush(&[&family]).expect("flush");
    check(&db, &family);
    drop(db.close());
    let db = Db::open(&at, &options()).expect("reopen");
    check(&db, &db.default_family());
    assert!(over.exists(), "the caller's files stay");
}

#[test]
fn queued_ingests_get_levels_and_stay_right() {
    let dir = tempfile::tempdir().expect("temp");
    let at = dir.path().join("db");
    let db = Db::open(&at, &options()).expect("open");
    let family = db.default_family();
    for round in 0..20u32 {
        (0..10).for_each(|i| put(&db, &family, round * 100 + i, "put"));
        let file =
            table(dir.path(), &format!("{round}.sst"), (round * 50..round * 50 + 200).step_by(3), &format!("r{round}"));
        db.ingest(&family, &[file], &IngestOptions::default()).expect("ingested");
        if round % 7 == 3 {
            db.flush(&[&family]).expect("flush");
        }
    }
    let all = scan(&db, &family, &ReadOptions::default());
    db.flush(&[&family]).expect("flush");
    assert_eq!(scan(&db, &family, &ReadOptions::default()), all);
    drop(db.close());
    let db = Db::open(&at, &options()).expect("reopen");
    assert_eq!(scan(&db, &db.default_family(), &ReadOptions::default()), all);
    let family = db.default_family();
    db.compact_range(&family, None, None, &Default::default()).expect("compacted");
    assert_eq!(scan(&db, &family, &ReadOptions::default()), all);
}

#[test]
fn an_excise_replaces_a_span_at_one_instant() {
    let dir = tempfile::tempdir().expect("temp");
    let at = dir.path().join("db");
    let db = Db::open(&at, &options()).expect("open");
    let family = db.default_family();
    (0..100).for_each(|key| put(&db, &family, key, "old"));
    db.flush(&[&family]).expect("flush");
    (0..100).step_by(10).for_each(|key| put(&db, &family, key, "newer"));
    let before = db.snapshot();
    let request = |files: Vec<PathBuf>| IngestRequest {
        excise: Some((b"k00020".to_vec(), b"k00060".to_vec())),
        ..IngestRequest::new(family.clone(), files)
    };
    let file = table(dir.path(), "in.sst", [30, 31], "in");
    db.ingest_all(&[request(vec![file])], &IngestOptions::default()).expect("ingested");
    let check = |db: &Db, family: &Arc<Family>| {
        assert_eq!(scan(db, family, &ReadOptions::default()).len(), 100 - 40 + 2);
        assert_eq!(get(db, family, 30).as_deref(), Some("in"));
        assert_eq!(get(db, family, 40), None);
        assert_eq!(get(db, family, 60).as_deref(), Some("newer"));
        assert_eq!(get(db, family, 19).as_deref(), Some("old"));
    };
    check(&db, &family);
    let of_before = ReadOptions { snapshot: Some(before), ..ReadOptions::default() };
    assert_eq!(scan(&db, &family, &of_before).len(), 100);
    db.flush(&[&family]).expect("flush");
    check(&db, &family);
    assert_eq!(scan(&db, &family, &of_before).len(), 100);
    drop(of_before);
    drop(db.close());
    let db = Db::open(&at, &options()).expect("reopen");
    check(&db, &db.default_family());
}

#[test]
fn a_batch_rides_with_an_ingest() {
    let dir = tempfile::tempdir().expect("temp");
    let at = dir.path().join("db");
    let db = Db::open(&at, &options()).expect("open");
    let family = db.default_family();
    put(&db, &family, 5, "old");
    let file = table(dir.path(), "in.sst", [5, 6, 7], "in");
    let request = IngestRequest::new(family.clone(), vec![file]);
    let prepared =
        db.prepare_ingest(&[request], &IngestOptions::default(), &IngestProgress::default()).expect("prepared");
    let mut batch = WriteBatch::new();
    batch.put(family.id(), b"k00006", b"batch");
    batch.put(family.id(), b"k00100", b"batch");
    let report = db.write_with_ingest(&batch, prepared).expect("written");
    assert_eq!(report.last.0 - report.first.0, 2);
    let check = |db: &Db| {
        let family = db.default_family();
        assert_eq!([5, 6, 7, 100].map(|key| get(db, &family, key).unwrap_or_default()), ["in", "batch", "in", "batch"]);
    };
    check(&db);
    drop(db.close());
    let db = Db::open(&at, &options()).expect("reopen");
    check(&db);
    db.flush(&[&db.default_family()]).expect("flush");
    check(&db);
}

#[test]
fn what_is_prepared_and_dropped_leaves_nothing() {
    let dir = tempfile::tempdir().expect("temp");
    let at = dir.path().join("db");
    let db = Db::open(&at, &options()).expect("open");
    let family = db.default_family();
    let vfs = RealVfs::new();
    let before = vfs.read_dir(&at).expect("listed").len();
    let file = table(dir.path(), "in.sst", 0..10, "in");
    let request = IngestRequest::new(family, vec![file.clone()]);
    let prepared =
        db.prepare_ingest(&[request], &IngestOptions::default(), &IngestProgress::default()).expect("prepared");
    assert_eq!(vfs.read_dir(&at).expect("listed").len(), before + 1);
    drop(prepared);
    assert_eq!(vfs.read_dir(&at).expect("listed").len(), before);
    assert!(file.exists());
}

#[test]
fn a_check_knows_tables_that_only_the_log_names() {
    let dir = tempfile::tempdir().expect("temp");
    let at = dir.path().join("db");
    let held_back =
        FamilyOptions { min_write_buffer_number_to_merge: 8, max_write_buffer_number: 9, ..FamilyOptions::default() };
    let db = Db::open(&at, &options().family("default", held_back)).expect("open");
    let family = db.default_family();
    put(&db, &family, 5, "old");
    let file = table(dir.path(), "in.sst", [5, 6, 7], "in");
    db.ingest(&family, &[file], &IngestOptions::default()).expect("ingested");
    db.close().expect("closed");
    let check = || testkit::engine::check::check(&at, &Default::default(), &mut |_| {}).expect("a database");
    let report = check();
    assert!(report.problems.is_empty(), "{:?}", report.problems);
    assert!(
        report.superfluous.iter().all(|path| path.extension().is_none_or(|ext| ext != "sst")),
        "{:?}",
        report.superfluous
    );
    assert_eq!((report.tables, report.log_batches), (1, 1), "the memtable below keeps it in the queue");
    let vfs = RealVfs::new();
    let table = vfs.read_dir(&at).expect("listed").into_iter().find(|name| name.ends_with(".sst")).expect("one table");
    vfs.remove_file(&at.join(table)).expect("removed");
    assert_eq!(check().problems.len(), 1, "it is missing");
}
