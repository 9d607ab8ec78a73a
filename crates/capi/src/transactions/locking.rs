//! Databases opened for pessimistic transactions: `rocksdb_transactiondb_t`. Their writes lock, too; those of the base
//! database do not.

use std::ffi::{CStr, c_char, c_int, c_uchar};
use std::iter;
use std::sync::Arc;
use std::time::Duration;

use spillway::internal::{
    Family, LockLimits, LockTable, Patience, Pessimistic, PreparedTransactions, Transaction, ValueKind, WriteBatch,
    lock_and_write,
};

use super::TransactionHandle;
use crate::batch::Batch;
use crate::boundary::argument::Out;
use crate::boundary::array::{Array, Count, IntCount, OutArray};
use crate::boundary::reply::{Given, IntoC};
use crate::boundary::settings::settings;
use crate::boundary::{export, fallible, handles};
use crate::checkpoint::Checkpoint;
use crate::database::Database;
use crate::database::open::{Families, Mode};
use crate::database::read::{PinnedValue, Results, given_found};
use crate::failure::Failure;
use crate::family::FamilyHandle;
use crate::iterator::Iterator;
use crate::job_options::FlushSettings;
use crate::kept::{Kept, keeps_numbers};
use crate::options::Options;
use crate::read_options::ReadSettings;
use crate::snapshot::SnapshotHandle;
use crate::updates::FlushLogSettings;
use crate::write_options::WriteSettings;

/// `rocksdb_transactiondb_t`. Clients pass it as a `rocksdb_t` too (rust-rocksdb drops families so): in RocksDB both begin with
/// the same pointer. So a database comes first.
#[repr(C)]
pub struct TransactionDb {
    _as_database: Database,
    pub database: Arc<Database>,
    pub locks: Arc<LockTable>,
    /// Those without a handle.
    pub prepared: Arc<PreparedTransactions>,
    settings: DbSettings,
}

/// `rocksdb_transactiondb_options_t`. Times in milliseconds; negative: without end.
#[derive(Clone)]
pub struct DbSettings {
    /// Of writes without a transaction.
    default_lock_timeout: i64,
    /// Negative: no limit.
    max_num_locks: i64,
    /// Cycles remembered for reports.
    max_num_deadlocks: u32,
    num_stripes: usize,
    transaction_lock_timeout: i64,
    kept: Kept,
}

/// `rocksdb_transaction_options_t`. Times in milliseconds.
#[derive(Clone)]
pub struct TransactionSettings {
    deadlock_detect: bool,
    deadlock_detect_depth: i64,
    /// Negative: never.
    expiration: i64,
    /// Negative: the database's.
    lock_timeout: i64,
    /// Of the batch, in bytes; 0: no limit.
    max_write_batch_size: usize,
    set_snapshot: bool,
    /// A commit needs no prepare.
    skip_prepare: bool,
    kept: Kept,
}

impl Default for DbSettings {
    fn default() -> Self {
        DbSettings {
            default_lock_timeout: 1000,
            max_num_locks: -1,
            max_num_deadlocks: LockLimits::default().deadlocks_max as u32,
            num_stripes: LockLimits::default().stripes,
            transaction_lock_timeout: 1000,
            kept: Kept::default(),
        }
    }
}

impl Default for TransactionSettings {
    fn default() -> Self {
        TransactionSettings {
            deadlock_detect: false,
            deadlock_detect_depth: spillway::internal::DEADLOCK_DEPTH as i64,
            expiration: -1,
            lock_timeout: -1,
            max_write_batch_size: 0,
            set_snapshot: false,
            skip_prepare: true,
            kept: Kept::default(),
        }
    }
}

handles!(TransactionDb, DbSettings, TransactionSettings);

keeps_numbers!(DbSettings, TransactionSettings);

settings! { DbSettings as DB_ROWS, "rocksdb_transactiondb_options_";
    default_lock_timeout: i64 => default_lock_timeout;
    max_num_locks: i64 => max_num_locks;
    max_num_deadlocks: u32 => max_num_deadlocks;
    num_stripes: usize => num_stripes;
    transaction_lock_timeout: i64 => transaction_lock_timeout;
    default_write_batch_flush_threshold: i64 = 0;
    enable_udt_validation: c_uchar = 1;
    rollback_merge_operands: c_uchar = 0;
    skip_concurrency_control: c_uchar = 0;
    txn_commit_bypass_memtable_threshold: u32 = u32::MAX;
    use_per_key_point_lock_mgr: c_uchar = 0;
    write_policy: c_int = 0;
}

