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

/// The most that a commit can have left, in bytes: a record of 4 GiB, and its fragments' headers. It is read a block at a
/// time (B2).
const TAIL_BYTES_MAX: u64 = (4 << 30) + (2 << 20);

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

/// What a block has of a MANIFEST's bytes from the record that could not be read to the end of the file.
struct Piece<'a> {
    /// Its place in the block: 0 but for the first piece.
    start: usize,
    bytes: &'a [u8],
    /// It begins with the record that could not be read.
    is_first: bool,
}

/// Whether the record at `offset`, where reading stopped, is the torn end of an append that was not synced.
///
/// # Errors
/// What reading the file yields.
pub(super) fn is_torn(file: &dyn RandomFile, offset: u64, stop: Stop) -> Result<bool> {
    let end = file.len()?;
    if end.saturating_sub(offset) > TAIL_BYTES_MAX {
        return Ok(false);
    }
    let mut block = vec![0; BLOCK_BYTES];
    let (mut at, mut lacks_sectors, mut ends_whole) = (offset, false, false);
    while at < end {
        let start = (at % BLOCK_BYTES as u64) as usize;
        let len = (end - at).min((BLOCK_BYTES - start) as u64) as usize;
        let bytes = block.get_mut(..len).unwrap_or_default();
        if file.read_at(at, bytes, IoClass::Manifest)? != len {
            return Err(Error::corruption("the MANIFEST became shorter while it was read").at_offset(at));
        }
        let piece = Piece { start, bytes, is_first: at == offset };
        if piece.holds_later_record() {
            return Ok(false);
        }
        lacks_sectors |= piece.lacks_sectors();
        at += len as u64;
        ends_whole = at == end && piece.ends_with_whole_fragment();
    }
    Ok(match stop {
        Stop::CutOff => !ends_whole,
        Stop::Damage => lacks_sectors,
    })
}

impl Piece<'_> {
    /// Bytes from `at` to the end of the block or of the file.
    fn from(&self, at: usize) -> &[u8] {
        self.bytes.get(at..).unwrap_or(&[])
    }

    /// Whether a record starts behind the bad one. Lengths in between are not to be trusted, so every place is tried.
    fn holds_later_record(&self) -> bool {
        (usize::from(self.is_first)..self.bytes.len()).any(|at| {
            let Some((header, rest)) = self.from(at).split_first_chunk::<HEADER_BYTES>() else {
                return false;
            };
            let [.., low, high, kind] = *header;
            let len = usize::from(u16::from_le_bytes([low, high]));
            let payload = if matches!(kind, WHOLE | FIRST) { rest.get(..len) } else { None };
            payload.is_some_and(|payload| has_checksum(header, kind, payload))
        })
    }

    /// For the last piece: whether some fragment ends just where the file does, though its header says another length or type: then the
    /// header was damaged, and nothing is missing. Behind one whose header is right, the rest of its record is.
    fn ends_with_whole_fragment(&self) -> bool {
        (0..self.bytes.len()).any(|at| {
            let Some((header, payload)) = self.from(at).split_first_chunk::<HEADER_BYTES>() else {
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

    /// Whether what it has of some sector is all zeros: space that was allocated but never written.
    fn lacks_sectors(&self) -> bool {
        let to_boundary = if self.is_first { SECTOR_BYTES - self.start % SECTOR_BYTES } else { 0 };
        let (head, rest) = self.bytes.split_at(to_boundary.min(self.bytes.len()));
        let is_zero = |sector: &[u8]| sector.iter().all(|&byte| byte == 0);
        let lacks_head = match head.len() {
            _ if !self.is_first => false,
            0..CHECKSUM_BYTES => is_zero(head) && self.is_whole_behind(head.len()),
            _ => is_zero(head),
        };
        lacks_head || rest.chunks(SECTOR_BYTES).any(|sector| sector.len() >= ZERO_RUN_BYTES_MIN && is_zero(sector))
    }

    /// Whether the first fragment is right but for the first bytes of its checksum.
    fn is_whole_behind(&self, missing: usize) -> bool {
        let Some((header, rest)) = self.from(0).split_first_chunk::<HEADER_BYTES>() else { return false };
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
            assert!(Piece { start, bytes: &bytes, is_first: true }.lacks_sectors(), "{before} bytes");
            bytes[50] ^= 1;
            assert_eq!(
                Piece { start, bytes: &bytes, is_first: true }.lacks_sectors(),
                before >= CHECKSUM_BYTES,
                "{before} bytes, and damage"
            );
            let mut damaged = whole;
            damaged[before - 1] ^= 1;
            assert!(!Piece { start, bytes: &damaged, is_first: true }.lacks_sectors());
        }
    }
}
