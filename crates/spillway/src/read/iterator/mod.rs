//! The user's iterator: the keys and values of a family as of one sequence number, in order, in both directions.
//!
//! It merges the cursors of a view and hides invisible entries: newer versions, older versions, deletions, and entries
//! under range tombstones. It applies merge operands on the way. A forward walk over plain values returns the merged
//! cursor's own bytes. Merged values, and every value of a backward walk, are copied to reused buffers. Keeps Q1, V1.

mod backward;
mod children;
mod dead_run;
mod forward;
mod operands;
mod tally;

use std::sync::Arc;

use base::key::{SEEK_KIND, append, user_key};
use base::{Cursor, Error, ErrorKind, Result, SeqNo};

use self::children::{Child, Children};
use self::dead_run::DeadRun;
use self::operands::Operands;
use self::tally::{Move, Tally};
use crate::cursor::ReadContext;
use crate::cursor::level::UserBounds;
use crate::cursor::merging::MergingCursor;
use crate::cursor::options::ReadOptions;
use crate::cursor::snapshot::Snapshot;
use crate::cursor::tombstones::CoverIndex;
use crate::queue::view::ReadView;

/// Position of the iterator and of its merged cursor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    /// No current entry.
    Nowhere,
    /// The cursor stands on the current entry; its key is in `key` too.
    OnEntry,
    /// The entry is in `key` and `value`; the cursor stands behind the merged entries.
    Behind,
    /// The entry is in `key` and `value`; the cursor stands before all entries of that key, or on nothing.
    Before,
}

/// An iterator. It owns all its resources and stays usable at its sequence number, whatever happens to the database.
pub struct DbIterator {
    cursor: MergingCursor<Child>,
    cover: CoverIndex,
    seq: SeqNo,
    position: Position,
    bounds: UserBounds,
    context: ReadContext,
    /// The current user key, or the last one passed.
    key: Vec<u8>,
    value: Vec<u8>,
    operands: Operands,
    /// Reused buffer for seek targets.
    target: Vec<u8>,
    /// Every returned key has this prefix.
    prefix: Option<Vec<u8>>,
    prefix_same_as_start: bool,
    /// Limit of hidden entries stepped over one by one before a seek past the rest of their run.
    steps_max: u64,
    /// Limit of hidden entries in one call; `u64::MAX` for no limit.
    skippable_max: u64,
    /// Hidden entries passed by the present call.
    hidden: u64,
    /// Deletions among them.
    hidden_deletions: u64,
    dead: DeadRun,
    /// The last dead key of a backward walk.
    dead_key: Vec<u8>,
    /// `None` without statistics.
    tally: Option<Box<Tally>>,
    error: Option<Error>,
    /// Pin the view's sources and the snapshot.
    _view: Arc<ReadView>,
    _snapshot: Option<Snapshot>,
}

impl DbIterator {
    /// An iterator over `view` as of `seq`, not positioned.
    ///
    /// # Errors
    /// Errors of the flushables. Tables are opened by the moves that reach them.
    pub fn new(view: Arc<ReadView>, seq: SeqNo, context: &ReadContext, options: &ReadOptions) -> Result<Self> {
        let (lower, upper) = (options.iterate_lower_bound.clone(), options.iterate_upper_bound.clone());
        let bounds = UserBounds { lower, upper };
        let Children { cursors, cover } = Children::of(&view, context, &bounds, seq, options)?;
        Ok(DbIterator {
            cursor: MergingCursor::new(context.order.clone(), cursors),
            cover,
            seq,
            position: Position::Nowhere,
            bounds,
            context: context.clone(),
            key: Vec::new(),
            value: Vec::new(),
            operands: Operands::default(),
            target: Vec::new(),
            prefix: None,
            prefix_same_as_start: options.prefix_same_as_start && context.prefix_extractor.is_some(),
            // At least one, so that every jump is followed by a step.
            steps_max: context.max_sequential_skip.max(1),
            skippable_max: match options.max_skippable_internal_keys {
                0 => u64::MAX,
                max => max,
            },
            hidden: 0,
            hidden_deletions: 0,
            dead: DeadRun::new(
                seq,
                view.version.era(),
                options.skip_damaged.is_none() && options.table_filter.is_none(),
            ),
            dead_key: Vec::new(),
            tally: context.meter.as_ref().map(Tally::new),
            error: None,
            _view: view,
            _snapshot: options.snapshot.clone(),
        })
    }

