//! Runs of dead keys: long ones are remembered as gaps, and known gaps are passed by one seek. Keeps G1.

use std::sync::Arc;

use base::key::SEEK_KIND;
use base::{Cursor, SeqNo};

use super::children::Child;
use super::set;
use crate::cursor::ReadContext;
use crate::cursor::gaps::{EXTENSION_MIN, Edge, Gap, Known, RUN_MIN};
use crate::cursor::merging::MergingCursor;

/// Dead keys passed since the last live one, in the walk's direction. Every entry between the two ends, at or below the
/// iterator's number, is deleted or hidden.
pub(super) struct DeadRun {
    /// The iterator's number.
    seq: SeqNo,
    /// The era of the iterator's version.
    era: u64,
    learns: bool,
    first: Vec<u8>,
    /// Dead keys stepped over.
    steps: u64,
    /// Dead keys in gaps passed.
    spared: u64,
    /// The gap at the run's last end. `None`: the run ends with a key stepped over.
    last: Option<Arc<Gap>>,
    /// What was known at the last seek.
    known: Option<Arc<Known>>,
    /// Reused buffer for seek targets.
    target: Vec<u8>,
}

impl DeadRun {
    /// `learns`: long runs are remembered. Not where entries may be lost.
    pub fn new(seq: SeqNo, era: u64, learns: bool) -> Self {
        DeadRun {
            seq,
            era,
            learns,
            first: Vec::new(),
            steps: 0,
            spared: 0,
            last: None,
            known: None,
            target: Vec::new(),
        }
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.steps == 0
    }

    /// Looks for gaps. Called at the start of a walk.
    #[inline]
    pub fn refresh(&mut self, context: &ReadContext) {
        if context.gaps.are_known() {
            self.known = context.gaps.known(self.era);
        }
    }

    /// Whether the key lies in a gap, as no live key does.
    pub fn is_in_gap(&self, context: &ReadContext, key: &[u8]) -> bool {
        self.known.as_ref().is_some_and(|known| known.find(&context.order.user, key, self.seq).is_some())
    }

    /// Adds a key to the run of a forward walk. True if a gap over it was passed. The cursor stands on an entry of the
    /// key.
    #[inline]
    pub fn pass_over(&mut self, context: &ReadContext, key: &[u8], cursor: &mut MergingCursor<Child>) -> bool {
        let Some(gap) = self.lengthen(context, key) else { return false };
        match gap.end.is_open {
            true => set(&mut self.target, &gap.end.key, SeqNo::MAX, SEEK_KIND),
            false => set(&mut self.target, &gap.end.key, SeqNo::ZERO, 0),
        }
        self.pass(gap, cursor);
        true
    }

    /// As [`pass_over`](Self::pass_over), for a backward walk. The cursor stands before all entries of the key.
    pub fn pass_back_over(&mut self, context: &ReadContext, key: &[u8], cursor: &mut MergingCursor<Child>) -> bool {
        let Some(gap) = self.lengthen(context, key).filter(|_| cursor.valid()) else { return false };
        match gap.start.is_open {
            true => set(&mut self.target, &gap.start.key, SeqNo::ZERO, 0),
            false => set(&mut self.target, &gap.start.key, SeqNo::MAX, SEEK_KIND),
        }
        self.pass(gap, cursor);
        true
    }

    /// Adds a key to the run. Returns a gap over it. Looks are rare in a long run: a gap is missed for at most as many
    /// steps as were made before it.
    #[inline]
    fn lengthen(&mut self, context: &ReadContext, key: &[u8]) -> Option<Arc<Gap>> {
        if self.steps == 0 {
            self.first.clear();
            self.first.extend_from_slice(key);
        }
        self.steps += 1;
        self.last = None;
        let known = self.known.as_ref().filter(|_| self.steps.is_power_of_two())?;
        known.find(&context.order.user, key, self.seq).cloned()
    }

    /// Moves all children to `target`, beyond the gap.
    #[cold]
    fn pass(&mut self, gap: Arc<Gap>, cursor: &mut MergingCursor<Child>) {
        cursor.skip_from(0, &self.target);
        gap.record_use();
        self.spared = self.spared.saturating_add(gap.dead);
        self.last = Some(gap);
    }

    /// Ends the run, and remembers it if it is long. `last`: the last key stepped over.
    pub fn end(&mut self, context: &ReadContext, forward: bool, last: &[u8]) {
        let (steps, spared, gap) =
            (std::mem::take(&mut self.steps), std::mem::take(&mut self.spared), self.last.take());
        let least = if spared > 0 { EXTENSION_MIN } else { RUN_MIN };
        if steps < least || !self.learns {
            return;
        }
        let first = Edge::closed(&self.first);
        let last = || Edge::closed(last);
        let (start, end) = match forward {
            true => (first, gap.map_or_else(last, |gap| gap.end.clone())),
            false => (gap.map_or_else(last, |gap| gap.start.clone()), first),
        };
        context.gaps.learn(Gap::new(start, end, self.seq, steps.saturating_add(spared)), self.era);
    }
}
