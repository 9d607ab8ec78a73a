//! The engine through its public API, on the memory file system, whose jobs run inline: one history at each run.

use std::sync::Arc;

use testkit::engine::extend::BuiltinPrefix;
use testkit::engine::{Db, ErrorKind, FamilyOptions, OpenOptions, ReadOptions, WriteBatch, WriteOptions};
use vfs::{MemoryVfs, Vfs};

fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    OpenOptions { vfs: vfs.clone() as Arc<dyn Vfs>, ..OpenOptions::create_if_missing() }
}

/// Options under which little data makes many tables and levels.
fn small(memtable: &str) -> FamilyOptions {
    FamilyOptions {
        write_buffer_size: 64 << 10,
        target_file_size_base: 32 << 10,
        max_bytes_for_level_base: (128 << 10).into(),
        memtable_factory: memtable.into(),
        ..FamilyOptions::default()
    }
}

fn get(db: &Db, key: &[u8]) -> Option<Vec<u8>> {
    db.get(&db.default_family(), key, &ReadOptions::default()).expect("readable").map(|value| value.to_vec())
}

fn scan(db: &Db) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut iter = db.iter(&db.default_family(), &ReadOptions::default()).expect("iterator");
    let mut all = Vec::new();
    let mut valid = iter.seek_to_first();
    while valid {
        all.push((iter.key().to_vec(), iter.value().to_vec()));
        valid = iter.next();
    }
    iter.status().expect("no error");
    all
}

#[test]
fn what_is_written_is_read_and_survives_a_reopen() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open("/db", &options(&vfs)).expect("open");
    let family = db.default_family();
    let write = WriteOptions::default();
    db.put(&family, b"a", b"1", &write).expect("put");
    db.put(&family, b"b", b"2", &write).expect("put");
    db.delete(&family, b"a", &write).expect("delete");
    assert_eq!((get(&db, b"a"), get(&db, b"b")), (None, Some(b"2".to_vec())));
    db.close().expect("close");
    let again = Db::open("/db", &options(&vfs)).expect("reopen");
    assert_eq!((get(&again, b"a"), get(&again, b"b")), (None, Some(b"2".to_vec())));
    again.flush(&[&again.default_family()]).expect("flush");
    assert_eq!(scan(&again), [(b"b".to_vec(), b"2".to_vec())]);
}

#[test]
fn many_writes_go_through_flushes_compactions_and_log_rolls() {
    for memtable in ["skip_list", "vector"] {
        let vfs = MemoryVfs::new(2);
        let mut options = options(&vfs).family("default", small(memtable));
        options.db.log_file_bytes = 64 << 10;
        let db = Db::open("/db", &options).expect("open");
        let family = db.default_family();
        for i in 0..20_000u64 {
            let key = format!("key{:06}", i * 7919 % 10_007);
            db.put(&family, key.as_bytes(), &i.to_le_bytes().repeat(8), &WriteOptions::default()).expect("put");
        }
        let expected: Vec<Vec<u8>> = (0..10_007).map(|i| format!("key{i:06}").into_bytes()).collect();
        let check = |db: &Db| {
            let keys: Vec<Vec<u8>> = scan(db).into_iter().map(|(key, _)| key).collect();
            assert_eq!(keys.len(), expected.len(), "{memtable}");
            assert!(keys == expected);
            let last = 19_999u64;
            let key = format!("key{:06}", last * 7919 % 10_007);
            assert_eq!(get(db, key.as_bytes()), Some(last.to_le_bytes().repeat(8)));
        };
        check(&db);
        let logs = vfs.read_dir(std::path::Path::new("/db")).expect("readable");
        assert!(logs.iter().filter(|name| name.ends_with(".splog")).count() < 40, "old logs are deleted: {logs:?}");
        drop(db);
        check(&Db::open("/db", &options).expect("reopen"));
    }
}

