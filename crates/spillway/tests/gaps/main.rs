//! Runs of dead entries, remembered as gaps: what iterators spare, and every way in which a key comes back. Debug builds
//! remember runs of four.
#![allow(clippy::disallowed_methods, reason = "a test of threads needs threads")]

mod back;
mod dense;
mod life;
mod spared;

use std::path::PathBuf;
use std::sync::Arc;

use testkit::engine::vfs::{MemoryVfs, Vfs};
use testkit::engine::{
    CompactRangeOptions, Db, Family, FamilyOptions, OpenOptions, ReadOptions, TableWriter, WriteOptions,
};

struct World {
    db: Db,
    family: Arc<Family>,
    vfs: Arc<MemoryVfs>,
}

fn key(n: u32) -> Vec<u8> {
    format!("{n:06}").into_bytes()
}

impl World {
    fn with(set: impl FnOnce(&mut OpenOptions, &mut FamilyOptions)) -> World {
        let vfs = MemoryVfs::new(1);
        let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        let mut family = FamilyOptions::default();
        set(&mut options, &mut family);
        let db = Db::open("/db", &options.family("default", family)).expect("opened");
        let family = db.default_family();
        World { db, family, vfs }
    }

    fn new() -> World {
        World::with(|_, _| {})
    }

    /// Values, then deletions of all of them.
    fn with_dead(keys: u32) -> World {
        let world = World::new();
        (0..keys).for_each(|n| world.put(n, "old"));
        (0..keys).for_each(|n| world.delete(n));
        world
    }

    fn put(&self, n: u32, value: &str) {
        self.db.put(&self.family, &key(n), value.as_bytes(), &WriteOptions::default()).expect("put");
    }

    fn delete(&self, n: u32) {
        self.db.delete(&self.family, &key(n), &WriteOptions::default()).expect("deleted");
    }

    fn flush(&self) {
        self.db.flush(&[&self.family]).expect("flushed");
    }

    fn compact(&self) {
        self.db.compact_range(&self.family, None, None, &CompactRangeOptions::default()).expect("compacted");
    }

    /// Keys and values in order. Panics if the walk back gives others.
    fn contents(&self, options: &ReadOptions) -> Vec<(Vec<u8>, Vec<u8>)> {
        let (forward, mut back) =
            (walk(&self.db, &self.family, options, true), walk(&self.db, &self.family, options, false));
        back.reverse();
        assert_eq!(forward, back);
        forward
    }

    fn keys(&self) -> Vec<u32> {
        let text = |key: Vec<u8>| String::from_utf8(key).expect("text").parse().expect("a number");
        self.contents(&ReadOptions::default()).into_iter().map(|(key, _)| text(key)).collect()
    }

    fn table(&self, keys: impl IntoIterator<Item = u32>) -> PathBuf {
        let file = PathBuf::from("/one.sst");
        let vfs: Arc<dyn Vfs> = self.vfs.clone();
        let mut table = TableWriter::create(vfs, &file, &FamilyOptions::default()).expect("new");
        keys.into_iter().for_each(|n| table.put(&key(n), b"table").expect("a key"));
        table.finish().expect("a table");
        file
    }
}

fn walk(db: &Db, family: &Family, options: &ReadOptions, forward: bool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut iterator = db.iter(family, options).expect("an iterator");
    let mut found = Vec::new();
    let mut more = if forward { iterator.seek_to_first() } else { iterator.seek_to_last() };
    while more {
        found.push((iterator.key().to_vec(), iterator.value().to_vec()));
        more = if forward { iterator.next() } else { iterator.prev() };
    }
    iterator.status().expect("a whole walk");
    found
}
