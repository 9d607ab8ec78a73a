//! `TransactionDB` and `OptimisticTransactionDB`: opening, closing, and beginning transactions.

use std::path::Path;

use capi::database::Database;
use capi::database::open::Mode;
use capi::options::Options;
use capi::transactions::locking::{DbSettings, TransactionDb, TransactionSettings};
use capi::transactions::{OptimisticSettings, TransactionHandle};
use capi::write_options::WriteSettings;

use super::Txn;
use crate::boundary::argument::{Closed, Handles, Numbered};
use crate::boundary::natives;
use crate::callbacks::listener::opening::Opening;
use crate::database::Db;
use crate::database::families::handles_of;
use crate::database::open::{named, open_alone};
use crate::fault::Fault;

impl Db {
    fn begin_pessimistic(
        &self,
        write: &WriteSettings,
        options: Option<&TransactionSettings>,
    ) -> Result<Box<Txn>, Fault> {
        let locks = self.locks()?;
        let begun = match options {
            Some(options) => locks.begin(write, options),
            None => locks.begin(write, &TransactionSettings::default()),
        };
        Ok(Txn::new(self, begun))
    }

    fn begin_optimistic(&self, write: &WriteSettings, options: Option<&OptimisticSettings>) -> Box<Txn> {
        let set_snapshot = options.is_some_and(|options| options.set_snapshot);
        Txn::new(self, TransactionHandle::optimistic(&self.database, write, set_snapshot))
    }

    /// Gives handles to prepared transactions that have none. They end with the database.
    fn adopt_prepared(&self) -> Result<(), Fault> {
        for transaction in self.locks()?.prepared.take_all() {
            let name = transaction.name().to_vec();
            let transaction = TransactionHandle::new(transaction, &self.database, &WriteSettings::default());
            let handle = self.children().adopt(Txn::new(self, transaction));
            self.named().add(&name, handle, true);
        }
        Ok(())
    }
}

/// Of `TransactionDB`.
pub mod pessimistic {
    use super::*;

    natives! { "TransactionDB";
        "open__JJLjava_lang_String_2" =>
        fn(_env, options: &Options, locking: &DbSettings, path: String) -> i64 {
            let opening = Opening::new(options, &path);
            let database = Database::open_at(&opening.options, Path::new(&path), Mode::Write)?;
            Ok(opening.done_alone(Db::locking(*TransactionDb::new(database, locking)?)))
        }

        "open__JJLjava_lang_String_2_3_3B_3J" => fn(
            _env,
            options: &Options,
            locking: &DbSettings,
            path: String,
            names: Vec<Vec<u8>>,
            family_options: Handles,
        ) -> Vec<i64> {
            let families = named(names, &family_options.get::<Options>()?)?;
            let opening = Opening::new(options, &path);
            let (database, families) =
                Database::open_named(&opening.options, Path::new(&path), &families, Mode::Write)?;
            Ok(handles_of(opening.done(Db::locking(*TransactionDb::new(database, locking)?)), families))
        }

        "closeDatabase" => fn(_env, database: &Db) -> () {
            database.close()
        }

        "disposeInternal" | "disposeInternalJni" => fn(_env, database: Closed<Db>) -> () {
            Db::dispose(database);
            Ok(())
        }

        "beginTransaction__JJ" => fn(_env, database: &Db, write: &WriteSettings) -> Box<Txn> {
            database.begin_pessimistic(write, None)
        }

        "beginTransaction__JJJ" =>
        fn(_env, database: &Db, write: &WriteSettings, options: &TransactionSettings) -> Box<Txn> {
            database.begin_pessimistic(write, Some(options))
        }

        /// `old` is begun anew, and returned.
        "beginTransaction_1withOld__JJJ" =>
        fn(_env, database: &Db, write: &WriteSettings, old: Numbered<'_, Txn>) -> i64 {
            *old.object = *database.begin_pessimistic(write, None)?;
            Ok(old.handle)
        }

        "beginTransaction_1withOld__JJJJ" => fn(
            _env,
            database: &Db,
            write: &WriteSettings,
            options: &TransactionSettings,
            old: Numbered<'_, Txn>,
        ) -> i64 {
            *old.object = *database.begin_pessimistic(write, Some(options))?;
            Ok(old.handle)
        }

        /// 0 if there is none.
        "getTransactionByName" => fn(_env, database: &Db, name: String) -> i64 {
            database.adopt_prepared()?;
            Ok(database.named().find(name.as_bytes()).unwrap_or(0))
        }

        "getAllPreparedTransactions" => fn(_env, database: &Db) -> Vec<i64> {
            database.adopt_prepared()?;
            Ok(database.named().prepared())
        }
    }
}

/// Of `OptimisticTransactionDB`.
pub mod optimistic {
    use super::*;

    natives! { "OptimisticTransactionDB";
        "open__JLjava_lang_String_2" => fn(_env, options: &Options, path: String) -> i64 {
            open_alone(options, &path, Mode::Write)
        }

        "open__JLjava_lang_String_2_3_3B_3J" => fn(
            _env,
            options: &Options,
            path: String,
            names: Vec<Vec<u8>>,
            family_options: Handles,
        ) -> Vec<i64> {
            let families = named(names, &family_options.get::<Options>()?)?;
            let opening = Opening::new(options, &path);
            let (database, families) =
                Database::open_named(&opening.options, Path::new(&path), &families, Mode::Write)?;
            Ok(handles_of(opening.done(Db::new(database)), families))
        }

        "closeDatabase" => fn(_env, database: &Db) -> () {
            database.close()
        }

        "disposeInternal" | "disposeInternalJni" => fn(_env, database: Closed<Db>) -> () {
            Db::dispose(database);
            Ok(())
        }

        "beginTransaction__JJ" => fn(_env, database: &Db, write: &WriteSettings) -> Box<Txn> {
            Ok(database.begin_optimistic(write, None))
        }

        "beginTransaction__JJJ" =>
        fn(_env, database: &Db, write: &WriteSettings, options: &OptimisticSettings) -> Box<Txn> {
            Ok(database.begin_optimistic(write, Some(options)))
        }

        /// `old` is begun anew, and returned.
        "beginTransaction_1withOld__JJJ" =>
        fn(_env, database: &Db, write: &WriteSettings, old: Numbered<'_, Txn>) -> i64 {
            *old.object = *database.begin_optimistic(write, None);
            Ok(old.handle)
        }

        "beginTransaction_1withOld__JJJJ" => fn(
            _env,
            database: &Db,
            write: &WriteSettings,
            options: &OptimisticSettings,
            old: Numbered<'_, Txn>,
        ) -> i64 {
            *old.object = *database.begin_optimistic(write, Some(options));
            Ok(old.handle)
        }

        /// The same database: its writes without a transaction take no locks. Java does not close it.
        "getBaseDB" => fn(_env, database: Numbered<'_, Db>) -> i64 {
            Ok(database.handle)
        }
    }
}
