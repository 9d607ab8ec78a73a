//! Exported families become one family of another database, by link, with their levels and numbers.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use testkit::engine::report::LiveFile;
use testkit::engine::vfs::{CrashPolicy, MemoryVfs, RealVfs, Vfs};
use testkit::engine::{
    Db, ErrorKind, Family, FamilyOptions, IngestOptions, OpenOptions, ReadOptions, TableWriter, WriteOptions,
};

fn family_options() -> FamilyOptions {
    let operator = testkit::engine::merge::by_name("stringappend");
    FamilyOptions { merge_operator: operator, disable_auto_compactions: true, ..FamilyOptions::default() }
}

fn open(vfs: &Arc<dyn Vfs>, dir: &Path) -> Db {
    let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
    let names = Db::list_families(dir, &options.vfs).unwrap_or_default();
    let families = names.iter().fold(options, |options, name| options.family(name, family_options()));
    Db::open(dir, &families.family("default", family_options())).unwrap()
}

/// Keys under `prefix`, of level 0 and of a deeper one: overwritten, deleted, merged, deleted by range.
fn fill(db: &Db, prefix: &str) {
    let (family, options) = (db.default_family(), WriteOptions::default());
    let key = |n: usize| format!("{prefix}{n:03}");
    let flush = || db.flush(&[&family]).unwrap();
    (0..100).for_each(|n| db.put(&family, key(n).as_bytes(), b"old", &options).unwrap());
    db.compact_range(&family, None, None, &Default::default()).unwrap();
    (0..10).for_each(|n| db.put(&family, key(n).as_bytes(), b"new", &options).unwrap());
    (10..20).for_each(|n| db.merge(&family, key(n).as_bytes(), b"more", &options).unwrap());
    flush();
    (5..12).for_each(|n| db.delete(&family, key(n).as_bytes(), &options).unwrap());
    db.delete_range(&family, key(50).as_bytes(), key(60).as_bytes(), &options).unwrap();
    flush();
    (55..58).for_each(|n| db.put(&family, key(n).as_bytes(), b"again", &options).unwrap());
}

fn contents(db: &Db, family: &Arc<Family>) -> Vec<(String, String)> {
    let mut entries = db.iter(family, &ReadOptions::default()).unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut found = Vec::new();
    let mut valid = entries.seek_to_first();
    while valid {
        found.push((text(entries.key()), text(entries.value())));
        valid = entries.next();
    }
    entries.status().unwrap();
    for (key, value) in &found {
        let got = db.get(family, key.as_bytes(), &ReadOptions::default()).unwrap();
        assert_eq!(got.as_deref(), Some(value.as_bytes()), "{key}");
    }
    found
}

/// A database with keys under each prefix, and what it exports.
fn exported(vfs: &Arc<dyn Vfs>, dir: &Path, prefix: &str) -> (Vec<LiveFile>, Vec<(String, String)>) {
    let db = open(vfs, &dir.join(format!("from-{prefix}")));
    fill(&db, prefix);
    let family = db.default_family();
    let files = db.export_family(&family, dir.join(format!("export-{prefix}"))).unwrap();
    assert!(files.iter().any(|file| file.level > 0) && files.iter().any(|file| file.level == 0), "{files:?}");
    (files, contents(&db, &family))
}

