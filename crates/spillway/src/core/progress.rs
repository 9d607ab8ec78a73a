//! Flush progress of a family: T, and the ingests above it already in tables. Keeps F2, Q2.
//!
//! Entries leave a queue at its old end, but not in sequence order: an ingest may have gone *under* the mutable
//! memtable, despite the memtable's older numbers. An ingest overlapping nothing older in the queue may leave even
//! earlier. So T advances only to the beginning of the oldest remaining entry. Ingests in tables beyond T are listed
//! until T passes them.

use std::sync::Arc;

use base::SeqNo;

use crate::core::{FamilyState, holds};
use crate::queue::flushable::Flushable;
use crate::queue::ingest::QueuedIngest;
use crate::version::edit::VersionEdit;

/// Limit on listed ingests before T is made to pass them: recovery and every new MANIFEST repeat the list.
const LINKED_INGESTS_MAX: usize = 4096;

/// Part of the WAL no longer needed by a family.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unneeded {
    /// T: every number at or below it.
    pub through: SeqNo,
    /// Ingests above T, by the first of their numbers.
    pub linked: Vec<SeqNo>,
}

impl Unneeded {
    /// The part recorded by `edit`.
    pub fn of(edit: &VersionEdit) -> Self {
        Unneeded { through: edit.flushed_through.unwrap_or(SeqNo::ZERO), linked: edit.linked_ingests.clone() }
    }
}

impl FamilyState {
    /// The unneeded part once these queue entries are in tables.
    pub fn unneeded_without(&self, flushed: &[Arc<dyn Flushable>]) -> Unneeded {
        let through = self.needed_without(flushed).max(self.flushed_through);
        let mut linked = Vec::new();
        for entry in flushed.iter().filter(|entry| entry.largest_seq().is_none_or(|largest| largest > through)) {
            assert!(entry.as_ingest().is_some(), "nothing but an ingest goes under an older entry (F2)");
            linked.push(SeqNo(entry.created_at().0 + 1));
        }
        Unneeded { through, linked }
    }

    /// Removes entries from the queue; they are in tables now.
    pub fn end_flush(&mut self, entries: &[Arc<dyn Flushable>], unneeded: &Unneeded) {
        if entries.is_empty() {
            return;
        }
        self.queue.retain(|entry| !holds(entries, entry));
        assert!(unneeded.through >= self.flushed_through, "flushed-through only grows (F2)");
        self.flushed_through = unneeded.through;
        self.linked_ingests.extend(&unneeded.linked);
        while self.linked_ingests.first().is_some_and(|first| *first <= unneeded.through) {
            self.linked_ingests.pop_first();
        }
    }

    /// Whether the ingest with numbers `first` to `last` is in tables.
    pub fn has_linked(&self, first: SeqNo, last: SeqNo) -> bool {
        last <= self.flushed_through || self.linked_ingests.contains(&first)
    }

    /// Whether `linked_ingests` is full and a flush past its first ingest is still to be requested.
    pub fn has_too_many_linked(&self) -> bool {
        self.linked_ingests.len() >= LINKED_INGESTS_MAX
            && self
                .linked_ingests
                .first()
                .is_some_and(|first| self.mutable.created_at() < *first || self.flush_wanted_through < *first)
    }

    /// Whether the entries may leave the queue: they are its old end (V2), or all are held ingests. A held ingest
    /// overlaps nothing older (Q1) and is left to its committing thread.
    pub fn may_leave(&self, entries: &[Arc<dyn Flushable>]) -> bool {
        let is_held = |entry: &Arc<dyn Flushable>| entry.as_ingest().is_some_and(QueuedIngest::is_held);
        match entries.iter().all(is_held) {
            true => entries.iter().all(|entry| holds(&self.queue, entry)),
            false => self.has_oldest(entries),
        }
    }

    fn has_oldest(&self, entries: &[Arc<dyn Flushable>]) -> bool {
        let same = |(a, b): (&Arc<dyn Flushable>, &Arc<dyn Flushable>)| Arc::ptr_eq(a, b);
        self.queue.len() >= entries.len() && self.queue.iter().rev().zip(entries).all(same)
    }

    /// Whether every sealed entry beginning below `last` is in tables.
    pub fn is_flushed_through(&self, last: SeqNo) -> bool {
        self.queue.iter().all(|entry| entry.created_at() >= last)
    }
}

#[cfg(test)]
mod tests {
    use vfs::MemoryVfs;

    use super::*;
    use crate::internal::{Database, IngestOptions, IngestRequest, OpenOptions, WriteOptions};

    #[test]
    fn linked_ingests_above_a_memtable_that_stays_are_passed() {
        let options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).expect("open");
        let family = db.default_family();
        db.put(&family, b"a", b"stays", &WriteOptions::default()).expect("written");
        let linked = || db.core().state.lock().families[&family.id()].linked_ingests.len();
        let mut longest = 0;
        for i in 0..LINKED_INGESTS_MAX + 10 {
            let excise = Some((format!("m{i:08}").into_bytes(), format!("m{i:08}x").into_bytes()));
            let request = IngestRequest { excise, ..IngestRequest::new(family.clone(), Vec::new()) };
            db.ingest_all(&[request], &IngestOptions::default()).expect("ingested");
            longest = longest.max(linked());
        }
        assert!((LINKED_INGESTS_MAX..LINKED_INGESTS_MAX + 5).contains(&longest), "{longest}");
        assert!(linked() < 10, "{}", linked());
        assert!(db.core().state.lock().families[&family.id()].mutable.is_unused(), "it was flushed");
    }
}
