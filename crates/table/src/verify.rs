//! Verification common to tables with blocks or groups: key order, filter, and counts against the properties.

use base::{Error, InternalOrder, ParsedKey, Result, ValueKind};

use crate::filter::FilterReader;
use crate::properties::Properties;
use crate::reader::unknown_kind;

/// Counts of a pass, named as in the properties.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    blocks: u64,
    entries: u64,
    deletions: u64,
    merge_operands: u64,
}

/// One pass over a table's point entries.
pub(crate) struct EntryCheck<'a> {
    order: &'a InternalOrder,
    /// Must hold every key.
    filter: Option<FilterReader<&'a [u8]>>,
    counts: Counts,
    /// Internal key of the last entry.
    last_key: Vec<u8>,
}

impl<'a> EntryCheck<'a> {
    pub(crate) fn new(order: &'a InternalOrder, filter: Option<FilterReader<&'a [u8]>>) -> Self {
        EntryCheck { order, filter, counts: Counts::default(), last_key: Vec::new() }
    }

    /// Internal key of the last entry; empty before the first.
    pub(crate) fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Checks and counts the next entry.
    ///
    /// # Errors
    /// `Corruption`.
    pub(crate) fn add<'k>(&mut self, key: &'k [u8]) -> Result<ParsedKey<'k>> {
        let entry = ParsedKey::parse(key).ok_or_else(|| unknown_kind(key))?;
        if self.counts.entries > 0 && self.order.compare(&self.last_key, key).is_ge() {
            return Err(Error::corruption("keys are not in order"));
        }
        let stripped = self.order.user.strip_timestamp(entry.user_key);
        if self.filter.as_ref().is_some_and(|filter| !filter.may_match(stripped)) {
            return Err(filter_denies());
        }
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.counts.entries += 1;
        match entry.kind {
            ValueKind::Deletion | ValueKind::SingleDeletion => self.counts.deletions += 1,
            ValueKind::Merge => self.counts.merge_operands += 1,
            ValueKind::Value => {}
            ValueKind::RangeDeletion => return Err(Error::corruption("a range tombstone among the point entries")),
        }
        Ok(entry)
    }

    /// Counts a data block, or a group.
    pub(crate) fn end_block(&mut self) {
        self.counts.blocks += 1;
    }

    /// Properties count range tombstones in entries and deletions. Properties without counts pass.
    ///
    /// # Errors
    /// `Corruption`: the counts differ from the properties.
    pub(crate) fn end(self, properties: &Properties, has_dictionary: bool) -> Result<()> {
        if properties.entries == 0 && properties.data_blocks == 0 {
            return Ok(());
        }
        let (mut counts, tombstones) = (self.counts, properties.range_deletions);
        // RocksDB does not count the blocks of which it makes a dictionary.
        if has_dictionary && counts.blocks > properties.data_blocks {
            counts.blocks = properties.data_blocks;
        }
        compare_counts(
            "the table",
            &[
                ("data blocks", counts.blocks, properties.data_blocks),
                ("entries", counts.entries + tombstones, properties.entries),
                ("deletions", counts.deletions + tombstones, properties.deletions),
                ("merge operands", counts.merge_operands, properties.merge_operands),
            ],
        )
    }
}

/// The error for a filter without a key of the table.
pub(crate) fn filter_denies() -> Error {
    Error::corruption("the filter denies a key that is there")
}

/// Compares pairs of numbers: counted in `whole`, and stored in its properties.
///
/// # Errors
/// `Corruption`: a pair differs.
pub(crate) fn compare_counts(whole: &str, pairs: &[(&str, u64, u64)]) -> Result<()> {
    match pairs.iter().find(|(_, counted, stored)| counted != stored) {
        None => Ok(()),
        Some((what, counted, stored)) => {
            Err(Error::corruption(format!("{whole} has {counted} {what}, its properties say {stored}")))
        }
    }
}
