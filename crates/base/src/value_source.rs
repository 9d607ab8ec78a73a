//! Values that live in a log instead of in the memtable or table that refers to them. The log implements the trait, so
//! that neither memtables nor tables import it.

use crate::error::Result;
use crate::key::FileNumber;
use crate::pinned::Pinned;

/// Where a value lies in a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueRef {
    pub log: FileNumber,
    pub offset: u64,
    pub len: u32,
    /// crc32c of the value's bytes, unmasked.
    pub crc: u32,
}

pub trait ValueSource: Send + Sync {
    /// # Errors
    /// `Corruption`: the bytes there do not match the reference's checksum.
    fn resolve(&self, value: ValueRef) -> Result<Pinned>;
}
