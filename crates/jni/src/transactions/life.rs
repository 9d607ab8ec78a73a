//! The course of a transaction: snapshots, savepoints, the two phases, and what it tells of itself.

use std::time::Duration;

use capi::failure::Failure;
use capi::kept::Kept;
use capi::transactions::locking::milliseconds;
use capi::write_options::WriteSettings;

use super::notifier::Notifier;
use super::{State, Txn};
use crate::batch::Batch;
use crate::boundary::argument::{Closed, Numbered};
use crate::boundary::class::{Class, Method};
use crate::boundary::object::Value;
use crate::boundary::reply::Made;
use crate::boundary::{handle, natives};
use crate::fault::Fault;

static WAITING: Class = Class::new(c"org/rocksdb/Transaction$WaitingTransactions");
static NEW_WAITING: Method = Method::constructor(&WAITING, c"(JLjava/lang/String;[J)V");

impl Txn {
    /// # Errors
    /// A batch was made for the commit alone. RocksDB takes it after a prepare.
    fn check_at_commit(&mut self) -> Result<(), Fault> {
        let Some(batch) = self.views.at_commit_handle() else { return Ok(()) };
        if handle::with::<Batch, _>(batch, |batch| batch.read(|batch| batch.count()))? == 0 {
            return Ok(());
        }
        Err(Failure::invalid_argument("Commit-time batch contains values that will not be committed.").into())
    }

    fn commit(&mut self) -> Result<(), Fault> {
        self.check_at_commit()?;
        self.transaction.commit()?;
        self.named.set_prepared(self.transaction.transaction.name(), false);
        self.state = State::Committed;
        Ok(())
    }

    fn rollback(&mut self) -> Result<(), Fault> {
        self.transaction.rollback()?;
        self.named.set_prepared(self.transaction.transaction.name(), false);
        if self.state == State::Prepared {
            self.state = State::RolledBack;
        }
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), Fault> {
        self.transaction.prepare()?;
        self.named.set_prepared(self.transaction.transaction.name(), true);
        self.state = State::Prepared;
        Ok(())
    }

    /// The number of a pessimistic transaction among the owners of locks; else 0.
    fn id(&self) -> i64 {
        self.transaction.transaction.owner().map_or(0, |owner| owner as i64)
    }
}

