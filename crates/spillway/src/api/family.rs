//! A column family's handle: reads and writes of one key space.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use base::{Pinned, Result, UserOrder};

use crate::api::Shared;
use crate::api::cursor::Cursor;
use crate::api::db::Db;
use crate::api::iter::Iter;
use crate::api::options::{ReadOptions, WriteOptions};
use crate::api::range::KeyRange;
use crate::batch::options::WriteOptions as EngineWriteOptions;
use crate::core::family::Family as EngineFamily;
use crate::cursor::options::ReadOptions as EngineReadOptions;
use crate::ttl::Times;

/// A column family: a key space of its own, with its own options, memtables and tables. Families share the log, so a
/// [`Batch`](crate::Batch) over several of them is atomic.
///
/// A handle carries its database: cheap to clone, usable from any thread. After [`Db::close`](crate::Db::close), or
/// once the family is dropped, its calls return errors of kind `Closed`.
///
/// # Errors
/// Reads: `Corruption` or `Io`: a table could not be read; `Closed`.
///
/// Writes: `InvalidArgument`: the key or value is too large ([`limits`](crate::limits)); `Closed`, `ReadOnly`: the
/// database takes no writes, and the message says why; `NoSpace`: the disk is full; `Io`: the log failed, and the
/// database takes no more writes. After an error nothing was written.
///
/// # Cost
/// A write copies key and value to the log and the memtable, some microseconds, and waits for the disk only with
/// [`sync`](crate::WriteOptions::sync). A read of what is in memory takes about a microsecond; else it reads a block of
/// one table, rarely of more.
#[derive(Clone)]
pub struct Family {
    pub(super) inner: Arc<EngineFamily>,
    /// If values have stamps.
    pub(super) times: Option<Times>,
    /// Last: dropping it may close the database.
    pub(super) shared: Arc<Shared>,
}

impl Family {
    pub(super) fn new(shared: Arc<Shared>, inner: Arc<EngineFamily>) -> Family {
        let times = Times::of(shared.database.vfs(), &inner.options());
        Family { inner, times, shared }
    }

    /// A value or operand as it is stored.
    pub(super) fn stored<'a>(&self, value: &'a [u8]) -> Cow<'a, [u8]> {
        Times::stored(self.times.as_ref(), value)
    }

    /// A value that was looked up, as the caller wrote it.
    #[inline]
    pub(super) fn shown(&self, found: Option<Pinned>) -> Result<Option<Pinned>> {
        match (&self.times, found) {
            (Some(times), Some(value)) => times.shown(value),
            (_, found) => Ok(found),
        }
    }

    /// The family's name.
    pub fn name(&self) -> &str {
        self.inner.name()
    }

    /// The database of the family.
    pub fn db(&self) -> Db {
        Db::of(self.shared.clone())
    }

    pub(super) fn order(&self) -> &UserOrder {
        &self.inner.order().user
    }

    /// Tells a write to a dropped family as such.
    #[inline]
    fn told(&self, written: Result<()>) -> Result<()> {
        written.map_err(|error| self.inner.check_live().err().unwrap_or(error))
    }

    fn write_options(&self) -> &EngineWriteOptions {
        &self.shared.write
    }
}

/// Writes.
impl Family {
    /// Sets the value of a key. Errors and cost as of [`Family`].
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.told(self.shared.database.put(
            &self.inner,
            key.as_ref(),
            &self.stored(value.as_ref()),
            self.write_options(),
        ))
    }

    /// As [`put`](Self::put), with options.
    pub fn put_with(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.told(self.shared.database.put(&self.inner, key.as_ref(), &self.stored(value.as_ref()), &options.0))
    }

    /// Deletes a key; no error where there is none. Errors and cost as of [`Family`].
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.told(self.shared.database.delete(&self.inner, key.as_ref(), self.write_options()))
    }

    /// As [`delete`](Self::delete), with options.
    pub fn delete_with(&self, key: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.told(self.shared.database.delete(&self.inner, key.as_ref(), &options.0))
    }

    /// Deletes a key put at most once since its last deletion. Cheaper than [`delete`](Self::delete): value and deletion
    /// vanish as soon as they meet. For any other key the result is undefined.
    pub fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.told(self.shared.database.single_delete(&self.inner, key.as_ref(), self.write_options()))
    }

    /// Deletes all keys from `range.start` up to, not including, `range.end`: one entry, whatever the number of keys.
    ///
    /// # Errors
    /// `InvalidArgument`: the start is behind the end. Else as of [`Family`].
    pub fn delete_range<K: AsRef<[u8]>>(&self, range: Range<K>) -> Result<()> {
        let (start, end) = (range.start.as_ref(), range.end.as_ref());
        self.told(self.shared.database.delete_range(&self.inner, start, end, self.write_options()))
    }

    /// Adds an operand, which the family's merge operator combines with the value when the key is read or compacted:
    /// an update without a read.
    ///
    /// # Errors
    /// `InvalidArgument`: the family has no merge operator
    /// ([`FamilyOptions::merge_operator`](crate::FamilyOptions::merge_operator)). Else as of [`Family`].
    pub fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.told(self.shared.database.merge(
            &self.inner,
            key.as_ref(),
            &self.stored(operand.as_ref()),
            self.write_options(),
        ))
    }

    /// As [`merge`](Self::merge), with options.
    pub fn merge_with(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        self.told(self.shared.database.merge(&self.inner, key.as_ref(), &self.stored(operand.as_ref()), &options.0))
    }
}

