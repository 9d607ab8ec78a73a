//! Position of a block in its table. Format: docs/format/table.md, "Handles".

use base::coding::{Reader, put_varint64};
use base::{Error, Result};

/// Bytes after every block: its compression type and a checksum.
pub const BLOCK_TRAILER_BYTES: u64 = 5;

/// A block's offset and its length without the trailer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockHandle {
    pub offset: u64,
    pub size: u64,
}

impl BlockHandle {
    /// The first byte after the block and its trailer: the start of the next block. Saturates.
    pub fn end(&self) -> u64 {
        self.offset.saturating_add(self.size).saturating_add(BLOCK_TRAILER_BYTES)
    }

    pub fn encode_to(&self, out: &mut Vec<u8>) {
        put_varint64(out, self.offset);
        put_varint64(out, self.size);
    }

    pub fn decode(reader: &mut Reader<'_>) -> Result<BlockHandle> {
        Ok(BlockHandle { offset: reader.varint64("block offset")?, size: reader.varint64("block size")? })
    }

    /// Checks that block and trailer lie below `limit` (B1).
    pub fn check_within(&self, limit: u64) -> Result<()> {
        if self.end() > limit {
            let message = format!("block of {} bytes reaches past byte {limit}, where blocks must end", self.size);
            return Err(Error::corruption(message).at_offset(self.offset));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_near_the_end_of_the_numbers_is_out_of_bounds() {
        let handle = BlockHandle { offset: u64::MAX - 2, size: u64::MAX };
        let mut bytes = Vec::new();
        handle.encode_to(&mut bytes);
        assert_eq!(BlockHandle::decode(&mut Reader::new(&bytes)).expect("whole"), handle);
        assert!(handle.check_within(1 << 40).is_err());
        assert!(BlockHandle { offset: 0, size: 10 }.check_within(15).is_ok());
        assert!(BlockHandle { offset: 0, size: 10 }.check_within(14).is_err());
    }
}
