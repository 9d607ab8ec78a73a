//! The check of a whole image, and what the checks of all representations share: marks, counts, and the requirements on
//! every entry.

use base::{Result, SeqNo, UserOrder, ValueKind};

use super::header::{Header, SEAL_AT, Seal};
use super::marks::Marks;
use super::parts::{Body, Parts};
use super::view::{EntryView, wrong};
use super::{Report, skiplist, tombstones, trie_check};
use crate::Entry;
use crate::stripe::Counts;

/// Checks a whole image, which must not change meanwhile.
///
/// # Errors
/// `Corruption`, with the offset in the image; `InvalidArgument` if its keys are in another order; `Unsupported` for a
/// newer format.
pub fn check(bytes: &[u8], order: &UserOrder) -> Result<Report> {
    let header = Header::read(bytes)?;
    let Parts { view, body, head_end, tombstones_head } = Parts::new(bytes, &header, order)?;
    let marks = Marks::new(view.len(), head_end)?;
    let mut tally = Tally { marks, counts: Counts::default(), largest_seq: SeqNo::ZERO, locked_nodes: 0 };
    match body {
        Body::Trie { trie, .. } => trie_check::check(trie, &mut tally)?,
        Body::SkipList(list) => skiplist::check(list, order, &mut tally)?,
    }
    tombstones::check(&view, tombstones_head, order, &mut tally)?;
    tally.into_report(header)
}

/// Totals of everything reached so far.
pub(super) struct Tally {
    pub(super) marks: Marks,
    pub(super) locked_nodes: u64,
    counts: Counts,
    largest_seq: SeqNo,
}

impl Tally {
    pub(super) fn count(&mut self, entry: &EntryView<'_>, kind: ValueKind) {
        let seq = entry.seq();
        self.counts.note(&Entry { user_key: entry.user_key(), seq, kind, value: entry.value });
        self.largest_seq = self.largest_seq.max(seq);
    }

    /// Counts the point entry at `at`.
    ///
    /// # Errors
    /// `Corruption`: it is no point entry.
    pub(super) fn point(&mut self, at: u64, entry: &EntryView<'_>) -> Result<()> {
        let kind = entry.point_kind(at)?;
        self.count(entry, kind);
        Ok(())
    }

    /// # Errors
    /// `Corruption`: the image was sealed with other totals.
    fn into_report(self, header: Header) -> Result<Report> {
        let Tally { counts, largest_seq, locked_nodes, .. } = self;
        if let Some(seal) = header.sealed {
            let Counts { entries, deletions, payload_bytes, .. } = counts;
            let found = Seal { allocated_bytes: seal.allocated_bytes, entries, deletions, payload_bytes };
            if found != seal {
                return Err(wrong(SEAL_AT as u64, format!("sealed with {seal:?}, and there are {found:?}")));
            }
        }
        Ok(Report { header, counts, largest_seq, locked_nodes })
    }
}
