//! Forward walk: from the cursor's position to the next visible entry.

use base::key::{SEEK_KIND, user_key};
use base::{Cursor, ParsedKey, Result, SeqNo, ValueKind};

use super::{DbIterator, Position, set};
use crate::cursor::bad_entry;

/// Reason for hiding an entry. It decides how to seek past a run of such entries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hidden {
    /// Newer than the iterator's sequence number.
    TooNew,
    /// An older version of the key in `key`.
    Passed,
    /// Under a range tombstone.
    Covered,
    /// A deletion, and the newest visible version of its key.
    Deleted,
}

impl DbIterator {
    /// Moves to the first visible entry from the cursor on. `hide_key`: entries of `key` are hidden.
    #[inline]
    pub(super) fn settle_forward(&mut self, hide_key: bool) -> bool {
        let found = self.walk_forward(hide_key);
        if self.hidden > 0 {
            self.count_hidden();
        }
        if !self.dead.is_empty() {
            self.dead.end(&self.context, true, &self.key);
        }
        debug_assert!(!found || !self.dead.is_in_gap(&self.context, self.key()), "an entry in a gap (G1)");
        found
    }

    fn walk_forward(&mut self, mut hide_key: bool) -> bool {
        let mut run = 0;
        let mut run_of = Hidden::Deleted;
        (self.hidden, self.hidden_deletions) = (0, 0);
        while self.cursor.valid() {
            let internal_key = self.cursor.key();
            let Some(ParsedKey { user_key, seq, kind }) = ParsedKey::parse(internal_key) else {
                return self.fail(bad_entry(internal_key));
            };
            if self.bounds.is_past_upper(&self.context.order, user_key) || self.leaves_prefix(user_key) {
                return self.leave();
            }
            let hidden = if seq > self.seq {
                Hidden::TooNew
            } else if hide_key && self.context.order.user.equal(user_key, &self.key) {
                Hidden::Passed
            } else if seq < self.cover.newest_over(user_key) {
                Hidden::Covered
            } else {
                match kind {
                    ValueKind::Value => {
                        if !self.dead.is_empty() {
                            self.dead.end(&self.context, true, &self.key); // before `key` changes
                        }
                        self.key.clear();
                        self.key.extend_from_slice(user_key);
                        self.position = Position::OnEntry;
                        return true;
                    }
                    ValueKind::Merge => {
                        self.dead.end(&self.context, true, &self.key); // before `key` changes
                        return self.show_merged();
                    }
                    ValueKind::Deletion | ValueKind::SingleDeletion => Hidden::Deleted,
                    ValueKind::RangeDeletion => return self.fail(bad_entry(internal_key)),
                }
            };
            self.hidden += 1;
            if self.hidden > self.skippable_max {
                return self.fail_skipping();
            }
            if hidden == Hidden::Deleted {
                self.hidden_deletions += 1;
                self.save_key();
                hide_key = true;
                if self.dead.pass_over(&self.context, &self.key, &mut self.cursor) {
                    self.count_reseek();
                    run = 0;
                    continue;
                }
            }
            run = if hidden == run_of { run + 1 } else { 1 };
            run_of = hidden;
            if run <= self.steps_max || hidden == Hidden::Deleted {
                self.cursor.next();
            } else {
                run = 0;
                self.jump_forward(hidden);
            }
        }
        self.cursor_ended()
    }

    /// Seeks past the current run of hidden entries.
    #[cold]
    fn jump_forward(&mut self, hidden: Hidden) {
        self.count_reseek();
        match hidden {
            Hidden::TooNew => {
                set(&mut self.target, user_key(self.cursor.key()), self.seq, SEEK_KIND);
                self.seek_target();
            }
            Hidden::Passed => self.seek_behind_key(),
            Hidden::Covered | Hidden::Deleted => {
                if !self.cursor.next() {
                    return;
                }
                if let Some(hole) = self.cover.hole() {
                    set(&mut self.target, hole.end, SeqNo::MAX, SEEK_KIND);
                    self.cursor.skip_from(hole.rank + 1, &self.target);
                }
            }
        }
    }

    /// Merges the current key. The cursor stands on its newest visible entry, a merge operand.
    fn show_merged(&mut self) -> bool {
        self.save_key();
        match self.resolve_forward() {
            Ok(_) if self.cursor.status().is_err() => self.cursor_ended(),
            Ok(exists) => {
                debug_assert!(exists, "a merge operand makes the key exist");
                self.position = Position::Behind;
                true
            }
            Err(error) => self.fail(error),
        }
    }

    /// Computes the value of `key`. The cursor stands on its newest visible entry and walks forward over older entries.
    /// False if the key is deleted. Does not check the cursor's status.
    pub(super) fn resolve_forward(&mut self) -> Result<bool> {
        self.operands.clear();
        while self.cursor.valid() {
            let internal_key = self.cursor.key();
            let Some(entry) = ParsedKey::parse(internal_key) else { return Err(bad_entry(internal_key)) };
            // Asked at every entry: the step to it may have opened a table with a tombstone that begins at this key.
            let covered = self.cover.newest_over(&self.key);
            if entry.seq < covered || !self.context.order.user.equal(entry.user_key, &self.key) {
                break;
            }
            match entry.kind {
                ValueKind::Merge => self.operands.push(self.cursor.value()),
                ValueKind::Value if self.operands.is_empty() => {
                    self.value.clear();
                    self.value.extend_from_slice(self.cursor.value());
                    return Ok(true);
                }
                ValueKind::Value => {
                    let operands = self.operands.reversed();
                    self.value = self.context.merge(&self.key, Some(self.cursor.value()), &operands)?;
                    return Ok(true);
                }
                ValueKind::Deletion | ValueKind::SingleDeletion => break,
                ValueKind::RangeDeletion => return Err(bad_entry(internal_key)),
            }
            self.cursor.next();
        }
        if self.operands.is_empty() {
            return Ok(false);
        }
        self.value = self.context.merge(&self.key, None, &self.operands.reversed())?;
        Ok(true)
    }
}