#[test]
fn several_become_one_by_link() {
    for move_files in [false, true] {
        let (dir, vfs): (_, Arc<dyn Vfs>) = (tempfile::tempdir().unwrap(), RealVfs::new());
        let mut exports = ["b", "a", "c"].map(|prefix| exported(&vfs, dir.path(), prefix));
        exports[0].0.iter_mut().for_each(|file| file.epoch_number = 0); // C's callers describe tables without epochs
        let mut expected: Vec<_> = exports.iter().flat_map(|(_, contents)| contents.clone()).collect();
        expected.sort();
        let files = exports.each_ref().map(|(files, _)| files.as_slice());
        let inodes = |files: &[LiveFile]| {
            let mut found: Vec<u64> = files.iter().map(|file| std::fs::metadata(&file.path).unwrap().ino()).collect();
            found.sort_unstable();
            found
        };
        let theirs = inodes(&files.concat());
        let to = dir.path().join("to");
        let db = open(&vfs, &to);
        let family = db.import_family("one", family_options(), &files, move_files).unwrap();
        assert_eq!(contents(&db, &family), expected);
        let live: Vec<LiveFile> = db.live_files().into_iter().filter(|file| file.family == "one").collect();
        assert_eq!(inodes(&live), theirs, "they are links");
        assert!(files.concat().iter().all(|file| file.path.exists() != move_files));
        let largest = files.concat().iter().map(|file| file.largest_seq).max().unwrap();
        assert!(db.latest_sequence_number() >= largest);
        db.put(&family, b"a000", b"later", &WriteOptions::default()).unwrap();
        db.delete_range(&family, b"c", b"d", &WriteOptions::default()).unwrap();
        expected.retain(|(key, _)| !key.starts_with('c'));
        expected[0].1 = "later".to_owned();
        assert_eq!(contents(&db, &family), expected);
        drop((family, db));
        let db = open(&vfs, &to);
        let family = db.family("one").unwrap();
        assert_eq!(contents(&db, &family), expected);
        db.compact_range(&family, None, None, &Default::default()).unwrap();
        assert_eq!(contents(&db, &family), expected);
    }
}

/// An ingest lies beneath an older write of another key. Merged with the table beneath, which has this key as well, its
/// number makes that table seem the newest.
#[test]
fn level_0_keeps_an_order_that_numbers_contradict() {
    let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
    let db = open(&vfs, Path::new("/from"));
    let (family, options) = (db.default_family(), WriteOptions::default());
    let _keeps_numbers = db.snapshot(); // compactions make none 0
    ["a", "b"].iter().for_each(|key| db.put(&family, key.as_bytes(), b"old", &options).unwrap());
    db.flush(&[&family]).unwrap();
    db.put(&family, b"a", b"new", &options).unwrap();
    let mut table = TableWriter::create(vfs.clone(), "/ingested.sst", &family_options()).unwrap();
    table.put(b"b", b"ingested").unwrap();
    table.finish().unwrap();
    db.ingest(&family, &["/ingested.sst".into()], &IngestOptions::default()).unwrap();
    db.flush(&[&family]).unwrap();
    let with_b = db.live_files().into_iter().filter(|file| file.largest == b"b").map(|file| file.number).collect();
    db.compact_files(&family, &with_b, 0, &Default::default()).unwrap();
    let files = db.export_family(&family, "/export").unwrap();
    let numbers: Vec<u64> = files.iter().map(|file| file.largest_seq.0).collect();
    assert!(files.iter().all(|file| file.level == 0) && numbers == [3, 4], "newest first: {files:?}");
    let expected = [("a", "new"), ("b", "ingested")].map(|(key, value)| (key.to_owned(), value.to_owned()));
    let family = db.import_family("one", family_options(), &[&files], false).unwrap();
    assert_eq!(contents(&db, &family), expected);
}

#[test]
fn what_cannot_be_imported_leaves_nothing() {
    let (dir, vfs): (_, Arc<dyn Vfs>) = (tempfile::tempdir().unwrap(), RealVfs::new());
    let (files, _) = exported(&vfs, dir.path(), "a");
    let (others, _) = exported(&vfs, dir.path(), "b");
    let to = dir.path().join("to");
    let db = open(&vfs, &to);
    let refused = |options: FamilyOptions, exports: &[&[LiveFile]], what: &str| {
        let error = db.import_family("one", options, exports, true).map(drop).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains(what), "{error}");
    };
    refused(family_options(), &[&files, &others, &files], "overlapping");
    refused(family_options(), &[], "no tables");
    refused(FamilyOptions { num_levels: 1, ..family_options() }, &[&files], "level");
    let backwards = testkit::engine::UserOrder::by_name("rocksdb.ReverseBytewiseComparator").unwrap();
    refused(FamilyOptions { order: backwards, ..family_options() }, &[&files], "does not match existing comparator");
    assert!(db.family("one").is_none());
    let names = std::fs::read_dir(&to).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.ends_with(".sst")).count(), 0);
    assert!(files.iter().all(|file| file.path.exists()), "they are where they were");
    db.import_family("one", family_options(), &[&files, &others], false).unwrap();
    refused(family_options(), &[&files], "already exists");
}

