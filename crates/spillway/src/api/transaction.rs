//! Transactions: changes committed together, if what they depend on has not changed.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use base::{Pinned, Result, ValueKind};

use crate::api::Shared;
use crate::api::family::Family;
use crate::api::iter::Iter;
use crate::api::options::TransactionOptions;
use crate::api::range::KeyRange;
use crate::api::snapshot::Snapshot;
use crate::api::walk::Start;
use crate::batch::options::WriteOptions as EngineWriteOptions;
use crate::cursor::options::ReadOptions as EngineReadOptions;
use crate::transaction::locks::Mode;
use crate::transaction::{Change, Track, Transaction as EngineTransaction};

/// Changes of any families of one database, committed together: all of them or none, and only if no other write came
/// between.
///
/// A transaction *tracks* each key that it writes, and each that it reads by [`get_for_update`](Self::get_for_update). The
/// [`commit`](Self::commit) fails with [`Conflict`](crate::ErrorKind::Conflict) if one of them has changed since: run the
/// transaction again then. Until the commit nobody waits, and nobody else sees the changes; the transaction's own reads
/// do. A transaction that reads only by `get_for_update` is serializable. [`get`](Self::get) and iterators track nothing:
/// what they showed may have changed when the transaction commits.
///
/// With [`TransactionOptions::pessimistic`] it locks each tracked key instead: others who lock it wait, and the commit meets
/// no conflict. Locks last to the commit or the rollback. A wait that would never end is an error at once
/// ([`Deadlock`](crate::ErrorKind::Deadlock)), another one after a second ([`TimedOut`](crate::ErrorKind::TimedOut)): drop the
/// transaction then and run it again.
///
/// Changes are kept in memory. Dropped, a transaction changes nothing; a [prepared](Self::prepare) one stays prepared. One
/// of a few keys costs little more than a [`Batch`](crate::Batch); the commit looks tracked keys up in memory, if others
/// wrote meanwhile, and in a table only if a flush came between.
///
/// ```
/// # fn main() -> spillway::Result<()> {
/// # let db = spillway::Db::open_with("/db", &spillway::Options::in_memory())?;
/// use spillway::ErrorKind;
///
/// db.put("visits", "41")?;
/// let counter = db.default_family();
/// loop {
///     let mut transaction = db.transaction();
///     let visits = transaction.get_for_update(counter, "visits")?;
///     let visits = visits.and_then(|visits| String::from_utf8_lossy(&visits).parse().ok()).unwrap_or(0u64);
///     transaction.put(counter, "visits", (visits + 1).to_string())?;
///     match transaction.commit() {
///         Err(error) if error.kind() == ErrorKind::Conflict => continue, // another thread was first
///         done => break done?,
///     }
/// }
/// assert_eq!(db.get("visits")?.as_deref(), Some(b"42".as_slice()));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Of changes and reads: `InvalidArgument`: the family is of another database; `Closed`: it was dropped; `TimedOut`,
/// `Deadlock`, `Conflict`: a lock was not given, or the key has changed since the snapshot, both of pessimistic transactions;
/// of reads also as of [`Family`]. A change that is too large is told by the commit.
#[must_use = "a transaction does nothing until it is committed"]
pub struct Transaction {
    inner: EngineTransaction,
    write: EngineWriteOptions,
    /// Last: dropping it may close the database.
    shared: Arc<Shared>,
}

/// Changes.
impl Transaction {
    pub(super) fn new(shared: Arc<Shared>, options: &TransactionOptions) -> Transaction {
        let mut inner = match options.is_pessimistic {
            true => EngineTransaction::pessimistic(&shared.locks, options.locking).in_pool(&shared.prepared),
            false => EngineTransaction::default(),
        };
        if options.snapshot {
            inner.set_snapshot(&shared.database);
        }
        Transaction { inner, write: options.write.unwrap_or(shared.write), shared }
    }

    pub(super) fn prepared(shared: &Arc<Shared>) -> Vec<Transaction> {
        let all = shared.prepared.take_all().into_iter();
        all.map(|inner| Transaction { inner, write: shared.write, shared: shared.clone() }).collect()
    }

    /// Sets the value of a key.
    pub fn put(&mut self, family: &impl AsRef<Family>, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.put_by(family, key, value, Track::Tracked)
    }

    /// As [`put`](Self::put), of a key that others may change meanwhile.
    pub fn put_untracked(
        &mut self,
        family: &impl AsRef<Family>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.put_by(family, key, value, Track::Untracked)
    }

    fn put_by(
        &mut self,
        family: &impl AsRef<Family>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        track: Track,
    ) -> Result<()> {
        let family = family.as_ref();
        self.change(family, ValueKind::Value, key.as_ref(), &family.stored(value.as_ref()), track)
    }

