//! Merge operands: the operands of one stripe become one entry if the operator succeeds and the result fits a table.

use std::sync::Arc;

use base::extend::{FilterDecision, MergeOperator};
use base::key::encode;
use base::limits::is_storable;
use base::{Cursor, ParsedKey, Result, SeqNo, ValueKind};

use super::{EntryStream, Shown, Step, bad_entry};

/// The entry beneath the operands of a stripe.
enum Base {
    /// Not known here: an older stripe or a table below may have it.
    Unknown,
    /// There is none.
    Nothing,
    /// This entry of the same stripe; the merged entry replaces it.
    Entry(SeqNo, ValueKind, Vec<u8>),
}

/// Operands of one stripe, newest first.
type Operands = Vec<(SeqNo, Vec<u8>)>;

impl<C: Cursor> EntryStream<C> {
    /// Processes the operand under the cursor and the older entries of its stripe.
    pub(super) fn take_merge(&mut self, seq: SeqNo, stripe: SeqNo) -> Result<Step> {
        let operator = self.rules.merge_operator.clone();
        let Some(operator) = operator.filter(|_| !self.stripes.is_above_visible(seq)) else {
            // Kept if above the visible number, or without an operator: reads report the lack.
            self.shown = Shown::Input;
            return Ok(Step::Show);
        };
        let (operands, base) = self.gather(seq, stripe)?;
        self.shadowed_in = Some(stripe);
        self.put_together(&operator, operands, base);
        Ok(Step::Pass)
    }

    /// Takes operands from the input until their base is found or the stripe ends. `consumed` tells if the entry then
    /// under the cursor is done.
    fn gather(&mut self, seq: SeqNo, stripe: SeqNo) -> Result<(Operands, Base)> {
        let mut operands = Operands::new();
        self.keep_operand(&mut operands, seq, stripe);
        while self.step_within_key()? {
            let Some(ParsedKey { seq, kind, .. }) = ParsedKey::parse(self.input.key()) else {
                return Err(bad_entry(self.input.key()));
            };
            if self.stripes.of(seq) != stripe {
                return Ok((operands, Base::Unknown));
            }
            if self.tombstones.cover(&self.user_key, seq, stripe) {
                return Ok((operands, Base::Nothing));
            }
            match kind {
                ValueKind::Merge => self.keep_operand(&mut operands, seq, stripe),
                ValueKind::Value | ValueKind::Deletion | ValueKind::SingleDeletion => {
                    self.consumed = true;
                    return Ok((operands, Base::Entry(seq, kind, self.input.value().to_vec())));
                }
                ValueKind::RangeDeletion => return Err(bad_entry(self.input.key())),
            }
        }
        Ok((operands, if self.nothing_below() { Base::Nothing } else { Base::Unknown }))
    }

    fn keep_operand(&mut self, operands: &mut Operands, seq: SeqNo, stripe: SeqNo) {
        let operand = self.input.value();
        let decision = match &self.rules.filter {
            Some(filter) if self.stripes.no_snapshot_sees(stripe) => {
                filter.filter_merge_operand(self.rules.level, &self.user_key, operand)
            }
            _ => FilterDecision::Keep,
        };
        match decision {
            FilterDecision::Remove => self.drops.filtered += 1,
            FilterDecision::ChangeValue(changed) if self.can_store(&changed) => operands.push((seq, changed)),
            _ => operands.push((seq, operand.to_vec())),
        }
    }

    /// Queues the result of merging the operands into their base.
    fn put_together(&mut self, operator: &Arc<dyn MergeOperator>, operands: Operands, base: Base) {
        let Some(&(newest, _)) = operands.first() else {
            // The filter removed all operands: the base shows again.
            if let Base::Entry(seq, kind, value) = base {
                self.push(seq, kind, value);
            }
            return;
        };
        let existing = match &base {
            Base::Unknown => return self.merge_partially(operator, operands),
            Base::Entry(_, ValueKind::Value, value) => Some(value.as_slice()),
            Base::Nothing | Base::Entry(..) => None,
        };
        let oldest_first: Vec<&[u8]> = operands.iter().rev().map(|(_, operand)| operand.as_slice()).collect();
        let merged = operator.full_merge(&self.user_key, existing, &oldest_first);
        if let Some(merged) = merged.filter(|merged| is_storable(&self.user_key, merged)) {
            self.drops.merged += operands.len() as u64 - 1 + u64::from(matches!(base, Base::Entry(..)));
            let seq = if self.forgets(newest) { SeqNo::ZERO } else { newest };
            self.push(seq, ValueKind::Value, merged);
            return;
        }
        // Kept unmerged. A read merges them again, however large the result, or fails and names the operator.
        for (seq, operand) in operands {
            self.push(seq, ValueKind::Merge, operand);
        }
        if let Base::Entry(seq, kind, value) = base {
            self.push(seq, kind, value);
        }
    }

    /// Queues the operands, neighbours combined if the operator can. Each result has the number of its newest operand.
    fn merge_partially(&mut self, operator: &Arc<dyn MergeOperator>, operands: Operands) {
        let mut combined = Operands::new();
        for (seq, operand) in operands.into_iter().rev() {
            if let Some((older_seq, older)) = combined.last_mut()
                && let Some(both) = operator.partial_merge(&self.user_key, older, &operand)
                && is_storable(&self.user_key, &both)
            {
                (*older_seq, *older) = (seq, both);
                self.drops.merged += 1;
            } else {
                combined.push((seq, operand));
            }
        }
        for (seq, operand) in combined.into_iter().rev() {
            self.push(seq, ValueKind::Merge, operand);
        }
    }

    fn push(&mut self, seq: SeqNo, kind: ValueKind, value: Vec<u8>) {
        self.pending.push_back((encode(&self.user_key, seq, kind), value));
    }
}
