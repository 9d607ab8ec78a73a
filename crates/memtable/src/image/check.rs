//! Shared by the checks of all representations: marks, counts, and the requirements on every entry.

use base::{Error, Result, SeqNo, ValueKind};

use super::header::{Header, SEAL_AT, Seal};
use super::marks::Marks;
use super::view::{EntryView, wrong};
use super::{Expected, Report};

/// Totals of everything reached so far.
pub(super) struct Tally {
    pub(super) marks: Marks,
    pub(super) keys: u64,
    pub(super) deletions: u64,
    pub(super) range_deletions: u64,
    pub(super) nodes: u64,
    pub(super) locked_nodes: u64,
    entries: u64,
    merge_operands: u64,
    payload_bytes: u64,
    key_bytes: u64,
    largest_seq: SeqNo,
}

impl Tally {
    pub(super) fn new(marks: Marks) -> Self {
        Tally {
            marks,
            keys: 0,
            deletions: 0,
            range_deletions: 0,
            nodes: 0,
            locked_nodes: 0,
            entries: 0,
            merge_operands: 0,
            payload_bytes: 0,
            key_bytes: 0,
            largest_seq: SeqNo::ZERO,
        }
    }

    pub(super) fn count(&mut self, entry: &EntryView<'_>) {
        self.entries += 1;
        self.payload_bytes += (entry.user_key().len() + entry.value.len()) as u64;
        self.key_bytes += entry.user_key().len() as u64;
        self.largest_seq = self.largest_seq.max(entry.seq());
    }

    /// Counts the point entry at `at`.
    ///
    /// # Errors
    /// `Corruption`: it is no point entry.
    pub(super) fn point(&mut self, at: u64, entry: &EntryView<'_>) -> Result<()> {
        let kind = entry.point_kind(at)?;
        self.deletions += u64::from(matches!(kind, ValueKind::Deletion | ValueKind::SingleDeletion));
        self.merge_operands += u64::from(kind == ValueKind::Merge);
        self.count(entry);
        Ok(())
    }

    /// # Errors
    /// `Corruption`: the image was sealed with other totals.
    pub(super) fn into_report(self, header: Header, image_bytes: u64) -> Result<Report> {
        if let Some(seal) = header.sealed {
            let found = Seal {
                allocated_bytes: seal.allocated_bytes,
                entries: self.entries,
                deletions: self.deletions,
                payload_bytes: self.payload_bytes,
            };
            if found != seal {
                return Err(wrong(SEAL_AT as u64, format!("sealed with {seal:?}, and there are {found:?}")));
            }
        }
        Ok(Report {
            header,
            image_bytes,
            used_bytes: self.marks.taken_bytes(),
            entries: self.entries,
            deletions: self.deletions,
            range_deletions: self.range_deletions,
            merge_operands: self.merge_operands,
            keys: self.keys,
            payload_bytes: self.payload_bytes,
            key_bytes: self.key_bytes,
            largest_seq: self.largest_seq,
            nodes: self.nodes,
            locked_nodes: self.locked_nodes,
        })
    }
}

/// # Errors
/// `InvalidArgument`: the image has another order or representation.
pub(super) fn check_expected(header: &Header, expected: &Expected) -> Result<()> {
    if header.order != expected.order.name() {
        return Err(Error::invalid_argument(format!(
            "the image's keys are in the order {:?}, not {:?}",
            header.order,
            expected.order.name()
        )));
    }
    match expected.representation {
        Some(other) if other != header.representation => {
            Err(Error::invalid_argument(format!("the image is of a {}, not of a {other}", header.representation)))
        }
        _ => Ok(()),
    }
}
