//! The database's handle.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use base::{ErrorKind, Pinned, Result};

use crate::api::Shared;
use crate::api::batch::Batch;
use crate::api::cursor::Cursor;
use crate::api::family::Family;
use crate::api::iter::Iter;
use crate::api::options::{FamilyOptions, Options, ReadOptions, TransactionOptions, WriteOptions};
use crate::api::range::KeyRange;
use crate::api::snapshot::Snapshot;
use crate::api::transaction::Transaction;
use crate::cursor::options::ReadOptions as EngineReadOptions;
use crate::database::handle::Database;

/// An open database. A handle: cheap to clone, usable from any thread.
///
/// The calls without a family are those of the default family, [`default_family`](Self::default_family).
///
/// The database closes when the last of its handles is dropped: `Db`, [`Family`], [`Snapshot`], [`Batch`], [`Transaction`],
/// [`Iter`] and [`Cursor`] each are one. [`close`](Self::close) does so at once, and tells of errors. Either way nothing
/// acknowledged is lost, nor when the process is killed.
#[derive(Clone)]
pub struct Db {
    default: Family,
}

/// Opening, closing, families.
impl Db {
    /// Opens the database in a directory, or creates it there, with the options that it has stored.
    /// All its families are opened.
    ///
    /// # Errors
    /// As of [`open_with`](Self::open_with).
    pub fn open(dir: impl AsRef<Path>) -> Result<Db> {
        Db::open_with(dir, &Options::new())
    }

    /// As [`open`](Self::open), with options: those given count, all others are as stored ([`Options`]). Creates the
    /// database where there is none, unless [`Options::create_if_missing`] says otherwise.
    ///
    /// # Errors
    /// `InvalidArgument`: an option is out of bounds, or does not fit the database. `Busy`: it is open already, here or
    /// in another process. `Corruption`: a file is damaged or missing, and the error names it. `Unsupported`: a family
    /// has a merge operator or a prefix extractor of the program's own, and it was not given; or RocksDB stored options
    /// that cannot be honoured. `Io`, `NoSpace`. The path of an error is the file's that it concerns, such as `LOCK`.
    pub fn open_with(dir: impl AsRef<Path>, options: &Options) -> Result<Db> {
        let (open, write) = options.resolve(dir.as_ref())?;
        let database = Database::open(dir, &open)?;
        Ok(Db::of(Shared::new(database, write)?))
    }

    pub(super) fn of(shared: Arc<Shared>) -> Db {
        let default = shared.database.default_family();
        Db { default: Family::new(shared, default) }
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.default.shared
    }

    /// The engine's handle, for the workspace's own crates.
    #[doc(hidden)]
    pub fn engine(&self) -> &Database {
        &self.shared().database
    }

    /// Closes the database and releases the directory at once, whatever handles there are. Their later calls, and the
    /// next step of open iterators, return errors of kind `Closed`. A second call does nothing.
    ///
    /// Waits for running flushes and compactions to stop. What only the log holds is not flushed: the next open replays
    /// it. Writes without the log ([`WriteOptions::disable_wal`]) are flushed.
    ///
    /// # Errors
    /// The first failure (`Io`, `NoSpace`); the database is closed all the same.
    pub fn close(&self) -> Result<()> {
        self.shared().database.close()
    }

    /// Deletes the database in a directory, and the directory if nothing else is in it. No error if there is none.
    ///
    /// # Errors
    /// `Busy`: it is open. `Io`.
    pub fn destroy(dir: impl AsRef<Path>) -> Result<()> {
        Db::destroy_with(dir, &Options::new())
    }

    /// As [`destroy`](Self::destroy), with the options' directories: `wal_dir` and `db_log_dir`.
    ///
    /// # Errors
    /// As of [`destroy`](Self::destroy).
    pub fn destroy_with(dir: impl AsRef<Path>, options: &Options) -> Result<()> {
        // Options that cannot be read are no reason to keep a database.
        let open = options.resolve_or_given(dir.as_ref())?;
        Database::destroy_by(dir, &open.db, &open.vfs)
    }

    /// The database's directory.
    pub fn path(&self) -> &Path {
        self.shared().database.path()
    }

    /// The family that every database has, under the name `default`.
    pub fn default_family(&self) -> &Family {
        &self.default
    }

    /// The family of a name; created with default options if there is none.
    ///
    /// # Errors
    /// `InvalidArgument`: the name is empty. If it has to be created: `ReadOnly`, `Closed`, `Io`, `NoSpace`.
    pub fn family(&self, name: impl AsRef<str>) -> Result<Family> {
        self.family_with(name, &FamilyOptions::new())
    }

