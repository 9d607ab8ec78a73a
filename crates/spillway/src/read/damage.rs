//! Iterators that go on past damage, and what they passed over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Cursor, Error, ErrorKind, Result};
use parking_lot::Mutex;
use table::{DamageSink, PassedOver};

use crate::version::table_file::TableFile;

/// What iterators with `ReadOptions::skip_damaged` passed over. The same damage is listed once, however often it is met.
#[derive(Debug, Default)]
pub struct SkippedDamage(Mutex<BTreeMap<Damaged, PassedOver>>);

/// File, offset, and what is wrong there.
type Damaged = (PathBuf, Option<u64>, String);

impl SkippedDamage {
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// By file and offset.
    pub fn list(&self) -> Vec<PassedOver> {
        self.0.lock().values().cloned().collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl DamageSink for SkippedDamage {
    fn passed_over(&self, what: PassedOver) {
        let error = &what.error;
        let path = error.path().map(Path::to_owned).unwrap_or_default();
        self.0.lock().entry((path, error.offset(), error.message().to_owned())).or_insert(what);
    }
}

/// Whether a read that passes over damage does so with this: also where the file is gone.
pub(crate) fn is_damage(error: &Error) -> bool {
    error.kind() == ErrorKind::Corruption || error.is_not_found()
}

/// A cursor over one table that ends without an error where the table's rest cannot be read, and tells so.
pub(crate) struct DamageBearing {
    inner: Option<Box<dyn Cursor>>,
    file: Arc<TableFile>,
    damage: Arc<dyn DamageSink>,
}

impl DamageBearing {
    /// `opened`: the table's cursor, or why there is none.
    ///
    /// # Errors
    /// What is wrong is no damage.
    pub fn over(
        opened: Result<Box<dyn Cursor>>,
        file: &Arc<TableFile>,
        damage: &Arc<dyn DamageSink>,
    ) -> Result<Box<dyn Cursor>> {
        let mut cursor = DamageBearing { inner: None, file: file.clone(), damage: damage.clone() };
        match opened {
            Ok(inner) => cursor.inner = Some(inner),
            Err(error) if is_damage(&error) => cursor.tell(error),
            Err(error) => return Err(error),
        }
        Ok(Box::new(cursor))
    }

    /// The whole table is told to be passed over: which part of it was read before is not known here.
    fn tell(&self, error: Error) {
        let (from, through) = (self.file.smallest_user_key().to_vec(), self.file.largest_user_key().to_vec());
        self.damage.passed_over(PassedOver { error, from: Some(from), through: Some(through) });
    }

    fn moved(&mut self, go: impl FnOnce(&mut dyn Cursor) -> bool) -> bool {
        self.inner.as_mut().is_some_and(|inner| go(&mut **inner))
    }
}

impl Cursor for DamageBearing {
    fn valid(&self) -> bool {
        self.inner.as_ref().is_some_and(Cursor::valid)
    }

    fn seek_to_first(&mut self) -> bool {
        self.moved(|inner| inner.seek_to_first())
    }

    fn seek_to_last(&mut self) -> bool {
        self.moved(|inner| inner.seek_to_last())
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        self.moved(|inner| inner.seek(target))
    }

    fn seek_in_prefix(&mut self, target: &[u8]) -> bool {
        self.moved(|inner| inner.seek_in_prefix(target))
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        self.moved(|inner| inner.seek_for_prev(target))
    }

    fn next(&mut self) -> bool {
        self.moved(|inner| inner.next())
    }

    fn prev(&mut self) -> bool {
        self.moved(|inner| inner.prev())
    }

    fn key(&self) -> &[u8] {
        self.inner.as_ref().map_or(&[], Cursor::key)
    }

    fn value(&self) -> &[u8] {
        self.inner.as_ref().map_or(&[], Cursor::value)
    }

    fn status(&self) -> Result<()> {
        match self.inner.as_ref().map_or(Ok(()), Cursor::status) {
            Err(error) if is_damage(&error) => {
                self.tell(error);
                Ok(())
            }
            status => status,
        }
    }
}
