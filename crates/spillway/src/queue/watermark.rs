//! A recovery watermark's position in the log, in one word.

use base::FileNumber;
use wal::Position;

/// Bits of the offset in a packed position; the rest are the log's number.
const OFFSET_BITS: u32 = 34;

/// Packs a WAL position into one word, so it cannot be torn. `None` if it does not fit: an offset of 16 GiB or more,
/// or a log number above a billion.
pub(crate) fn pack(at: Position) -> Option<u64> {
    let fits = at.offset >> OFFSET_BITS == 0 && at.log.0 >> (u64::BITS - OFFSET_BITS) == 0;
    fits.then_some(at.log.0 << OFFSET_BITS | at.offset)
}

/// `None` if nothing was marked.
pub(crate) fn unpack(packed: u64) -> Option<Position> {
    let at = Position { log: FileNumber(packed >> OFFSET_BITS), offset: packed & ((1 << OFFSET_BITS) - 1) };
    (packed != 0).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_round_trip_in_one_word_where_they_fit() {
        for at in [(1, 0), (7, 128), ((1 << 30) - 1, (1 << 34) - 1)] {
            let at = Position { log: FileNumber(at.0), offset: at.1 };
            assert_eq!(pack(at).and_then(unpack), Some(at));
        }
        assert_eq!(pack(Position { log: FileNumber(1 << 30), offset: 0 }), None);
        assert_eq!(pack(Position { log: FileNumber(1), offset: 1 << 34 }), None);
        assert_eq!(unpack(0), None);
    }
}