    /// Deletes a key.
    pub fn delete(&mut self, family: &impl AsRef<Family>, key: impl AsRef<[u8]>) -> Result<()> {
        self.change(family.as_ref(), ValueKind::Deletion, key.as_ref(), &[], Track::Tracked)
    }

    /// As [`delete`](Self::delete), of a key that others may change meanwhile.
    pub fn delete_untracked(&mut self, family: &impl AsRef<Family>, key: impl AsRef<[u8]>) -> Result<()> {
        self.change(family.as_ref(), ValueKind::Deletion, key.as_ref(), &[], Track::Untracked)
    }

    /// See [`Family::single_delete`].
    pub fn single_delete(&mut self, family: &impl AsRef<Family>, key: impl AsRef<[u8]>) -> Result<()> {
        self.change(family.as_ref(), ValueKind::SingleDeletion, key.as_ref(), &[], Track::Tracked)
    }

    /// See [`Family::merge`]. A family without a merge operator is told by the commit.
    pub fn merge(
        &mut self,
        family: &impl AsRef<Family>,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.merge_by(family, key, operand, Track::Tracked)
    }

    /// As [`merge`](Self::merge), of a key that others may change meanwhile.
    pub fn merge_untracked(
        &mut self,
        family: &impl AsRef<Family>,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.merge_by(family, key, operand, Track::Untracked)
    }

    fn merge_by(
        &mut self,
        family: &impl AsRef<Family>,
        key: impl AsRef<[u8]>,
        operand: impl AsRef<[u8]>,
        track: Track,
    ) -> Result<()> {
        let family = family.as_ref();
        self.change(family, ValueKind::Merge, key.as_ref(), &family.stored(operand.as_ref()), track)
    }

    fn change(&mut self, family: &Family, kind: ValueKind, key: &[u8], value: &[u8], track: Track) -> Result<()> {
        self.inner.write(&self.shared.database, &family.inner, Change { kind, key, value }, track)
    }

    /// Number of changes, untracked ones too.
    pub fn len(&self) -> usize {
        self.inner.batch().read().batch().count() as usize
    }

    /// True without changes.
    pub fn is_empty(&self) -> bool {
        self.inner.batch().read().is_empty()
    }

    /// Sets a savepoint for [`rollback_to_savepoint`](Self::rollback_to_savepoint). Savepoints nest.
    pub fn savepoint(&mut self) {
        self.inner.set_savepoint();
    }

    /// Takes back what was done since the last savepoint, and removes it: changes, tracked keys, a new snapshot. False,
    /// and no change, if there is none.
    pub fn rollback_to_savepoint(&mut self) -> bool {
        self.inner.rollback_to_savepoint()
    }

    /// Removes the last savepoint; what was done since stays. False if there is none.
    pub fn pop_savepoint(&mut self) -> bool {
        self.inner.pop_savepoint()
    }

    /// Gives the transaction a name, for [`prepare`](Self::prepare). No two transactions of a database have the same.
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction is optimistic, or has a name; another has this one, or it is not 1 to 512 bytes
    /// long.
    pub fn set_name(&mut self, name: impl AsRef<[u8]>) -> Result<()> {
        self.inner.set_name(&self.shared.database, name.as_ref())
    }

    /// The name; empty if it was not given.
    pub fn name(&self) -> &[u8] {
        self.inner.name()
    }

    /// The first of two phases: logs the changes under the transaction's name. The [`commit`](Self::commit) then meets
    /// neither a conflict nor an expiry, and can come after a crash: see
    /// [`Db::prepared_transactions`](crate::Db::prepared_transactions). With
    /// [`sync`](crate::WriteOptions::sync) the prepare survives a power loss. Only the commit shows the changes to
    /// others. A prepared transaction takes no more changes, and outlives its handle.
    ///
    /// ```
    /// # fn main() -> spillway::Result<()> {
    /// # let db = spillway::Db::open_with("/db", &spillway::Options::in_memory())?;
    /// use spillway::{TransactionOptions, WriteOptions};
    ///
    /// let options = TransactionOptions::new().pessimistic(true).write_options(&WriteOptions::new().sync(true));
    /// let mut transfer = db.transaction_with(&options);
    /// transfer.put(db.default_family(), "balance", "17")?;
    /// transfer.set_name("transfer-1")?;
    /// transfer.prepare()?; // a crash from here on loses nothing
    /// drop(transfer);
    /// for transaction in db.prepared_transactions() {
    ///     // as the coordinator of the transfer has decided
    ///     if transaction.name() == b"transfer-1" { transaction.commit()? } else { transaction.rollback()? }
    /// }
    /// assert_eq!(db.get("balance")?.as_deref(), Some(b"17".as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction is optimistic, has no name, or is prepared. `Expired`: the locks are lost. Else as
    /// of [`commit`](Self::commit).
    pub fn prepare(&mut self) -> Result<()> {
        self.inner.prepare(&self.shared.database, &self.write)
    }

