//! A column family's handle for a runtime.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use base::{ErrorKind, Pinned, Result};
use tokio::task::coop::consume_budget;

use crate::api::family::Family;
use crate::api::options::{CompactOptions, ReadOptions, WriteOptions};
use crate::api::range::KeyRange;
use crate::api::tokio::Inner;
use crate::api::tokio::db::AsyncDb;
use crate::api::tokio::iter::AsyncIter;
use crate::api::tokio::pool::Lane;
use crate::cursor::options::ReadTier;

/// A column family of an [`AsyncDb`]: the calls of [`Family`], without blocking the runtime. Cheap to clone.
///
/// Where calls run, what a dropped future means, and when they panic: [`AsyncDb`]. Errors are those of [`Family`].
#[derive(Clone)]
pub struct AsyncFamily {
    family: Family,
    /// Last: dropping it may close the database.
    pub(super) inner: Arc<Inner>,
}

impl AsyncFamily {
    pub(super) fn new(inner: &Arc<Inner>, family: Family) -> AsyncFamily {
        AsyncFamily { family, inner: inner.clone() }
    }

    /// The same family with calls that block: for [`AsyncDb::run`].
    pub fn family(&self) -> &Family {
        &self.family
    }

    /// The family's name.
    pub fn name(&self) -> &str {
        self.family.name()
    }

    /// The database of the family.
    pub fn db(&self) -> AsyncDb {
        AsyncDb::new(self.inner.clone())
    }

    pub(super) async fn run<T, F>(&self, lane: Lane, call: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Family) -> Result<T> + Send + 'static,
    {
        let family = self.family.clone();
        self.inner.pool.run(lane, move || call(&family)).await
    }
}

/// Writes: on the caller, unless they would wait.
impl AsyncFamily {
    /// As [`Family::put`].
    pub async fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = self.inner.db().batch();
        batch.put(&self.family, key, value);
        self.inner.commit(batch, None).await
    }

    /// As [`Family::put_with`].
    pub async fn put_with(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        let mut batch = self.inner.db().batch();
        batch.put(&self.family, key, value);
        self.inner.commit(batch, Some(options.0)).await
    }

    /// As [`Family::delete`].
    pub async fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = self.inner.db().batch();
        batch.delete(&self.family, key);
        self.inner.commit(batch, None).await
    }

    /// As [`Family::delete_with`].
    pub async fn delete_with(&self, key: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()> {
        let mut batch = self.inner.db().batch();
        batch.delete(&self.family, key);
        self.inner.commit(batch, Some(options.0)).await
    }

    /// As [`Family::single_delete`].
    pub async fn single_delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = self.inner.db().batch();
        batch.single_delete(&self.family, key);
        self.inner.commit(batch, None).await
    }

    /// As [`Family::delete_range`].
    pub async fn delete_range<K: AsRef<[u8]>>(&self, range: Range<K>) -> Result<()> {
        let mut batch = self.inner.db().batch();
        batch.delete_range(&self.family, range);
        self.inner.commit(batch, None).await
    }

    /// As [`Family::merge`].
    pub async fn merge(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = self.inner.db().batch();
        batch.merge(&self.family, key, operand);
        self.inner.commit(batch, None).await
    }

    /// As [`Family::merge_with`].
    pub async fn merge_with(
        &self,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        options: &WriteOptions,
    ) -> Result<()> {
        let mut batch = self.inner.db().batch();
        batch.merge(&self.family, key, operand);
        self.inner.commit(batch, Some(options.0)).await
    }
}

/// Most keys of a [`multi_get`](AsyncFamily::multi_get) tried on the caller. They take some 50 us in memory, as long as a
/// task may keep its thread from others.
const KEYS_MAX: usize = 64;

/// Lookups: on the caller if memory has the answer, else on a blocking thread. Other reads run there at once. Iterators
/// begin on the caller, which costs microseconds.
impl AsyncFamily {
    /// The answer of a lookup if it is in memory, and needs no code of the user's but comparators.
    async fn in_memory<T>(
        &self,
        options: &ReadOptions,
        look_up: impl FnOnce(&Family, &ReadOptions) -> Result<T>,
    ) -> Option<Result<T>> {
        // A loop of reads lets other tasks run.
        consume_budget().await;
        let mut quick = options.clone();
        (quick.0.read_tier, quick.0.merges) = (ReadTier::BlockCache, false);
        match look_up(&self.family, &quick) {
            Err(error) if error.kind() == ErrorKind::Incomplete => None,
            answer => Some(answer),
        }
    }

