//! Unchecked images behind the `Memtable` trait, for the same reads.

use std::path::Path;

use base::tombstone::FragmentedTombstones;
use base::{LookupKey, Result};
use vfs::ReadMapping;

use crate::image::{LazyImage, Seal};
use crate::{Counts, Visit, VisitMany};

use super::*;

/// Bytes, mapped.
pub(crate) struct Mapped(pub(crate) Vec<u8>);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl ReadMapping for Mapped {}

pub(crate) struct LazyMemtable(pub(crate) Arc<LazyImage>);

impl LazyMemtable {
    pub(crate) fn open(bytes: Vec<u8>, order: &UserOrder, cut: SeqNo) -> Result<Arc<LazyMemtable>> {
        let image = LazyImage::open(Arc::new(Mapped(bytes)), Path::new("/image"), order, cut)?;
        Ok(Arc::new(LazyMemtable(Arc::new(image))))
    }
}

/// Failed reads panic.
impl Memtable for LazyMemtable {
    fn name(&self) -> &'static str {
        "an unchecked image"
    }

    fn worst_case_bytes(&self, _entries: usize, _payload_bytes: usize) -> usize {
        unreachable!("nothing is inserted")
    }

    fn try_reserve(&self, _bytes: usize) -> bool {
        false
    }

    fn insert(&self, _entry: Entry<'_>) {
        unreachable!("nothing is inserted")
    }

    fn get(&self, key: &LookupKey, visit: &mut Visit<'_>) {
        self.0.get(key, visit).expect("whole");
    }

    fn multi_get(&self, keys: &[&LookupKey], visit: &mut VisitMany<'_>) {
        self.0.multi_get(keys, visit).expect("whole");
    }

    fn cursor(self: Arc<Self>) -> Box<dyn Cursor> {
        Arc::clone(&self.0).cursor()
    }

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.0.tombstones()
    }

    fn counts(&self) -> Counts {
        let Seal { entries, deletions, payload_bytes, .. } = self.0.header().sealed.expect("sealed");
        Counts { entries, deletions, payload_bytes, ..Counts::default() }
    }

    fn memory_bytes(&self) -> usize {
        self.0.bytes() as usize
    }

    fn reserved_bytes(&self) -> usize {
        self.memory_bytes()
    }

    fn capacity_bytes(&self) -> usize {
        self.memory_bytes()
    }

    fn approximate_entries(&self, start: &[u8], end: &[u8]) -> u64 {
        self.0.approximate_entries(start, end)
    }
}
