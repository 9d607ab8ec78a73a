//! Pessimistic transactions: locks taken before each change, and kept to the end.

use std::sync::Arc;
use std::time::Duration;

use base::{Error, ErrorKind, Result, SeqNo};

use super::locks::{Granted, LockTable, LockedKey, LockedRange, Mode, Owner, Patience};
use super::tracked::Use;
use super::validate::conflict;
use super::{Concurrency, Track, Transaction};
use crate::batch::WriteBatch;
use crate::batch::options::WriteOptions;
use crate::core::family::Family;
use crate::database::handle::Database;
use crate::read::changed::has_changed;

/// How a pessimistic transaction locks.
#[derive(Clone, Copy, Debug)]
pub struct Pessimistic {
    /// Of each lock.
    pub patience: Patience,
    /// From the begin on. Then others may take the locks, and the commit fails. `None`: no limit.
    pub expires_after: Option<Duration>,
}

/// The locks of a transaction; its keys are the tracked ones.
pub(super) struct Locking {
    locks: Arc<LockTable>,
    owner: Arc<Owner>,
    options: Pessimistic,
    has_ranges: bool,
}

impl Locking {
    fn new(locks: &Arc<LockTable>, options: Pessimistic) -> Self {
        let owner = locks.new_owner(options.expires_after);
        Locking { locks: locks.clone(), owner, options, has_ranges: false }
    }

    /// Keeps the locks to the end of the commit.
    pub fn begin_commit(&self) -> Result<()> {
        if self.locks.begin_commit(&self.owner) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Expired,
            "the transaction has expired, and others may have its locks; roll it back and run it again",
        ))
    }

    /// Gives the locks of ranges back, and begins anew: expiry counts from now on.
    pub fn end(&mut self) {
        if std::mem::take(&mut self.has_ranges) {
            self.locks.unlock_ranges(&self.owner);
        }
        self.owner = self.locks.new_owner(self.options.expires_after);
    }
}

impl Drop for Transaction {
    /// Gives all locks back. A prepared transaction keeps them and waits in its pool. So do all in a forked child: the locks
    /// are the parent's.
    fn drop(&mut self) {
        if !self.origin.is_here() || self.park() {
            return;
        }
        self.unlock_from(0);
        if let Concurrency::Pessimistic(Locking { locks, owner, has_ranges: true, .. }) = &self.concurrency {
            locks.unlock_ranges(owner);
        }
    }
}

/// Locks.
impl Transaction {
    /// A transaction that locks.
    pub fn pessimistic(locks: &Arc<LockTable>, options: Pessimistic) -> Transaction {
        let mut transaction = Transaction::default();
        transaction.concurrency = Concurrency::Pessimistic(Locking::new(locks, options));
        transaction
    }

    /// Its number among the owners of locks; `None` if it is optimistic.
    pub fn owner(&self) -> Option<u64> {
        match &self.concurrency {
            Concurrency::Optimistic => None,
            Concurrency::Pessimistic(locking) => Some(locking.owner.id),
        }
    }

    /// The patience of a pessimistic transaction's later locks.
    pub fn patience_mut(&mut self) -> Option<&mut Patience> {
        match &mut self.concurrency {
            Concurrency::Optimistic => None,
            Concurrency::Pessimistic(locking) => Some(&mut locking.options.patience),
        }
    }

    /// Whether its waits look for deadlocks.
    pub fn detects_deadlocks(&self) -> bool {
        match &self.concurrency {
            Concurrency::Optimistic => false,
            Concurrency::Pessimistic(locking) => locking.options.patience.deadlock_depth.is_some(),
        }
    }