    /// As [`Family::get`].
    pub async fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Pinned>> {
        self.get_with(key, &ReadOptions::new()).await
    }

    /// As [`Family::get_with`].
    pub async fn get_with(&self, key: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Option<Pinned>> {
        let key = key.as_ref();
        if let Some(found) = self.in_memory(options, |family, options| family.get_with(key, options)).await {
            return found;
        }
        let (key, options) = (key.to_vec(), options.clone());
        self.run(Lane::Read, move |family| family.get_with(key, &options)).await
    }

    /// As [`Family::contains_key`].
    pub async fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.get(key).await.map(|value| value.is_some())
    }

    /// As [`Family::multi_get`]: one hop to a blocking thread for all keys, if any.
    pub async fn multi_get<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Pinned>>> {
        self.multi_get_with(keys, &ReadOptions::new()).await
    }

    /// As [`Family::multi_get_with`].
    pub async fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = K>,
        options: &ReadOptions,
    ) -> Result<Vec<Option<Pinned>>> {
        let keys: Vec<Vec<u8>> = keys.into_iter().map(|key| key.as_ref().to_vec()).collect();
        if keys.len() <= KEYS_MAX
            && let Some(found) = self.in_memory(options, |family, options| family.multi_get_with(&keys, options)).await
        {
            return found;
        }
        let options = options.clone();
        self.run(Lane::Read, move |family| family.multi_get_with(keys, &options)).await
    }

    /// As [`Family::iter`]. See [`AsyncIter`].
    pub fn iter(&self) -> AsyncIter {
        AsyncIter::new(&self.inner, self.family.iter())
    }

    /// As [`Family::iter_with`]. See [`AsyncIter`].
    pub fn iter_with(&self, options: &ReadOptions) -> AsyncIter {
        AsyncIter::new(&self.inner, self.family.iter_with(options))
    }

    /// As [`Family::range`]. See [`AsyncIter`].
    pub fn range(&self, range: impl KeyRange) -> AsyncIter {
        AsyncIter::new(&self.inner, self.family.range(range))
    }

    /// As [`Family::range_with`]. See [`AsyncIter`].
    pub fn range_with(&self, range: impl KeyRange, options: &ReadOptions) -> AsyncIter {
        AsyncIter::new(&self.inner, self.family.range_with(range, options))
    }

    /// As [`Family::prefix`]. See [`AsyncIter`].
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> AsyncIter {
        AsyncIter::new(&self.inner, self.family.prefix(prefix))
    }

    /// As [`Family::prefix_with`]. See [`AsyncIter`].
    pub fn prefix_with(&self, prefix: impl AsRef<[u8]>, options: &ReadOptions) -> AsyncIter {
        AsyncIter::new(&self.inner, self.family.prefix_with(prefix, options))
    }

    /// As [`Family::first`].
    pub async fn first(&self) -> Result<Option<(Pinned, Pinned)>> {
        self.run(Lane::Read, Family::first).await
    }

    /// As [`Family::last`].
    pub async fn last(&self) -> Result<Option<(Pinned, Pinned)>> {
        self.run(Lane::Read, Family::last).await
    }
}

/// Flushing and compacting, on a blocking thread.
impl AsyncFamily {
    /// As [`Family::flush`].
    pub async fn flush(&self) -> Result<()> {
        self.run(Lane::Other, Family::flush).await
    }

    /// As [`Family::compact`].
    pub async fn compact(&self, range: impl KeyRange) -> Result<()> {
        self.compact_with(range, &CompactOptions::new()).await
    }

    /// As [`Family::compact_with`].
    pub async fn compact_with(&self, range: impl KeyRange, options: &CompactOptions) -> Result<()> {
        let (range, options) = (range.into_bounds(), options.clone());
        self.run(Lane::Other, move |family| family.compact_with(range, &options)).await
    }
}

impl AsRef<Family> for AsyncFamily {
    fn as_ref(&self) -> &Family {
        &self.family
    }
}

impl PartialEq for AsyncFamily {
    /// Whether both are handles of one family.
    fn eq(&self, other: &AsyncFamily) -> bool {
        self.family == other.family
    }
}

impl Eq for AsyncFamily {}

impl fmt::Debug for AsyncFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.family, f)
    }
}
