//! Backward walk: the cursor meets the oldest version of a key first, so a key's value is computed before the key is
//! known to be visible.

use base::key::{SEEK_KIND, user_key};
use base::{Cursor, ParsedKey, Result, SeqNo, ValueKind};

use super::{DbIterator, Position, set};
use crate::cursor::bad_entry;

/// State of a key after the versions read so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Latest {
    /// No value below the operands.
    Absent,
    /// The base value is in `value`, below the operands.
    Present,
}

impl DbIterator {
    /// Moves to the last existing key at or before the cursor.
    pub(super) fn settle_backward(&mut self) -> bool {
        let found = self.walk_backward();
        if self.hidden > 0 {
            self.count_hidden();
        }
        if !self.dead.is_empty() {
            self.dead.end(&self.context, false, &self.dead_key);
        }
        debug_assert!(!found || !self.dead.is_in_gap(&self.context, self.key()), "an entry in a gap (G1)");
        found
    }

    fn walk_backward(&mut self) -> bool {
        let mut covered_run = 0;
        (self.hidden, self.hidden_deletions) = (0, 0);
        while self.cursor.valid() {
            let passing = user_key(self.cursor.key());
            if self.bounds.is_before_lower(&self.context.order, passing) || self.leaves_prefix(passing) {
                return self.leave();
            }
            self.save_key();
            let covered = self.cover.newest_over(&self.key);
            match self.resolve_backward(covered) {
                // An error of the cursor may have hidden a newer version.
                Ok(_) if self.cursor.status().is_err() => return self.cursor_ended(),
                Ok(true) => {
                    self.position = Position::Before;
                    return true;
                }
                Ok(false) => {
                    if self.dead.pass_back_over(&self.context, &self.key, &mut self.cursor) {
                        self.count_reseek();
                    }
                    std::mem::swap(&mut self.key, &mut self.dead_key);
                }
                Err(error) => return self.fail(error),
            }
            if self.hidden > self.skippable_max {
                return self.fail_skipping();
            }
            covered_run = if covered > SeqNo::ZERO { covered_run + 1 } else { 0 };
            if covered_run > self.steps_max {
                covered_run = 0;
                self.jump_backward();
            }
        }
        self.cursor_ended()
    }

    /// Computes the value of `key`. The cursor starts on the key's oldest entry and ends before all its entries. False
    /// if the key does not exist. Entries older than `covered` are deleted. Counts hidden entries.
    fn resolve_backward(&mut self, covered: SeqNo) -> Result<bool> {
        let mut latest = Latest::Absent;
        let mut steps = 0;
        self.operands.clear();
        loop {
            let internal_key = self.cursor.key();
            let Some(entry) = ParsedKey::parse(internal_key) else { return Err(bad_entry(internal_key)) };
            if entry.seq > self.seq {
                self.pass_newer();
                break;
            }
            if steps > self.steps_max {
                return self.resolve_by_seek();
            }
            latest = self.take_version(entry.kind, entry.seq < covered, latest)?;
            if latest == Latest::Absent && self.operands.is_empty() {
                self.hidden += 1;
            }
            steps += 1;
            if !self.cursor.prev() || !self.stands_on_key() {
                break;
            }
        }
        self.merge_gathered(latest)
    }

    /// Applies the entry under the cursor, newer than all before it.
    fn take_version(&mut self, kind: ValueKind, covered: bool, latest: Latest) -> Result<Latest> {
        match kind {
            ValueKind::RangeDeletion => return Err(bad_entry(self.cursor.key())),
            ValueKind::Merge if !covered => {
                self.operands.push(self.cursor.value());
                return Ok(latest);
            }
            ValueKind::Value if !covered => {
                self.operands.clear();
                self.value.clear();
                self.value.extend_from_slice(self.cursor.value());
                return Ok(Latest::Present);
            }
            ValueKind::Deletion | ValueKind::SingleDeletion => self.hidden_deletions += 1,
            _ => {}
        }
        self.operands.clear();
        Ok(Latest::Absent)
    }

    fn merge_gathered(&mut self, latest: Latest) -> Result<bool> {
        let present = latest == Latest::Present;
        if self.operands.is_empty() {
            return Ok(present);
        }
        let existing = present.then_some(self.value.as_slice());
        self.value = self.context.merge(&self.key, existing, &self.operands.in_order())?;
        Ok(true)
    }

    fn stands_on_key(&self) -> bool {
        self.context.order.user.equal(user_key(self.cursor.key()), &self.key)
    }

    /// Moves the cursor before the entries of `key` newer than the iterator's sequence number.
    fn pass_newer(&mut self) {
        for _ in 0..self.steps_max {
            self.hidden += 1;
            if !self.cursor.prev() || !self.stands_on_key() {
                return;
            }
        }
        self.count_reseek();
        self.seek_before_key();
    }

    /// Does the work of [`resolve_backward`](Self::resolve_backward) for a key with many versions, from the newest
    /// visible one.
    #[cold]
    fn resolve_by_seek(&mut self) -> Result<bool> {
        self.count_reseek();
        set(&mut self.target, &self.key, self.seq, SEEK_KIND);
        self.cursor.seek(&self.target);
        let exists = self.resolve_forward()?;
        self.cursor.status()?;
        self.seek_before_key();
        Ok(exists)
    }

    /// Seeks past the entries deleted by the tombstone over `key`.
    #[cold]
    fn jump_backward(&mut self) {
        self.count_reseek();
        if let (true, Some(hole)) = (self.cursor.valid(), self.cover.hole()) {
            set(&mut self.target, hole.start, SeqNo::MAX, SEEK_KIND);
            self.cursor.skip_from(hole.rank + 1, &self.target);
        }
    }
}
