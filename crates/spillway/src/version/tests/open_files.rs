//! How many tables are open, and which are closed.

use std::collections::BTreeMap;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, LookupKey};
use parking_lot::Mutex;
use table::{Properties, TableReadOptions, Visit};

use super::*;

/// A table without entries.
struct Empty(Properties);

impl Table for Empty {
    fn get(&self, _: &LookupKey, _: &TableReadOptions, _: Visit<'_>) -> Result<()> {
        Ok(())
    }
    fn cursor(self: Arc<Self>, _: &TableReadOptions) -> Box<dyn Cursor> {
        unreachable!("nothing walks it")
    }
    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        None
    }
    fn properties(&self) -> &Properties {
        &self.0
    }
    fn approximate_offset(&self, _: &[u8]) -> Result<u64> {
        Ok(0)
    }
    fn anchors(&self, _: usize) -> Result<Vec<(Vec<u8>, u64)>> {
        Ok(Vec::new())
    }
    fn verify(&self) -> Result<()> {
        Ok(())
    }
    fn memory_bytes(&self) -> usize {
        0
    }
}

/// Counts how often each table was opened; table 13 cannot be.
#[derive(Clone, Default)]
struct Counting(Arc<Mutex<BTreeMap<u64, u32>>>);

impl TableOpener for Counting {
    fn open(&self, meta: &FileMeta) -> Result<Arc<dyn Table>> {
        if meta.number.0 == 13 {
            return Err(Error::corruption("no table"));
        }
        *self.0.lock().entry(meta.number.0).or_default() += 1;
        Ok(Arc::new(Empty(Properties::default())))
    }
}

fn counting_store(max_open_files: i32) -> (Arc<TableStore>, Arc<OpenSlots>, Counting) {
    let counts = Counting::default();
    let slots = OpenSlots::new(max_open_files);
    (
        TableStore::new(
            Box::new(counts.clone()),
            slots.clone(),
            crate::version::log_life::LogLives::new(vfs::MemoryVfs::new(1), "/logs".into(), PurgeQueue::new()),
        ),
        slots,
        counts,
    )
}

#[test]
fn without_a_bound_every_table_is_opened_once() {
    let (store, slots, counts) = counting_store(-1);
    let files: Vec<_> = (1..=9).map(|number| store.file(table(number, 0, 9, 1))).collect();
    assert!(!files[0].is_open());
    for _ in 0..3 {
        files.iter().for_each(|file| drop(file.open().unwrap()));
        files.iter().for_each(|file| file.with(|table| table.verify()).unwrap());
    }
    assert!(counts.0.lock().values().all(|&count| count == 1));
    assert!(slots.clock.lock().is_empty(), "nothing to track");
}

#[test]
fn a_bound_closes_what_was_not_read_lately() {
    let (store, slots, counts) = counting_store(3);
    let files: Vec<_> = (1..=9).map(|number| store.file(table(number, 0, 9, 1))).collect();
    let held = files[0].open().unwrap();
    for file in &files {
        drop(file.open().unwrap());
        // Read all the time, so never the one to close.
        files[1].with(|_| Ok(())).unwrap();
        assert!(files.iter().filter(|file| file.is_open()).count() <= 3);
    }
    assert_eq!(slots.clock.lock().len(), 3);
    assert!(!files[0].is_open() && held.verify().is_ok(), "closed, but usable by who holds it");
    assert_eq!(counts.0.lock()[&2], 1, "the hot table stayed open");
    drop(files[0].open().unwrap());
    assert_eq!(counts.0.lock()[&1], 2, "opened again");
}

#[test]
fn a_table_that_is_gone_gives_up_its_slot() {
    let (store, slots, _) = counting_store(2);
    for number in 1..=8 {
        drop(store.file(table(number, 0, 9, 1)).open().unwrap());
        assert!(slots.clock.lock().len() <= 2);
    }
}

#[test]
fn a_table_that_cannot_be_opened_says_so_each_time() {
    let (store, slots, _) = counting_store(2);
    let file = store.file(table(13, 0, 9, 1));
    for _ in 0..2 {
        assert_eq!(file.open().map(drop).unwrap_err().message(), "no table");
        assert!(file.with(|_| Ok(())).is_err());
    }
    assert!(!file.is_open() && slots.clock.lock().is_empty());
}
