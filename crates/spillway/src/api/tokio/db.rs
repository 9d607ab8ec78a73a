//! The database's handle for a runtime.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use base::{Pinned, Result};

use crate::api::batch::Batch;
use crate::api::db::Db;
use crate::api::options::{FamilyOptions, Options, ReadOptions, WriteOptions};
use crate::api::range::KeyRange;
use crate::api::snapshot::Snapshot;
use crate::api::tokio::Inner;
use crate::api::tokio::builder::AsyncBuilder;
use crate::api::tokio::family::AsyncFamily;
use crate::api::tokio::iter::AsyncIter;
use crate::api::tokio::pool::{self, Lane};

/// A [`Db`] for programs on tokio: its calls do not block the runtime. Cheap to clone. With the feature `tokio`.
///
/// The calls without a family are those of the default family, [`default_family`](Self::default_family).
///
/// # Where calls run
/// A write takes microseconds and runs on the caller. It moves to a blocking thread if it would have to wait for
/// flushes, compactions or an ingest; so does a synced or flushed one, and a batch of over 64 changes or 64 KiB. A lookup
/// of at most 64 keys runs on the caller if memtables and block cache have the answer, and moves if a file must be read
/// or a merge operator run.
/// All else runs on blocking threads: iterators, and what may take long. A hop there costs 10 to 20 microseconds: prefer [`multi_get`](Self::multi_get) to many gets, and [`run`](Self::run) for several steps in one.
///
/// A database takes a bounded number of blocking threads, [`AsyncBuilder::blocking_calls`]; more calls wait for their
/// turn. Where the system gives the runtime no thread, such a call runs as a task, and holds up the tasks beside it.
///
/// # Dropped futures
/// Nothing happens before a future is first polled. A call that has begun on a blocking thread runs to its end: a
/// dropped write is done whole or not at all, and one that still waited for its turn is not done. The thread counts as
/// taken until then. Iterators lose no entries ([`AsyncIter`]); dropped ingests are cancelled.
///
/// # Closing
/// [`close`](Self::close) waits for it, and tells of errors. Without it the last handle closes the database when it is
/// dropped, in the background, and the directory is free a moment later.
///
/// # Errors
/// Those of [`Db`] and [`Family`](crate::Family). `Closed`, too, if the runtime ended before the call began.
///
/// # Panics
/// Calls panic outside a tokio runtime.
///
/// ```
/// #[tokio::main]
/// async fn main() -> spillway::Result<()> {
///     # let dir = tempfile::tempdir().expect("a new directory");
///     # let dir = dir.path().join("db");
///     let db = spillway::AsyncDb::open(dir).await?;
///     let users = db.family("users").await?;
///     users.put("7", "Ada").await?;
///
///     let mut batch = db.batch();
///     batch.put(&users, "8", "Grace").put(db.default_family(), "users", "2");
///     db.commit(batch).await?; // both, or neither
///
///     let mut entries = users.iter();
///     while let Some(entry) = entries.next().await {
///         let (key, value) = entry?;
///         println!("{} = {}", key.escape_ascii(), value.escape_ascii());
///     }
///     db.close().await
/// }
/// ```
#[derive(Clone)]
pub struct AsyncDb {
    default: AsyncFamily,
}

/// Opening, closing, families.
impl AsyncDb {
    /// As [`Db::open`].
    pub async fn open(dir: impl AsRef<Path>) -> Result<AsyncDb> {
        AsyncDb::builder().open(dir).await
    }

    /// As [`Db::open_with`].
    pub async fn open_with(dir: impl AsRef<Path>, options: &Options) -> Result<AsyncDb> {
        AsyncDb::builder().options(options.clone()).open(dir).await
    }

    /// Opens a database with settings for the runtime.
    pub fn builder() -> AsyncBuilder {
        AsyncBuilder::default()
    }

    pub(super) fn new(inner: Arc<Inner>) -> AsyncDb {
        let family = inner.db().default_family().clone();
        AsyncDb { default: AsyncFamily::new(&inner, family) }
    }

    /// The same database with calls that block: for those that only look at memory ([`Db::path`], [`Db::stalls`]).
    pub fn db(&self) -> &Db {
        self.inner().db()
    }

    pub(super) fn inner(&self) -> &Arc<Inner> {
        &self.default.inner
    }

    /// As [`Db::close`]. Does not wait for a turn: calls that wait for theirs, or for room, end with `Closed`.
    pub async fn close(&self) -> Result<()> {
        let db = self.db().clone();
        pool::run(move || db.close()).await
    }

    /// As [`Db::destroy`].
    pub async fn destroy(dir: impl AsRef<Path>) -> Result<()> {
        let dir = dir.as_ref().to_owned();
        pool::run(move || Db::destroy(dir)).await
    }

    /// The family that every database has, under the name `default`.
    pub fn default_family(&self) -> &AsyncFamily {
        &self.default
    }

    /// As [`Db::family`].
    pub async fn family(&self, name: impl AsRef<str>) -> Result<AsyncFamily> {
        self.family_with(name, &FamilyOptions::new()).await
    }