#[test]
fn a_batch_is_atomic_across_families_and_snapshots_stand_still() {
    let vfs = MemoryVfs::new(3);
    let db = Db::open("/db", &options(&vfs)).expect("open");
    let second = db.create_family("second", FamilyOptions::default()).expect("create");
    let mut batch = WriteBatch::new();
    batch.put(db.default_family().id(), b"k", b"1");
    batch.put(second.id(), b"k", b"2");
    let last = db.write(&batch, &WriteOptions::synced()).expect("write");
    assert_eq!(last.0, 2);
    let snapshot = db.snapshot();
    db.put(&second, b"k", b"3", &WriteOptions::default()).expect("put");
    let then = ReadOptions { snapshot: Some(snapshot), ..ReadOptions::default() };
    assert_eq!(db.get(&second, b"k", &then).expect("get").expect("there").to_vec(), b"2");
    db.flush(&[&second, &db.default_family()]).expect("flush");
    assert_eq!(db.get(&second, b"k", &then).expect("get").expect("there").to_vec(), b"2");
    db.drop_family(&second).expect("drop");
    assert_eq!(
        db.put(&second, b"k", b"4", &WriteOptions::default()).expect_err("dropped").kind(),
        ErrorKind::InvalidArgument
    );
    drop(db);
    assert_eq!(Db::list_families("/db", &(vfs.clone() as Arc<dyn Vfs>)).expect("list"), ["default"]);
}

#[test]
fn a_directory_is_open_once() {
    let vfs = MemoryVfs::new(4);
    let db = Db::open("/db", &options(&vfs)).expect("open");
    assert_eq!(Db::open("/db", &options(&vfs)).err().expect("open already").kind(), ErrorKind::Busy);
    let readers = OpenOptions { read_only: true, ..options(&vfs) };
    db.put(&db.default_family(), b"k", b"v", &WriteOptions::synced()).expect("put");
    let reader = Db::open("/db", &readers).expect("reading needs no lock");
    assert_eq!(get(&reader, b"k"), Some(b"v".to_vec()));
    let refused = reader.put(&reader.default_family(), b"k", b"v", &WriteOptions::default()).expect_err("read-only");
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    drop(db);
    Db::open("/db", &options(&vfs)).expect("free again");
}

#[test]
fn a_large_batch_is_committed_by_a_small_record() {
    let vfs = MemoryVfs::new(5);
    let mut options = options(&vfs).family("default", small("skip_list"));
    options.db.large_batch_bytes = 4096;
    let db = Db::open("/db", &options).expect("open");
    let family = db.default_family();
    db.put(&family, b"key00001", b"old", &WriteOptions::default()).expect("put");
    let mut batch = WriteBatch::new();
    for i in 0..5_000 {
        batch.put(family.id(), format!("key{i:05}").as_bytes(), format!("large {i}").as_bytes());
    }
    batch.delete_range(family.id(), b"key04000", b"key04500");
    db.write(&batch, &WriteOptions::synced()).expect("write");
    db.put(&family, b"key00002", b"new", &WriteOptions::synced()).expect("put");
    let check = |db: &Db| {
        assert_eq!(scan(db).len(), 4_500);
        assert_eq!(get(db, b"key00001"), Some(b"large 1".to_vec()));
        assert_eq!(get(db, b"key00002"), Some(b"new".to_vec()));
        assert_eq!(get(db, b"key04250"), None);
    };
    check(&db);
    for policy in vfs::CrashPolicy::ALL {
        let crashed = vfs.crash_clone(7, policy);
        let again = Db::open("/db", &OpenOptions { vfs: crashed, ..options.clone() }).expect("reopen");
        check(&again);
        again.flush(&[&again.default_family()]).expect("flush");
        check(&again);
    }
    db.flush(&[&family]).expect("flush");
    db.close().expect("close");
    let left = vfs.read_dir(std::path::Path::new("/db")).expect("readable");
    assert!(!left.iter().any(|name| name.ends_with(".spbatch")), "{left:?}");
}

