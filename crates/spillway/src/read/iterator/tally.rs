//! Counters of an iterator. They are added to the statistics on drop, so a step costs no atomic operation.

use std::sync::Arc;

use base::metrics::{Histogram, Ticker};
use vfs::perf::{self, Metric};

use super::DbIterator;
use crate::cursor::meter::Meter;

/// Kinds of moves.
#[derive(Clone, Copy)]
pub(super) enum Move {
    Seek,
    Next,
    Prev,
}

#[derive(Default)]
struct Moves {
    made: u64,
    found: u64,
}

pub(super) struct Tally {
    meter: Arc<Meter>,
    seeks: Moves,
    nexts: Moves,
    prevs: Moves,
    /// Bytes of returned keys and values.
    bytes: u64,
    skipped: u64,
    reseeks: u64,
}

impl Tally {
    pub fn new(meter: &Arc<Meter>) -> Box<Self> {
        meter.statistics.add(Ticker::IteratorCreated, 1);
        let meter = meter.clone();
        let (seeks, nexts, prevs) = Default::default();
        Box::new(Tally { meter, seeks, nexts, prevs, bytes: 0, skipped: 0, reseeks: 0 })
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let totals = [
            (Ticker::NumberDbSeek, self.seeks.made),
            (Ticker::NumberDbSeekFound, self.seeks.found),
            (Ticker::NumberDbNext, self.nexts.made),
            (Ticker::NumberDbNextFound, self.nexts.found),
            (Ticker::NumberDbPrev, self.prevs.made),
            (Ticker::NumberDbPrevFound, self.prevs.found),
            (Ticker::IterBytesRead, self.bytes),
            (Ticker::NumberIterSkip, self.skipped),
            (Ticker::NumberReseeksInIteration, self.reseeks),
            (Ticker::IteratorDeleted, 1),
        ];
        totals.into_iter().for_each(|(ticker, total)| self.meter.statistics.add(ticker, total));
    }
}

impl DbIterator {
    /// Runs `seek`, timed and counted if there are statistics, else if it is in the sample.
    #[inline]
    pub(super) fn counted_seek(&mut self, seek: impl FnOnce(&mut Self) -> bool) -> bool {
        let Some(start) = self.tally.as_ref().map(|tally| tally.meter.now()) else {
            let start = self.context.sample.as_ref().and_then(|sample| sample.start());
            let found = seek(self);
            if let (Some(start), Some(sample)) = (start, &self.context.sample) {
                sample.end_seek(start);
            }
            return found;
        };
        let found = seek(self);
        if let Some(tally) = &self.tally {
            tally.meter.record_since(Histogram::DbSeek, start);
        }
        self.counted(Move::Seek, found)
    }

    /// Counts a completed move; returns `found`.
    #[inline]
    pub(super) fn counted(&mut self, how: Move, found: bool) -> bool {
        if self.tally.is_some() {
            self.count(how, found);
        }
        found
    }

    #[cold]
    fn count(&mut self, how: Move, found: bool) {
        let bytes = self.key().len() + self.value().len();
        let Some(tally) = &mut self.tally else { return };
        let moves = match how {
            Move::Seek => &mut tally.seeks,
            Move::Next => &mut tally.nexts,
            Move::Prev => &mut tally.prevs,
        };
        moves.made += 1;
        moves.found += u64::from(found);
        tally.bytes += bytes as u64; // zero if not valid
        tally.skipped += self.hidden;
    }

    /// Counts the hidden entries of a completed walk for this thread.
    #[cold]
    #[inline(never)]
    pub(super) fn count_hidden(&self) {
        perf::count([
            (Metric::InternalKeySkippedCount, self.hidden),
            (Metric::InternalDeleteSkippedCount, self.hidden_deletions),
        ]);
    }

    /// Counts a seek past hidden entries.
    #[inline]
    pub(super) fn count_reseek(&mut self) {
        if let Some(tally) = &mut self.tally {
            tally.reseeks += 1;
        }
    }
}
