//! Judges a MANIFEST's end: was its writer cut off, or did damage come later?
//!
//! A commit is one record, and the next is appended only after it was synced. So only the last record can be torn, and
//! anything that follows a bad record proves that the record was durable once: that is `Corruption` (D2). A record that
//! is bad and last is torn where its bytes are missing, at the end or as zeros that start or end at a sector; where all
//! bytes are there and wrong, it is `Corruption` too.

use base::checksum::{crc32c, crc32c_append, mask};
use base::coding::decode_u32;
use base::{Error, Result};
use log::framed::BLOCK_BYTES;
use vfs::{IoClass, RandomFile};

/// The most that a commit can have left, in bytes (B2): a thousand times an ordinary big one.
const TAIL_BYTES_MAX: u64 = 16 << 20;

const SECTOR_BYTES: usize = 512;

/// Shorter runs of zeros also occur in whole records.
const ZERO_RUN_BYTES_MIN: usize = 8;

const HEADER_BYTES: usize = 7;

/// A record begins with its checksum, which is hardly ever all zeros.
const CHECKSUM_BYTES: usize = 4;

/// Types of a record's fragments: whole, first, middle, last.
const WHOLE: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// How reading stopped at a record that is not whole.
pub(super) enum Stop {
    /// The file ends inside the record.
    CutOff,
    Damage,
}

/// A MANIFEST's bytes from the record that could not be read to the end of the file.
struct Tail {
    start: usize,
    bytes: Vec<u8>,
}

/// Whether the record at `offset`, where reading stopped, is the torn end of an append that was not synced.
///
/// # Errors
/// What reading the file yields.
pub(super) fn is_torn(file: &dyn RandomFile, offset: u64, stop: Stop) -> Result<bool> {
    let len = file.len()?.saturating_sub(offset);
    if len > TAIL_BYTES_MAX {
        return Ok(false);
    }
    let mut bytes = vec![0; len as usize];
    let read = file.read_at(offset, &mut bytes, IoClass::Manifest)?;
    if read != bytes.len() {
        return Err(Error::corruption("the MANIFEST became shorter while it was read").at_offset(offset));
    }
    // Only the place within a block matters from here on.
    let tail = Tail { start: (offset % BLOCK_BYTES as u64) as usize, bytes };
    if tail.has_later_record() {
        return Ok(false);
    }
    Ok(match stop {
        Stop::CutOff => !tail.ends_with_whole_fragment(),
        Stop::Damage => tail.lacks_sectors(),
    })
}

impl Tail {
    /// Bytes from `at` to the end of its block or of the file.
    fn rest_of_block(&self, at: usize) -> &[u8] {
        let room = BLOCK_BYTES - (self.start + at) % BLOCK_BYTES;
        let rest = self.bytes.get(at..).unwrap_or(&[]);
        rest.get(..room).unwrap_or(rest)
    }

    /// Whether a record starts behind the bad one. Lengths in between are not to be trusted, so every place is tried.
    fn has_later_record(&self) -> bool {
        (1..self.bytes.len()).any(|at| {
            let Some((header, rest)) = self.rest_of_block(at).split_first_chunk::<HEADER_BYTES>() else {
                return false;
            };
            let [.., low, high, kind] = *header;
            let len = usize::from(u16::from_le_bytes([low, high]));
            let payload = if matches!(kind, WHOLE | FIRST) { rest.get(..len) } else { None };
            payload.is_some_and(|payload| has_checksum(header, kind, payload))
        })
    }

    /// Whether some fragment ends just where the file does, though its header says another length or type: then the
    /// header was damaged, and nothing is missing. Behind one whose header is right, the rest of its record is.
    fn ends_with_whole_fragment(&self) -> bool {
        let end = self.start + self.bytes.len();
        let last_block = (end.saturating_sub(1) / BLOCK_BYTES * BLOCK_BYTES).saturating_sub(self.start);
        (last_block..self.bytes.len()).any(|at| {
            let Some((header, payload)) = self.rest_of_block(at).split_first_chunk::<HEADER_BYTES>() else {
                return false;
            };
            let [.., low, high, kind] = *header;
            let len = usize::from(u16::from_le_bytes([low, high]));
            if matches!(kind, FIRST | MIDDLE) && len == payload.len() && has_checksum(header, kind, payload) {
                return false;
            }
            [WHOLE, FIRST, MIDDLE, LAST].iter().any(|&kind| has_checksum(header, kind, payload))
        })
    }

    /// Whether what the tail has of some sector is all zeros: space that was allocated but never written.
    fn lacks_sectors(&self) -> bool {
        let to_boundary = SECTOR_BYTES - self.start % SECTOR_BYTES;
        let (head, rest) = self.bytes.split_at(to_boundary.min(self.bytes.len()));
        let is_zero = |sector: &[u8]| sector.iter().all(|&byte| byte == 0);
        let lacks_head = match head.len() {
            0..CHECKSUM_BYTES => is_zero(head) && self.is_whole_behind(head.len()),
            _ => is_zero(head),
        };
        lacks_head || rest.chunks(SECTOR_BYTES).any(|sector| sector.len() >= ZERO_RUN_BYTES_MIN && is_zero(sector))
    }

    /// Whether the first fragment is right but for the first bytes of its checksum.
    fn is_whole_behind(&self, missing: usize) -> bool {
        let Some((header, rest)) = self.rest_of_block(0).split_first_chunk::<HEADER_BYTES>() else { return false };
        let [.., low, high, kind] = *header;
        let payload = rest.get(..usize::from(u16::from_le_bytes([low, high])));
        let computed = payload.map(|payload| mask(crc32c_append(crc32c(&[kind]), payload)).to_le_bytes());
        computed.is_some_and(|crc| header.get(missing..CHECKSUM_BYTES) == crc.get(missing..))
    }
}

fn has_checksum(header: &[u8; HEADER_BYTES], kind: u8, payload: &[u8]) -> bool {
    decode_u32(header) == Some(mask(crc32c_append(crc32c(&[kind]), payload)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record that begins so many bytes before a sector's end, whose part in that sector was never written.
    #[test]
    fn a_record_whose_beginning_is_missing_is_torn_and_a_damaged_one_is_not() {
        for before in 1..=HEADER_BYTES + 3 {
            let payload = [9; 100];
            let crc = mask(crc32c_append(crc32c(&[WHOLE]), &payload));
            let mut bytes = [&crc.to_le_bytes()[..], &[100, 0, WHOLE], &payload].concat();
            let whole = bytes.clone();
            bytes[..before].fill(0);
            let start = SECTOR_BYTES - before;
            assert!(Tail { start, bytes: bytes.clone() }.lacks_sectors(), "{before} bytes");
            bytes[50] ^= 1;
            assert_eq!(Tail { start, bytes }.lacks_sectors(), before >= CHECKSUM_BYTES, "{before} bytes, and damage");
            let mut damaged = whole;
            damaged[before - 1] ^= 1;
            assert!(!Tail { start, bytes: damaged }.lacks_sectors());
        }
    }
}
