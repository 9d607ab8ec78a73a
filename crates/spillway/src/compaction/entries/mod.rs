//! Output entries of flushes and compactions: the input entries, without entries invisible to every reader.
//!
//! Live snapshots and the visible number cut history into *stripes*: of a key's versions in one stripe only the newest
//! is visible. Above the visible number each entry is its own stripe, since a snapshot may yet be taken between any two
//! (F1). Within a stripe the stream drops shadowed versions, pairs of a single deletion and its value, and entries
//! covered by a range tombstone of the stripe. It merges operands. If nothing lies below the output it drops deletions;
//! at the bottom it also zeroes sequence numbers.
//!
//! A plain entry passes through: its value is the input's own bytes, and so is its key unless its number changes.

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
use base::{Cursor, InternalOrder, ParsedKey, Result, SeqNo, ValueKind};

pub use self::beneath::Beneath;
use self::beneath::Held;
use self::stripes::Stripes;
use self::tombstones::InputTombstones;
use crate::compaction::output::FamilyRules;
use crate::cursor::bad_entry;
use crate::cursor::level::UserBounds;
use crate::cursor::snapshot::CapturedSnapshots;

/// Entries between two pauses.
pub const PAUSE_ENTRIES: u32 = 64;

/// Whether no older entry of a user key lies below the output level. Called for ascending keys.
pub type KeyNotBelow = Box<dyn FnMut(&[u8]) -> bool + Send>;

/// Settings of an [`EntryStream`].
pub struct EntryRules {
    pub order: InternalOrder,
    pub snapshots: CapturedSnapshots,
    pub merge_operator: Option<Arc<dyn MergeOperator>>,
    pub filter: Option<Arc<dyn CompactionFilter>>,
    /// The output level, passed to filters.
    pub level: usize,
    /// No table below the output overlaps the inputs, nor does an older table beside them.
    pub bottommost: bool,
    /// `None` if unknown, as in a flush.
    pub key_not_below: Option<KeyNotBelow>,
    /// The user keys to take from the inputs.
    pub range: UserBounds,
    /// The sinking table: to lie beneath the output, though newer than the inputs. It may share no key with the output.
    pub beneath: Option<Beneath>,
}

impl EntryRules {
    /// For a table of level 0: older entries may lie below it.
    pub fn in_level0(family: &FamilyRules, snapshots: CapturedSnapshots) -> Self {
        EntryRules {
            order: family.order.clone(),
            snapshots,
            merge_operator: family.options.merge_operator.clone(),
            filter: None,
            level: 0,
            bottommost: false,
            key_not_below: None,
            range: UserBounds::default(),
            beneath: None,
        }
    }
}

/// Input entries left out of the output, by cause.
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
    /// Of `filtered`: removed by a skip, without a deletion. Older entries may show again (G1).
    pub skipped: u64,
    /// Merged into another entry.
    pub merged: u64,
}

impl DropCounts {
    pub fn sum(&self) -> u64 {
        self.shadowed + self.covered + self.deletions + self.single_deletions + self.filtered + self.merged
    }
}

/// Source of the shown entry's bytes.
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

/// Stream of output entries over the merged input.
pub struct EntryStream<C: Cursor> {
    input: C,
    rules: EntryRules,
    stripes: Stripes,
    tombstones: InputTombstones,
    started: bool,
    /// The entry under the input's cursor is done.
    consumed: bool,
    /// The current user key, valid if `in_key`.
    user_key: Vec<u8>,
    in_key: bool,
    /// A newer entry of `user_key` hides the rest of this stripe.
    shadowed_in: Option<SeqNo>,
    /// The table beneath has an entry of `user_key`.
    held_beneath: bool,
    /// A filter's skip: drops entries before this user key.
    skip_until: Option<Vec<u8>>,
    shown: Shown,
    key_out: Vec<u8>,
    value_out: Vec<u8>,
    /// Entries to show next, queued by a merge.
    pending: VecDeque<(Vec<u8>, Vec<u8>)>,
    until_pause: u32,
    drops: DropCounts,
}

/// Outcome for the entry under the cursor.
enum Step {
    Show,
    Pass,
}

impl<C: Cursor> EntryStream<C> {
    /// `tombstones`: of all inputs, clipped to their tables' bounds.
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
    /// The input's. `Corruption`: an input key is no point entry's. `Busy`: the sinking table cannot lie beneath the
    /// output.
    pub fn advance(&mut self) -> Result<bool> {
        self.advance_with_pauses(&mut || Ok(()))
    }

    /// As [`advance`](Self::advance), with a call of `pause` every few input entries, dropped ones included.
    ///
    /// # Errors
    /// Also `pause`'s.
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

    /// The internal key of the entry; empty without an entry.
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

    /// The range tombstones of an output table over user keys from `lower`, inclusive, to `upper`, exclusive; `None` is
    /// the end of the stream's range. Tables with meeting bounds get meeting tombstones.
    pub fn tombstones_out(&self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Vec<RangeTombstone> {
        let UserBounds { lower: first, upper: end } = &self.rules.range;
        let (lower, upper) = (lower.or(first.as_deref()), upper.or(end.as_deref()));
        self.tombstones.output(&self.stripes, self.rules.bottommost, lower, upper)
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

    /// Whether the input is on an entry within the range.
    fn input_stands(&self) -> Result<bool> {
        if !self.input.valid() {
            self.input.status()?;
            return Ok(false);
        }
        let upper = &self.rules.range.upper;
        Ok(upper.is_none() || !self.rules.range.is_past_upper(&self.rules.order, base::key::user_key(self.input.key())))
    }

    /// Processes the entry under the cursor.
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
        // A hidden single deletion stays: it may go only together with its value, in an older stripe or below.
        // Otherwise the value would show again once a later single deletion removed the hiding entry.
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
            self.drops.skipped += 1;
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

    /// Whether a filter's skip drops the entry under the cursor. Entries visible to a snapshot or above the visible
    /// number are kept.
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

    /// Shows the value under the cursor, with number 0 if no reader can tell the difference.
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

    /// Whether a filter's value fits a table; told of if not.
    fn can_store(&self, value: &[u8]) -> bool {
        let fits = limits::is_storable(&self.user_key, value);
        if !fits {
            let (key, bytes) = (limits::shown(&self.user_key), value.len());
            note::warn!(key, bytes, "a compaction filter's value is too large for a table; the old one stays");
        }
        fits
    }

    fn obey(&mut self, decision: FilterDecision, seq: SeqNo) -> Step {
        match decision {
            FilterDecision::ChangeValue(value) if !self.can_store(&value) => self.show_value(seq),
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
                self.drops.skipped += 1;
                self.skip_until = Some(until);
                Step::Pass
            }
            // `Keep`.
            _ => self.show_value(seq),
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
        // Needed only if an older stripe has a version of the key.
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

    /// Steps the input; true if it is then on an older entry of the same user key. The entry is not consumed yet.
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

    /// The sequence number of the entry under the cursor.
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

#[cfg(test)]
mod tests;
