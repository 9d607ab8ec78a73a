//! Secondary instances: what they show is always a state that the primary had, whatever it does meanwhile.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod beside;
mod failures;
mod killed;
mod random;

use std::path::Path;
use std::sync::Arc;

use testkit::engine::vfs::{CrashPolicy, FaultVfs, MemoryVfs, Vfs};
use testkit::engine::{Db, ErrorKind, FamilyOptions, OpenOptions, OtherFamilies, ReadOptions, SeqNo, WriteOptions};

fn options(vfs: Arc<dyn Vfs>) -> OpenOptions {
    let family = FamilyOptions { write_buffer_size: 64 << 10, ..FamilyOptions::default() };
    let mut options = OpenOptions { vfs, ..OpenOptions::create_if_missing() };
    options = options.family("default", family.clone()).family("second", family);
    options.db.create_missing_column_families = true;
    options.db.large_batch_bytes = 16 << 10;
    options.db.log_file_bytes = 64 << 10;
    options
}

fn secondary(options: &OpenOptions) -> Db {
    Db::open_as_secondary("/db", "/second", options).unwrap()
}

fn put(db: &Db, key: &str, value: &str) {
    db.put(&db.default_family(), key.as_bytes(), value.as_bytes(), &WriteOptions::default()).unwrap();
}