    /// Locks a key of a pessimistic transaction. A tracked key must not have changed since the snapshot.
    ///
    /// # Errors
    /// `TimedOut`, `Deadlock`, `Busy`: the lock was not given. `Conflict`: another write came first. The transaction holds
    /// what it held before.
    pub(super) fn lock(
        &mut self,
        db: &Database,
        family: &Arc<Family>,
        key: &[u8],
        mode: Mode,
        track: Track,
    ) -> Result<()> {
        let Concurrency::Pessimistic(locking) = &self.concurrency else { return Ok(()) };
        let locked = LockedKey { family: family.id(), key };
        let granted = locking.locks.lock(&locking.owner, locked, mode, &locking.options.patience)?;
        if self.shows.is_due {
            self.set_snapshot(db);
        }
        if track == Track::Tracked
            && let Err(error) = self.check_since_snapshot(family, key)
        {
            if let (Granted::New, Concurrency::Pessimistic(locking)) = (granted, &self.concurrency) {
                locking.locks.unlock(&locking.owner, [locked]);
            }
            return Err(error);
        }
        self.tracked.add(family, key, SeqNo::MAX, Use::Write);
        Ok(())
    }

    /// Of writes by others, those since the snapshot count. The lock keeps them from any more.
    fn check_since_snapshot(&self, family: &Arc<Family>, key: &[u8]) -> Result<()> {
        let Some(snapshot) = &self.shows.snapshot else { return Ok(()) };
        if has_changed(&family.view(), key, snapshot.seq())? { Err(conflict(key, family)) } else { Ok(()) }
    }

    /// Locks a range, from `start` to before `end`, so that nobody who locks writes into it; an optimistic transaction
    /// cannot.
    ///
    /// # Errors
    /// As of [`lock`](Self::lock); `InvalidArgument`: the transaction is optimistic, or the range is upside down.
    pub fn lock_range(
        &mut self,
        db: &Database,
        family: &Arc<Family>,
        (start, end): (&[u8], Option<&[u8]>),
        mode: Mode,
    ) -> Result<()> {
        db.check_family(family)?;
        let Concurrency::Pessimistic(locking) = &mut self.concurrency else {
            return Err(Error::invalid_argument(
                "an optimistic transaction has no locks: begin one with TransactionOptions::pessimistic",
            ));
        };
        let order = family.order().user.clone();
        if end.is_some_and(|end| order.compare(start, end).is_ge()) {
            return Err(Error::invalid_argument("the end of a locked range is not above its start"));
        }
        let range = LockedRange { family: family.id(), order, start: start.into(), end: end.map(Into::into) };
        locking.locks.lock_range(&locking.owner, range, mode, &locking.options.patience)?;
        locking.has_ranges = true;
        Ok(())
    }

    /// Gives back the locks of all but the first `kept` tracked keys.
    pub(super) fn unlock_from(&self, kept: usize) {
        if let Concurrency::Pessimistic(locking) = &self.concurrency {
            let keys = self.tracked.iter().skip(kept);
            let keys = keys.map(|key| LockedKey { family: key.family.id(), key: key.user_key });
            locking.locks.unlock(&locking.owner, keys);
        }
    }
}

/// Writes a batch as one pessimistic transaction: its keys are locked in their order, so that two batches do not wait for
/// each other; range deletions lock their ranges.
///
/// # Errors
/// As of [`Transaction::lock_range`] and [`Database::write`]; nothing was written.
pub fn lock_and_write(
    locks: &Arc<LockTable>,
    db: &Database,
    batch: &WriteBatch,
    options: &WriteOptions,
    patience: Patience,
) -> Result<()> {
    let mut transaction = Transaction::pessimistic(locks, Pessimistic { patience, expires_after: None });
    let mut records: Vec<_> = batch.iter().collect::<Result<_>>()?;
    records.sort_by_key(|record| (record.family, record.key));
    for record in records {
        let family = db.family_by_id(record.family)?;
        if record.kind == base::ValueKind::RangeDeletion {
            // An empty range deletes nothing.
            if family.order().user.compare(record.key, record.value).is_lt() {
                transaction.lock_range(db, &family, (record.key, Some(record.value)), Mode::Exclusive)?;
            }
        } else {
            transaction.lock(db, &family, record.key, Mode::Exclusive, Track::Untracked)?;
        }
    }
    db.write(batch, options).map(drop)
}

#[cfg(test)]
mod tests;
