//! RocksDB's log framing: its write-ahead logs, and every MANIFEST, theirs and ours. Format: docs/format/log.md.
//!
//! A file is a row of 32 KiB blocks. A record is cut into fragments so that none crosses a block's end; each fragment
//! carries its length, its type and a masked crc32c. What is left of a block and too short for a header is zeros.
//!
//! Keeps B1 and B2: a length is checked against the block and the file before anything is taken on its word, and a
//! record grows only by bytes that were read.

mod reader;
mod replay;
#[cfg(test)]
mod tests;
mod writer;

pub use reader::FramedReader;
pub use replay::replay;
pub use writer::FramedWriter;

/// Bytes in a block.
pub const BLOCK_BYTES: usize = 32 << 10;

/// crc32c u32, length u16, type u8.
const HEADER_BYTES: usize = 7;

/// The header of the recyclable types, which adds the low half of the log's number.
const RECYCLABLE_HEADER_BYTES: usize = 11;

/// A whole record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FramedRecord {
    /// Where the header of its first fragment lies.
    pub offset: u64,
    pub payload: Vec<u8>,
}

/// Why there are no more records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FramedEnd {
    /// The file ends with a whole record.
    Clean,
    /// The file ends inside the record that starts at `offset`: its writer was cut off.
    Torn { offset: u64 },
    /// From `offset` on the file holds only zeros: space allocated ahead and never used.
    Zeros { offset: u64 },
    /// What lies at `offset` belongs to the log that this file held before it was reused.
    OtherLog { offset: u64 },
    /// Reading stopped at damage that the recovery mode accepts as the end. Only from [`replay`].
    Damaged { offset: u64 },
}

/// Where a fragment stands in its record. The numbers are the legacy types; the recyclable ones are 4 higher.
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

/// Types of what is not a fragment of a record.
mod special {
    pub const ZERO: u8 = 0;
    pub const SET_COMPRESSION: u8 = 9;
    pub const TIMESTAMP_SIZES: u8 = 10;
    pub const TIMESTAMP_SIZES_RECYCLABLE: u8 = 11;
    pub const PREDECESSOR_RECYCLABLE: u8 = 131;
    /// A type with this bit (130 and 131, predecessor info, among them) may be passed over by a reader that does not
    /// know it.
    pub const IGNORABLE_BIT: u8 = 0x80;
}