fn get(db: &Db, key: &str) -> Option<String> {
    let value = db.get(&db.default_family(), key.as_bytes(), &ReadOptions::default()).unwrap();
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

#[test]
fn a_secondary_shows_what_there_was_at_its_last_catch_up_and_takes_no_writes() {
    let vfs = MemoryVfs::new(1);
    let options = options(vfs.clone());
    let primary = Db::open("/db", &options).unwrap();
    put(&primary, "a", "1");
    let second = secondary(&options);
    assert_eq!(get(&second, "a").as_deref(), Some("1"));
    put(&primary, "a", "2");
    put(&primary, "b", "2");
    assert_eq!((get(&second, "a").as_deref(), get(&second, "b")), (Some("1"), None));
    assert_eq!(second.latest_sequence_number(), SeqNo(1));
    let lag = second.lag().unwrap();
    assert!(lag.visible == SeqNo(1) && lag.bytes > 0, "{lag:?}");
    second.try_catch_up_with_primary().unwrap();
    assert_eq!((get(&second, "a").as_deref(), get(&second, "b").as_deref()), (Some("2"), Some("2")));
    assert_eq!((second.lag().unwrap().visible, second.lag().unwrap().bytes), (SeqNo(3), 0));
    let family = second.default_family();
    assert_eq!(second.int_property(&family, "spillway.secondary-sequence-number"), Some(3));
    assert_eq!(second.int_property(&family, "spillway.secondary-bytes-behind"), Some(0));
    let refused = second.put(&family, b"c", b"3", &WriteOptions::default()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    assert!(refused.message().starts_with("Not supported operation in secondary mode."), "{refused}");
    assert_eq!(primary.try_catch_up_with_primary().unwrap_err().kind(), ErrorKind::Unsupported);
    let with = ReadOptions { snapshot: Some(second.snapshot()), ..ReadOptions::default() };
    assert_eq!(second.get(&family, b"a", &with).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn a_secondary_reads_on_where_the_primary_deletes_its_files() {
    let vfs = MemoryVfs::new(1);
    let options = options(vfs.clone());
    let primary = Db::open("/db", &options).unwrap();
    (0..30).for_each(|n| put(&primary, &format!("{n:02}"), &"v".repeat(5000)));
    primary.flush(&[&primary.default_family()]).unwrap();
    let second = secondary(&options);
    let mut iterator = second.iter(&second.default_family(), &ReadOptions::default()).unwrap();
    iterator.seek_to_first();
    (0..30).for_each(|n| put(&primary, &format!("{n:02}"), "new"));
    primary.compact_range(&primary.default_family(), None, None, &Default::default()).unwrap();
    for n in 0..30 {
        assert_eq!(get(&second, &format!("{n:02}")).map(|value| value.len()), Some(5000), "{n}");
    }
    second.try_catch_up_with_primary().unwrap();
    assert!((0..30).all(|n| get(&second, &format!("{n:02}")).as_deref() == Some("new")));
    let mut seen = 0;
    while iterator.valid() {
        assert_eq!(iterator.value().len(), 5000);
        seen += 1;
        iterator.next();
    }
    assert_eq!(seen, 30, "an iterator shows what there was");
    drop(primary);
    second.try_catch_up_with_primary().unwrap();
    assert_eq!(get(&second, "07").as_deref(), Some("new"), "without a primary");
}

#[test]
fn a_secondary_opens_before_anything_was_written_and_follows_a_reopened_primary() {
    let vfs = MemoryVfs::new(1);
    let options = options(vfs.clone());
    drop(Db::open("/db", &options).unwrap());
    let second = secondary(&options);
    assert_eq!(get(&second, "a"), None);
    for round in 1..5 {
        let primary = Db::open("/db", &options).unwrap();
        put(&primary, "a", &round.to_string());
        if round % 2 == 0 {
            second.try_catch_up_with_primary().unwrap();
            assert_eq!(get(&second, "a"), Some(round.to_string()));
            put(&primary, "b", &round.to_string());
        }
        primary.close().unwrap();
        second.try_catch_up_with_primary().unwrap();
        assert_eq!(get(&second, "a"), Some(round.to_string()));
        assert_eq!(get(&second, "b"), (round > 1).then(|| (round / 2 * 2).to_string()));
    }
}

/// An open with a ttl notes times before its first value with one: durable then, and no secondary shows what it cannot read.
#[test]
fn times_that_begin_after_the_open_of_a_secondary_are_told() {
    let vfs = MemoryVfs::new(1);
    let options = options(vfs.clone());
    let primary = Db::open("/db", &OpenOptions { raw_values: true, ..options.clone() }).unwrap();
    let (timed, raw) = (secondary(&options), secondary(&OpenOptions { raw_values: true, ..options.clone() }));
    primary.record_times(&primary.family("second").unwrap()).unwrap();
    for _ in 0..2 {
        let error = timed.try_catch_up_with_primary().unwrap_err().to_string();
        assert!(error.contains("\"second\" end with times now; open the secondary again"), "{error}");
    }
    raw.try_catch_up_with_primary().unwrap();
    let lost = vfs.crash_clone(1, CrashPolicy::NothingUnsyncedKept);
    let options = OpenOptions { vfs: lost, ..options };
    let db = Db::open("/db", &options).unwrap();
    assert!(*db.family("second").unwrap().options().value_times && !*db.default_family().options().value_times);
}

/// The listing of a directory can miss a file that is made meanwhile, and have a later one: the spare of a log, and not the
/// log.
#[test]
fn a_log_without_a_header_hides_none_before_it() {
    let vfs = MemoryVfs::new(1);
    let options = options(vfs.clone());
    let primary = Db::open("/db", &options).unwrap();
    put(&primary, "a", "1");
    primary.close().unwrap();
    let second = secondary(&options);
    let primary = Db::open("/db", &options).unwrap(); // its first write makes a log
    vfs.write_file(Path::new("/db/000900.splog"), &[0; 8192]).unwrap();
    second.try_catch_up_with_primary().unwrap();
    put(&primary, "a", "2");
    second.try_catch_up_with_primary().unwrap();
    assert_eq!(get(&second, "a").as_deref(), Some("2"));
}

#[test]
fn a_primary_that_is_gone_or_another_is_told() {
    let vfs = MemoryVfs::new(1);
    let options = options(vfs.clone());
    let missing = Db::open_as_secondary("/db", "/second", &options).err().unwrap();
    assert!(missing.message().contains("there is no database here"), "{missing}");
    let primary = Db::open("/db", &options).unwrap();
    put(&primary, "a", "1");
    primary.checkpoint("/older").unwrap();
    put(&primary, "a", "2");
    primary.flush(&[&primary.default_family()]).unwrap();
    let second = secondary(&options);
    primary.close().unwrap();
    drop(primary);
    let dyn_vfs: Arc<dyn Vfs> = vfs.clone();
    Db::destroy("/db", None, &dyn_vfs).unwrap();
    second.try_catch_up_with_primary().unwrap_err();
    assert_eq!(get(&second, "a").as_deref(), Some("2"), "what was visible stays so");
    vfs.create_dir_all(Path::new("/db")).unwrap();
    for name in vfs.read_dir(Path::new("/older")).unwrap() {
        let bytes = vfs.read_file(&Path::new("/older").join(&name)).unwrap();
        vfs.write_file(&Path::new("/db").join(&name), &bytes).unwrap();
    }
    let older = second.try_catch_up_with_primary().unwrap_err();
    assert!(older.kind() == ErrorKind::InvalidArgument && older.message().contains("went back"), "{older}");
    Db::destroy("/db", None, &dyn_vfs).unwrap();
    let another = Db::open("/db", &options).unwrap();
    (0..9).for_each(|n| put(&another, "a", &n.to_string()));
    another.flush(&[&another.default_family()]).unwrap();
    let replaced = second.try_catch_up_with_primary().unwrap_err();
    assert!(replaced.message().contains("another database now"), "{replaced}");
    assert_eq!(get(&second, "a").as_deref(), Some("2"));
}

/// As in RocksDB, a secondary has the families of its open: one made later shows after another open, and one that is dropped
/// stays as it was.
#[test]
fn a_secondary_has_the_families_of_its_open() {
    let vfs = MemoryVfs::new(1);
    let options = options(vfs.clone());
    let primary = Db::open("/db", &options).unwrap();
    let put_in = |name: &str, value: &str| {
        let family = primary.family(name).unwrap();
        primary.put(&family, b"k", value.as_bytes(), &WriteOptions::default()).unwrap();
    };
    let get_in = |db: &Db, name: &str| {
        let value = db.get(&db.family(name).unwrap(), b"k", &ReadOptions::default()).unwrap();
        value.map(|value| String::from_utf8(value.to_vec()).unwrap())
    };
    put_in("second", "before");
    let second = secondary(&options);
    primary.create_family("third", FamilyOptions::default()).unwrap();
    for (value, flushes) in [("in the log", false), ("in a table", true)] {
        put_in("third", value);
        put_in("second", value);
        put(&primary, "k", value);
        if flushes {
            primary.flush(&primary.families().iter().collect::<Vec<_>>()).unwrap();
        }
        second.try_catch_up_with_primary().unwrap();
        assert_eq!((get(&second, "k").as_deref(), get_in(&second, "second").as_deref()), (Some(value), Some(value)));
        assert!(second.family("third").is_none() && second.families().len() == 2);
    }
    primary.drop_family(&primary.family("second").unwrap()).unwrap();
    put(&primary, "k", "after the drop");
    second.try_catch_up_with_primary().unwrap();
    assert_eq!(get(&second, "k").as_deref(), Some("after the drop"));
    assert_eq!(get_in(&second, "second").as_deref(), Some("in a table"), "as it was");
    let mut anew = OpenOptions { vfs: vfs.clone(), ..OpenOptions::default() };
    anew.other_families = OtherFamilies::OpenWith(Box::default());
    let again = Db::open_as_secondary("/db", "/another", &anew).unwrap();
    assert_eq!(get_in(&again, "third").as_deref(), Some("in a table"));
    assert!(again.family("second").is_none());
    // A new MANIFEST says the same.
    drop(primary);
    let families = OtherFamilies::OpenWith(Box::default());
    let primary = Db::open("/db", &OpenOptions { other_families: families, ..anew.clone() }).unwrap();
    put(&primary, "k", "after a restart");
    second.try_catch_up_with_primary().unwrap();
    assert_eq!(get(&second, "k").as_deref(), Some("after a restart"));
    assert_eq!((second.families().len(), get_in(&second, "second").as_deref()), (2, Some("in a table")));
}

/// Of a MANIFEST.
const BLOCK_BYTES: u64 = 32 << 10;

/// Bytes that a secondary of a database with so many tables reads to catch up with 30 puts: in the log, then in a table.
fn bytes_to_catch_up(tables: usize) -> [u64; 2] {
    let inner = MemoryVfs::new(1);
    let faults = FaultVfs::new(inner.clone());
    let mut of_primary = options(inner);
    of_primary.families.iter_mut().for_each(|(_, family)| family.disable_auto_compactions = true);
    let primary = Db::open("/db", &of_primary).unwrap();
    let family = primary.default_family();
    let write = |round: usize| (0..30).for_each(|n| put(&primary, &format!("{round:04} {n:02}"), &"v".repeat(1000)));
    for table in 0..tables {
        write(table);
        primary.flush(&[&family]).unwrap();
    }
    let second =
        Db::open_as_secondary("/db", "/second", &OpenOptions { vfs: faults.clone(), ..of_primary.clone() }).unwrap();
    second.try_catch_up_with_primary().unwrap(); // the first one reads the whole MANIFEST
    let bytes_of_news = || {
        let before = faults.bytes_read();
        second.try_catch_up_with_primary().unwrap();
        faults.bytes_read() - before
    };
    let of_none = bytes_of_news();
    assert!(of_none <= 3 * BLOCK_BYTES, "{of_none} without news");
    write(tables);
    let in_the_log = bytes_of_news();
    assert_eq!(get(&second, &format!("{tables:04} 29")).map(|value| value.len()), Some(1000));
    primary.flush(&[&family]).unwrap();
    let in_a_table = bytes_of_news();
    assert_eq!(second.live_files().len(), tables + 1);
    [in_the_log, in_a_table]
}

/// Of a MANIFEST the first block is read, and the one where the news begins. That of 600 tables has more blocks.
#[test]
fn a_catch_up_reads_what_is_new_whatever_there_is_already() {
    let (small, large) = (bytes_to_catch_up(2), bytes_to_catch_up(600));
    println!("bytes of a catch-up, in the log and in a table: {small:?} over 2 tables, {large:?} over 600");
    assert!(small[0] > 30_000, "{small:?}: the log was read");
    for (small, large) in small.into_iter().zip(large) {
        assert!(large <= small + 2 * BLOCK_BYTES, "{large} bytes over 600 tables, {small} over 2");
    }
}

/// The primary goes on in a log that the secondary has read values of, and flushes.
#[test]
fn values_in_a_log_that_grew_are_found() {
    let dir = tempfile::tempdir().unwrap();
    let mut options = OpenOptions::create_if_missing();
    options.db.memtable_as_log_index = true;
    options.db.log_file_bytes = 64 << 20;
    let memtable = r#"trie:{"convert_to_sst":"kFileMmap","ref_log_format":"kPlainLogRef"}"#;
    options =
        options.family("default", FamilyOptions { memtable_factory: memtable.into(), ..FamilyOptions::default() });
    let primary = Db::open(dir.path().join("db"), &options).unwrap();
    let write = |from: usize| {
        for n in from..from + 40 {
            put(&primary, &format!("k{n:03}"), &"v".repeat(400_000));
        }
        primary.flush(&[&primary.default_family()]).unwrap();
    };
    write(0);
    let second = Db::open_as_secondary(dir.path().join("db"), dir.path().join("second"), &options).unwrap();
    assert!(get(&second, "k000").is_some());
    write(40);
    second.try_catch_up_with_primary().unwrap();
    for n in 0..80 {
        assert!(get(&second, &format!("k{n:03}")).is_some(), "{n}");
    }
}
