//! Two-phase commit of pessimistic transactions: a name, a prepare, and later a commit or a rollback, in this process or
//! the next. Keeps P1.
//!
//! A prepared transaction outlives its handle: it goes to [`PreparedTransactions`] with its locks.

use std::mem;
use std::sync::{Arc, Weak};
use std::time::Duration;

use base::{Error, ErrorKind, Result, ValueKind, note};
use parking_lot::Mutex;
use wal::Position;
use xxhash_rust::xxh3::xxh3_64;

use super::locks::{LockTable, Mode, Patience};
use super::{Concurrency, Pessimistic, Shows, Track, Transaction};
use crate::batch::options::WriteOptions;
use crate::batch::{BatchRecord, WriteBatch};
use crate::commit::two_phase::{PreparedBatch, TwoPhase};
use crate::database::handle::Database;
use crate::log_files::prepared::{RecoveredTransaction, TakenName};
use crate::records::two_phase_record::NAME_BYTES_MAX;

/// How far a transaction has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Phase {
    #[default]
    Begun,
    Prepared(Prepare),
    /// After a prepare.
    Committed,
    /// After a prepare.
    RolledBack,
}

/// A prepare in the WAL.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prepare {
    at: Position,
    /// Of the batch. What is committed must be what a crash would leave.
    hash: u64,
}

/// What a transaction has for two-phase commit.
#[derive(Default)]
pub(super) struct TwoPhased {
    pub phase: Phase,
    name: Option<TakenName>,
    pool: Weak<PreparedTransactions>,
}

/// The prepared transactions of a database without a handle: found by its open, or dropped since. They hold their locks.
#[derive(Default)]
pub struct PreparedTransactions {
    /// A leaf lock.
    waiting: Mutex<Vec<Transaction>>,
}

impl PreparedTransactions {
    /// Takes over what the open found, with locks on the keys of each.
    ///
    /// # Errors
    /// `Busy`: more keys than `max_num_locks`.
    pub fn of(db: &Database, locks: &Arc<LockTable>, options: Pessimistic) -> Result<Arc<Self>> {
        let pool = Arc::new(PreparedTransactions::default());
        for found in db.core().logs.prepared.take_recovered() {
            let transaction = Transaction::recovered(db, locks, options, found)?.in_pool(&pool);
            pool.waiting.lock().push(transaction);
        }
        Ok(pool)
    }

    /// Hands out all that nobody holds, in the order of their prepares. One that is dropped comes back.
    pub fn take_all(&self) -> Vec<Transaction> {
        let mut all = mem::take(&mut *self.waiting.lock());
        all.sort_by_key(|transaction| transaction.prepare_at().map(|prepare| prepare.at));
        all
    }
}

impl Transaction {
    /// Dropped while it is prepared, the transaction goes to `pool`.
    #[must_use]
    pub fn in_pool(mut self, pool: &Arc<PreparedTransactions>) -> Transaction {
        self.two_phased.pool = Arc::downgrade(pool);
        self
    }

    fn recovered(
        db: &Database,
        locks: &Arc<LockTable>,
        options: Pessimistic,
        found: RecoveredTransaction,
    ) -> Result<Transaction> {
        let RecoveredTransaction { name, batch, at } = found;
        let patience = Patience { wait_max: Some(Duration::ZERO), ..options.patience };
        let mut transaction = Transaction::pessimistic(locks, Pessimistic { patience, ..options });
        transaction.two_phased.name = Some(name);
        for record in batch.iter() {
            transaction.recover_change(db, &record?)?;
        }
        let hash = hash_of(transaction.batch.read().batch());
        transaction.two_phased.phase = Phase::Prepared(Prepare { at, hash });
        Ok(transaction)
    }

    /// A change of a family that is not there is kept: the transaction can be rolled back.
    fn recover_change(&mut self, db: &Database, record: &BatchRecord<'_>) -> Result<()> {
        let &BatchRecord { family: id, kind, key, value } = record;
        let Ok(family) = db.family_by_id(id) else {
            self.batch.write().add_unindexed(id, kind, key, value);
            return Ok(());
        };
        let order = &family.order().user;
        let locked = match kind {
            ValueKind::RangeDeletion if order.compare(key, value).is_ge() => Ok(()),
            ValueKind::RangeDeletion => self.lock_range(db, &family, (key, Some(value)), Mode::Exclusive),
            _ => self.lock(db, &family, key, Mode::Exclusive, Track::Untracked),
        };
        match locked {
            // RocksDB recovers without locks, so what it leaves prepared may share keys.
            Err(error) if error.kind() == ErrorKind::TimedOut => {
                let (name, key) = (self.name().escape_ascii(), key.escape_ascii());
                note::warn!("prepared transaction '{name}' has no lock on '{key}': another prepared one has it");
            }
            locked => locked?,
        }
        self.counts.add(kind);
        self.batch.write().add(id, || order.clone(), kind, key, value);
        Ok(())
    }

    /// The name; empty if it was not given.
    pub fn name(&self) -> &[u8] {
        self.two_phased.name.as_ref().map_or(&[], TakenName::bytes)
    }