/// Reads.
impl Family {
    /// The value of a key, or `None`. A value from a table is not copied: it keeps its block in memory while it lives.
    /// Errors and cost as of [`Family`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Pinned>> {
        self.shown(self.shared.database.get(&self.inner, key.as_ref(), &EngineReadOptions::default())?)
    }

    /// As [`get`](Self::get), with options.
    pub fn get_with(&self, key: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Option<Pinned>> {
        self.shown(self.shared.database.get(&self.inner, key.as_ref(), &options.0)?)
    }

    /// Whether the key has a value. As costly as [`get`](Self::get).
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.get(key).map(|value| value.is_some())
    }

    /// The values of many keys at one instant, in the order asked for: cheaper than as many calls of
    /// [`get`](Self::get).
    ///
    /// # Errors
    /// The first failure; as of [`Family`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Pinned>>> {
        self.multi_get_with(keys, &ReadOptions::new())
    }

    /// As [`multi_get`](Self::multi_get), with options.
    pub fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
        options: &ReadOptions,
    ) -> Result<Vec<Option<Pinned>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let found = self.shared.database.multi_get(&self.inner, &keys, &options.0)?;
        found.into_iter().map(|value| self.shown(value?)).collect()
    }

    /// All entries, in key order. See [`Iter`].
    pub fn iter(&self) -> Iter {
        Iter::new(self, .., EngineReadOptions::default())
    }

    /// As [`iter`](Self::iter), with options.
    pub fn iter_with(&self, options: &ReadOptions) -> Iter {
        Iter::new(self, .., options.0.clone())
    }

    /// The entries of a range, in key order. See [`KeyRange`] and [`Iter`].
    pub fn range(&self, range: impl KeyRange) -> Iter {
        Iter::new(self, range, EngineReadOptions::default())
    }

    /// As [`range`](Self::range), with options.
    pub fn range_with(&self, range: impl KeyRange, options: &ReadOptions) -> Iter {
        Iter::new(self, range, options.0.clone())
    }

    /// The entries whose keys begin with `prefix`, in key order. See [`Iter`]. With a comparator of your own the first
    /// item is an error, `Unsupported`: such keys need not be neighbours.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        Iter::over_prefix(self, prefix.as_ref(), EngineReadOptions::default())
    }

    /// As [`prefix`](Self::prefix), with options.
    pub fn prefix_with(&self, prefix: impl AsRef<[u8]>, options: &ReadOptions) -> Iter {
        Iter::over_prefix(self, prefix.as_ref(), options.0.clone())
    }

    /// A cursor over a range; `..` is the whole family.
    ///
    /// # Errors
    /// As of [`Family`].
    pub fn cursor(&self, range: impl KeyRange) -> Result<Cursor> {
        Cursor::new(self, range, EngineReadOptions::default())
    }

    /// As [`cursor`](Self::cursor), with options.
    pub fn cursor_with(&self, range: impl KeyRange, options: &ReadOptions) -> Result<Cursor> {
        Cursor::new(self, range, options.0.clone())
    }

    /// The first entry. Errors as of [`Family`].
    pub fn first(&self) -> Result<Option<(Pinned, Pinned)>> {
        self.iter().next().transpose()
    }

    /// The last entry. Errors as of [`Family`].
    pub fn last(&self) -> Result<Option<(Pinned, Pinned)>> {
        self.iter().next_back().transpose()
    }
}

/// So that batches take handles of either kind, [`Family`] and `AsyncFamily`.
impl AsRef<Family> for Family {
    fn as_ref(&self) -> &Family {
        self
    }
}

impl PartialEq for Family {
    /// Whether both are handles of one family.
    fn eq(&self, other: &Family) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}

impl Eq for Family {}

impl fmt::Debug for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Family").field("name", &self.name()).field("db", &self.shared.database.path()).finish()
    }
}
