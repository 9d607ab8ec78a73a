//! Secondary instances: what they show is always a state that the primary had, whatever it does meanwhile.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod beside;
mod random;

use std::path::Path;
use std::sync::Arc;

use testkit::engine::vfs::{MemoryVfs, Vfs};
use testkit::engine::{Db, ErrorKind, FamilyOptions, OpenOptions, ReadOptions, SeqNo, WriteOptions};

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
