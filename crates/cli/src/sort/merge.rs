//! Merge of one part of the sorted records. An interrupt ends it.

use spillway::internal::{Result, UserOrder};
use table::sort::{self, Sequence};

use super::INTERRUPT_CHECK_RECORDS;
use super::parts::Part;
use crate::interrupt::Interrupt;

/// Iterates over the records of a key range, ascending; the newest record of each key.
pub struct Merge {
    merge: sort::Merge<UserOrder>,
    order: UserOrder,
    /// Exclusive end.
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

    /// Advances to the next record; false at the end.
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

    /// Key of the current record.
    pub fn key(&self) -> &[u8] {
        self.merge.key()
    }

    pub fn value(&self) -> &[u8] {
        self.merge.value()
    }
}
