//! The database after an indexed batch is written: one walk over the batch and an iterator below it.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::RwLock;
use spillway::internal::{ReadOptions, UserOrder};

use super::index::{FamilyIndex, Said};
use super::merged::{Operator, merged};
use crate::failure::Failure;
use crate::iterator::{Iterator, Move};

/// Shows the batch's entries over the entries of the iterator below, sorted. Keys deleted by the batch are hidden.
pub struct BatchOverBase {
    below: Box<Iterator>,
    batch: Arc<RwLock<FamilyIndex>>,
    order: UserOrder,
    operator: Operator,
    /// Bounds of the batch's entries; the iterator below has its own.
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
    /// The batch's next entry in the walk's direction, as it was when the walk came to it.
    entry: Option<(Arc<[u8]>, Said)>,
    forward: bool,
    shown: Shown,
    failure: Option<Failure>,
}

enum Shown {
    Nothing,
    /// The current entry of the iterator below.
    Below,
    /// The batch's entry, with its resulting value.
    Batch(Vec<u8>),
}

/// Source of the next entry.
enum Source {
    End,
    Below,
    Batch,
    /// Both are at one key, changed by the batch.
    Both,
}

impl BatchOverBase {
    pub fn new(
        below: Box<Iterator>,
        batch: Arc<RwLock<FamilyIndex>>,
        operator: Operator,
        bounds: &ReadOptions,
    ) -> BatchOverBase {
        let order = batch.read().order().clone();
        BatchOverBase {
            below,
            batch,
            order,
            operator,
            lower: bounds.iterate_lower_bound.clone(),
            upper: bounds.iterate_upper_bound.clone(),
            entry: None,
            forward: true,
            shown: Shown::Nothing,
            failure: None,
        }
    }

    pub fn valid(&self) -> bool {
        !matches!(self.shown, Shown::Nothing)
    }

    pub fn key(&self) -> &[u8] {
        match (&self.shown, &self.entry) {
            (Shown::Below, _) => self.below.key(),
            (Shown::Batch(_), Some((key, _))) => key,
            _ => &[],
        }
    }

    pub fn value(&self) -> &[u8] {
        match &self.shown {
            Shown::Nothing => &[],
            Shown::Below => self.below.value(),
            Shown::Batch(value) => value,
        }
    }

    pub fn status(&self) -> Result<(), Failure> {
        self.failure.clone().map_or_else(|| self.below.status(), Err)
    }

    /// Shows the current database below; has no position.
    pub fn refresh(&mut self) {
        self.below.refresh();
        (self.shown, self.entry, self.failure) = (Shown::Nothing, None, None);
    }

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
        self.failure = None;
        self.forward = !matches!(to, Move::Last | Move::ToOrBefore(_));
        let at = match to {
            Move::To(key) | Move::ToOrBefore(key) => Bound::Included(key),
            _ => Bound::Unbounded,
        };
        self.below.go(to);
        self.find_entry(at);
    }

    /// Leaves the current entry, in either direction.
    fn step(&mut self, forward: bool) {
        let shown = self.key().to_vec();
        if forward != self.forward {
            self.forward = forward;
            self.below.go(if forward { Move::To(&shown) } else { Move::ToOrBefore(&shown) });
        }
        if self.below.valid() && self.order.compare(self.below.key(), &shown).is_eq() {
            self.below.go(if forward { Move::Next } else { Move::Prev });
        }
        self.find_entry(Bound::Excluded(&shown));
    }

    /// Finds the batch's first entry in the walk's direction, from `at` on, within the bounds.
    fn find_entry(&mut self, at: Bound<&[u8]>) {
        let (batch, order) = (self.batch.read(), &self.order);
        let found = if self.forward {
            let lower = self.lower.as_deref().filter(|&lower| is_outside(at, |key| order.compare(key, lower).is_lt()));
            batch.first_from(lower.map_or(at, Bound::Included))
        } else {
            let upper = self.upper.as_deref().filter(|&upper| is_outside(at, |key| order.compare(key, upper).is_ge()));
            batch.last_to(upper.map_or(at, Bound::Excluded))
        };
        let shown = found.filter(|(key, _)| {
            let below = self.upper.as_deref().is_none_or(|upper| order.compare(key, upper).is_lt());
            below && self.lower.as_deref().is_none_or(|lower| order.compare(key, lower).is_ge())
        });
        self.entry = shown.map(|(key, said)| (key.clone(), said.clone()));
    }

    fn source(&self) -> Source {
        let Some((key, _)) = &self.entry else {
            return if self.below.valid() { Source::Below } else { Source::End };
        };
        if !self.below.valid() {
            return Source::Batch;
        }
        let order = self.order.compare(self.below.key(), key);
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
            if self.failure.is_some() || self.below.status().is_err() {
                break Shown::Nothing;
            }
            let source = self.source();
            match source {
                Source::End => break Shown::Nothing,
                Source::Below if self.batch.read().is_deleted(self.below.key()) => self.below.go(onward),
                Source::Below => break Shown::Below,
                Source::Batch | Source::Both => {
                    if let Some(value) = self.entry_value(matches!(source, Source::Both)) {
                        break Shown::Batch(value);
                    }
                    if matches!(source, Source::Both) {
                        self.below.go(onward);
                    }
                    let key = self.entry.take().map(|(key, _)| key);
                    self.find_entry(key.as_deref().map_or(Bound::Unbounded, Bound::Excluded));
                }
            }
        };
    }

    /// The value of the batch's entry, over the current one of the iterator below if `both`; `None` if the key is
    /// deleted.
    fn entry_value(&mut self, both: bool) -> Option<Vec<u8>> {
        let (key, said) = self.entry.as_ref()?;
        let below = both.then(|| self.below.value());
        merged(self.operator.as_ref(), key, said, below).unwrap_or_else(|failure| {
            self.failure = Some(failure);
            None
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
