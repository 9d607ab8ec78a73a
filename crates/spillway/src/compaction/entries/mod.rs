//! What flushes and compactions write: the entries of their inputs, without those that no reader can see any more.
//!
//! The numbers that readers read at, live snapshots and the visible number, cut history into *stripes*: of the versions
//! of a key that lie in one stripe only the newest can be seen. Entries above the visible number are each a stripe of
//! their own, since a snapshot may yet be taken between any two of them (F1). Within a stripe the stream drops shadowed
//! versions, pairs of a single deletion and its value, and what a range tombstone of the same stripe covers; it merges
//! operands; and where nothing lies below the output it drops deletions and, at the bottom, forgets sequence numbers.
//!
//! A plain entry passes through: its value is the input's own bytes, its key too unless its number changes.

mod beneath;
mod merge;
mod single_delete;
mod stripes;
mod tombstones;

use std::collections::VecDeque;
use std::sync::Arc;

use base::extend::{CompactionFilter, FilterDecision, MergeOperator};
use base::key::{SEEK_KIND, append};
use base::limits;
use base::note;
use base::tombstone::{FragmentedTombstones, RangeTombstone};
use base::{Cursor, Error, InternalOrder, ParsedKey, Result, SeqNo, ValueKind};

pub use self::beneath::Beneath;
use self::beneath::Held;
use self::stripes::Stripes;
use self::tombstones::InputTombstones;
use crate::read::level::UserBounds;
use crate::read::snapshot::CapturedSnapshots;

/// Entries between two pauses.
const PAUSE_ENTRIES: u32 = 64;

/// Whether nothing older of a user key lies below the output level. Asked for ascending keys.
pub type KeyNotBelow = Box<dyn FnMut(&[u8]) -> bool + Send>;

/// What the stream goes by.
pub struct EntryRules {
    pub order: InternalOrder,
    pub snapshots: CapturedSnapshots,
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    pub filter: Option<Arc<dyn CompactionFilter>>,
    /// The output level, which filters are told.
    pub level: usize,
    /// No table below the output overlaps the inputs, and no older one beside them.
    pub bottommost: bool,
    /// `None` where nothing is known, as in a flush.
    pub key_not_below: Option<KeyNotBelow>,
    /// The user keys to take from the inputs.
    pub range: UserBounds,
    /// The table that is to lie beneath the output, newer than the inputs; without a key in common with the output.
    pub beneath: Option<Beneath>,
}

/// Entries of the input that the output does not have, by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DropCounts {
    /// Hidden by a newer entry of the key.
    pub shadowed: u64,
    /// Deleted by a range tombstone.
    pub covered: u64,
    /// Deletions with nothing left to delete.
    pub deletions: u64,
    /// Single deletions and the values they deleted.
    pub single_deletions: u64,
    /// Removed by the compaction filter.
    pub filtered: u64,
    /// Merged into another entry.
    pub merged: u64,
}

impl DropCounts {
    pub fn sum(&self) -> u64 {
        self.shadowed + self.covered + self.deletions + self.single_deletions + self.filtered + self.merged
    }
}

/// Which bytes the entry that is shown has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    /// The input's own key and value.
    Input,
    /// `key_out`, and the input's own value.
    NewKey,
    /// `key_out` and `value_out`.
    Made,
}

/// The stream over the merged input.
pub struct EntryStream<C: Cursor> {
    input: C,
    rules: EntryRules,
    stripes: Stripes,
    tombstones: InputTombstones,
    started: bool,
    /// The entry under the input's cursor has been dealt with.
    consumed: bool,
    /// The user key of the entries being dealt with, once there are any.
    user_key: Vec<u8>,
    in_key: bool,
    /// The stripe in which a newer entry of `user_key` hides all others.
    shadowed_in: Option<SeqNo>,
    /// The table beneath holds something of `user_key`.
    held_beneath: bool,
    /// A filter asked that entries before this user key be dropped.
    skip_until: Option<Vec<u8>>,
    shown: Shown,
    key_out: Vec<u8>,
    value_out: Vec<u8>,
    /// Entries made from several, to be shown next.
    pending: VecDeque<(Vec<u8>, Vec<u8>)>,
    until_pause: u32,
    drops: DropCounts,
}

/// What became of the entry under the cursor.
enum Step {
    Show,
    Pass,
}

impl<C: Cursor> EntryStream<C> {
    /// `tombstones` are those of all inputs, tables' clipped to their bounds.
    pub fn new(input: C, tombstones: &[Arc<FragmentedTombstones>], rules: EntryRules) -> Self {
        let stripes = Stripes::new(&rules.snapshots);
        EntryStream {
            tombstones: InputTombstones::new(&rules.order.user, tombstones, &stripes),
            stripes,
            input,
            rules,
            started: false,
            consumed: false,
            user_key: Vec::new(),
            in_key: false,
            shadowed_in: None,
            held_beneath: false,
            skip_until: None,
            shown: Shown::Nothing,
            key_out: Vec::new(),
            value_out: Vec::new(),
            pending: VecDeque::new(),
            until_pause: 0,
            drops: DropCounts::default(),
        }
    }