natives! { "Transaction";
    "setSnapshot" => fn(_env, txn: &mut Txn) -> () {
        let database = txn.transaction.database.clone();
        txn.transaction.transaction.set_snapshot(&database.db);
        Ok(())
    }

    "setSnapshotOnNextOperation__J" => fn(_env, txn: &mut Txn) -> () {
        txn.transaction.transaction.set_snapshot_on_next_operation();
        txn.notifier = None;
        Ok(())
    }

    "setSnapshotOnNextOperation__JJ" => fn(_env, txn: &mut Txn, notifier: &Notifier) -> () {
        txn.transaction.transaction.set_snapshot_on_next_operation();
        txn.notifier = Some(notifier.clone());
        Ok(())
    }

    /// The handle ends with the snapshot or the transaction.
    "getSnapshot" => fn(_env, txn: &mut Txn) -> i64 {
        Ok(txn.snapshot())
    }

    "clearSnapshot" => fn(_env, txn: &mut Txn) -> () {
        txn.transaction.transaction.clear_snapshot();
        txn.notifier = None;
        txn.views.snapshot(None);
        Ok(())
    }

    "prepare" => fn(_env, txn: &mut Txn) -> () {
        txn.prepare()
    }

    "commit" => fn(_env, txn: &mut Txn) -> () {
        txn.commit()
    }

    "rollback" => fn(_env, txn: &mut Txn) -> () {
        txn.rollback()
    }

    "setSavePoint" => fn(_env, txn: &mut Txn) -> () {
        txn.transaction.transaction.set_savepoint();
        Ok(())
    }

    "rollbackToSavePoint" => fn(_env, txn: &mut Txn) -> () {
        Ok(txn.transaction.rollback_to_savepoint()?)
    }

    /// The changes are forgotten; a prepared transaction stays prepared.
    "disposeInternal" => fn(_env, txn: Closed<Txn>) -> () {
        drop(txn.0);
        Ok(())
    }

    "setName" => fn(_env, txn: Numbered<'_, Txn>, name: String) -> () {
        let Numbered { object: txn, handle } = txn;
        let database = txn.transaction.database.clone();
        txn.transaction.transaction.set_name(&database.db, name.as_bytes())?;
        txn.named.add(name.as_bytes(), handle, false);
        Ok(())
    }

    "getName" => fn(_env, txn: &Txn) -> String {
        Ok(String::from_utf8_lossy(txn.transaction.transaction.name()).into_owned())
    }

    "getID" | "getId" => fn(_env, txn: &Txn) -> i64 {
        Ok(txn.id())
    }

    "getState" => fn(_env, txn: &Txn) -> i8 {
        Ok(txn.state as i8)
    }

    "isDeadlockDetect" => fn(_env, txn: &Txn) -> bool {
        Ok(txn.transaction.transaction.detects_deadlocks())
    }

    /// None: a transaction that waits is in a call, and cannot be asked.
    "getWaitingTxns" => fn(env, _txn: &Txn) -> Made {
        let (key, waiting) = (env.new_text("")?, env.new_longs(&[])?);
        Ok(NEW_WAITING.make(env, &[Value::Long(0), Value::Object(key), Value::Object(waiting)])?.into())
    }

    /// Milliseconds; negative: without end. Optimistic transactions do not wait.
    "setLockTimeout" => fn(_env, txn: &mut Txn, lock_timeout_ms: i64) -> () {
        if let Some(patience) = txn.transaction.transaction.patience_mut() {
            patience.wait_max = milliseconds(lock_timeout_ms);
        }
        Ok(())
    }

    "getElapsedTime" => fn(_env, txn: &Txn) -> i64 {
        let elapsed: Duration = txn.transaction.database.db.vfs().now().saturating_sub(txn.began_at);
        Ok(i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX))
    }

    "getNumKeys" => fn(_env, txn: &Txn) -> i64 {
        Ok(txn.transaction.transaction.num_keys() as i64)
    }

    "getNumPuts" => fn(_env, txn: &Txn) -> i64 {
        Ok(txn.transaction.transaction.counts().puts as i64)
    }

    "getNumDeletes" => fn(_env, txn: &Txn) -> i64 {
        Ok(txn.transaction.transaction.counts().deletes as i64)
    }

    "getNumMerges" => fn(_env, txn: &Txn) -> i64 {
        Ok(txn.transaction.transaction.counts().merges as i64)
    }

    "disableIndexing" => fn(_env, txn: &mut Txn) -> () {
        txn.transaction.transaction.set_indexing(false);
        Ok(())
    }

    "enableIndexing" => fn(_env, txn: &mut Txn) -> () {
        txn.transaction.transaction.set_indexing(true);
        Ok(())
    }

    /// The changes, until the transaction is closed. Changes made through it are not tracked.
    "getWriteBatch" => fn(_env, txn: &mut Txn) -> i64 {
        let Txn { transaction, views, .. } = txn;
        Ok(views.changes(|| transaction.batch()))
    }

    "getCommitTimeWriteBatch" => fn(_env, txn: &mut Txn) -> i64 {
        Ok(txn.views.at_commit())
    }

    "getWriteOptions" => fn(_env, txn: &mut Txn) -> i64 {
        let options = WriteSettings { options: txn.transaction.write, kept: Kept::default() };
        Ok(txn.views.write_options(options))
    }

    "setWriteOptions" => fn(_env, txn: &mut Txn, options: &WriteSettings) -> () {
        let database = txn.transaction.database.clone();
        txn.transaction.write = *database.writing(options);
        Ok(())
    }

    /// Kept for the getter: logs are freed without it.
    "setLogNumber" => fn(_env, txn: &mut Txn, number: i64) -> () {
        txn.log_number = number as u64;
        Ok(())
    }

    "getLogNumber" => fn(_env, txn: &Txn) -> i64 {
        Ok(txn.log_number as i64)
    }
}
