//! A walk over one state of a family, within a range: what iterators and cursors have in common.

use std::sync::Arc;

use base::{Result, SeqNo, UserOrder};

use crate::api::Shared;
use crate::api::family::Family;
use crate::api::range::{KeyRange, Limits};
use crate::cursor::options::ReadOptions;
use crate::queue::view::ReadView;
use crate::read::iterator::DbIterator;
use crate::transaction::indexed::{Below, Move, OverBase, SharedBatch};
use crate::ttl::{Times, timed, unstamped};

/// A state of a family, and a range to walk over it.
pub(super) struct Start {
    view: Arc<ReadView>,
    seq: SeqNo,
    options: ReadOptions,
    limits: Limits,
    /// A transaction's changes, shown over the state.
    changes: Option<SharedBatch>,
    /// Last: dropping it may close the database.
    family: Family,
}

impl Start {
    /// # Errors
    /// `Closed`: the database is closed, or the family dropped. `InvalidArgument`: the options' snapshot is of another
    /// database.
    pub fn new(family: &Family, range: impl KeyRange, mut options: ReadOptions) -> Result<Start> {
        let (view, seq) = family.shared.database.read_state(&family.inner, &options)?;
        let limits = Limits::set(&mut options, family.order(), range);
        Ok(Start { view, seq, options, limits, changes: None, family: family.clone() })
    }

    /// Shows these changes, too.
    pub fn with(mut self, changes: &SharedBatch) -> Start {
        self.changes = Some(changes.clone());
        self
    }

    /// A walk, not positioned yet.
    pub fn walk(&self) -> Result<Walk> {
        let (context, id) = (self.family.inner.read_context(), self.family.inner.id());
        let state = DbIterator::new(self.view.clone(), self.seq, context, &self.options)?;
        let over = |state, changes| {
            let operator = context.merge_operator.clone();
            Box::new(OverBase::new(state, changes, id, self.family.order(), operator, &self.options))
        };
        Ok(Walk {
            iterator: match &self.changes {
                None => Shown::State(state),
                Some(changes) => Shown::WithChanges(over(state, changes)),
            },
            on_entry: false,
            limits: self.limits.clone(),
            order: self.family.order().clone(),
            times: self.family.times.clone(),
            shared: self.family.shared.clone(),
        })
    }

    pub fn order(&self) -> &UserOrder {
        self.family.order()
    }
}

/// A position in a [`Start`]'s range. Moves return whether there is an entry.
///
/// # Errors
/// Of moves: `Closed`, `Corruption`, `Io`; the walk then stands on no entry.
pub(super) struct Walk {
    iterator: Shown,
    on_entry: bool,
    limits: Limits,
    order: UserOrder,
    times: Option<Times>,
    /// Last: dropping it may close the database.
    shared: Arc<Shared>,
}

/// What a walk goes over.
#[expect(
    clippy::large_enum_variant,
    reason = "walks without a transaction are the common ones, and pay no indirection"
)]
enum Shown {
    State(DbIterator),
    /// With a transaction's changes.
    WithChanges(Box<OverBase<DbIterator>>),
}

impl Shown {
    #[inline(always)]
    fn go(&mut self, to: Move<'_>) -> bool {
        match self {
            Shown::State(state) => {
                Below::go(state, to);
                state.valid()
            }
            Shown::WithChanges(both) => {
                both.go(to);
                both.valid()
            }
        }
    }

    #[inline]
    fn key(&self) -> &[u8] {
        match self {
            Shown::State(state) => state.key(),
            Shown::WithChanges(both) => both.key(),
        }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        match self {
            Shown::State(state) => state.value(),
            Shown::WithChanges(both) => both.value(),
        }
    }

    fn status(&self) -> Result<()> {
        match self {
            Shown::State(state) => state.status(),
            Shown::WithChanges(both) => both.status(),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Toward {
    End,
    Start,
}

impl Walk {
    pub fn is_on_entry(&self) -> bool {
        self.on_entry
    }

    /// The user key; empty off entries.
    pub fn key(&self) -> &[u8] {
        if self.on_entry { self.iterator.key() } else { &[] }
    }

    /// The value; empty off entries.
    pub fn value(&self) -> &[u8] {
        match (&self.times, self.on_entry) {
            (_, false) => &[],
            (None, true) => self.iterator.value(),
            (Some(_), true) => unstamped(self.iterator.value()),
        }
    }

    pub fn first(&mut self) -> Result<bool> {
        self.move_by(Toward::End, Move::First)
    }

    pub fn last(&mut self) -> Result<bool> {
        match self.limits.through.clone() {
            Some(through) => self.move_by(Toward::Start, Move::ToOrBefore(&through)),
            None => self.move_by(Toward::Start, Move::Last),
        }
    }

    /// The first entry at or after `key`.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        self.move_by(Toward::End, Move::To(key))
    }

    /// The last entry at or before `key`.
    pub fn seek_back(&mut self, key: &[u8]) -> Result<bool> {
        match &self.limits.through {
            Some(through) if self.order.compare(key, through).is_gt() => self.last(),
            _ => self.move_by(Toward::Start, Move::ToOrBefore(key)),
        }
    }

    pub fn next(&mut self) -> Result<bool> {
        if !self.on_entry {
            return Ok(false);
        }
        self.move_by(Toward::End, Move::Next)
    }

    pub fn prev(&mut self) -> Result<bool> {
        if !self.on_entry {
            return Ok(false);
        }
        self.move_by(Toward::Start, Move::Prev)
    }

    #[inline(always)]
    fn move_by(&mut self, toward: Toward, to: Move<'_>) -> Result<bool> {
        self.on_entry = false;
        self.shared.database.check_open()?;
        let mut found = self.iterator.go(to);
        if found && toward == Toward::End && self.is_behind_range_start() {
            found = self.iterator.go(Move::Next);
        }
        while found && self.is_expired() {
            found = match toward {
                Toward::End => self.iterator.go(Move::Next),
                Toward::Start => self.iterator.go(Move::Prev),
            };
        }
        if !found {
            self.iterator.status()?;
        }
        let is_found = found && self.is_in_range();
        if is_found && self.times.is_some() {
            timed(self.iterator.value())?;
        }
        self.on_entry = is_found;
        Ok(is_found)
    }

    /// Whether the iterator stands on the key that the range begins behind.
    fn is_behind_range_start(&self) -> bool {
        self.limits.behind.as_ref().is_some_and(|behind| self.order.equal(self.iterator.key(), behind))
    }

    fn is_expired(&self) -> bool {
        self.times.as_ref().is_some_and(|times| times.is_expired(self.iterator.value()))
    }

    fn is_in_range(&self) -> bool {
        let through = self.limits.through.as_ref();
        !self.is_behind_range_start()
            && through.is_none_or(|last| self.order.compare(self.iterator.key(), last).is_le())
    }
}
