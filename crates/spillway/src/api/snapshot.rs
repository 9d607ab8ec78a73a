//! Snapshots: states of a database that stay readable.

use std::fmt;
use std::sync::Arc;

use base::{Pinned, Result};

use crate::api::Shared;
use crate::api::cursor::Cursor;
use crate::api::family::Family;
use crate::api::iter::Iter;
use crate::api::range::KeyRange;
use crate::cursor::options::ReadOptions as EngineReadOptions;
use crate::cursor::snapshot::Snapshot as EngineSnapshot;

/// The state of all families at one instant. It stays readable until the last clone is dropped; flushes and compactions
/// keep what it shows. Reads with options take it by [`ReadOptions::snapshot`](crate::ReadOptions::snapshot).
///
/// # Errors
/// Of reads: `InvalidArgument`: the family is of another database; else as of [`Family`].
#[derive(Clone)]
pub struct Snapshot {
    pub(super) inner: EngineSnapshot,
    /// Last: dropping it may close the database.
    shared: Arc<Shared>,
}

impl Snapshot {
    pub(super) fn new(shared: Arc<Shared>) -> Snapshot {
        Snapshot { inner: shared.database.snapshot(), shared }
    }

    pub(super) fn of(inner: EngineSnapshot, shared: Arc<Shared>) -> Snapshot {
        Snapshot { inner, shared }
    }

    fn options(&self) -> EngineReadOptions {
        EngineReadOptions { snapshot: Some(self.inner.clone()), ..EngineReadOptions::default() }
    }

    /// As [`Family::get`].
    pub fn get(&self, family: &Family, key: impl AsRef<[u8]>) -> Result<Option<Pinned>> {
        family.shown(self.shared.database.get(&family.inner, key.as_ref(), &self.options())?)
    }

    /// As [`Family::contains_key`].
    pub fn contains_key(&self, family: &Family, key: impl AsRef<[u8]>) -> Result<bool> {
        self.get(family, key).map(|value| value.is_some())
    }

    /// As [`Family::multi_get`].
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        family: &Family,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Pinned>>> {
        family.multi_get_with(keys, &self.options().into())
    }

    /// As [`Family::iter`].
    pub fn iter(&self, family: &Family) -> Iter {
        Iter::new(family, .., self.options())
    }

    /// As [`Family::range`].
    pub fn range(&self, family: &Family, range: impl KeyRange) -> Iter {
        Iter::new(family, range, self.options())
    }

    /// As [`Family::prefix`].
    pub fn prefix(&self, family: &Family, prefix: impl AsRef<[u8]>) -> Iter {
        Iter::over_prefix(family, prefix.as_ref(), self.options())
    }

    /// As [`Family::cursor`].
    pub fn cursor(&self, family: &Family, range: impl KeyRange) -> Result<Cursor> {
        Cursor::new(family, range, self.options())
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("seq", &self.inner.seq().0).finish()
    }
}
