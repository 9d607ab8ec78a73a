//! What joins a family's queue as a whole, rather than entry by entry through a memtable: a large batch that was indexed
//! beforehand, tables that are ingested. Keeps Q1, V1.

use std::sync::Arc;

use base::Result;

use crate::commit::admission::Part;
use crate::commit::committer::Committer;
use crate::commit::committer::{Commit, Given, Missing};
use crate::commit::latch::KeyRange;
use crate::commit::overlap::Coverage;
use crate::core::family::Family;
use crate::core::{FamilyState, State};
use crate::queue::flushable::{Flushable, QueuedMemtable};
use crate::queue::staged::Staged;
use crate::version::span::Span;

/// An entry of a queue that gets its numbers when it joins.
pub(crate) trait Joins: Flushable {
    /// Called once, under the commit lock, before any reader can find the entry.
    fn set_numbers(&self, given: &Given);

    /// Called once, before a flush can find it, where a memtable that will be written into a table was sealed because the
    /// entry overlaps it.
    fn stands_over_memtable(&self) {}
}

/// What joins one family's queue.
pub(crate) struct NewFlushable {
    pub family: Arc<Family>,
    /// Oldest first.
    pub entries: Vec<Arc<dyn Joins>>,
    /// What they touch beyond what is covered.
    pub touched: Vec<Span>,
    /// Where the entries may go under the mutable memtable: what they must not meet there.
    pub coverage: Option<Coverage>,
    /// The memtable that takes over as mutable where the entries stand above the present one. Made when it is needed.
    pub successor: Option<Arc<QueuedMemtable>>,
    /// The mutable memtable that was found to hold what the entries must not meet, or to be about to: as long as it is the
    /// mutable one, nobody needs to look again.
    pub met: Option<u64>,
}

impl NewFlushable {
    /// A batch's share in a family, indexed. It goes above the mutable memtable.
    pub fn of_batch(part: &Part<'_>, indexed: Arc<dyn Joins>) -> Self {
        let (family, touched) = (part.family.clone(), vec![part.keys().to_span()]);
        NewFlushable { family, entries: vec![indexed], touched, coverage: None, successor: None, met: None }
    }

    /// The keys touched, for the range latches.
    pub fn keys(&self) -> impl Iterator<Item = KeyRange<'_>> {
        let (family, order) = (self.family.id(), &self.family.order().user);
        let covered = self.coverage.as_ref().map_or(&[][..], Coverage::spans);
        self.touched.iter().chain(covered).map(move |span| KeyRange::of(family, order, span))
    }

    pub fn brings_ingest(&self) -> bool {
        self.entries.iter().any(|entry| entry.as_ingest().is_some())
    }

    /// Of the family, which was found when this was staged, under the same lock.
    pub fn state_in<'a>(&self, state: &'a mut State) -> &'a mut FamilyState {
        state.families.get_mut(&self.family.id()).expect("families are dropped under the state lock")
    }

    /// Has a family's state follow the view that was installed. Under the state lock.
    pub fn follow(&mut self, staged: &mut Staged, family: &mut FamilyState) {
        if !staged.keeps_mutable() {
            self.successor = None; // it is the mutable one
            // A memtable that becomes a table as it is leaves the entry's flush to itself.
            if self.coverage.is_some() && family.mutable.conversion().is_none() {
                self.entries.iter().for_each(|entry| entry.stands_over_memtable());
            }
        }
        staged.follow(family);
    }
}

impl Committer {
    /// Makes the successors that are known to be needed: where a family's memtable holds what the entries must not meet, or
    /// they may not go under it. Off every lock.
    pub(super) fn make_successors(&self, commit: &mut Commit<'_>) -> Result<()> {
        if !commit.flushables.is_empty() {
            self.core.check_writable()?;
        }
        let is_clear = commit.is_latched;
        for flushable in &mut commit.flushables {
            let mutable = flushable.family.view().mutable.clone();
            // Entries never leave a memtable: what meets it now will do so under the lock.
            let meets = |coverage: &Coverage| !is_clear && coverage.meets_memtable_once_ready(mutable.memtable());
            if flushable.coverage.as_ref().is_none_or(meets) {
                flushable.met = Some(mutable.id());
                self.make_successor(flushable)?;
            }
        }
        Ok(())
    }

    /// Makes the memtable that may take over, unless there is one already. Off every lock.
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

    /// Makes what can be made before the commit lock is taken. Under the state lock: the queues stand from here on.
    pub(super) fn stage(
        &self,
        flushables: &[NewFlushable],
        state: &mut State,
        staged: &mut Vec<Staged>,
    ) -> Result<(), Missing> {
        for (at, flushable) in flushables.iter().enumerate() {
            let family = self.core.family_state(state, flushable.family.id())?;
            // Entries never leave a memtable: one that they met is not looked at again.
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

    /// The first of the flushables that may not go under its family's mutable memtable, as it was staged to. Under both locks.
    pub(super) fn overlapping(&self, flushables: &mut [NewFlushable], staged: &[Staged]) -> Option<usize> {
        for (at, (flushable, staged)) in flushables.iter_mut().zip(staged).enumerate() {
            if staged.keeps_mutable() && self.meets(flushable, staged.mutable()) {
                flushable.met = Some(staged.mutable().id());
                return Some(at);
            }
        }
        None
    }

    /// Unfinished writers first, then the memtable: a writer that finishes in between is in the memtable.
    fn meets(&self, flushable: &NewFlushable, mutable: &QueuedMemtable) -> bool {
        let meets = |coverage: &Coverage| {
            coverage.meets_in_flight(flushable.family.id(), &self.core.pipeline)
                || coverage.meets_memtable(mutable.memtable())
        };
        flushable.coverage.as_ref().is_some_and(meets)
    }

    /// Exchanges the views that were installed. Looks at what every thread is reading: not for a caller with an unfinished
    /// number, whom writers would wait for.
    pub(super) fn exchange_views(&self, flushables: &[NewFlushable], staged: &mut Vec<Staged>) {
        let mut old = Vec::with_capacity(flushables.len());
        let mut state = self.core.state.lock();
        let families = flushables.iter().map(|flushable| flushable.family.id());
        old.extend(families.filter_map(|id| state.families.get_mut(&id)?.settle_view()));
        drop(state);
        drop(old); // off the lock
        staged.clear();
    }
}