settings! { TransactionSettings as ROWS, "rocksdb_transaction_options_";
    deadlock_detect: c_uchar => deadlock_detect;
    deadlock_detect_depth: i64 => deadlock_detect_depth;
    expiration: i64 => expiration;
    lock_timeout: i64 => lock_timeout;
    max_write_batch_size: usize => max_write_batch_size;
    set_snapshot: c_uchar => set_snapshot;
    skip_prepare: c_uchar => skip_prepare;
    commit_bypass_memtable: c_uchar = 0;
    deadlock_timeout_us: i64 = 500;
    large_txn_commit_optimize_byte_threshold: u64 = 0;
    large_txn_commit_optimize_threshold: u32 = 0;
    skip_concurrency_control: c_uchar = 0;
    use_only_the_last_commit_time_batch_for_recovery: c_uchar = 0;
    write_batch_flush_threshold: i64 = -1;
    write_batch_track_timestamp_size: c_uchar = 0;
}

/// `None` for a negative number of milliseconds.
pub fn milliseconds(number: i64) -> Option<Duration> {
    u64::try_from(number).ok().map(Duration::from_millis)
}

impl DbSettings {
    fn limits(&self) -> LockLimits {
        let keys_max = usize::try_from(self.max_num_locks).ok();
        LockLimits { stripes: self.num_stripes, keys_max, deadlocks_max: self.max_num_deadlocks as usize }
    }
}

impl TransactionSettings {
    fn locking(&self, database: &DbSettings) -> Pessimistic {
        let lock_timeout = if self.lock_timeout < 0 { database.transaction_lock_timeout } else { self.lock_timeout };
        let depth = usize::try_from(self.deadlock_detect_depth).unwrap_or(0);
        let deadlock_depth = self.deadlock_detect.then_some(depth);
        let patience = Patience { wait_max: milliseconds(lock_timeout), deadlock_depth };
        Pessimistic { patience, expires_after: milliseconds(self.expiration) }
    }
}

impl TransactionDb {
    /// Locks the keys of recovered transactions.
    pub fn new(database: Box<Database>, settings: &DbSettings) -> Result<Box<TransactionDb>, Failure> {
        database.tell(&settings.kept);
        let locks = Arc::new(LockTable::of(&database.db, settings.limits()));
        let locking = TransactionSettings::default().locking(settings);
        let prepared = PreparedTransactions::of(&database.db, &locks, locking)?;
        let (_as_database, settings) = (*database.twin(), settings.clone());
        Ok(Box::new(TransactionDb { _as_database, database: Arc::from(database), locks, prepared, settings }))
    }

    pub fn begin(&self, write: &WriteSettings, settings: &TransactionSettings) -> TransactionHandle {
        self.database.tell(&settings.kept);
        let transaction = Transaction::pessimistic(&self.locks, settings.locking(&self.settings));
        let transaction = transaction.in_pool(&self.prepared);
        let mut handle = TransactionHandle::new(transaction, &self.database, write);
        handle.batch_bytes_max = settings.max_write_batch_size;
        handle.needs_prepare = !settings.skip_prepare;
        if settings.set_snapshot {
            handle.transaction.set_snapshot(&self.database.db);
        }
        handle
    }

    fn default_family(&self) -> &Arc<Family> {
        self.database.default_family()
    }

    /// One change, with its key locked. For a range deletion `value` is the end.
    pub fn write_one(
        &self,
        family: &Family,
        kind: ValueKind,
        key: &[u8],
        value: &[u8],
        settings: &WriteSettings,
    ) -> Result<(), Failure> {
        let mut batch = WriteBatch::new();
        match kind {
            ValueKind::Merge => batch.merge(family.id(), key, value),
            ValueKind::Deletion => batch.delete(family.id(), key),
            ValueKind::SingleDeletion => batch.single_delete(family.id(), key),
            ValueKind::RangeDeletion => batch.delete_range(family.id(), key, value),
            ValueKind::Value => batch.put(family.id(), key, value),
        }
        self.write(&batch, settings)
    }

    /// A batch, with its keys locked.
    pub fn write(&self, batch: &WriteBatch, settings: &WriteSettings) -> Result<(), Failure> {
        let wait_max = milliseconds(self.settings.default_lock_timeout);
        let patience = Patience { wait_max, deadlock_depth: None };
        let Database { db, .. } = &*self.database;
        Ok(lock_and_write(&self.locks, db, batch, self.database.writing(settings), patience)?)
    }
}

