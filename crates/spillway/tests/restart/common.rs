//! Two families that are written to in every way, and what a kill left of them, opened both ways.

use std::sync::Arc;

use testkit::engine::vfs::{CrashPolicy, MemoryVfs, Vfs};
use testkit::engine::{Db, FamilyOptions, OpenOptions, ReadOptions, WriteBatch, WriteOptions};

pub const MEMTABLES: [&str; 2] =
    [r#"trie:{"convert_to_sst":"kFileMmap"}"#, r#"skip_list:{"convert_to_sst":"kFileMmap"}"#];

pub fn options(vfs: Arc<dyn Vfs>, memtable: &str, log_index: bool) -> OpenOptions {
    let family = FamilyOptions {
        memtable_factory: memtable.into(),
        merge_operator: base::merge::by_name("stringappend"),
        write_buffer_size: 1 << 20,
        ..FamilyOptions::default()
    };
    let options = OpenOptions { vfs, ..OpenOptions::create_if_missing() };
    let mut options = options.family("default", family.clone()).family("second", family);
    options.db.create_missing_column_families = true;
    options.db.memtable_as_log_index = log_index;
    options.db.log_file_bytes = 256 << 10;
    options
}

/// The pairs of each family.
pub type Contents = Vec<Vec<(Vec<u8>, Vec<u8>)>>;

/// Everything in both families, by iteration and by lookup.
pub fn contents(db: &Db) -> Contents {
    ["default", "second"]
        .map(|name| {
            let family = db.family(name).unwrap();
            let options = ReadOptions::default();
            let mut entries = db.iter(&family, &options).unwrap();
            let mut all = Vec::new();
            let mut valid = entries.seek_to_first();
            while valid {
                assert_eq!(&*db.get(&family, entries.key(), &options).unwrap().expect("there"), entries.value());
                all.push((entries.key().to_vec(), entries.value().to_vec()));
                valid = entries.next();
            }
            entries.status().unwrap();
            all
        })
        .to_vec()
}

/// Overwrites, deletes, merges, ranges, in both families; values of many lengths.
pub fn batch(db: &Db, n: u64) -> WriteBatch {
    let [default, second] = ["default", "second"].map(|name| db.family(name).unwrap().id());
    let mut batch = WriteBatch::new();
    for i in 0..5 {
        let key = format!("key{:04}", (n * 7 + i * 131) % 500);
        batch.put(default, key.as_bytes(), &vec![n as u8; (n * 13 + i * 29) as usize % 300]);
        batch.put(second, key.as_bytes(), format!("{n}").as_bytes());
    }
    batch.merge(second, format!("sum{}", n % 5).as_bytes(), format!("{n}").as_bytes());
    batch.delete(default, format!("key{:04}", (n * 3) % 500).as_bytes());
    if n % 10 == 9 {
        let (start, end) = (format!("key{:04}", n % 490), format!("key{:04}", n % 490 + 5));
        batch.delete_range(second, start.as_bytes(), end.as_bytes());
    }
    batch
}

pub fn property(db: &Db, name: &str) -> u64 {
    db.int_property(&db.default_family(), name).unwrap()
}

/// What a kill left.
pub struct Found {
    pub contents: Contents,
    /// Memtables that were read as they lay.
    pub restored: u64,
}

/// Opens what a kill left, by image and by replay, and compares: as it is, and flushed.
pub fn compare(killed: &Arc<MemoryVfs>, memtable: &str, log_index: bool) -> Found {
    let copy = killed.crash_clone(5, CrashPolicy::ProcessKilled);
    let by_image = Db::open("/db", &options(killed.clone(), memtable, log_index)).unwrap();
    let mut replaying = options(copy, memtable, log_index);
    replaying.db.memtable_crash_safe_recover = false;
    let by_replay = Db::open("/db", &replaying).unwrap();
    assert_eq!(property(&by_replay, "spillway.memtables-restored"), 0);
    let expected = contents(&by_replay);
    assert!(contents(&by_image) == expected, "{memtable} {log_index}");
    let restored = property(&by_image, "spillway.memtables-restored");
    by_image.put(&by_image.default_family(), b"later", b"1", &WriteOptions::synced()).unwrap();
    by_image.flush(&[&by_image.default_family(), &by_image.family("second").unwrap()]).unwrap();
    by_replay.put(&by_replay.default_family(), b"later", b"1", &WriteOptions::default()).unwrap();
    assert!(contents(&by_image) == contents(&by_replay), "{memtable} {log_index}: flushed");
    Found { contents: expected, restored }
}
