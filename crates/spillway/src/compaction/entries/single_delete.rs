//! Single deletions: each is dropped together with its one value when the two meet.

use base::{Cursor, Result, SeqNo, ValueKind};

use super::{EntryStream, Step};

impl<C: Cursor> EntryStream<C> {
    /// Processes the single deletion under the cursor, and its value if present.
    ///
    /// Over anything but one value the result is undefined for users; here it hides older entries, like a deletion.
    pub(super) fn take_single_deletion(&mut self, seq: SeqNo, stripe: SeqNo) -> Result<Step> {
        if self.stripes.is_above_visible(seq) {
            self.shadowed_in = Some(stripe);
            self.shown = super::Shown::Input;
            return Ok(Step::Show);
        }
        self.set_key_out(seq, ValueKind::SingleDeletion);
        while self.step_within_key()? {
            let older = self.input_seq();
            if self.stripes.of(older) != stripe {
                return Ok(self.show_made(Vec::new()));
            }
            if self.tombstones.cover(&self.user_key, older, stripe) {
                self.drops.covered += 1;
                continue;
            }
            return Ok(self.meet(older, stripe));
        }
        if self.nothing_below() {
            self.drops.single_deletions += 1;
            return Ok(Step::Pass);
        }
        Ok(self.show_made(Vec::new()))
    }

    /// Resolves the single deletion in `key_out` against the entry `older` under the cursor, of the same stripe.
    fn meet(&mut self, older: SeqNo, stripe: SeqNo) -> Step {
        let kind = base::ParsedKey::parse(self.input.key()).map(|entry| entry.kind);
        match kind {
            Some(ValueKind::Value) => {
                self.consumed = true;
                self.drops.single_deletions += 2;
                Step::Pass
            }
            // The older deletion has the same effect.
            Some(ValueKind::Deletion | ValueKind::SingleDeletion) => {
                self.drops.single_deletions += 1;
                Step::Pass
            }
            // Nothing older is left to hide. If shown, it could also follow a newer entry with number 0, out of order.
            _ if self.stripes.in_oldest(older) && self.nothing_below() => {
                self.shadowed_in = Some(stripe);
                self.drops.single_deletions += 1;
                Step::Pass
            }
            _ => {
                self.shadowed_in = Some(stripe);
                self.show_made(Vec::new())
            }
        }
    }
}
