//! Databases opened for optimistic transactions: such a database is like any other.

use std::ffi::{CStr, c_char, c_int, c_uchar};

use spillway::internal::Transaction;

use super::{OptimisticDb, OptimisticSettings, TransactionHandle};
use crate::batch::Batch;
use crate::boundary::argument::Out;
use crate::boundary::array::{Array, IntCount, OutArray};
use crate::boundary::reply::Given;
use crate::boundary::settings::settings;
use crate::boundary::{export, fallible};
use crate::checkpoint::Checkpoint;
use crate::database::Database;
use crate::database::open::{Families, Mode};
use crate::family::FamilyHandle;
use crate::options::Options;
use crate::write_options::WriteSettings;

settings! { OptimisticSettings, "rocksdb_optimistictransaction_options_";
    set_snapshot: c_uchar => set_snapshot;
}

export! {
    fn rocksdb_optimistictransaction_options_create() -> Box<OptimisticSettings> {
        Box::default()
    }

    fn rocksdb_optimistictransaction_options_destroy(options: Option<Box<OptimisticSettings>>) {
        drop(options);
    }

    /// Ends the database's threads and releases its directory, as rocksdb_close.
    fn rocksdb_optimistictransactiondb_close(database: Option<Box<OptimisticDb>>) {
        let Some(database) = database else { return };
        super::close(&database.database);
    }

    /// The database for calls without transactions; given back to rocksdb_optimistictransactiondb_close_base_db.
    fn rocksdb_optimistictransactiondb_get_base_db(database: &OptimisticDb) -> Box<Database> {
        database.database.twin()
    }

    fn rocksdb_optimistictransactiondb_close_base_db(base: Option<Box<Database>>) {
        drop(base);
    }

    /// `old` is begun anew and returned, if given.
    fn rocksdb_optimistictransaction_begin(
        database: &OptimisticDb,
        write: &WriteSettings,
        options: &OptimisticSettings,
        old: Option<Box<TransactionHandle>>,
    ) -> Box<TransactionHandle> {
        let mut handle = match old {
            None => Box::new(TransactionHandle::new(Transaction::default(), &database.database, write)),
            Some(mut old) => {
                old.transaction.begin();
                (old.database, old.write) = (database.database.clone(), *database.database.writing(write));
                old
            }
        };
        if options.set_snapshot {
            handle.transaction.set_snapshot(&database.database.db);
        }
        handle.end_loans();
        handle
    }

    /// 0 if the property is known, else -1.
    fn rocksdb_optimistictransactiondb_property_int(database: &OptimisticDb, name: &CStr, value: Out<u64>) -> c_int {
        database.database.int_property(database.database.default_family(), name, value)
    }

    /// NULL for an unknown property.
    fn rocksdb_optimistictransactiondb_property_value(database: &OptimisticDb, name: &CStr) -> Given<c_char> {
        database.database.property(database.database.default_family(), name)
    }
}

fallible! {
    fn rocksdb_optimistictransactiondb_open(options: &Options, name: &CStr) -> Box<OptimisticDb> {
        Ok(OptimisticDb::of(Database::open_default(options, name, Mode::Write)?))
    }

    fn rocksdb_optimistictransactiondb_open_column_families(
        options: &Options,
        name: &CStr,
        count: IntCount,
        names: Array<*const c_char>,
        family_options: Array<*const Options>,
        handles: OutArray<*mut FamilyHandle>,
    ) -> Box<OptimisticDb> {
        let families = Families { count, names, options: family_options, handles };
        Ok(OptimisticDb::of(Database::open_families(options, name, families, Mode::Write)?))
    }

    /// A write without a transaction. Transactions with its keys notice it.
    fn rocksdb_optimistictransactiondb_write(database: &OptimisticDb, options: &WriteSettings, batch: &Batch) {
        database.database.write(batch.written()?, options)
    }

    fn rocksdb_optimistictransactiondb_checkpoint_object_create(database: &OptimisticDb) -> Box<Checkpoint> {
        Ok(Checkpoint::of(&database.database))
    }
}
