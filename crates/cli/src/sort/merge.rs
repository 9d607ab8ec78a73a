//! The merge of a part of what was sorted, which ends when the command is to end.

use spillway::{Result, UserOrder};
use table::sort::{self, Sequence};

use super::INTERRUPT_CHECK_RECORDS;
use super::parts::Part;
use crate::interrupt::Interrupt;

/// Walks over the records of a range of keys, ascending; of each key the newest record.
pub struct Merge {
    merge: sort::Merge<UserOrder>,
    order: UserOrder,
    /// The key to end before.
    to: Option<Vec<u8>>,
    records: u64,
    interrupt: Interrupt,
}

impl Merge {
    pub(super) fn new(
        sequences: impl Iterator<Item = Sequence>,
        order: &UserOrder,
        part: Part,
        interrupt: Interrupt,
    ) -> Result<Merge> {
        let merge = sort::Merge::new(sequences, order.clone(), part.from.as_deref())?;
        Ok(Merge { merge, order: order.clone(), to: part.to, records: 0, interrupt })
    }

    /// Goes to the next record; false at the end.
    ///
    /// # Errors
    /// `Closed`: interrupted. `Io`, `Corruption`: a run cannot be read.
    pub fn advance(&mut self) -> Result<bool> {
        self.records += 1;
        if self.records.is_multiple_of(INTERRUPT_CHECK_RECORDS) {
            self.interrupt.check()?;
        }
        let is_before_end = |key: &[u8]| self.to.as_deref().is_none_or(|to| self.order.compare(key, to).is_lt());
        Ok(self.merge.advance()? && is_before_end(self.merge.key()))
    }

    /// Of the current record.
    pub fn key(&self) -> &[u8] {
        self.merge.key()
    }

    pub fn value(&self) -> &[u8] {
        self.merge.value()
    }
}
