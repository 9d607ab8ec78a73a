//! RocksDB's log framing, for its WALs and every MANIFEST, RocksDB's and ours. Format: docs/format/log.md.
//!
//! A file is a sequence of 32 KiB blocks. Records are split into fragments, and no fragment crosses a block boundary.
//! Each fragment carries its length, its type and a masked crc32c. Zeros fill a block's end if it is too short for a
//! header.
//!
//! Keeps B1 and B2: lengths are checked against the block and the file before use, and a record's buffer grows only by
//! bytes already read.

mod reader;
mod replay;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::{FramedReader, Predecessor};
pub use replay::replay;
pub use writer::FramedWriter;

/// Bytes in a block.
pub const BLOCK_BYTES: usize = 32 << 10;

/// crc32c u32, length u16, type u8.
const HEADER_BYTES: usize = 7;

/// The header of the recyclable types, with the low half of the log's number added.
const RECYCLABLE_HEADER_BYTES: usize = 11;

/// A whole record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FramedRecord {
    /// Offset of its first fragment's header.
    pub offset: u64,
    /// The record's bytes.
    pub payload: Vec<u8>,
    /// Damage was skipped right before it.
    pub follows_damage: bool,
}

/// Why no records follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramedEnd {
    /// The file ends with a whole record.
    Clean,
    /// The file ends inside the record starting at `offset`: the write was cut off.
    Torn {
        /// Byte offset in the file.
        offset: u64,
    },
    /// Only zeros from `offset` on: preallocated space.
    Zeros {
        /// Byte offset in the file.
        offset: u64,
    },
    /// The bytes at `offset` belong to the previous log of a recycled file, and no record of this log follows.
    OtherLog {
        /// Byte offset in the file.
        offset: u64,
    },
    /// Damage accepted as the end by the recovery mode. Only from [`replay`].
    Damaged {
        /// Byte offset in the file.
        offset: u64,
    },
}

/// A fragment's position in its record. The numbers are the legacy types; the recyclable types are 4 higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Full = 1,
    First = 2,
    Middle = 3,
    Last = 4,
}

impl Part {
    fn new(is_first: bool, is_last: bool) -> Self {
        match (is_first, is_last) {
            (true, true) => Part::Full,
            (true, false) => Part::First,
            (false, false) => Part::Middle,
            (false, true) => Part::Last,
        }
    }
}

/// Record types other than fragments.
mod special {
    pub const ZERO: u8 = 0;
    pub const SET_COMPRESSION: u8 = 9;
    pub const TIMESTAMP_SIZES: u8 = 10;
    pub const TIMESTAMP_SIZES_RECYCLABLE: u8 = 11;
    pub const PREDECESSOR: u8 = 130;
    pub const PREDECESSOR_RECYCLABLE: u8 = 131;
    /// Readers may skip unknown types with this bit.
    pub const IGNORABLE_BIT: u8 = 0x80;
}
