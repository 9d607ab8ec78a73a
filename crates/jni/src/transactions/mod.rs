//! Transactions, and the databases for them.

pub mod changes;
pub mod databases;
pub mod life;
pub mod names;
pub mod notifier;
pub mod reads;
pub mod reports;
pub mod views;

use std::sync::Arc;
use std::time::Duration;

use capi::family::FamilyHandle;
use capi::snapshot::SnapshotHandle;
use capi::transactions::TransactionHandle;
use spillway::internal::{Change, Track, ValueKind};

use self::names::Named;
use self::notifier::Notifier;
use self::views::Views;
use crate::boundary::env::Env;
use crate::database::Db;
use crate::database::children::Children;
use crate::fault::Fault;

/// `Transaction`.
pub struct Txn {
    transaction: TransactionHandle,
    /// Its iterators end with the database.
    siblings: Children,
    named: Arc<Named>,
    state: State,
    /// The clock at the begin.
    began_at: Duration,
    /// Kept for the getter.
    log_number: u64,
    views: Views,
    /// Gets the snapshot of the next operation.
    notifier: Option<Notifier>,
}

/// Java's `TransactionState`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Started = 0,
    Prepared = 2,
    Committed = 4,
    RolledBack = 6,
}

impl Txn {
    pub fn new(database: &Db, transaction: TransactionHandle) -> Box<Txn> {
        let state = if transaction.transaction.is_prepared() { State::Prepared } else { State::Started };
        Box::new(Txn {
            transaction,
            siblings: database.children().clone(),
            named: database.named().clone(),
            state,
            began_at: database.db.vfs().now(),
            log_number: 0,
            views: Views::default(),
            notifier: None,
        })
    }

    fn change(
        &mut self,
        env: Env<'_>,
        family: Option<&FamilyHandle>,
        change: (ValueKind, &[u8], &[u8]),
        track: Track,
    ) -> Result<(), Fault> {
        let (kind, key, value) = change;
        self.transaction.change_as(family, Change { kind, key, value }, track)?;
        self.notify(env)
    }

    /// Tells the notifier, if the last operation took its snapshot.
    fn notify(&mut self, env: Env<'_>) -> Result<(), Fault> {
        if self.notifier.is_none() || self.transaction.transaction.snapshot().is_none() {
            return Ok(());
        }
        let Some(notifier) = self.notifier.take() else { return Ok(()) };
        let handle = self.snapshot();
        notifier.snapshot_created(env, handle)
    }

    /// The handle of the present snapshot; 0 if there is none.
    fn snapshot(&mut self) -> i64 {
        let snapshot = self.transaction.transaction.snapshot().cloned();
        self.views.snapshot(snapshot.map(|snapshot| (snapshot.seq(), SnapshotHandle::Own(snapshot))))
    }
}

impl Drop for Txn {
    fn drop(&mut self) {
        self.named.forget(self.transaction.transaction.name());
    }
}
