//! Judges a MANIFEST's end: torn append, or later damage?
//!
//! A commit is one record, synced before the next is appended. So only the last record can be torn. A record after a
//! bad one proves the bad one was once durable: `Corruption` (D2). A bad last record is torn if bytes are missing: at
//! the end, or as zeros starting or ending at a sector. If all bytes are present but wrong, it is `Corruption` too.

use base::checksum::{crc32c, crc32c_append, mask};
use base::coding::decode_u32;
use base::{Error, Result};
use vfs::{IoClass, RandomFile};
use wal::framed::BLOCK_BYTES;

/// Longest possible remainder of a commit, in bytes: a record of 4 GiB, and its fragments' headers. Read a block at a
/// time (B2).
const TAIL_BYTES_MAX: u64 = (4 << 30) + (2 << 20);

const SECTOR_BYTES: usize = 512;

/// Shorter runs of zeros also occur in whole records.
const ZERO_RUN_BYTES_MIN: usize = 8;

const HEADER_BYTES: usize = 7;

/// A record begins with its checksum, hardly ever all zeros.
const CHECKSUM_BYTES: usize = 4;

/// Types of a record's fragments: whole, first, middle, last.
const WHOLE: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;

/// How reading stopped at a bad record.
pub(super) enum Stop {
    /// The file ends inside the record.
    CutOff,
    Damage,
}

/// One block's part of the bytes from the bad record to the end of the MANIFEST.
struct Piece<'a> {
    /// Offset in the block: 0 except for the first piece.
    start: usize,
    bytes: &'a [u8],
    /// The piece begins with the bad record.
    is_first: bool,
}

/// Whether the record at `offset`, where reading stopped, is the torn end of an unsynced append.
///
/// # Errors
/// Errors of reading the file.
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

    /// Whether a record starts after the bad one. Lengths in between are not trusted, so every offset is tried.
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

    /// For the last piece: whether a fragment ends exactly with the file despite a wrong length or type in its header.
    /// Then the header was damaged, and nothing is missing. After an intact first or middle fragment, the rest of its
    /// record is missing.
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

    /// Whether the piece's part of some sector is all zeros: space allocated but never written.
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

    /// Whether the first fragment is intact except for the first `missing` bytes of its checksum.
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

    /// A record beginning `before` bytes before a sector's end; its part in this sector was never written.
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