export! {
    fn rocksdb_transactiondb_options_create() -> Box<DbSettings> {
        Box::default()
    }

    fn rocksdb_transactiondb_options_destroy(options: Option<Box<DbSettings>>) {
        drop(options);
    }

    fn rocksdb_transaction_options_create() -> Box<TransactionSettings> {
        Box::default()
    }

    fn rocksdb_transaction_options_destroy(options: Option<Box<TransactionSettings>>) {
        drop(options);
    }

    /// Ends the database's threads and releases its directory, as rocksdb_close.
    fn rocksdb_transactiondb_close(database: Option<Box<TransactionDb>>) {
        let Some(database) = database else { return };
        super::close(&database.database);
    }

    /// The database for calls that do not look at locks; given back to rocksdb_transactiondb_close_base_db.
    fn rocksdb_transactiondb_get_base_db(database: &TransactionDb) -> Box<Database> {
        database.database.twin()
    }

    fn rocksdb_transactiondb_close_base_db(base: Option<Box<Database>>) {
        drop(base);
    }

    /// `old` is begun anew and returned, if given.
    fn rocksdb_transaction_begin(
        database: &TransactionDb,
        write: &WriteSettings,
        options: &TransactionSettings,
        old: Option<Box<TransactionHandle>>,
    ) -> Box<TransactionHandle> {
        let begun = database.begin(write, options);
        match old {
            None => Box::new(begun),
            Some(mut handle) => {
                *handle = begun;
                handle
            }
        }
    }

    /// Prepared transactions that have no handle, in the order of their prepares; freed by rocksdb_free. Each is handed out
    /// once, and again after a destroy without a commit or a rollback. NULL if there is none.
    fn rocksdb_transactiondb_get_prepared_transactions(
        database: &TransactionDb,
        count: Out<usize>,
    ) -> Given<*mut TransactionHandle> {
        let prepared = database.prepared.take_all();
        count.set(prepared.len());
        let write = WriteSettings::default();
        let handle = |transaction| Box::new(TransactionHandle::new(transaction, &database.database, &write)).into_c();
        let handles: Vec<*mut TransactionHandle> = prepared.into_iter().map(handle).collect();
        if handles.is_empty() { Given::NONE } else { Given::pointers(&handles) }
    }

    fn rocksdb_transactiondb_create_snapshot(database: &TransactionDb) -> Box<SnapshotHandle> {
        Box::new(SnapshotHandle::Own(database.database.db.snapshot()))
    }

    fn rocksdb_transactiondb_release_snapshot(_database: &TransactionDb, snapshot: Option<Box<SnapshotHandle>>) {
        drop(snapshot);
    }

    fn rocksdb_transactiondb_create_iterator(database: &TransactionDb, options: &ReadSettings) -> Box<Iterator> {
        Iterator::new(&database.database, database.default_family(), options)
    }

    fn rocksdb_transactiondb_create_iterator_cf(
        database: &TransactionDb,
        options: &ReadSettings,
        family: &FamilyHandle,
    ) -> Box<Iterator> {
        Iterator::new(&database.database, &family.0, options)
    }

    /// 0 if the property is known, else -1.
    fn rocksdb_transactiondb_property_int(database: &TransactionDb, name: &CStr, value: Out<u64>) -> c_int {
        database.database.int_property(database.default_family(), name, value)
    }

    /// NULL for an unknown property.
    fn rocksdb_transactiondb_property_value(database: &TransactionDb, name: &CStr) -> Given<c_char> {
        database.database.property(database.default_family(), name)
    }

    fn rocksdb_transactiondb_multi_get(
        database: &TransactionDb,
        options: &ReadSettings,
        count: Count,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        values: OutArray<*mut c_char>,
        lens: OutArray<usize>,
        errors: OutArray<*mut c_char>,
    ) {
        let keys: Vec<&[u8]> = keys.byte_strings(key_lens, count).collect();
        let families = iter::repeat_n(&**database.default_family(), count.get());
        let found = database.database.multi_get_of(families, &keys, options);
        Results { values, lens, errors }.fill(count, found);
    }

    fn rocksdb_transactiondb_multi_get_cf(
        database: &TransactionDb,
        options: &ReadSettings,
        families: Array<*const FamilyHandle>,
        count: Count,
        keys: Array<*const c_char>,
        key_lens: Array<usize>,
        values: OutArray<*mut c_char>,
        lens: OutArray<usize>,
        errors: OutArray<*mut c_char>,
    ) {
        let keys: Vec<&[u8]> = keys.byte_strings(key_lens, count).collect();
        let families = families.handles(count).map(|family| &*family.0);
        let found = database.database.multi_get_of(families, &keys, options);
        Results { values, lens, errors }.fill(count, found);
    }
}