    /// As [`family`](Self::family); created with these options. A family that exists takes those that can change while the
    /// database is open.
    ///
    /// # Errors
    /// As of [`family`](Self::family). `InvalidArgument`: an option is out of bounds; or the family exists, and has another
    /// value of an option that is fixed: give it by [`Options::family`] at the open.
    pub fn family_with(&self, name: impl AsRef<str>, options: &FamilyOptions) -> Result<Family> {
        let (name, database) = (name.as_ref(), &self.shared().database);
        if let Some(family) = self.find_family(name) {
            return family.take(options);
        }
        match database.create_family(name, options.over(Default::default())?) {
            Ok(inner) => Ok(Family::new(self.shared().clone(), inner)),
            // Another thread may have been first.
            Err(error) if error.kind() == ErrorKind::InvalidArgument => match self.find_family(name) {
                Some(family) => family.take(options),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// The family of a name, if there is one.
    pub fn find_family(&self, name: impl AsRef<str>) -> Option<Family> {
        let inner = self.shared().database.family(name.as_ref())?;
        Some(Family::new(self.shared().clone(), inner))
    }

    /// All families, the default one first.
    pub fn families(&self) -> Vec<Family> {
        let handle = |inner| Family::new(self.shared().clone(), inner);
        self.shared().database.families().into_iter().map(handle).collect()
    }

    /// Drops a family with all its entries. Open iterators keep reading; later calls through its handles return errors
    /// of kind `Closed`. Its files go when nothing uses them.
    ///
    /// # Errors
    /// `InvalidArgument`: it is the default family, or of another database. `Closed`: it was dropped before. `ReadOnly`.
    pub fn drop_family(&self, family: &Family) -> Result<()> {
        self.shared().database.drop_family(&family.inner)
    }

    /// A batch of changes, committed together.
    pub fn batch(&self) -> Batch {
        Batch::new(self.shared().clone())
    }

    /// A batch of bytes in RocksDB's layout, such as [`Update::as_bytes`](crate::Update::as_bytes) of another database. It
    /// names families by their ids: those of this database with the same ids are changed.
    ///
    /// # Errors
    /// `Corruption`: the bytes are no batch. `Unsupported`: a record of a kind unknown to this version.
    pub fn batch_from(&self, bytes: impl Into<Vec<u8>>) -> Result<Batch> {
        Batch::of_bytes(self.shared().clone(), bytes.into())
    }

    /// Begins a transaction: changes that are committed together, if what it read has not changed meanwhile.
    pub fn transaction(&self) -> Transaction {
        self.transaction_with(&TransactionOptions::new())
    }

    /// As [`transaction`](Self::transaction), with options.
    pub fn transaction_with(&self, options: &TransactionOptions) -> Transaction {
        Transaction::new(self.shared().clone(), options)
    }

    /// The prepared transactions without a handle, in the order of their prepares: found in the log by the open, or
    /// dropped since. Each is handed out once, with locks on its keys. Dropped without a commit or a rollback, it is
    /// there again.
    pub fn prepared_transactions(&self) -> Vec<Transaction> {
        Transaction::prepared(self.shared())
    }

    /// A snapshot of the present state of all families.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(self.shared().clone())
    }

    /// The values of keys of several families at one instant, in the order asked for.
    ///
    /// # Errors
    /// The first failure. `InvalidArgument`: a family is of another database; else as of [`Family`].
    pub fn multi_get_across<'a, K: AsRef<[u8]>>(
        &self,
        keys: impl IntoIterator<Item = (&'a Family, K)>,
    ) -> Result<Vec<Option<Pinned>>> {
        let database = &self.shared().database;
        let keys: Vec<(&Family, K)> = keys.into_iter().collect();
        let asked: Vec<_> = keys.iter().map(|(family, key)| (&*family.inner, key.as_ref())).collect();
        let found = database.multi_get_across(&asked, &EngineReadOptions::default())?;
        keys.iter().zip(found).map(|((family, _), value)| family.shown(value?)).collect()
    }
}

/// Defines calls of the default family.
macro_rules! of_default_family {
    ($( fn $name:ident $(<$K:ident: $Bound:path>)? ($($arg:ident : $type:ty),*) -> $Return:ty; )+) => {
        /// Calls of the default family.
        impl Db { $(
            #[doc = concat!("[`Family::", stringify!($name), "`] of the default family.")]
            pub fn $name $(<$K: $Bound>)? (&self $(, $arg: $type)*) -> $Return {
                self.default.$name($($arg),*)
            }
        )+ }
    };
}

of_default_family! {
    fn put(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()>;
    fn put_with(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()>;
    fn delete(key: impl AsRef<[u8]>) -> Result<()>;
    fn delete_with(key: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()>;
    fn single_delete(key: impl AsRef<[u8]>) -> Result<()>;
    fn delete_range<K: AsRef<[u8]>>(range: Range<K>) -> Result<()>;
    fn merge(key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()>;
    fn merge_with(key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>, options: &WriteOptions) -> Result<()>;
    fn get(key: impl AsRef<[u8]>) -> Result<Option<Pinned>>;
    fn get_with(key: impl AsRef<[u8]>, options: &ReadOptions) -> Result<Option<Pinned>>;
    fn contains_key(key: impl AsRef<[u8]>) -> Result<bool>;
    fn multi_get<K: AsRef<[u8]>>(keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Pinned>>>;
    fn iter() -> Iter;
    fn iter_with(options: &ReadOptions) -> Iter;
    fn range(range: impl KeyRange) -> Iter;
    fn range_with(range: impl KeyRange, options: &ReadOptions) -> Iter;
    fn prefix(prefix: impl AsRef<[u8]>) -> Iter;
    fn prefix_with(prefix: impl AsRef<[u8]>, options: &ReadOptions) -> Iter;
    fn cursor(range: impl KeyRange) -> Result<Cursor>;
    fn cursor_with(range: impl KeyRange, options: &ReadOptions) -> Result<Cursor>;
    fn first() -> Result<Option<(Pinned, Pinned)>>;
    fn last() -> Result<Option<(Pinned, Pinned)>>;
}

impl fmt::Debug for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").field("path", &self.path()).finish_non_exhaustive()
    }
}