    /// Moves to the next entry of the output; false at the end.
    ///
    /// # Errors
    /// The input's. `Corruption`: an entry of the input has no place among point entries.
    pub fn advance(&mut self) -> Result<bool> {
        self.advance_with_pauses(&mut || Ok(()))
    }

    /// As [`advance`](Self::advance), for whoever has something else to do now and then, however much is dropped between two
    /// entries of the output.
    ///
    /// # Errors
    /// Those of `pause`, too.
    pub fn advance_with_pauses(&mut self, pause: &mut dyn FnMut() -> Result<()>) -> Result<bool> {
        if !self.started {
            self.start();
        }
        loop {
            if self.until_pause == 0 {
                pause()?;
                self.until_pause = PAUSE_ENTRIES;
            }
            self.until_pause -= 1;
            if let Some((key, value)) = self.pending.pop_front() {
                (self.key_out, self.value_out) = (key, value);
                self.shown = Shown::Made;
                return Ok(true);
            }
            if self.consumed {
                self.input.next();
            }
            self.consumed = true;
            if !self.input_stands()? {
                self.shown = Shown::Nothing;
                return Ok(false);
            }
            if let Step::Show = self.take()? {
                return Ok(true);
            }
        }
    }

    /// The internal key of the entry; empty where there is none.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self.shown {
            Shown::Input => self.input.key(),
            Shown::NewKey | Shown::Made => &self.key_out,
            Shown::Nothing => &[],
        }
    }

    #[inline]
    pub fn value(&self) -> &[u8] {
        match self.shown {
            Shown::Input | Shown::NewKey => self.input.value(),
            Shown::Made => &self.value_out,
            Shown::Nothing => &[],
        }
    }

    /// The range tombstones that belong into an output table of user keys from `lower` up to, not including, `upper`;
    /// `None` is the end of the stream's range. Tables whose bounds meet get tombstones that meet.
    pub fn tombstones_out(&self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Vec<RangeTombstone> {
        let UserBounds { lower: first, upper: end } = &self.rules.range;
        let range = (lower.or(first.as_deref()), upper.or(end.as_deref()));
        self.tombstones.output(&self.stripes, self.rules.bottommost, range)
    }

    pub fn drops(&self) -> DropCounts {
        self.drops
    }

    fn start(&mut self) {
        self.started = true;
        match &self.rules.range.lower {
            Some(lower) => {
                append(&mut self.key_out, lower, SeqNo::MAX, SEEK_KIND);
                self.input.seek(&self.key_out);
            }
            None => {
                self.input.seek_to_first();
            }
        }
    }

    /// Whether the input stands on an entry of the range.
    fn input_stands(&self) -> Result<bool> {
        if !self.input.valid() {
            self.input.status()?;
            return Ok(false);
        }
        let upper = &self.rules.range.upper;
        Ok(upper.is_none() || !self.rules.range.is_past_upper(&self.rules.order, base::key::user_key(self.input.key())))
    }

    /// Deals with the entry under the cursor.
    fn take(&mut self) -> Result<Step> {
        let internal_key = self.input.key();
        let Some(ParsedKey { user_key, seq, kind }) = ParsedKey::parse(internal_key) else {
            return Err(bad_entry(internal_key));
        };
        if !self.in_key || !self.rules.order.user.equal(user_key, &self.user_key) {
            self.user_key.clear();
            self.user_key.extend_from_slice(user_key);
            self.in_key = true;
            self.shadowed_in = None;
            if let Some(beneath) = &mut self.rules.beneath {
                let held = beneath.held(&self.user_key)?;
                self.held_beneath = held != Held::Nothing;
                self.shadowed_in = held.hiding().map(|seq| self.stripes.of(seq));
            }
        }
        let stripe = self.stripes.of(seq);
        // A single deletion is not done with when it is hidden: it goes only together with its value, which may lie in
        // an older stripe or below, and would show again once a later single deletion took what hides it.
        if self.shadowed_in == Some(stripe) && kind != ValueKind::SingleDeletion {
            self.drops.shadowed += 1;
            return Ok(Step::Pass);
        }
        if let Some(beneath) = self.rules.beneath.as_ref().filter(|_| self.held_beneath) {
            return Err(beneath.refuse());
        }
        if self.tombstones.cover(user_key, seq, stripe) {
            self.drops.covered += 1;
            return Ok(Step::Pass);
        }
        if self.skip_until.is_some() && self.skips(stripe) {
            self.drops.filtered += 1;
            return Ok(Step::Pass);
        }
        match kind {
            ValueKind::Value => Ok(self.take_value(seq, stripe)),
            ValueKind::Deletion => self.take_deletion(seq, stripe),
            ValueKind::SingleDeletion => self.take_single_deletion(seq, stripe),
            ValueKind::Merge => self.take_merge(seq, stripe),
            ValueKind::RangeDeletion => Err(bad_entry(self.input.key())),
        }
    }

    /// Whether a filter asked to drop the entry under the cursor. What a snapshot can see is kept, and what is above the
    /// visible number.
    fn skips(&mut self, stripe: SeqNo) -> bool {
        let ended = |until: &Vec<u8>| self.rules.order.user.compare(&self.user_key, until).is_ge();
        if self.skip_until.as_ref().is_some_and(ended) {
            self.skip_until = None;
        }
        self.skip_until.is_some() && self.stripes.no_snapshot_sees(stripe)
    }

    #[inline]
    fn take_value(&mut self, seq: SeqNo, stripe: SeqNo) -> Step {
        self.shadowed_in = Some(stripe);
        if let Some(filter) = &self.rules.filter
            && self.stripes.no_snapshot_sees(stripe)
        {
            let decision = filter.filter(self.rules.level, &self.user_key, self.input.value());
            return self.obey(decision, seq);
        }
        self.show_value(seq)
    }

    /// Shows the value under the cursor, forgetting its number where nobody can ask for it.
    #[inline]
    fn show_value(&mut self, seq: SeqNo) -> Step {
        if self.forgets(seq) && seq > SeqNo::ZERO {
            self.set_key_out(SeqNo::ZERO, ValueKind::Value);
            self.shown = Shown::NewKey;
        } else {
            self.shown = Shown::Input;
        }
        Step::Show
    }

    fn obey(&mut self, decision: FilterDecision, seq: SeqNo) -> Step {
        match decision {
            FilterDecision::Keep => self.show_value(seq),
            FilterDecision::ChangeValue(value) if !limits::is_storable(&self.user_key, &value) => {
                let (key, bytes) = (limits::shown(&self.user_key), value.len());
                note::warn!(key, bytes, "a compaction filter's value is too large for a table; the old one stays");
                self.show_value(seq)
            }
            FilterDecision::ChangeValue(value) => {
                let seq = if self.forgets(seq) { SeqNo::ZERO } else { seq };
                self.set_key_out(seq, ValueKind::Value);
                self.show_made(value)
            }
            FilterDecision::Remove => {
                self.drops.filtered += 1;
                if self.stripes.in_oldest(seq) && self.nothing_below() {
                    return Step::Pass;
                }
                // Older versions must stay hidden.
                self.set_key_out(seq, ValueKind::Deletion);
                self.show_made(Vec::new())
            }
            FilterDecision::RemoveAndSkipUntil(until) => {
                if self.rules.order.user.compare(&until, &self.user_key).is_le() {
                    return self.show_value(seq);
                }
                self.drops.filtered += 1;
                self.skip_until = Some(until);
                Step::Pass
            }
        }
    }

    fn take_deletion(&mut self, seq: SeqNo, stripe: SeqNo) -> Result<Step> {
        self.shadowed_in = Some(stripe);
        self.shown = Shown::Input;
        if self.stripes.is_above_visible(seq) || !self.nothing_below() {
            return Ok(Step::Show);
        }
        if self.stripes.in_oldest(seq) {
            self.drops.deletions += 1;
            return Ok(Step::Pass);
        }
        // It is needed only if an older stripe has a version of the key.
        self.set_key_out(seq, ValueKind::Deletion);
        while self.step_within_key()? {
            if self.stripes.of(self.input_seq()) != stripe {
                return Ok(self.show_made(Vec::new()));
            }
            self.drops.shadowed += 1;
        }
        self.drops.deletions += 1;
        Ok(Step::Pass)
    }

    /// Steps the input; true where it then stands on another entry of the same user key. That entry is not dealt with.
    fn step_within_key(&mut self) -> Result<bool> {
        self.input.next();
        self.consumed = false;
        if !self.input_stands()? {
            return Ok(false);
        }
        let internal_key = self.input.key();
        let Some(entry) = ParsedKey::parse(internal_key) else { return Err(bad_entry(internal_key)) };
        Ok(self.rules.order.user.equal(entry.user_key, &self.user_key))
    }

    /// The number of the entry under the cursor.
    fn input_seq(&self) -> SeqNo {
        base::key::split(self.input.key()).map_or(SeqNo::ZERO, |(_, trailer)| SeqNo(trailer >> 8))
    }

    fn nothing_below(&mut self) -> bool {
        let asked = self.rules.key_not_below.as_mut();
        self.rules.bottommost || asked.is_some_and(|not_below| not_below(&self.user_key))
    }

    #[inline]
    fn forgets(&self, seq: SeqNo) -> bool {
        self.rules.bottommost && self.stripes.in_oldest(seq)
    }

    fn set_key_out(&mut self, seq: SeqNo, kind: ValueKind) {
        self.key_out.clear();
        append(&mut self.key_out, &self.user_key, seq, kind as u8);
    }

    /// Shows `key_out` with this value.
    fn show_made(&mut self, value: Vec<u8>) -> Step {
        self.value_out = value;
        self.shown = Shown::Made;
        Step::Show
    }
}

#[cold]
fn bad_entry(internal_key: &[u8]) -> Error {
    Error::corruption(format!("not a point entry's key: {internal_key:02x?}"))
}

#[cfg(test)]
mod tests;
