//! Unchecked images behind the `Memtable` trait, for the same reads.

use std::path::Path;

use base::tombstone::FragmentedTombstones;
use base::{LookupKey, Result};
use vfs::ReadMapping;

use crate::image::{Header, LazyImage, Seal};
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

pub(crate) struct LazyMemtable {
    pub(crate) image: Arc<LazyImage>,
    counts: Counts,
}

impl LazyMemtable {
    /// Counts nothing if the image is not sealed.
    pub(crate) fn open(bytes: Vec<u8>, order: &UserOrder, cut: SeqNo) -> Result<Arc<LazyMemtable>> {
        let counts = match Header::read(&bytes)?.sealed {
            Some(Seal { entries, deletions, payload_bytes, .. }) => {
                Counts { entries, deletions, payload_bytes, ..Counts::default() }
            }
            None => Counts::default(),
        };
        let image = LazyImage::open(Arc::new(Mapped(bytes)), Path::new("/image"), order, cut)?;
        Ok(Arc::new(LazyMemtable { image: Arc::new(image), counts }))
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
        self.image.get(key, visit).expect("whole");
    }

    fn multi_get(&self, keys: &[&LookupKey], visit: &mut VisitMany<'_>) {
        self.image.multi_get(keys, visit).expect("whole");
    }

    fn cursor(self: Arc<Self>) -> Box<dyn Cursor> {
        Arc::clone(&self.image).cursor()
    }

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.image.tombstones()
    }

    fn counts(&self) -> Counts {
        self.counts
    }

    fn memory_bytes(&self) -> usize {
        0
    }

    fn reserved_bytes(&self) -> usize {
        self.memory_bytes()
    }

    fn capacity_bytes(&self) -> usize {
        self.memory_bytes()
    }
}
