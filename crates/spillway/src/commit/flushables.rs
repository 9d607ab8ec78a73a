//! Flushables of a commit, enqueued as a whole and not entry by entry: indexed large batches and ingested tables. Keeps
//! Q1, V1.

use std::sync::Arc;

use base::Result;

use crate::commit::admission::Part;
use crate::commit::committer::Committer;
use crate::commit::overlap::Coverage;
use crate::commit::{Commit, Missing};
use crate::core::family::Family;
use crate::core::{FamilyState, State};
use crate::cursor::gaps::Cut;
use crate::memtables::staged::Staged;
use crate::order::SeqRange;
use crate::order::latch::KeyRange;
use crate::queue::flushable::{Enqueue, Flushable, QueuedMemtable};
use crate::version::span::Span;

/// New entries for one family's queue.
pub(crate) struct NewFlushable {
    pub family: Arc<Family>,
    /// Oldest first.
    pub entries: Vec<Arc<dyn Enqueue>>,
    /// Keys touched beyond `coverage`.
    pub touched: Vec<Span>,
    /// If the mutable memtable holds none of these keys, the entries may go under it. `None`: they go above it.
    pub coverage: Option<Coverage>,
    /// Next mutable memtable if the entries go above the present one. Made on demand.
    pub successor: Option<Arc<QueuedMemtable>>,
    /// Id of a mutable memtable found to overlap the entries, or about to. It is not checked again.
    pub met: Option<u64>,
}

impl NewFlushable {
    /// The indexed part of a batch in one family. It goes above the mutable memtable.
    pub fn of_batch(part: &Part<'_>, indexed: Arc<dyn Enqueue>) -> Self {
        let (family, touched) = (part.family.clone(), vec![part.keys().to_span()]);
        NewFlushable { family, entries: vec![indexed], touched, coverage: None, successor: None, met: None }
    }

    /// The keys touched, for the range latches.
    pub fn keys(&self) -> impl Iterator<Item = KeyRange<'_>> {
        let (family, order) = (self.family.id(), &self.family.order().user);
        let covered = self.coverage.as_ref().map_or(&[][..], Coverage::spans);
        self.touched.iter().chain(covered).map(move |span| KeyRange::of(family, order, span))
    }

    /// Cuts the touched keys out of the family's gaps, before their numbers are published (G1).
    pub fn cut_gaps(&self, given: &SeqRange) {
        if self.brings_ingest() {
            self.family.gaps().learn_from(given.last);
        }
        for KeyRange { start, end, end_is_exclusive, .. } in self.keys() {
            self.family.gaps().cut(&Cut { start, end, end_is_open: end_is_exclusive });
        }
    }

    pub fn brings_ingest(&self) -> bool {
        self.entries.iter().any(|entry| entry.as_ingest().is_some())
    }

    /// The family's state; staging found it under the same hold of the state lock.
    pub fn state_in<'a>(&self, state: &'a mut State) -> &'a mut FamilyState {
        state.families.get_mut(&self.family.id()).expect("families are dropped under the state lock")
    }

    /// Updates a family's state to the installed view. Called under the state lock.
    pub fn follow(&mut self, staged: &mut Staged, family: &mut FamilyState) {
        if !staged.keeps_mutable() {
            self.successor = None; // now the mutable memtable
        }
        staged.follow(family);
    }
}

impl Committer {
    /// Makes the successors known to be needed: the family's memtable overlaps the entries, or they must go above it.
    /// Called off every lock.
    pub(super) fn make_successors(&self, commit: &mut Commit<'_>) -> Result<()> {
        self.core.check_writable()?;
        let is_clear = commit.is_latched;
        for flushable in &mut commit.flushables {
            let mutable = flushable.family.view().mutable.clone();
            // Entries never leave a memtable: an overlap found now holds under the lock.
            let meets = |coverage: &Coverage| !is_clear && coverage.meets_memtable_once_ready(mutable.memtable());
            if flushable.coverage.as_ref().is_none_or(meets) {
                flushable.met = Some(mutable.id());
                self.make_successor(flushable)?;
            }
        }
        Ok(())
    }

    /// Makes the successor memtable, unless there is one. Called off every lock.
    pub(crate) fn make_successor(&self, flushable: &mut NewFlushable) -> Result<()> {
        if flushable.successor.is_none() {
            flushable.successor = Some(match self.memtables.take_spare(flushable.family.id(), 0) {
                Some(spare) => spare,
                None => self.memtables.make_memtable(&flushable.family, 0)?,
            });
        }
        Ok(())
    }

    /// Returns unused successors to the spares. Takes the state lock: not for a caller with an unfinished number.
    pub(crate) fn give_back_successors(&self, flushables: &mut [NewFlushable]) {
        let mut unused = Vec::new();
        for flushable in flushables.iter_mut() {
            let Some(successor) = flushable.successor.take() else { continue };
            let mut state = self.core.state.lock();
            match state.families.get_mut(&flushable.family.id()) {
                Some(family) if family.spare.is_none() => family.spare = Some(successor),
                _ => unused.push(successor), // dropped off the lock
            }
        }
    }

    /// Stages queues and views before the commit lock. Called under the state lock: the queues do not change from here
    /// on.
    pub(super) fn stage(
        &self,
        flushables: &[NewFlushable],
        state: &mut State,
        staged: &mut Vec<Staged>,
    ) -> Result<(), Missing> {
        for (at, flushable) in flushables.iter().enumerate() {
            let family = self.core.family_state(state, flushable.family.id())?;
            // Entries never leave a memtable: a known overlap is not checked again.
            let may_go_under = flushable.coverage.is_some() && flushable.met != Some(family.mutable.id());
            let next = if may_go_under { None } else { flushable.successor.as_ref() };
            if next.is_none() && !may_go_under {
                return Err(Missing::Successor(at));
            }
            let entries = flushable.entries.iter().rev().map(|entry| entry.clone() as Arc<dyn Flushable>);
            staged.push(Staged::new(family, entries, next));
        }
        Ok(())
    }

    /// Index of the first flushable staged under a mutable memtable it overlaps. Called under both locks.
    pub(super) fn overlapping(&self, flushables: &mut [NewFlushable], staged: &[Staged]) -> Option<usize> {
        for (at, (flushable, staged)) in flushables.iter_mut().zip(staged).enumerate() {
            if staged.keeps_mutable() && self.meets(flushable, staged.mutable()) {
                flushable.met = Some(staged.mutable().id());
                return Some(at);
            }
        }
        None
    }

    /// Checks unfinished writers first, then the memtable: a writer finishing in between is in the memtable.
    fn meets(&self, flushable: &NewFlushable, mutable: &QueuedMemtable) -> bool {
        let meets = |coverage: &Coverage| {
            coverage.meets_in_flight(flushable.family.id(), &self.core.pipeline)
                || coverage.meets_memtable(mutable.memtable())
        };
        flushable.coverage.as_ref().is_some_and(meets)
    }

    /// Exchanges the installed views. Inspects every thread's reads, so not for a caller with an unfinished number:
    /// writers would wait.
    pub(super) fn exchange_views(&self, flushables: &[NewFlushable], staged: &mut Vec<Staged>) {
        let mut old = Vec::with_capacity(flushables.len());
        let mut state = self.core.state.lock();
        let families = flushables.iter().map(|flushable| flushable.family.id());
        old.extend(families.filter_map(|id| state.families.get_mut(&id)?.exchange_view()));
        drop(state);
        drop(old); // off the lock
        staged.clear();
    }
}