fallible! {
    fn rocksdb_transactiondb_open(
        options: &Options,
        transaction_options: &DbSettings,
        name: &CStr,
    ) -> Box<TransactionDb> {
        TransactionDb::new(Database::open_default(options, name, Mode::Write)?, transaction_options)
    }

    fn rocksdb_transactiondb_open_column_families(
        options: &Options,
        transaction_options: &DbSettings,
        name: &CStr,
        count: IntCount,
        names: Array<*const c_char>,
        family_options: Array<*const Options>,
        handles: OutArray<*mut FamilyHandle>,
    ) -> Box<TransactionDb> {
        let families = Families { count, names, options: family_options, handles };
        TransactionDb::new(Database::open_families(options, name, families, Mode::Write)?, transaction_options)
    }

    fn rocksdb_transactiondb_create_column_family(
        database: &TransactionDb,
        options: &Options,
        name: &CStr,
    ) -> Box<FamilyHandle> {
        database.database.create_family(options, name, crate::database::families::NO_TTL)
    }

    fn rocksdb_transactiondb_checkpoint_object_create(database: &TransactionDb) -> Box<Checkpoint> {
        Ok(Checkpoint::of(&database.database))
    }

    fn rocksdb_transactiondb_flush(database: &TransactionDb, options: &FlushSettings) {
        database.database.flush(&[database.default_family()], options)
    }

    fn rocksdb_transactiondb_flush_cf(database: &TransactionDb, options: &FlushSettings, family: &FamilyHandle) {
        database.database.flush(&[&family.0], options)
    }

    fn rocksdb_transactiondb_flush_cfs(
        database: &TransactionDb,
        options: &FlushSettings,
        families: Array<*const FamilyHandle>,
        count: IntCount,
    ) {
        let families: Vec<&Arc<Family>> = families.handles(count).map(|family| &family.0).collect();
        database.database.flush(&families, options)
    }

    /// A write reaches the file before it returns: only the sync is left to do.
    fn rocksdb_transactiondb_flush_wal(database: &TransactionDb, sync: bool) {
        let Database { db, .. } = &*database.database;
        if sync { db.sync_log().map_err(|error| database.database.refused(error)) } else { Ok(()) }
    }

    fn rocksdb_transactiondb_flush_wal_with_options(database: &TransactionDb, options: &FlushLogSettings) {
        database.database.flush_log(options)
    }

    fn rocksdb_transactiondb_get(
        database: &TransactionDb,
        options: &ReadSettings,
        key[key_len]: &[u8],
        len: Out<usize>,
    ) -> Given<c_char> {
        given_found(database.database.look_up(database.default_family(), key, options), len)
    }

    fn rocksdb_transactiondb_get_cf(
        database: &TransactionDb,
        options: &ReadSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        len: Out<usize>,
    ) -> Given<c_char> {
        given_found(database.database.look_up(&family.0, key, options), len)
    }

    fn rocksdb_transactiondb_get_pinned(
        database: &TransactionDb,
        options: &ReadSettings,
        key[key_len]: &[u8],
    ) -> Option<Box<PinnedValue>> {
        Ok(database.database.look_up(database.default_family(), key, options)?.map(PinnedValue::new))
    }

    fn rocksdb_transactiondb_get_pinned_cf(
        database: &TransactionDb,
        options: &ReadSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
    ) -> Option<Box<PinnedValue>> {
        Ok(database.database.look_up(&family.0, key, options)?.map(PinnedValue::new))
    }

    fn rocksdb_transactiondb_put(
        database: &TransactionDb,
        options: &WriteSettings,
        key[key_len]: &[u8],
        value[value_len]: &[u8],
    ) {
        database.write_one(database.default_family(), ValueKind::Value, key, value, options)
    }

    fn rocksdb_transactiondb_put_cf(
        database: &TransactionDb,
        options: &WriteSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        value[value_len]: &[u8],
    ) {
        database.write_one(&family.0, ValueKind::Value, key, value, options)
    }

    fn rocksdb_transactiondb_merge(
        database: &TransactionDb,
        options: &WriteSettings,
        key[key_len]: &[u8],
        value[value_len]: &[u8],
    ) {
        database.write_one(database.default_family(), ValueKind::Merge, key, value, options)
    }

    fn rocksdb_transactiondb_merge_cf(
        database: &TransactionDb,
        options: &WriteSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
        value[value_len]: &[u8],
    ) {
        database.write_one(&family.0, ValueKind::Merge, key, value, options)
    }

    fn rocksdb_transactiondb_delete(database: &TransactionDb, options: &WriteSettings, key[key_len]: &[u8]) {
        database.write_one(database.default_family(), ValueKind::Deletion, key, &[], options)
    }

    fn rocksdb_transactiondb_delete_cf(
        database: &TransactionDb,
        options: &WriteSettings,
        family: &FamilyHandle,
        key[key_len]: &[u8],
    ) {
        database.write_one(&family.0, ValueKind::Deletion, key, &[], options)
    }

    /// Locks the batch's keys first, and the ranges of its range deletions.
    fn rocksdb_transactiondb_write(database: &TransactionDb, options: &WriteSettings, batch: &Batch) {
        database.write(batch.written()?, options)
    }
}
