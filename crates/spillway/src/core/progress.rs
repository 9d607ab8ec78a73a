//! How far a family is flushed: T, and the ingests above it that are in tables already. Keeps F2, Q2.
//!
//! Entries leave a queue at its old end, but not in the order of their numbers: an ingest may have gone *under* the mutable
//! memtable, which holds older numbers. One that overlaps nothing older in the queue may even leave before that. So T
//! moves only as far as no entry that is left begins, and what is in tables beyond that is listed by its own number, until
//! T passes it.

use std::sync::Arc;

use base::SeqNo;

use crate::core::{FamilyState, holds};
use crate::queue::flushable::Flushable;
use crate::queue::ingest::QueuedIngest;
use crate::version::edit::VersionEdit;

/// Linked ingests that are listed before T is made to pass them: recovery reads the list, and so does every new MANIFEST.
const LINKED_INGESTS_MAX: usize = 4096;

/// What a family does not need from the logs any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unneeded {
    /// T: every number at or below it.
    pub through: SeqNo,
    /// Ingests above T, by the first of their numbers.
    pub linked: Vec<SeqNo>,
}

impl Unneeded {
    /// What an edit says of it.
    pub fn of(edit: &VersionEdit) -> Self {
        Unneeded { through: edit.flushed_through.unwrap_or(SeqNo::ZERO), linked: edit.linked_ingests.clone() }
    }
}

impl FamilyState {
    /// What will not be needed once these entries of the queue are in tables.
    pub fn unneeded_without(&self, flushed: &[Arc<dyn Flushable>]) -> Unneeded {
        let through = self.needed_without(flushed).max(self.flushed_through);
        let mut linked = Vec::new();
        for entry in flushed.iter().filter(|entry| entry.largest_seq().is_none_or(|largest| largest > through)) {
            assert!(entry.as_ingest().is_some(), "nothing but an ingest goes under an older entry (F2)");
            linked.push(SeqNo(entry.created_at().0 + 1));
        }
        Unneeded { through, linked }
    }

    /// Takes entries off the queue, which are in tables now.
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

    /// Whether an ingest whose numbers begin and end with these is in tables.
    pub fn has_linked(&self, first: SeqNo, last: SeqNo) -> bool {
        last <= self.flushed_through || self.linked_ingests.contains(&first)
    }

    /// Whether so many ingests are listed that whatever keeps T below them is to be flushed, and that was not asked for.
    pub fn has_too_many_linked(&self) -> bool {
        self.linked_ingests.len() >= LINKED_INGESTS_MAX
            && self
                .linked_ingests
                .first()
                .is_some_and(|first| self.mutable.created_at() < *first || self.flush_wanted_through < *first)
    }

    /// Whether the entries may leave the queue: they are what its old end still is (V2), or ingests that wait there for
    /// those who committed them, and overlap nothing older (Q1).
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

    /// Whether everything through `last` that was sealed is in tables.
    pub fn is_flushed_through(&self, last: SeqNo) -> bool {
        self.queue.iter().all(|entry| entry.created_at() >= last)
    }
}

#[cfg(test)]
mod tests {
    use vfs::MemoryVfs;

    use super::*;
    use crate::{Db, IngestOptions, IngestRequest, OpenOptions, WriteOptions};

    #[test]
    fn linked_ingests_above_a_memtable_that_stays_are_passed() {
        let options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
        let db = Db::open("/db", &options).expect("open");
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
