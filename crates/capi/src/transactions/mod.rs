//! Transactions: `rocksdb_transaction_t`, of `rocksdb_optimistictransactiondb_t` and `rocksdb_transactiondb_t`.

pub mod calls;
pub mod database;
pub mod locking;
pub mod optimistic_options;

use std::sync::Arc;

use spillway::internal::{
    Change, Error, Family, LockMode, Snapshot, Track, Transaction, ValueKind, WriteOptions, indexed,
};

use crate::boundary::handles;
use crate::database::Database;
use crate::database::read::Found;
use crate::failure::Failure;
use crate::family::FamilyHandle;
use crate::indexed_batch::{self, Below, IndexedBatch};
use crate::iterator::Iterator;
use crate::kept::{Kept, keeps_numbers};
use crate::lent::Loan;
use crate::read_options::ReadSettings;
use crate::snapshot::{self, SnapshotHandle};
use crate::write_options::WriteSettings;

/// `rocksdb_optimistictransactiondb_t`. Clients may pass it as a `rocksdb_t` too, as a `rocksdb_transactiondb_t`: so a database
/// comes first.
#[repr(C)]
pub struct OptimisticDb {
    _as_database: Database,
    database: Arc<Database>,
}

/// `rocksdb_optimistictransaction_options_t`.
#[derive(Default)]
pub struct OptimisticSettings {
    /// The transaction's keys must not have changed since its begin, instead of since their first use.
    pub set_snapshot: bool,
    kept: Kept,
}

/// A transaction with its database and the options of its commit.
pub struct TransactionHandle {
    pub transaction: Transaction,
    pub database: Arc<Database>,
    pub write: WriteOptions,
    /// 0: no limit.
    batch_bytes_max: usize,
    /// `skip_prepare` is off.
    needs_prepare: bool,
    lent_batch: Option<Loan<indexed::SharedBatch>>,
    lent_snapshot: Option<(Snapshot, Loan<Snapshot>)>,
}

handles!(OptimisticDb, OptimisticSettings, TransactionHandle);

keeps_numbers!(OptimisticSettings);

/// Ends a database's threads and releases its directory.
fn close(database: &Database) {
    if let Err(error) = database.db.close() {
        tracing::error!(%error, path = %database.db.path().display(), "closing the database failed");
    }
}

impl OptimisticDb {
    fn of(database: Box<Database>) -> Box<OptimisticDb> {
        Box::new(OptimisticDb { _as_database: *database.twin(), database: Arc::from(database) })
    }
}

impl TransactionHandle {
    pub fn new(transaction: Transaction, database: &Arc<Database>, write: &WriteSettings) -> TransactionHandle {
        TransactionHandle {
            transaction,
            database: database.clone(),
            write: *database.writing(write),
            batch_bytes_max: 0,
            needs_prepare: false,
            lent_batch: None,
            lent_snapshot: None,
        }
    }

    pub fn family<'a>(&'a self, family: Option<&'a FamilyHandle>) -> &'a Arc<Family> {
        family.map_or_else(|| self.database.default_family(), |family| &family.0)
    }

    /// An optimistic transaction. `set_snapshot`: its keys must not have changed since now.
    pub fn optimistic(database: &Arc<Database>, write: &WriteSettings, set_snapshot: bool) -> TransactionHandle {
        let mut handle = TransactionHandle::new(Transaction::default(), database, write);
        if set_snapshot {
            handle.transaction.set_snapshot(&database.db);
        }
        handle
    }

