//! The database after an indexed batch is written: one walk over the batch and an iterator below it.

use std::cmp::Ordering;
use std::ops::Bound;

use base::{Error, FamilyId, Result, UserOrder};

use super::SharedBatch;
use super::merged::{Operator, merged};
use super::sorted::Spot;
use crate::cursor::options::ReadOptions;
use crate::read::iterator::DbIterator;

/// A move of an iterator.
#[derive(Clone, Copy)]
pub enum Move<'k> {
    /// To the first entry.
    First,
    /// To the last entry.
    Last,
    /// To the first entry at or behind the key.
    To(&'k [u8]),
    /// To the last entry at or before the key.
    ToOrBefore(&'k [u8]),
    /// One step.
    Next,
    /// One step back.
    Prev,
}

/// The iterator below a batch.
pub trait Below {
    /// True on an entry.
    fn valid(&self) -> bool;
    /// The user key; empty off entries.
    fn key(&self) -> &[u8];
    /// The value; empty off entries.
    fn value(&self) -> &[u8];
    /// Moves.
    fn go(&mut self, to: Move<'_>);
    /// # Errors
    /// That of the last move.
    fn status(&self) -> Result<()>;
}

impl Below for DbIterator {
    fn valid(&self) -> bool {
        self.valid()
    }

    fn key(&self) -> &[u8] {
        self.key()
    }

    fn value(&self) -> &[u8] {
        self.value()
    }

    #[inline(always)]
    fn go(&mut self, to: Move<'_>) {
        match to {
            Move::First => self.seek_to_first(),
            Move::Last => self.seek_to_last(),
            Move::To(key) => self.seek(key),
            Move::ToOrBefore(key) => self.seek_for_prev(key),
            Move::Next => self.next(),
            Move::Prev => self.prev(),
        };
    }

    fn status(&self) -> Result<()> {
        self.status()
    }
}

/// Shows the batch's entries over the entries of the iterator below, sorted. Keys deleted by the batch are hidden.
pub struct OverBase<B> {
    below: B,
    batch: SharedBatch,
    /// The family's place in the batch's index.
    slot: usize,
    order: UserOrder,
    operator: Operator,
    /// Bounds of the batch's entries; the iterator below has its own.
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    entry: Entry,
    forward: bool,
    shown: Shown,
    error: Option<Error>,
}

/// The batch's next entry in the walk's direction, as it was when the walk came to it.
#[derive(Default)]
struct Entry {
    is_there: bool,
    key: Vec<u8>,
    value: Vec<u8>,
    spot: Option<Place>,
}

/// An entry of the index, until the batch changes.
#[derive(Clone, Copy)]
struct Place {
    spot: Spot,
    node: u32,
    changes: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    /// The current entry of the iterator below.
    Below,
    /// The batch's entry, with its resulting value.
    Batch,
}

/// Source of the next entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    End,
    Below,
    Batch,
    /// Both are at one key, changed by the batch.
    Both,
}

/// Where the search for the batch's next entry begins.
enum From<'k> {
    Key(Bound<&'k [u8]>),
    /// Beside the last entry.
    Entry,
}

impl<B: Below> OverBase<B> {
    /// A walk over `batch` and `below`, not positioned. `bounds` are those of the batch's entries.
    pub fn new(
        below: B,
        batch: &SharedBatch,
        family: FamilyId,
        order: &UserOrder,
        operator: Operator,
        bounds: &ReadOptions,
    ) -> Self {
        let (slot, order) = {
            let mut batch = batch.write();
            let slot = batch.slot(family, || order.clone());
            (slot, batch.index.order(slot).unwrap_or(order).clone())
        };
        OverBase {
            below,
            batch: batch.clone(),
            slot,
            order,
            operator,
            lower: bounds.iterate_lower_bound.clone(),
            upper: bounds.iterate_upper_bound.clone(),
            entry: Entry::default(),
            forward: true,
            shown: Shown::Nothing,
            error: None,
        }
    }

    /// The iterator below.
    pub fn below(&self) -> &B {
        &self.below
    }

    /// Whether the walk came to the end of the batch's entries.
    #[cfg(test)]
    pub(super) fn is_past_batch(&self) -> bool {
        !self.entry.is_there
    }

    /// True on an entry.
    pub fn valid(&self) -> bool {
        self.shown != Shown::Nothing
    }

    /// The user key; empty off entries.
    pub fn key(&self) -> &[u8] {
        match self.shown {
            Shown::Below => self.below.key(),
            Shown::Batch => &self.entry.key,
            Shown::Nothing => &[],
        }
    }

    /// The value; empty off entries.
    pub fn value(&self) -> &[u8] {
        match self.shown {
            Shown::Nothing => &[],
            Shown::Below => self.below.value(),
            Shown::Batch => &self.entry.value,
        }
    }

    /// # Errors
    /// That of the last move.
    pub fn status(&self) -> Result<()> {
        self.error.clone().map_or_else(|| self.below.status(), Err)
    }

    /// Changes the iterator below; has no position then.
    pub fn renew(&mut self, renew: impl FnOnce(&mut B)) {
        renew(&mut self.below);
        (self.shown, self.entry.is_there, self.error) = (Shown::Nothing, false, None);
    }

    /// Moves.
    pub fn go(&mut self, to: Move<'_>) {
        match to {
            Move::Next | Move::Prev if !self.valid() => return,
            Move::Next => self.step(true),
            Move::Prev => self.step(false),
            seek => self.seek(seek),
        }
        self.settle();
    }

    fn seek(&mut self, to: Move<'_>) {
        self.error = None;
        self.forward = !matches!(to, Move::Last | Move::ToOrBefore(_));
        let at = match to {
            Move::To(key) | Move::ToOrBefore(key) => Bound::Included(key),
            _ => Bound::Unbounded,
        };
        self.below.go(to);
        self.find_entry(From::Key(at));
    }

    /// Leaves the current entry, in either direction.
    fn step(&mut self, forward: bool) {
        let onward = if forward { Move::Next } else { Move::Prev };
        if forward != self.forward {
            self.forward = forward;
            let shown = self.key().to_vec();
            self.below.go(if forward { Move::To(&shown) } else { Move::ToOrBefore(&shown) });
            if self.below.valid() && self.order.equal(self.below.key(), &shown) {
                self.below.go(onward);
            }
            return self.find_entry(From::Key(Bound::Excluded(&shown)));
        }
        match self.shown {
            // The batch's entry lies farther on, unless the batch changed: then it is found anew. A walk that came to the
            // end of the batch's entries stays there, as in RocksDB.
            Shown::Below if !self.entry.is_there || self.entry_stands() => self.below.go(onward),
            Shown::Below => {
                let shown = self.below.key().to_vec();
                self.below.go(onward);
                self.find_entry(From::Key(Bound::Excluded(&shown)));
            }
            _ => {
                if self.below.valid() && self.order.equal(self.below.key(), &self.entry.key) {
                    self.below.go(onward);
                }
                self.find_entry(From::Entry);
            }
        }
    }

    /// Whether the batch has not changed since its entry was found.
    fn entry_stands(&self) -> bool {
        self.entry.spot.is_some_and(|place| place.changes == self.batch.read().changes)
    }

    /// Finds the batch's next entry in the walk's direction, within the bounds.
    fn find_entry(&mut self, from: From<'_>) {
        let (batch, slot) = (self.batch.read(), self.slot);
        let bytes = batch.batch.as_bytes();
        let last = self.entry.spot.filter(|place| place.changes == batch.changes);
        let found = match (from, last) {
            (From::Entry, Some(place)) => batch.index.beside(slot, place.spot, self.forward),
            (From::Entry, None) => self.first_entry(&batch, Bound::Excluded(&self.entry.key)),
            (From::Key(at), _) => self.first_entry(&batch, at),
        };
        let shown = found.filter(|&(_, node)| self.is_within(batch.index.key(slot, node, bytes)));
        self.entry.is_there = shown.is_some();
        // Without an entry the place still tells whether the batch changed.
        let (spot, node) = shown.unwrap_or((super::sorted::SortedKeys::START, 0));
        self.entry.spot = Some(Place { spot, node, changes: batch.changes });
        if self.entry.is_there {
            self.entry.key.clear();
            self.entry.key.extend_from_slice(batch.index.key(slot, node, bytes));
        }
    }

    fn first_entry(&self, batch: &super::IndexedBatch, at: Bound<&[u8]>) -> Option<(Spot, u32)> {
        let (order, bytes) = (&self.order, batch.batch.as_bytes());
        if self.forward {
            let lower = self.lower.as_deref().filter(|&lower| is_outside(at, |key| order.compare(key, lower).is_lt()));
            batch.index.first_from(self.slot, lower.map_or(at, Bound::Included), bytes)
        } else {
            let upper = self.upper.as_deref().filter(|&upper| is_outside(at, |key| order.compare(key, upper).is_ge()));
            batch.index.last_to(self.slot, upper.map_or(at, Bound::Excluded), bytes)
        }
    }

    fn is_within(&self, key: &[u8]) -> bool {
        self.upper.as_deref().is_none_or(|upper| self.order.compare(key, upper).is_lt())
            && self.lower.as_deref().is_none_or(|lower| self.order.compare(key, lower).is_ge())
    }

    fn source(&self) -> Source {
        if !self.entry.is_there {
            return if self.below.valid() { Source::Below } else { Source::End };
        }
        if !self.below.valid() {
            return Source::Batch;
        }
        let order = self.order.compare(self.below.key(), &self.entry.key);
        match if self.forward { order } else { order.reverse() } {
            Ordering::Less => Source::Below,
            Ordering::Equal => Source::Both,
            Ordering::Greater => Source::Batch,
        }
    }

    /// Goes on to the next visible entry.
    fn settle(&mut self) {
        let onward = if self.forward { Move::Next } else { Move::Prev };
        self.shown = loop {
            if self.error.is_some() || (!self.below.valid() && self.below.status().is_err()) {
                break Shown::Nothing;
            }
            let source = self.source();
            match source {
                Source::End => break Shown::Nothing,
                Source::Below if self.batch.read().index.hides(self.slot, self.below.key()) => self.below.go(onward),
                Source::Below => break Shown::Below,
                Source::Batch | Source::Both => {
                    if self.set_entry_value(source == Source::Both) {
                        break Shown::Batch;
                    }
                    if source == Source::Both {
                        self.below.go(onward);
                    }
                    self.find_entry(From::Entry);
                }
            }
        };
    }

    /// Sets the value of the batch's entry, over the current one of the iterator below if `both`. False if the key is
    /// deleted.
    fn set_entry_value(&mut self, both: bool) -> bool {
        let batch = self.batch.read();
        let Some(place) = self.entry.spot.filter(|place| place.changes == batch.changes) else { return false };
        let said = batch.index.said(self.slot, place.node, batch.batch.as_bytes());
        let below = both.then(|| self.below.value());
        let Entry { key, value, .. } = &mut self.entry;
        merged(self.operator.as_ref(), key, &said, below, value).unwrap_or_else(|error| {
            self.error = Some(error);
            false
        })
    }
}

/// Whether a walk from `at` starts outside a bound.
fn is_outside(at: Bound<&[u8]>, outside: impl FnOnce(&[u8]) -> bool) -> bool {
    match at {
        Bound::Unbounded => true,
        Bound::Included(key) | Bound::Excluded(key) => outside(key),
    }
}