    /// Whether [`prepare`](Self::prepare) was called.
    pub fn is_prepared(&self) -> bool {
        self.inner.is_prepared()
    }

    /// Writes the changes if no tracked key has changed. One that only read is checked too.
    ///
    /// # Errors
    /// `Conflict`: a tracked key has changed; run the transaction again. `InvalidArgument`: a change is too large, or
    /// merges in a family without an operator. Else as of [`Family`]. Nothing was written; a prepared transaction is
    /// prepared still.
    pub fn commit(mut self) -> Result<()> {
        self.inner.commit(&self.shared.database, &self.write)
    }

    /// Forgets the changes; the same as dropping the transaction, unless it is prepared.
    ///
    /// # Errors
    /// Of a prepared transaction, as of a write of [`Family`]: it is prepared still. None of others.
    pub fn rollback(mut self) -> Result<()> {
        self.inner.rollback(&self.shared.database, &self.write)
    }
}

/// Reads. They show the transaction's changes over the state of its snapshot; without a snapshot, over the present state.
impl Transaction {
    fn options(&self) -> EngineReadOptions {
        EngineReadOptions { snapshot: self.inner.snapshot().cloned(), ..EngineReadOptions::default() }
    }

    /// The value of a key, which is not tracked.
    pub fn get(&self, family: &impl AsRef<Family>, key: impl AsRef<[u8]>) -> Result<Option<Pinned>> {
        let family = family.as_ref();
        family.shown(self.inner.get(&self.shared.database, &family.inner, key.as_ref(), &self.options())?)
    }

    /// The value of a key, which is tracked from now on: the commit fails if it changes. A key without a value is tracked
    /// too. A pessimistic transaction locks it: nobody else who locks can read it for an update.
    pub fn get_for_update(&mut self, family: &impl AsRef<Family>, key: impl AsRef<[u8]>) -> Result<Option<Pinned>> {
        self.get_and_track(family.as_ref(), key.as_ref(), Mode::Exclusive)
    }

    /// As [`get_for_update`](Self::get_for_update), but pessimistic transactions share the lock: others can read the key
    /// so, too, and none can change it. A later change of the key by this transaction waits for the others.
    pub fn get_shared(&mut self, family: &impl AsRef<Family>, key: impl AsRef<[u8]>) -> Result<Option<Pinned>> {
        self.get_and_track(family.as_ref(), key.as_ref(), Mode::Shared)
    }

    fn get_and_track(&mut self, family: &Family, key: &[u8], mode: Mode) -> Result<Option<Pinned>> {
        let options = self.options();
        let Transaction { inner, shared, .. } = self;
        family.shown(inner.get_for_update(&shared.database, &family.inner, key, mode, &options)?)
    }

    /// Locks a range of keys, which then no other pessimistic transaction can change or read for an update, keys without
    /// a value included. Waits for those that have locked keys of it.
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction is not pessimistic, or the end is not above the start.
    pub fn lock_range<K: AsRef<[u8]>>(&mut self, family: &impl AsRef<Family>, range: Range<K>) -> Result<()> {
        let range = (range.start.as_ref(), Some(range.end.as_ref()));
        self.inner.lock_range(&self.shared.database, &family.as_ref().inner, range, Mode::Exclusive)
    }

    /// The values of many keys at one instant, in the order asked for; they are not tracked.
    ///
    /// # Errors
    /// The first failure.
    pub fn multi_get<K: AsRef<[u8]>>(
        &self,
        family: &impl AsRef<Family>,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Pinned>>> {
        let family = family.as_ref();
        let keys: Vec<K> = keys.into_iter().collect();
        let asked: Vec<_> = keys.iter().map(|key| (&family.inner, key.as_ref())).collect();
        let found = self.inner.multi_get(&self.shared.database, &asked, &self.options())?;
        found.into_iter().map(|value| family.shown(value?)).collect()
    }

    /// All entries of a family, in key order; they are not tracked. Changes made while the iterator lives are shown, too.
    pub fn iter(&self, family: &impl AsRef<Family>) -> Iter {
        self.range(family, ..)
    }

    /// The entries of a range, in key order. As [`iter`](Self::iter).
    pub fn range(&self, family: &impl AsRef<Family>, range: impl KeyRange) -> Iter {
        Iter::over(Start::new(family.as_ref(), range, self.options()), self.inner.batch())
    }

    /// Takes a snapshot: from now on reads show this state, and keys tracked from now on must not have changed since.
    pub fn set_snapshot(&mut self) {
        self.inner.set_snapshot(&self.shared.database);
    }

    /// The transaction's snapshot, if it has one.
    pub fn snapshot(&self) -> Option<Snapshot> {
        let inner = self.inner.snapshot()?.clone();
        Some(Snapshot::of(inner, self.shared.clone()))
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tracked = self.inner.num_keys();
        f.debug_struct("Transaction").field("changes", &self.len()).field("tracked", &tracked).finish_non_exhaustive()
    }
}
