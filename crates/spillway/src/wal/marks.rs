//! What is done every so many bytes of log. Memtables in files are told how far they are complete, so that a restart need
//! not replay what they hold (see [`crate::open`]'s `restart`), and upkeep makes the log present further on
//! ([`crate::wal::presence`]).

use std::sync::atomic::{AtomicU64, Ordering};

use base::{FileNumber, SeqNo};
use log::Position;

use crate::commit::pipeline::LogPosition;
use crate::wal::roll::Wal;

/// Bytes of log from one mark to the next: what a restart replays at the most, a few milliseconds' worth. Memtables that
/// are written to at another pace than others are told all the same, so that none holds the logs of all.
const MARK_EVERY_BYTES: u64 = 256 << 10;

/// Of a packed place; the rest are the log's number.
const OFFSET_BITS: u32 = 34;

/// When it is time next.
pub(crate) struct Marks {
    next: AtomicU64,
    /// Memtables lie in files that outlive a process.
    are_told: bool,
}

impl Marks {
    /// `are_told`: there are memtables to be told.
    pub fn new(are_told: bool) -> Self {
        Marks { next: AtomicU64::new(0), are_told }
    }

    /// True for the one caller who is to see to it.
    #[inline]
    fn are_due(&self, at: LogPosition) -> bool {
        let next = self.next.load(Ordering::Relaxed);
        at >= next
            && self.next.compare_exchange(next, at + MARK_EVERY_BYTES, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }
}

impl Wal {
    /// Tells memtables that everything through `last`, whose record ends at `logged`, is in them, and upkeep how far the log
    /// has come, if it is time. It is visible.
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

    /// Tells memtables that everything through `last` is in them; all of it is visible, and what follows it lies at `at`
    /// in the logs or later (C1).
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

/// A place in the logs as one word, which cannot be torn; `None` where it does not fit: a log of 16 GiB, or one of a
/// number above a billion.
pub(crate) fn pack(at: Position) -> Option<u64> {
    let fits = at.offset >> OFFSET_BITS == 0 && at.log.0 >> (u64::BITS - OFFSET_BITS) == 0;
    fits.then_some(at.log.0 << OFFSET_BITS | at.offset)
}

/// `None` where nothing was marked.
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