/// An export's tables, exchanged by a copy of its folder: their numbers, ids or keys tell.
#[test]
fn exchanged_tables_of_an_export_are_refused() {
    for (round, by_id) in [(2, true), (2, false), (1, false)] {
        let memory = MemoryVfs::new(1);
        let vfs: Arc<dyn Vfs> = memory.clone();
        let db = open(&vfs, Path::new("/from"));
        let family = db.default_family();
        for (nth, value) in ["old", "new"].iter().enumerate() {
            let key = if round == 2 { "k" } else { ["k", "l"][nth] };
            db.put(&family, key.as_bytes(), value.as_bytes(), &WriteOptions::default()).unwrap();
            db.flush(&[&family]).unwrap();
        }
        let mut files = db.export_family(&family, "/export").unwrap();
        for file in files.iter_mut().filter(|_| !by_id) {
            file.unique_id = None;
            if round == 1 {
                (file.smallest_seq, file.largest_seq) = Default::default();
            }
        }
        let [of_one, of_other] = [0, 1].map(|nth| memory.read_file(&files[nth].path).unwrap());
        memory.write_file(&files[0].path, &of_other).unwrap();
        memory.write_file(&files[1].path, &of_one).unwrap();
        let refused = db.import_family("one", family_options(), &[&files], false).map(drop).unwrap_err();
        let what = if by_id { "Mismatch in unique ID" } else { "is not of the exported table" };
        assert!(refused.kind() == ErrorKind::Corruption && refused.to_string().contains(what), "{refused}");
        assert!(db.family("one").is_none());
    }
}

/// Only a part of the file is the table.
#[test]
fn parts_of_files_are_not_imported() {
    let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
    let db = open(&vfs, Path::new("/from"));
    let family = db.default_family();
    db.put(&family, b"a", b"v", &WriteOptions::default()).unwrap();
    let mut files = db.export_family(&family, "/export").unwrap();
    files[0].is_virtual = true;
    let refused = db.import_family("one", family_options(), &[&files], false).map(drop).unwrap_err();
    assert!(refused.kind() == ErrorKind::InvalidArgument && refused.to_string().contains("export_family"), "{refused}");
}

#[test]
fn a_crash_anywhere_leaves_the_whole_family_or_none() {
    let live = |before: &dyn Fn(&Arc<MemoryVfs>), after: &mut dyn FnMut(&Arc<MemoryVfs>)| {
        let memory = MemoryVfs::new(1);
        let vfs: Arc<dyn Vfs> = memory.clone();
        let (files, contents) = exported(&vfs, Path::new("/"), "a");
        let db = open(&vfs, Path::new("/to"));
        before(&memory);
        db.import_family("one", family_options(), &[&files], false).unwrap();
        after(&memory);
        contents
    };
    let start = std::cell::Cell::new(0);
    let mut end = 0;
    let expected = live(&|memory| start.set(memory.operations()), &mut |memory| end = memory.operations());
    let mut outcomes = [0, 0];
    for (operation, policy) in (start.get()..end).flat_map(|at| CrashPolicy::ALL.map(|policy| (at, policy))) {
        let mut image = None;
        live(&|memory| memory.crash_at(operation, operation, policy), &mut |memory| image = memory.take_crash_image());
        let vfs: Arc<dyn Vfs> = image.unwrap();
        let db = open(&vfs, Path::new("/to"));
        let found = db.family("one").map(|family| contents(&db, &family));
        outcomes[usize::from(found.is_some())] += 1;
        assert!(found.is_none_or(|found| found == expected), "{policy:?} at operation {operation}");
        let tables = vfs.read_dir(Path::new("/to")).unwrap().into_iter().filter(|name| name.ends_with(".sst")).count();
        assert_eq!(tables, db.live_files().len(), "{policy:?} at operation {operation}");
    }
    assert!(outcomes.iter().all(|count| *count > 0), "{outcomes:?}");
}
