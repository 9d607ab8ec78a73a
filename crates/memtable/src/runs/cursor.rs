//! A cursor over the chunks of a list. Each seek takes the current chunks and sorts new ones; later steps walk the same
//! chunks.

use std::sync::Arc;

use base::{Cursor, Result};

use super::item::{Item, Target};
use super::ladder::Parts;
use super::list::RunsList;
use super::walk::Walk;
use crate::order::KeyOrder;
use crate::record::Record;

pub(crate) struct RunsCursor<O: KeyOrder> {
    list: Arc<RunsList<O>>,
    /// `None` until the first seek.
    parts: Option<Arc<Parts>>,
    walk: Walk,
    /// The current entry.
    item: Option<Item>,
}

impl<O: KeyOrder> RunsCursor<O> {
    pub(crate) fn new(list: Arc<RunsList<O>>) -> Self {
        RunsCursor { list, parts: None, walk: Walk::default(), item: None }
    }

    fn record(&self) -> Option<Record<'_>> {
        self.item.map(|item| self.list.entries.record(item))
    }

    fn position(&mut self, target: Option<&Target<'_>>, backward: bool) -> bool {
        let parts = self.list.current();
        self.walk.seek(&self.list.entries, &parts, target, backward);
        self.parts = Some(parts);
        self.settle()
    }

    fn settle(&mut self) -> bool {
        self.item = self.walk.item();
        self.item.is_some()
    }
}

impl<O: KeyOrder> Cursor for RunsCursor<O> {
    fn valid(&self) -> bool {
        self.item.is_some()
    }

    fn seek_to_first(&mut self) -> bool {
        self.position(None, false)
    }

    fn seek_to_last(&mut self) -> bool {
        self.position(None, true)
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        self.position(Some(&Target::of_internal(target)), false)
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        self.position(Some(&Target::of_internal(target)), true)
    }

    fn next(&mut self) -> bool {
        assert!(self.valid(), "a step from no entry");
        if let Some(parts) = &self.parts {
            self.walk.next(&self.list.entries, parts);
        }
        self.settle()
    }

    fn prev(&mut self) -> bool {
        assert!(self.valid(), "a step from no entry");
        if let Some(parts) = &self.parts {
            self.walk.prev(&self.list.entries, parts);
        }
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