    fn change(
        &mut self,
        family: Option<&FamilyHandle>,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Failure> {
        self.change_as(family, Change { kind, key, value }, Track::Tracked)
    }

    pub fn change_as(
        &mut self,
        family: Option<&FamilyHandle>,
        change: Change<'_>,
        track: Track,
    ) -> Result<(), Failure> {
        let Change { key, value, .. } = change;
        let family = self.family(family).clone();
        let room = self.batch_bytes_max.checked_sub(self.transaction.batch().read().batch().len());
        if self.batch_bytes_max > 0 && room.is_none_or(|room| room < key.len() + value.len()) {
            let most = self.batch_bytes_max;
            return Err(Failure::aborted(format!("Memory limit reached: max_write_batch_size is {most} bytes")));
        }
        Ok(self.transaction.write(&self.database.db, &family, change, track)?)
    }

    pub fn get(&self, family: Option<&FamilyHandle>, key: &[u8], options: &ReadSettings) -> Found {
        self.database.honour(options)?;
        self.transaction.get(&self.database.db, self.family(family), key, &options.options)
    }

    pub fn get_for_update(
        &mut self,
        family: Option<&FamilyHandle>,
        key: &[u8],
        exclusive: bool,
        options: &ReadSettings,
    ) -> Found {
        self.database.honour(options)?;
        let family = self.family(family).clone();
        let mode = if exclusive { LockMode::Exclusive } else { LockMode::Shared };
        self.transaction.get_for_update(&self.database.db, &family, key, mode, &options.options)
    }

    /// See [`Transaction::undo_get_for_update`].
    pub fn undo_get_for_update(&mut self, family: Option<&FamilyHandle>, key: &[u8]) {
        let family = self.family(family).clone();
        self.transaction.undo_get_for_update(&family, key);
    }

    pub fn multi_get(&self, families: &[&Arc<Family>], keys: &[&[u8]], options: &ReadSettings) -> Vec<Found> {
        let asked: Vec<(&Arc<Family>, &[u8])> = families.iter().copied().zip(keys.iter().copied()).collect();
        let found = self.database.honour(options);
        let found = found.and_then(|()| self.transaction.multi_get(&self.database.db, &asked, &options.options));
        each(found, keys.len())
    }

    pub fn multi_get_for_update(
        &mut self,
        families: &[&Arc<Family>],
        keys: &[&[u8]],
        options: &ReadSettings,
    ) -> Vec<Found> {
        let asked: Vec<(&Arc<Family>, &[u8])> = families.iter().copied().zip(keys.iter().copied()).collect();
        let TransactionHandle { transaction, database, .. } = self;
        let found = database.honour(options);
        let found = found.and_then(|()| transaction.multi_get_for_update(&database.db, &asked, &options.options));
        each(found, keys.len())
    }

    pub fn iterator(&self, family: Option<&FamilyHandle>, options: &ReadSettings) -> Box<Iterator> {
        let family = self.family(family);
        let below = Iterator::new(&self.database, family, options);
        Iterator::over_batch(below, |below, own| self.transaction.over(Below(below), family, own))
    }

    pub fn commit(&mut self) -> Result<(), Failure> {
        if self.needs_prepare && self.transaction.is_begun() {
            return Err(Failure::invalid_argument("Txn not prepared"));
        }
        let written = self.transaction.commit(&self.database.db, &self.write);
        self.end_loans();
        written.map_err(|error| self.database.refused(error))
    }

    pub fn prepare(&mut self) -> Result<(), Failure> {
        self.transaction.prepare(&self.database.db, &self.write).map_err(|error| self.database.refused(error))
    }

    pub fn rollback(&mut self) -> Result<(), Failure> {
        let rolled_back = self.transaction.rollback(&self.database.db, &self.write);
        self.end_loans();
        rolled_back.map_err(|error| self.database.refused(error))
    }

    pub fn rollback_to_savepoint(&mut self) -> Result<(), Failure> {
        if self.transaction.is_prepared() {
            return Err(Failure::invalid_argument("Transaction is beyond state for rollback."));
        }
        let rolled_back = self.transaction.rollback_to_savepoint();
        self.end_loans();
        if rolled_back { Ok(()) } else { Err(Failure::not_found("the transaction has no save point")) }
    }

    /// Ends the loan of a snapshot that is not the transaction's any more.
    fn end_loans(&mut self) {
        let now = self.transaction.snapshot().map(Snapshot::seq);
        self.lent_snapshot.take_if(|(snapshot, _)| Some(snapshot.seq()) != now);
    }

    /// The snapshot; NULL if there is none. C frees the handle by `free`.
    fn snapshot(&mut self) -> Option<Box<SnapshotHandle>> {
        self.end_loans();
        let own = self.transaction.snapshot()?;
        let (_, loan) = self.lent_snapshot.get_or_insert_with(|| (own.clone(), snapshot::LENT.lend(own.clone())));
        Some(Box::new(SnapshotHandle::Lent(loan.number())))
    }

    /// The changes. C frees the handle by `free`.
    pub fn batch(&mut self) -> Box<IndexedBatch> {
        let loan = self.lent_batch.get_or_insert_with(|| indexed_batch::LENT.lend(self.transaction.batch().clone()));
        IndexedBatch::lent(loan.number())
    }
}

/// An error of all is each one's.
fn each(found: Result<Vec<Found>, Error>, count: usize) -> Vec<Found> {
    found.unwrap_or_else(|error| vec![Err(error); count])
}
