//! Handles of families, snapshots and prepared ingests belong to one opening of one database; another one refuses them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use testkit::engine::{
    CompactRangeOptions, Db, ErrorKind, Family, FamilyOptions, IngestOptions, OpenOptions, ReadOptions, Result,
    WriteBatch, WriteOptions,
};
use vfs::{MemoryVfs, Vfs};

fn open(vfs: &Arc<MemoryVfs>, dir: &str) -> Db {
    let mut options = OpenOptions { vfs: vfs.clone() as Arc<dyn Vfs>, ..OpenOptions::create_if_missing() };
    options.db.log_file_bytes = 64 << 10;
    options.db.create_missing_column_families = true;
    let merging =
        FamilyOptions { merge_operator: testkit::engine::merge::by_name("uint64add"), ..FamilyOptions::default() };
    Db::open(dir, &options.family("users", merging)).expect("done")
}

#[track_caller]
fn refused<T>(result: Result<T>, named: &str) {
    let error = result.err().expect("refused");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains(named), "{named} is not named: {error}");
}

/// Every call of `db` that takes a family, with one of another database.
fn refuses_everywhere(db: &Db, other: &Arc<Family>) {
    let (read, write, name) = (ReadOptions::default(), WriteOptions::default(), other.name().to_owned());
    let name = format!("\"{name}\"");
    let all: Vec<(&str, Result<()>)> = vec![
        ("put", db.put(other, b"k", b"v", &write)),
        ("delete", db.delete(other, b"k", &write)),
        ("single_delete", db.single_delete(other, b"k", &write)),
        ("delete_range", db.delete_range(other, b"a", b"z", &write)),
        ("merge", db.merge(other, b"k", b"12345678", &write)),
        ("get", db.get(other, b"k", &read).map(drop)),
        ("multi_get", db.multi_get(other, &[b"k"], &read).map(drop)),
        ("iter", db.iter(other, &read).map(drop)),
        ("flush", db.flush(&[other])),
        ("begin_flush", db.begin_flush(&[other])),
        ("compact_range", db.compact_range(other, None, None, &CompactRangeOptions::default())),
        ("suggest_compact_range", db.suggest_compact_range(other, None, None)),
        ("set_options", db.set_options(other, &[("write_buffer_size", "131072")])),
        ("drop_family", db.drop_family(other)),
        ("drop_tables_in_range", db.drop_tables_in_range(other, None, None).map(drop)),
        ("approximate_sizes", db.approximate_sizes(other, &[(b"a", b"z")]).map(drop)),
        ("export_family", db.export_family(other, "/exported").map(drop)),
        ("ingest", db.ingest(other, &[], &IngestOptions::default()).map(drop)),
    ];
    for (call, result) in all {
        assert!(result.is_err(), "{call} took it");
        refused(result, &name);
    }
    assert_eq!(db.property(other, "rocksdb.stats"), None);
    assert_eq!(db.int_property(other, "rocksdb.estimate-num-keys"), None);
    assert!(db.levels(other).is_empty());
}

#[test]
fn a_family_of_another_database_is_refused_by_every_call() {
    let vfs = MemoryVfs::new(1);
    let (one, two) = (open(&vfs, "/one"), open(&vfs, "/two"));
    let users = two.family("users").unwrap();
    refuses_everywhere(&one, &users);
    refused(one.get(&two.default_family(), b"k", &ReadOptions::default()), "/two");
    two.close().unwrap();
    drop(two);
    let again = open(&vfs, "/two");
    refuses_everywhere(&again, &users);
    let own = again.family("users").unwrap();
    again.put(&own, b"k", b"v", &WriteOptions::default()).unwrap();
    assert!(vfs.all_files().iter().all(|path| !path.starts_with("/exported")), "nothing was left");
}

#[test]
fn a_snapshot_of_another_database_is_refused() {
    let vfs = MemoryVfs::new(1);
    let (one, two) = (open(&vfs, "/one"), open(&vfs, "/two"));
    let family = one.default_family();
    one.put(&family, b"k", b"v", &WriteOptions::default()).unwrap();
    let with = |snapshot| ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    let options = with(two.snapshot());
    refused(one.get(&family, b"k", &options), "snapshot");
    refused(one.multi_get(&family, &[b"k"], &options), "snapshot");
    refused(one.iter(&family, &options), "snapshot");
    assert!(one.get(&family, b"k", &with(one.snapshot())).unwrap().is_some());
}

#[test]
fn options_that_several_threads_set_at_once_are_all_set() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, "/db");
    let family = db.default_family();
    let names = ["write_buffer_size", "target_file_size_base", "max_bytes_for_level_base"];
    let (barrier, lost) = (Barrier::new(names.len()), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for name in names {
            scope.spawn(|| {
                for value in 65_536..68_536 {
                    barrier.wait();
                    db.set_options(&family, &[(name, &value.to_string())]).unwrap();
                    barrier.wait();
                    let now = family.options();
                    let all = [now.write_buffer_size as u64, now.target_file_size_base, *now.max_bytes_for_level_base];
                    lost.fetch_add(all.iter().filter(|&&set| set != value).count() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(lost.into_inner(), 0);
}

/// Someone else may have the directory by then: its files, and their numbers, are theirs.
#[test]
fn a_closed_database_refuses_options_and_leaves_the_directory_alone() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, "/db");
    db.close().unwrap();
    let again = open(&vfs, "/db");
    let before = vfs.all_files();
    let error = db.set_options(&db.default_family(), &[("write_buffer_size", "131072")]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    assert_eq!(vfs.all_files(), before);
    drop(again);
}

/// What no read could apply: a batch with it is refused as the single call is, and nothing of it is there.
#[test]
fn operands_for_a_family_without_an_operator_are_refused_in_batches_too() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, "/db");
    let (plain, users, write) = (db.default_family(), db.family("users").unwrap(), WriteOptions::default());
    let mut batch = WriteBatch::new();
    batch.put(plain.id(), b"k", b"v");
    batch.merge(users.id(), b"k", &1u64.to_le_bytes());
    db.write(&batch, &write).unwrap();
    batch.put(plain.id(), b"k", b"newer");
    batch.merge(plain.id(), b"m", &1u64.to_le_bytes());
    refused(db.write(&batch, &write), "\"default\"");
    refused(db.merge(&plain, b"m", &1u64.to_le_bytes(), &write), "\"default\"");
    assert_eq!(db.get(&plain, b"k", &ReadOptions::default()).unwrap().as_deref(), Some(&b"v"[..]));
    assert_eq!(db.get(&plain, b"m", &ReadOptions::default()).unwrap().as_deref(), None);
}

#[test]
fn a_family_without_a_name_is_not_made() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, "/db");
    refused(db.create_family("", FamilyOptions::default()), "empty");
    drop(db);
    let mut options = OpenOptions { vfs: vfs.clone() as Arc<dyn Vfs>, ..OpenOptions::create_if_missing() };
    options.db.create_missing_column_families = true;
    let options = options.family("users", FamilyOptions::default()).family("", FamilyOptions::default());
    refused(Db::open("/db", &options), "empty");
    drop(open(&vfs, "/db"));
}