/// Tables are passed over by prefix only where the walk ends with the prefix of what it seeks.
#[test]
fn a_walk_that_is_bound_to_no_prefix_yet_passes_over_no_table() {
    let vfs = MemoryVfs::new(7);
    let mut family =
        FamilyOptions { prefix_extractor: Some(Arc::new(BuiltinPrefix::Fixed(1))), ..FamilyOptions::default() };
    family.table.filter_policy = testkit::engine::options::FilterPolicy::bloom(10.0);
    family.disable_auto_compactions = true;
    let db = Db::open("/db", &options(&vfs).family("default", family)).expect("open");
    let family = db.default_family();
    let write = WriteOptions::default();
    let first = |options: ReadOptions| {
        let mut iter = db.iter(&family, &ReadOptions { prefix_same_as_start: true, ..options }).expect("iterator");
        let found = iter.seek_to_first().then(|| String::from_utf8_lossy(iter.key()).into_owned());
        iter.status().expect("no error");
        found
    };
    let put = |key: &str| db.put(&family, key.as_bytes(), b"v", &write).expect("put");
    for keys in [["b1", "b2"], ["c1", "c2"]] {
        keys.into_iter().for_each(put);
        db.flush(&[&family]).expect("flush");
    }
    let from_a = ReadOptions { iterate_lower_bound: Some(b"a".to_vec()), ..ReadOptions::default() };
    assert_eq!(first(from_a).as_deref(), Some("b1"), "the bound's prefix is nobody's");

    (0..20).for_each(|i| put(&format!("a{i:02}")));
    put("n1");
    db.flush(&[&family]).expect("flush");
    db.delete_range(&family, b"a", b"m", &write).expect("deleted");
    assert_eq!(first(ReadOptions::default()).as_deref(), Some("n1"), "behind a long run of covered entries");
}

/// As in RocksDB, whose second handle is of the same family.
#[test]
fn a_missing_family_that_is_named_twice_is_made_once() {
    let vfs = MemoryVfs::new(1);
    for _ in 0..2 {
        let mut options = options(&vfs);
        options.db.create_missing_column_families = true;
        for name in ["default", "x", "x"] {
            options = options.family(name, FamilyOptions::default());
        }
        let db = Db::open("/db", &options).expect("opened, and opened again");
        db.put(&db.family("x").expect("there"), b"key", b"value", &WriteOptions::default()).expect("written");
        db.close().expect("closed");
    }
}

#[test]
fn a_range_that_ends_before_it_starts_is_refused_however_it_comes() {
    let vfs = MemoryVfs::new(1);
    let backwards = FamilyOptions {
        order: testkit::engine::UserOrder::by_name("rocksdb.ReverseBytewiseComparator").unwrap(),
        ..small("skip_list")
    };
    let mut options = options(&vfs).family("backwards", backwards);
    options.db.create_missing_column_families = true;
    let db = Db::open("/db", &options).unwrap();
    let write = WriteOptions::default();
    for (family, start, end) in [("default", b"b", b"a"), ("backwards", b"a", b"b")] {
        let family = db.family(family).unwrap();
        db.put(&family, start, b"1", &write).unwrap();
        let refused = |batch: &WriteBatch| {
            let error = db.write(batch, &write).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
            for named in [family.name(), &start.escape_ascii().to_string(), &end.escape_ascii().to_string()] {
                assert!(error.to_string().contains(named), "{named}: {error}");
            }
        };
        let mut batch = WriteBatch::new();
        batch.put(family.id(), b"beside", b"1");
        batch.delete_range(family.id(), start, end);
        refused(&batch);
        refused(&WriteBatch::from_bytes(batch.as_bytes().to_vec()).unwrap());
        db.delete_range(&family, start, end, &write).unwrap_err();
        // An empty range is none.
        batch.clear();
        batch.delete_range(family.id(), start, start);
        db.write(&batch, &write).unwrap();
        db.flush(&[&family]).unwrap();
        let read = |key: &[u8]| db.get(&family, key, &ReadOptions::default()).unwrap();
        assert_eq!((read(start).as_deref(), read(b"beside").as_deref()), (Some(&b"1"[..]), None));
    }
}
