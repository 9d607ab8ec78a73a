//! A walk over the sorted runs of a vector. Each positioning call takes the runs of that moment, sorting what is new; the
//! steps after it walk those.

use std::sync::Arc;

use base::{Cursor, Result};

use super::runs::{Item, Walk};
use super::{Sorted, Vector};
use crate::order::KeyOrder;
use crate::record::Record;

pub(super) struct VectorCursor<O: KeyOrder> {
    memtable: Arc<Vector<O>>,
    sorted: Arc<Sorted>,
    walk: Walk,
    /// Where the walk stands.
    item: Option<Item>,
}

impl<O: KeyOrder> VectorCursor<O> {
    pub(super) fn new(memtable: Arc<Vector<O>>) -> Self {
        let sorted = memtable.sorted();
        VectorCursor { memtable, sorted, walk: Walk::nowhere(), item: None }
    }

    fn record(&self) -> Option<Record<'_>> {
        self.item.map(|item| self.memtable.entries.record(item))
    }

    fn settle(&mut self) -> bool {
        self.item = self.walk.item(&self.sorted.runs);
        self.item.is_some()
    }
}

impl<O: KeyOrder> Cursor for VectorCursor<O> {
    fn valid(&self) -> bool {
        self.item.is_some()
    }

    fn seek_to_first(&mut self) -> bool {
        self.sorted = self.memtable.sorted();
        self.walk.seek(&self.memtable.entries, &self.sorted.runs, |_| false);
        self.settle()
    }

    fn seek_to_last(&mut self) -> bool {
        self.sorted = self.memtable.sorted();
        self.walk.seek_back(&self.memtable.entries, &self.sorted.runs, |_| true);
        self.settle()
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        self.sorted = self.memtable.sorted();
        let entries = &self.memtable.entries;
        let target = entries.internal_target(target);
        self.walk.seek(entries, &self.sorted.runs, |item| entries.compare_to(item, &target).is_lt());
        self.settle()
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        self.sorted = self.memtable.sorted();
        let entries = &self.memtable.entries;
        let target = entries.internal_target(target);
        self.walk.seek_back(entries, &self.sorted.runs, |item| entries.compare_to(item, &target).is_le());
        self.settle()
    }

    fn next(&mut self) -> bool {
        assert!(self.valid(), "a step from no entry");
        self.walk.next(&self.memtable.entries, &self.sorted.runs);
        self.settle()
    }

    fn prev(&mut self) -> bool {
        assert!(self.valid(), "a step from no entry");
        self.walk.prev(&self.memtable.entries, &self.sorted.runs);
        self.settle()
    }

    fn key(&self) -> &[u8] {
        self.record().map_or(&[], |record| record.internal_key())
    }

    fn value(&self) -> &[u8] {
        self.record().map_or(&[], |record| record.value())
    }

    fn status(&self) -> Result<()> {
        Ok(())
    }
}
