//! Databases whose memtables become tables, and beside each one whose flushes rewrite, for comparison.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::engine::check::{CheckOptions, check};
use testkit::engine::vfs::{FaultVfs, MemoryVfs, RealVfs, Vfs};
use testkit::engine::{Db, Family, FamilyOptions, OpenOptions, ReadOptions, WriteOptions, merge};

pub const REWRITTEN: &str = "skip_list";

/// Every memtable that can become a table, both ways.
pub const WAYS: [&str; 4] = [
    "{id=trie;convert_to_sst=kFileMmap}",
    "{id=trie;convert_to_sst=kDumpMem}",
    "{id=skip_list;convert_to_sst=kFileMmap}",
    "{id=skip_list;convert_to_sst=kDumpMem}",
];

/// Both ways, of one memtable each: for what the memtable has no part in.
pub const BOTH: [&str; 2] = [WAYS[0], WAYS[3]];

pub fn is_mapped(way: &str) -> bool {
    way.contains("kFileMmap")
}

pub fn options(vfs: &Arc<dyn Vfs>, memtable: &str) -> OpenOptions {
    let family = FamilyOptions {
        memtable_factory: memtable.into(),
        write_buffer_size: 128 << 10,
        merge_operator: merge::by_name("stringappend"),
        disable_auto_compactions: true,
        ..FamilyOptions::default()
    };
    let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
    options.db.log_file_bytes = 256 << 10;
    options.db.memtable_crash_safe_recover = false; // a memtable's file is its memtable's; tests/restart.rs is about the rest
    options.family("default", family)
}

/// A directory of some file system.
pub struct Place {
    pub vfs: Arc<dyn Vfs>,
    pub dir: PathBuf,
    _temporary: Option<tempfile::TempDir>,
}

impl Place {
    pub fn memory() -> Place {
        Place::of(MemoryVfs::new(1))
    }

    pub fn of(vfs: Arc<dyn Vfs>) -> Place {
        Place { vfs, dir: "/db".into(), _temporary: None }
    }

    pub fn faulty() -> (Place, Arc<FaultVfs>) {
        let vfs = FaultVfs::new(MemoryVfs::new(1));
        (Place::of(vfs.clone()), vfs)
    }

    pub fn real() -> Place {
        let temporary = tempfile::tempdir().unwrap();
        Place { vfs: RealVfs::new(), dir: temporary.path().join("db"), _temporary: Some(temporary) }
    }

    pub fn both() -> [Place; 2] {
        [Place::memory(), Place::real()]
    }

    pub fn open(&self, memtable: &str) -> Db {
        Db::open(&self.dir, &options(&self.vfs, memtable)).unwrap()
    }

    /// Names in the directory that end so.
    pub fn names(&self, end: &str) -> Vec<String> {
        let names = self.vfs.read_dir(&self.dir).unwrap();
        names.into_iter().filter(|name| name.ends_with(end)).collect()
    }

    pub fn check(&self) {
        check_at(&self.vfs, &self.dir);
    }
}

pub fn check_at(vfs: &Arc<dyn Vfs>, dir: &Path) {
    let options = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
    let report = check(dir, &options, &mut |_| {}).unwrap();
    assert!(report.is_whole(), "{:?}", report.problems);
}

/// How a file ends: of a converted table by `SPILWIMG`.
pub fn is_converted(vfs: &Arc<dyn Vfs>, path: &Path) -> bool {
    let file = vfs.open(path).unwrap();
    let mut magic = [0; 8];
    file.read_at(file.len().unwrap() - 8, &mut magic, testkit::engine::vfs::IoClass::Other).unwrap();
    &magic == b"SPILWIMG"
}

pub fn number(db: &Db, name: &str) -> u64 {
    db.int_property(&db.default_family(), name).expect("a property")
}

pub fn get(db: &Db, key: &str) -> Option<Vec<u8>> {
    db.get(&db.default_family(), key.as_bytes(), &ReadOptions::default()).unwrap().map(|value| value.to_vec())
}

pub fn put(db: &Db, key: &str, value: &str) {
    db.put(&db.default_family(), key.as_bytes(), value.as_bytes(), &WriteOptions::default()).unwrap();
}

pub fn flush(db: &Db) {
    db.flush(&[&db.default_family()]).unwrap();
}

pub type Contents = BTreeMap<Vec<u8>, Vec<u8>>;

/// Everything, forwards; backwards must be the same.
pub fn contents(db: &Db, options: &ReadOptions) -> Contents {
    let family = db.default_family();
    let mut iterator = db.iter(&family, options).unwrap();
    let (mut forward, mut backward) = (Contents::new(), Contents::new());
    let mut valid = iterator.seek_to_first();
    while valid {
        forward.insert(iterator.key().to_vec(), iterator.value().to_vec());
        valid = iterator.next();
    }
    valid = iterator.seek_to_last();
    while valid {
        backward.insert(iterator.key().to_vec(), iterator.value().to_vec());
        valid = iterator.prev();
    }
    iterator.status().unwrap();
    assert_eq!(forward, backward);
    forward
}

/// A round of changes of every kind, over the ones before.
pub fn change(db: &Db, family: &Arc<Family>, round: u64) {
    let options = WriteOptions::default();
    for i in 0..300u64 {
        let key = format!("key{:04}", (i * 7 + round * 31) % 500);
        let key = key.as_bytes();
        let value = format!("{round}-{i}-").repeat(1 + (i as usize * 13) % 200);
        match (i + round) % 10 {
            0 => db.delete(family, key, &options).unwrap(),
            1 | 2 => db.merge(family, key, value.as_bytes(), &options).unwrap(),
            3 if i % 4 == 0 => {
                let end = format!("key{:04}", (i * 7 + round * 31) % 500 + 9);
                db.delete_range(family, key, end.as_bytes(), &options).unwrap();
            }
            _ => db.put(family, key, value.as_bytes(), &options).unwrap(),
        }
    }
}
