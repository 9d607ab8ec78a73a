//! Iterators over damaged data, and the list of skipped damage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Cursor, Error, ErrorKind, Result};
use parking_lot::Mutex;
use table::{AnyCursor, DamageSink, PassedOver};

use crate::version::table_file::TableFile;

/// Damage skipped by iterators with `ReadOptions::skip_damaged`. Repeated damage is listed once.
#[derive(Debug, Default)]
pub struct SkippedDamage(Mutex<BTreeMap<Damaged, PassedOver>>);

/// File, offset, error message, and keys: values of one damaged log have the same error.
type Damaged = (PathBuf, Option<u64>, String, Option<Vec<u8>>, Option<Vec<u8>>);

impl SkippedDamage {
    /// An empty list.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns the skipped damage, ordered by file and offset.
    pub fn list(&self) -> Vec<PassedOver> {
        self.0.lock().values().cloned().collect()
    }

    /// True if nothing was passed over.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

impl DamageSink for SkippedDamage {
    fn passed_over(&self, what: PassedOver) {
        let error = &what.error;
        let path = error.path().map(Path::to_owned).unwrap_or_default();
        let (message, from, through) = (error.message().to_owned(), what.from.clone(), what.through.clone());
        self.0.lock().entry((path, error.offset(), message, from, through)).or_insert(what);
    }
}

/// Whether `skip_damaged` reads skip the error. A missing file counts as damage.
pub(crate) fn is_damage(error: &Error) -> bool {
    error.kind() == ErrorKind::Corruption || error.is_not_found() || error.is_read_failure()
}

/// Reports a whole table as passed over.
pub(crate) fn pass_over_table(file: &TableFile, error: Error, damage: &Arc<dyn DamageSink>) {
    let (from, through) = (file.smallest_user_key().to_vec(), file.largest_user_key().to_vec());
    damage.passed_over(PassedOver::new(error, Some(from), Some(through)));
}

/// A cursor over one table. If the rest of the table cannot be read, the cursor ends without an error and reports the
/// damage.
pub(crate) struct DamageBearing {
    inner: Option<AnyCursor>,
    file: Arc<TableFile>,
    damage: Arc<dyn DamageSink>,
}

impl DamageBearing {
    /// `opened`: the table's cursor, or the error of opening it.
    ///
    /// # Errors
    /// Errors of `opened` other than damage.
    pub fn over(
        opened: Result<AnyCursor>,
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

    /// The part read before the damage is not known here.
    fn tell(&self, error: Error) {
        pass_over_table(&self.file, error, &self.damage);
    }

    fn moved(&mut self, go: impl FnOnce(&mut AnyCursor) -> bool) -> bool {
        self.inner.as_mut().is_some_and(go)
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
