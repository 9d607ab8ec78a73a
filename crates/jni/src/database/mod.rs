//! `RocksDB`: an open database.

pub mod batches;
pub mod children;
pub mod dispatch;
pub mod exists;
pub mod families;
pub mod family_handles;
pub mod manage;
pub mod open;
pub mod properties;
pub mod ranges;
pub mod read;
pub mod read_many;
pub mod snapshots;
pub mod ttl;
pub mod write;

use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use capi::database::Database;
use capi::env::{Env, EnvHandle};
use capi::failure::Failure;
use capi::family::FamilyHandle;
use capi::transactions::locking::TransactionDb;
use spillway::internal::Family;

use self::children::Children;
use crate::boundary::argument::Closed;
use crate::fault::Fault;
use crate::transactions::names::Named;

/// An open database.
pub struct Db {
    pub database: Arc<Database>,
    kind: Kind,
    children: Children,
    /// The default family's, for callers that never close it.
    default_handle: OnceLock<i64>,
    transactions: Arc<Named>,
    /// `None` for the process's.
    env: Option<Env>,
    env_handle: OnceLock<i64>,
    /// `cancelAllBackgroundWork` was called: a flush by hand is an error, as in RocksDB.
    is_canceled: AtomicBool,
}

/// How writes without a transaction go.
enum Kind {
    /// As they come. Optimistic transactions notice them at their commit.
    Plain,
    /// They lock their keys first.
    Locking(Box<TransactionDb>),
}

impl Db {
    pub fn new(database: Box<Database>) -> Box<Db> {
        Db::of(Arc::from(database), Kind::Plain)
    }

    /// A database for pessimistic transactions.
    pub fn locking(database: TransactionDb) -> Box<Db> {
        Db::of(database.database.clone(), Kind::Locking(Box::new(database)))
    }

    fn of(database: Arc<Database>, kind: Kind) -> Box<Db> {
        Box::new(Db {
            database,
            kind,
            children: Children::default(),
            default_handle: OnceLock::new(),
            transactions: Arc::default(),
            env: None,
            env_handle: OnceLock::new(),
            is_canceled: AtomicBool::new(false),
        })
    }

    /// # Errors
    /// `InvalidArgument`: it was not opened for pessimistic transactions.
    pub fn locks(&self) -> Result<&TransactionDb, Fault> {
        match &self.kind {
            Kind::Plain => Err(Failure::invalid_argument("the database was not opened as a TransactionDB").into()),
            Kind::Locking(locking) => Ok(locking),
        }
    }

    /// Ends compactions for good.
    pub fn cancel(&self, wait: bool) {
        self.is_canceled.store(true, Ordering::Relaxed);
        self.stop_compactions(wait);
    }

    /// # Errors
    /// `ShutdownInProgress`, after [`cancel`](Self::cancel).
    pub fn check_uncanceled(&self) -> Result<(), Fault> {
        if self.is_canceled.load(Ordering::Relaxed) {
            return Err(Failure::shutdown("cancelAllBackgroundWork was called").into());
        }
        Ok(())
    }

    /// Transactions by name.
    pub fn named(&self) -> &Arc<Named> {
        &self.transactions
    }

    /// Iterators and snapshots end with it: Java does not close them any more.
    pub fn close(&self) -> Result<(), Fault> {
        self.children.close();
        Ok(self.db.close()?)
    }

    /// The end of a handle.
    pub fn dispose(database: Closed<Db>) {
        if let Some(database) = database.0 {
            database.children.close();
        }
    }

    /// One handle of the default family, closed with the database.
    pub fn default_handle(&self) -> i64 {
        let adopt = || self.children.adopt(Box::new(FamilyHandle(self.default_family().clone())));
        *self.default_handle.get_or_init(adopt)
    }

    /// The env that the database was opened in.
    pub fn set_env(&mut self, env: &Env) {
        self.env = Some(env.clone()).filter(|env| !env.is(&Env::of_process()));
    }

    /// One handle of its env, closed with the database; `None` for the process's.
    pub fn env_handle(&self) -> Option<i64> {
        let env = self.env.as_ref()?;
        Some(*self.env_handle.get_or_init(|| self.children.adopt(Box::new(EnvHandle(env.clone())))))
    }

    pub fn children(&self) -> &Children {
        &self.children
    }

    /// The family of an optional handle: the default one without.
    pub fn family<'a>(&'a self, family: Option<&'a FamilyHandle>) -> &'a Arc<Family> {
        family.map_or_else(|| self.default_family(), |family| &family.0)
    }
}

impl Deref for Db {
    type Target = Database;

    fn deref(&self) -> &Database {
        &self.database
    }
}
