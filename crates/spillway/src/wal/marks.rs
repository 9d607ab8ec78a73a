//! Recurring work per bytes of WAL. Memtables in files get a recovery watermark, so a restart need not replay their
//! contents (see [`crate::open`]'s `restart`). Upkeep prefaults the log further ([`crate::wal::presence`]).

use std::sync::atomic::{AtomicU64, Ordering};

use base::{FileNumber, SeqNo};
use log::Position;

use crate::commit::pipeline::LogPosition;
use crate::wal::roll::Wal;

/// WAL bytes from one watermark to the next: the most a restart replays, a few milliseconds' worth. Every memtable
/// gets each watermark, however slowly it is written, so none keeps the logs of all families.
const MARK_EVERY_BYTES: u64 = 256 << 10;

/// Bits of the offset in a packed position; the rest are the log's number.
const OFFSET_BITS: u32 = 34;

/// Position of the next watermark.
pub(crate) struct Marks {
    next: AtomicU64,
    /// Memtables are in files outliving the process, and get watermarks.
    are_told: bool,
}

impl Marks {
    /// `are_told`: memtables get watermarks.
    pub fn new(are_told: bool) -> Self {
        Marks { next: AtomicU64::new(0), are_told }
    }

    /// True for exactly one caller per watermark.
    #[inline]
    fn are_due(&self, at: LogPosition) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        at >= next
            && self.next.compare_exchange(next, at + MARK_EVERY_BYTES, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Wal {
    /// Sets the memtables' recovery watermark to `last` and wakes upkeep, if due. Everything through `last` is
    /// visible; its log record ends at `logged`.
    #[inline]
    pub(crate) fn mark_if_due(&self, last: SeqNo, logged: LogPosition, at: impl FnOnce() -> Position) {
        if self.marks.are_due(logged) {
            self.pass_mark(last, at());
        }
    }

    #[cold]
    fn pass_mark(&self, last: SeqNo, at: Position) {
        self.core.upkeep.raise_again();
        if self.marks.are_told {
            self.mark_memtables(last, at);
        }
    }

    /// Sets the memtables' recovery watermark to `last`: everything through it is visible and in memtables. Later
    /// records are at `at` in the WAL or beyond (C1).
    #[cold]
    pub(crate) fn mark_memtables(&self, last: SeqNo, at: Position) {
        let Some(at) = pack(at) else { return };
        for family in self.core.families.load().iter() {
            let view = family.view();
            view.queue.iter().for_each(|entry| entry.mark_complete(last));
            view.mutable.memtable().mark(last, at);
        }
    }
}

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