    /// Gives a name, which the transaction is prepared under. It lasts until the transaction is dropped.
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction is optimistic, has a name, or is prepared; the name is another's, or not 1 to
    /// 512 bytes long.
    pub fn set_name(&mut self, db: &Database, name: &[u8]) -> Result<()> {
        let refused = |why: &str| Err(Error::invalid_argument(why));
        if matches!(self.concurrency, Concurrency::Optimistic) {
            return refused("Optimistic transactions cannot be named.");
        }
        if !self.is_begun() {
            return refused("Transaction is beyond state for naming.");
        }
        if self.two_phased.name.is_some() {
            return refused("Transaction has already been named.");
        }
        if !(1..=NAME_BYTES_MAX).contains(&name.len()) {
            return refused("Transaction name length must be between 1 and 512 chars.");
        }
        match db.core().logs.prepared.names().take(name) {
            None => refused(&format!("Duplicate txn name {}", String::from_utf8_lossy(name))),
            taken => {
                self.two_phased.name = taken;
                Ok(())
            }
        }
    }

    /// Whether the transaction is neither prepared nor ended after a prepare.
    pub fn is_begun(&self) -> bool {
        matches!(self.two_phased.phase, Phase::Begun)
    }

    /// Whether the changes are logged, and wait for the commit or the rollback.
    pub fn is_prepared(&self) -> bool {
        self.prepare_at().is_some()
    }

    fn prepare_at(&self) -> Option<Prepare> {
        match self.two_phased.phase {
            Phase::Prepared(prepare) => Some(prepare),
            _ => None,
        }
    }

    /// Logs the changes under the transaction's name. From then on it takes no more changes, does not expire, and survives
    /// a crash as the log does, synced by `options.sync`: the next open has it in [`PreparedTransactions`].
    ///
    /// # Errors
    /// `InvalidArgument`: the transaction is optimistic, has no name, or is prepared. `Expired`: the locks are lost. Else as
    /// of [`Database::write`].
    pub fn prepare(&mut self, db: &Database, options: &WriteOptions) -> Result<()> {
        let refused = |why: &str| Err(Error::invalid_argument(why));
        let Concurrency::Pessimistic(locking) = &self.concurrency else {
            return refused("Two phase commit not supported for optimistic transactions.");
        };
        let Some(name) = &self.two_phased.name else {
            return refused("Cannot prepare a transaction that has not been named.");
        };
        match self.two_phased.phase {
            Phase::Begun => {}
            Phase::Prepared(_) => return refused("Transaction has already been prepared."),
            Phase::Committed => return refused("Transaction has already been committed."),
            Phase::RolledBack => return refused("Transaction has already been rolledback."),
        }
        locking.begin_commit()?;
        let prepare = {
            let batch = self.batch.read();
            let at = TwoPhase(&db.engine().committer).prepare(name.bytes(), batch.batch(), &logged(options))?;
            Prepare { at, hash: hash_of(batch.batch()) }
        };
        self.two_phased.phase = Phase::Prepared(prepare);
        db.core().drive_if_inline();
        Ok(())
    }

    /// Commits after a prepare; `None` before one.
    pub(super) fn commit_prepared(&mut self, db: &Database, options: &WriteOptions) -> Option<Result<()>> {
        let refused = |why: &str| Some(Err(Error::invalid_argument(why)));
        match self.two_phased.phase {
            Phase::Begun => None,
            Phase::Prepared(prepare) => Some(self.apply_prepared(db, prepare, options)),
            Phase::Committed => refused("Transaction has already been committed."),
            Phase::RolledBack => refused("Transaction has already been rolledback."),
        }
    }

    fn apply_prepared(&mut self, db: &Database, prepare: Prepare, options: &WriteOptions) -> Result<()> {
        let written = {
            let batch = self.batch.read();
            if hash_of(batch.batch()) != prepare.hash {
                let what = "the transaction's batch was changed after the prepare; roll it back and run it again";
                return Err(Error::invalid_argument(what));
            }
            let prepared = PreparedBatch { name: self.name(), batch: batch.batch(), at: prepare.at };
            TwoPhase(&db.engine().committer).commit(&prepared, &logged(options))?
        };
        self.reset();
        self.two_phased.phase = Phase::Committed;
        db.flush_written(&written)
    }

    /// Rolls back after a prepare; `None` before one.
    pub(super) fn rollback_prepared(&mut self, db: &Database, options: &WriteOptions) -> Option<Result<()>> {
        let refused = |why: &str| Some(Err(Error::invalid_argument(why)));
        match self.two_phased.phase {
            Phase::Begun => None,
            Phase::Prepared(prepare) => {
                let two_phase = TwoPhase(&db.engine().committer);
                let rolled_back = two_phase.rollback(self.name(), prepare.at, &logged(options));
                Some(rolled_back.map(|()| {
                    self.reset();
                    self.two_phased.phase = Phase::RolledBack;
                }))
            }
            Phase::Committed => refused("This transaction has already been committed."),
            Phase::RolledBack => refused("Two phase transaction is not in state for rollback."),
        }
    }

    /// Goes to the pool if the transaction is prepared. False: it ends here.
    pub(super) fn park(&mut self) -> bool {
        let Some(pool) = self.two_phased.pool.upgrade().filter(|_| self.is_prepared()) else { return false };
        (self.pin, self.shows) = (None, Shows::default());
        pool.waiting.lock().push(mem::take(self));
        true
    }
}

/// Both steps are logged: they are there to survive.
fn logged(options: &WriteOptions) -> WriteOptions {
    WriteOptions { disable_wal: false, ..*options }
}

fn hash_of(batch: &WriteBatch) -> u64 {
    xxh3_64(batch.as_bytes())
}

#[cfg(test)]
mod tests;