    /// As [`Db::family_with`].
    pub async fn family_with(&self, name: impl AsRef<str>, options: &FamilyOptions) -> Result<AsyncFamily> {
        if let Some(family) = self.find_family(name.as_ref()) {
            return Ok(family);
        }
        let (name, options) = (name.as_ref().to_owned(), options.clone());
        let family = self.run(move |db| db.family_with(name, &options)).await?;
        Ok(AsyncFamily::new(self.inner(), family))
    }

    /// As [`Db::find_family`]; looks at memory only.
    pub fn find_family(&self, name: impl AsRef<str>) -> Option<AsyncFamily> {
        self.db().find_family(name).map(|family| AsyncFamily::new(self.inner(), family))
    }

    /// As [`Db::drop_family`].
    pub async fn drop_family(&self, family: &AsyncFamily) -> Result<()> {
        let family = family.family().clone();
        self.run(move |db| db.drop_family(&family)).await
    }
}

/// Calls over several families, and of the whole database.
impl AsyncDb {
    /// A batch of changes, to be given to [`commit`](Self::commit): its own `commit` may block. While it lives it keeps
    /// the database open.
    pub fn batch(&self) -> Batch {
        self.db().batch()
    }

    /// As [`Batch::commit`].
    pub async fn commit(&self, batch: Batch) -> Result<()> {
        self.inner().commit(batch, None).await
    }

    /// As [`Batch::commit_with`].
    pub async fn commit_with(&self, batch: Batch, options: &WriteOptions) -> Result<()> {
        self.inner().commit(batch, Some(options.0)).await
    }

    /// A snapshot of the present state of all families, to be read through [`ReadOptions::snapshot`]. Costs
    /// microseconds. While it lives it keeps the database open.
    pub fn snapshot(&self) -> Snapshot {
        self.db().snapshot()
    }

    /// Runs a call of yours on a blocking thread, where it may call all of [`Db`], when it has its turn.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> spillway::Result<()> {
    /// # let db = spillway::AsyncDb::builder().options(spillway::Options::in_memory()).open("/db").await?;
    /// # db.put("key", "value").await?;
    /// let bytes = db.run(|db| db.iter().try_fold(0, |bytes, entry| Ok(bytes + entry?.1.len()))).await?;
    /// assert_eq!(bytes, 5);
    /// # db.close().await
    /// # }
    /// ```
    ///
    /// # Errors
    /// The call's. `Closed`: the runtime ended before it began.
    pub async fn run<T, F>(&self, call: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Db) -> Result<T> + Send + 'static,
    {
        let db = self.db().clone();
        self.inner().pool.run(Lane::Other, move || call(&db)).await
    }

    /// As [`Db::flush`].
    pub async fn flush(&self) -> Result<()> {
        self.run(Db::flush).await
    }

    /// As [`Db::sync`].
    pub async fn sync(&self) -> Result<()> {
        self.run(Db::sync).await
    }

    /// As [`Db::wait_for_compaction`].
    pub async fn wait_for_compaction(&self) -> Result<()> {
        self.run(Db::wait_for_compaction).await
    }

    /// As [`Db::checkpoint`].
    pub async fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        let dir = dir.as_ref().to_owned();
        self.run(move |db| db.checkpoint(dir)).await
    }
}

/// Calls of the default family.
macro_rules! of_default_family {
    ($( async fn $name:ident $(<$K:ident: $Bound:path>)? ($($arg:ident: $type:ty),*) -> $Return:ty; )+) => {
        /// Calls of the default family.
        impl AsyncDb { $(
            #[doc = concat!("[`AsyncFamily::", stringify!($name), "`] of the default family.")]
            pub async fn $name $(<$K: $Bound>)? (&self $(, $arg: $type)*) -> $Return {
                self.default.$name($($arg),*).await
            }
        )+ }
    };
}

of_default_family! {
    async fn put(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()>;
    async fn put_with(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()>;
    async fn delete(key: impl AsRef<[u8]>) -> Result<()>;
    async fn delete_with(key: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()>;
    async fn single_delete(key: impl AsRef<[u8]>) -> Result<()>;
    async fn delete_range<K: AsRef<[u8]>>(range: Range<K>) -> Result<()>;
    async fn merge(key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()>;
    async fn merge_with(key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()>;
    async fn get(key: impl AsRef<[u8]>) -> Result<Option<Pinned>>;
    async fn get_with(key: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Option<Pinned>>;
    async fn contains_key(key: impl AsRef<[u8]>) -> Result<bool>;
    async fn multi_get<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Pinned>>>;
    async fn first() -> Result<Option<(Pinned, Pinned)>>;
    async fn last() -> Result<Option<(Pinned, Pinned)>>;
    async fn compact(range: impl KeyRange) -> Result<()>;
}

/// Iterators over the default family.
impl AsyncDb {
    /// [`AsyncFamily::iter`] of the default family.
    pub fn iter(&self) -> AsyncIter {
        self.default.iter()
    }

    /// [`AsyncFamily::range`] of the default family.
    pub fn range(&self, range: impl KeyRange) -> AsyncIter {
        self.default.range(range)
    }

    /// [`AsyncFamily::prefix`] of the default family.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> AsyncIter {
        self.default.prefix(prefix)
    }
}

impl fmt::Debug for AsyncDb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncDb").field("path", &self.db().path()).finish_non_exhaustive()
    }
}
