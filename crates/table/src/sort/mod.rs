//! The parts of an external merge sort: records are collected and sorted in memory ([`Buffer`]), written as sorted runs
//! ([`Spill`], [`RunWriter`]) and merged ([`Merge`]). The caller decides about memory and threads.

mod buffer;
mod merge;
mod spill;

use std::cmp::Ordering;
use std::sync::Arc;

use base::key::{split, user_key};
use base::{InternalOrder, UserOrder};

pub use self::buffer::Buffer;
pub use self::merge::Merge;
#[cfg(feature = "topling")]
pub(crate) use self::spill::unnamed_file;
pub use self::spill::{Run, RunReader, RunShape, RunWriter, Sample, Spill};

/// Sort order of records. Of records with equal keys, the one added last stays.
pub trait RecordOrder {
    /// The order of two keys.
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering;

    /// A number ordered like the keys, as far as it reaches: if two differ, so do the keys.
    fn prefix(&self, key: &[u8]) -> u64;
}

impl RecordOrder for UserOrder {
    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        UserOrder::compare(self, a, b)
    }

    #[inline]
    fn prefix(&self, key: &[u8]) -> u64 {
        self.rank(key)
    }
}

/// Internal keys by user key, then from new to old. Equal user key and sequence number mean equal keys, of whatever
/// kinds.
#[derive(Clone, Debug)]
pub struct VersionOrder(pub InternalOrder);

impl RecordOrder for VersionOrder {
    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let number = |key: &[u8]| split(key).map_or(0, |(_, trailer)| trailer >> 8);
        self.0.user.compare(user_key(a), user_key(b)).then_with(|| number(b).cmp(&number(a)))
    }

    #[inline]
    fn prefix(&self, key: &[u8]) -> u64 {
        self.0.user.prefix(user_key(key))
    }
}

/// Sorted records, in memory or on disk. Cheap to clone.
#[derive(Clone)]
pub enum Sequence {
    /// In memory.
    Memory(Arc<Buffer>),
    /// In a temporary file.
    Spilled(Arc<Run>),
}

impl Sequence {
    /// Additional memory to read the sequence, in bytes.
    pub fn reading_bytes(&self) -> u64 {
        match self {
            Sequence::Memory(_) => 0,
            Sequence::Spilled(run) => run.block_bytes_max() as u64,
        }
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        match self {
            Sequence::Memory(buffer) => buffer.len() as u64,
            Sequence::Spilled(run) => run.records(),
        }
    }

    /// Bytes of keys and values.
    pub fn payload_bytes(&self) -> u64 {
        match self {
            Sequence::Memory(buffer) => buffer.payload_bytes(),
            Sequence::Spilled(run) => run.payload_bytes(),
        }
    }
}