    /// True on an entry.
    #[inline]
    pub fn valid(&self) -> bool {
        self.position != Position::Nowhere
    }

    /// The user key; empty if the iterator is not valid.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.position {
            Position::OnEntry | Position::Behind | Position::Before => &self.key,
            Position::Nowhere => &[],
        }
    }

    /// The value; empty if the iterator is not valid.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.position {
            Position::OnEntry => self.cursor.value(),
            Position::Behind | Position::Before => &self.value,
            Position::Nowhere => &[],
        }
    }

    /// The error of the walk, if any. Check it whenever the iterator becomes invalid.
    pub fn status(&self) -> Result<()> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// The sequence number of the iterator.
    pub fn seq(&self) -> SeqNo {
        self.seq
    }

    /// Moves to the first key within the bounds.
    pub fn seek_to_first(&mut self) -> bool {
        self.counted_seek(Self::move_to_first)
    }

    /// Moves to the last key within the bounds.
    pub fn seek_to_last(&mut self) -> bool {
        self.counted_seek(Self::move_to_last)
    }

    /// Moves to the first key at or after `target`.
    pub fn seek(&mut self, target: &[u8]) -> bool {
        self.counted_seek(|iterator| iterator.move_to(target))
    }

    /// Moves to the last key at or before `target`.
    pub fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        self.counted_seek(|iterator| iterator.move_back_to(target))
    }

    fn move_to_first(&mut self) -> bool {
        self.begin(None);
        match &self.bounds.lower {
            Some(lower) => {
                set(&mut self.target, lower, self.seq, SEEK_KIND);
                self.cursor.seek(&self.target);
            }
            None => {
                self.cursor.seek_to_first();
            }
        }
        self.settle_forward(false);
        self.adopt_prefix()
    }

    fn move_to_last(&mut self) -> bool {
        self.begin(None);
        self.end_of_bounds();
        self.settle_backward();
        self.adopt_prefix()
    }

    fn move_to(&mut self, target: &[u8]) -> bool {
        self.begin(Some(target));
        if self.bounds.is_past_upper(&self.context.order, target) {
            return self.leave();
        }
        let target = match &self.bounds.lower {
            Some(lower) if self.context.order.user.compare(target, lower).is_lt() => lower.as_slice(),
            _ => target,
        };
        set(&mut self.target, target, self.seq, SEEK_KIND);
        self.seek_target();
        self.settle_forward(false)
    }

    fn move_back_to(&mut self, target: &[u8]) -> bool {
        self.begin(Some(target));
        if self.bounds.is_past_upper(&self.context.order, target) {
            self.end_of_bounds();
        } else {
            set(&mut self.target, target, SeqNo::ZERO, 0);
            self.cursor.seek_for_prev(&self.target);
        }
        self.settle_backward()
    }

    /// Moves to the next key. False if there is none or the iterator was not valid.
    #[inline]
    #[expect(clippy::should_implement_trait, reason = "what it shows is borrowed from it, which Iterator cannot say")]
    pub fn next(&mut self) -> bool {
        match self.position {
            Position::OnEntry => {
                self.cursor.next();
            }
            Position::Behind => {}
            Position::Before => self.seek_behind_key(),
            Position::Nowhere => return false,
        }
        let found = self.settle_forward(true);
        self.counted(Move::Next, found)
    }

    /// Moves to the previous key. False if there is none or the iterator was not valid.
    pub fn prev(&mut self) -> bool {
        match self.position {
            Position::Before => {}
            Position::OnEntry | Position::Behind => self.seek_before_key(),
            Position::Nowhere => return false,
        }
        let found = self.settle_backward();
        self.counted(Move::Prev, found)
    }

    /// Starts a new walk, limited to the prefix of `target` with `prefix_same_as_start`.
    fn begin(&mut self, target: Option<&[u8]>) {
        self.error = None;
        self.hidden = 0;
        self.position = Position::Nowhere;
        self.dead.refresh(&self.context);
        self.prefix = None;
        if self.prefix_same_as_start {
            self.prefix = target.and_then(|target| self.prefix_of(target)).map(<[u8]>::to_vec);
        }
    }

    /// Without a seek target, the first key found sets the prefix.
    fn adopt_prefix(&mut self) -> bool {
        if self.prefix_same_as_start && self.valid() {
            self.prefix = self.prefix_of(self.key()).map(<[u8]>::to_vec);
        }
        self.valid()
    }

    fn prefix_of<'a>(&self, user_key: &'a [u8]) -> Option<&'a [u8]> {
        self.context.prefix_extractor.as_ref()?.prefix(user_key)
    }

    #[inline]
    fn leaves_prefix(&self, user_key: &[u8]) -> bool {
        self.prefix.as_deref().is_some_and(|prefix| self.prefix_of(user_key) != Some(prefix))
    }

    /// Seeks to the first entry at or after `target`. Uses prefix filters only if the walk is limited to the target's
    /// prefix.
    fn seek_target(&mut self) {
        let is_bound = |prefix: &[u8]| self.prefix_of(user_key(&self.target)) == Some(prefix);
        if self.prefix.as_deref().is_some_and(is_bound) {
            self.cursor.seek_in_prefix(&self.target);
        } else {
            self.cursor.seek(&self.target);
        }
    }

    /// Seeks to the last entry before the upper bound.
    fn end_of_bounds(&mut self) {
        match &self.bounds.upper {
            Some(upper) => {
                set(&mut self.target, upper, SeqNo::MAX, SEEK_KIND);
                self.cursor.seek_for_prev(&self.target);
            }
            None => {
                self.cursor.seek_to_last();
            }
        }
    }

    /// Copies the user key under the cursor to `key`.
    #[inline]
    fn save_key(&mut self) {
        self.key.clear();
        self.key.extend_from_slice(user_key(self.cursor.key()));
    }

    /// Seeks to the oldest possible entry of `key`, or behind it.
    fn seek_behind_key(&mut self) {
        set(&mut self.target, &self.key, SeqNo::ZERO, 0);
        self.seek_target();
    }

    /// Seeks to the last entry before all entries of `key`.
    fn seek_before_key(&mut self) {
        set(&mut self.target, &self.key, SeqNo::MAX, SEEK_KIND);
        self.cursor.seek_for_prev(&self.target);
    }

    /// Invalidates the iterator at the end of the walk. Returns false.
    fn leave(&mut self) -> bool {
        self.position = Position::Nowhere;
        false
    }

    /// Invalidates the iterator after the cursor ended, and takes the cursor's error, if any.
    #[cold]
    fn cursor_ended(&mut self) -> bool {
        self.error = self.cursor.status().err();
        self.leave()
    }

    #[cold]
    fn fail(&mut self, error: Error) -> bool {
        self.error = Some(error);
        self.leave()
    }

    #[cold]
    fn fail_skipping(&mut self) -> bool {
        let max = self.skippable_max;
        self.fail(Error::new(
            ErrorKind::Busy,
            format!("more than max_skippable_internal_keys ({max}) hidden entries in a row"),
        ))
    }
}

/// The cursor's key is no internal key, or of a kind invalid among point entries.
/// Sets a seek target: the user key's versions at or below `seq`.
#[inline]
fn set(target: &mut Vec<u8>, user_key: &[u8], seq: SeqNo, kind: u8) {
    target.clear();
    append(target, user_key, seq, kind);
}

#[cfg(test)]
mod tests;
