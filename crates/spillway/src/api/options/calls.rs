//! Options of single calls.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base::options::CompressionKind;
use base::{Comparator, UserOrder};

use crate::api::snapshot::Snapshot;
use crate::batch::options::WriteOptions as EngineWriteOptions;
use crate::compaction::{
    BottommostLevelCompaction, CompactFilesOptions as EngineCompactFilesOptions, CompactRangeOptions,
};
use crate::cursor::damage::SkippedDamage;
use crate::cursor::options::{ReadOptions as EngineReadOptions, ReadTier};
use crate::ingest::{IngestMode, IngestOptions as EngineIngestOptions};
use crate::maintenance::backup::BackupOptions as EngineBackupOptions;
use crate::transaction::Pessimistic;
use crate::transaction::locks::{DEADLOCK_DEPTH, Patience};

/// Defines the options of a call: a type around the engine's, with a setter per field.
macro_rules! call_options {
    (
        $(#[$about:meta])*
        struct $Options:ident($Engine:ty);
        $( $(#[$doc:meta])* $field:ident: $type:ty; )+
    ) => {
        $(#[$about])*
        #[derive(Clone, Default)]
        #[must_use = "options do nothing until they are given to a call"]
        pub struct $Options(pub(in crate::api) $Engine);

        impl $Options {
            /// The defaults.
            pub fn new() -> Self {
                $Options::default()
            }

            $(
                $(#[$doc])*
                pub fn $field(mut self, $field: $type) -> Self {
                    self.0.$field = $field;
                    self
                }
            )+
        }

        #[doc(hidden)]
        impl From<$Engine> for $Options {
            fn from(options: $Engine) -> Self {
                $Options(options)
            }
        }
    };
}

call_options! {
    /// Options of a write.
    struct WriteOptions(EngineWriteOptions);

    /// Returns once this write, and all before it, survive a loss of power: waits for one sync of the log, which
    /// concurrent writers share.
    sync: bool;
    /// Skips the log: the write is lost if the process ends before its memtable is flushed.
    disable_wal: bool;
    /// Flushes the written families before the call returns. If the flush fails, the error is returned although the
    /// change was written.
    flush_after: bool;
    /// Fails with `Busy` instead of waiting for flushes or compactions that are behind.
    no_slowdown: bool;
    /// Skips changes to dropped families instead of failing the batch.
    ignore_missing_column_families: bool;
}

call_options! {
    /// Options of a read.
    struct ReadOptions(EngineReadOptions);

    /// Where to look: everywhere, by default, or in memory only.
    read_tier: ReadTier;
    /// Verifies the checksum of every block read from a file; true by default.
    verify_checksums: bool;
    /// Puts blocks read from files into the block cache; true by default. False spares the cache a long scan.
    fill_cache: bool;
    /// Ends an iterator where the prefix of its seek target ends, by the family's prefix extractor, and asks prefix
    /// filters.
    prefix_same_as_start: bool;
    /// Iterates over all keys in order, even if a table's filter or index is by prefix.
    total_order_seek: bool;
    /// Bytes to read ahead of an iterator; 0 adapts to what it does.
    readahead_size: usize;
    /// Most deleted or replaced entries that one step of an iterator passes; beyond them it fails with `Busy`. 0 for no
    /// limit.
    max_skippable_internal_keys: u64;
}

impl ReadOptions {
    /// Reads this state of the database instead of the present one.
    pub fn snapshot(mut self, snapshot: &Snapshot) -> Self {
        self.0.snapshot = Some(snapshot.inner.clone());
        self
    }

    /// Iterators pass damaged blocks, values and tables, and list them in `damage`. What a damaged block hid may show: an
    /// older value, or a deleted key. Lookups still fail.
    pub fn skip_damaged(mut self, damage: &Arc<SkippedDamage>) -> Self {
        self.0.skip_damaged = Some(damage.clone());
        self
    }
}

/// Options of a transaction.
#[derive(Clone)]
#[must_use = "options do nothing until they are given to a call"]
pub struct TransactionOptions {
    pub(in crate::api) snapshot: bool,
    pub(in crate::api) write: Option<EngineWriteOptions>,
    pub(in crate::api) is_pessimistic: bool,
    pub(in crate::api) locking: Pessimistic,
}

impl Default for TransactionOptions {
    fn default() -> Self {
        let patience = Patience { wait_max: Some(LOCK_TIMEOUT), deadlock_depth: Some(DEADLOCK_DEPTH) };
        let locking = Pessimistic { patience, expires_after: None };
        TransactionOptions { snapshot: false, write: None, is_pessimistic: false, locking }
    }
}

/// RocksDB's default.
const LOCK_TIMEOUT: Duration = Duration::from_secs(1);

impl TransactionOptions {
    /// The defaults.
    pub fn new() -> Self {
        TransactionOptions::default()
    }

    /// Takes a snapshot at the begin: reads show that state, and the commit fails if a key that was written, or read for
    /// an update, has changed since. Without it reads show the present state, and keys must not change from their first
    /// use on.
    pub fn snapshot(mut self, snapshot: bool) -> Self {
        self.snapshot = snapshot;
        self
    }

    /// Options of the commit's write; those of the database by default.
    pub fn write_options(mut self, options: &WriteOptions) -> Self {
        self.write = Some(options.0);
        self
    }

    /// Locks each key before it is changed or read for an update, so that other pessimistic transactions wait; the commit
    /// then fails for no conflict. For keys that many change at a time. Writes without a transaction, and optimistic ones,
    /// do not look at locks. False by default.
    pub fn pessimistic(mut self, pessimistic: bool) -> Self {
        self.is_pessimistic = pessimistic;
        self
    }

    /// How long a lock is waited for; then the call fails with [`TimedOut`](base::ErrorKind::TimedOut). `None`: without end.
    /// One second by default.
    pub fn lock_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.locking.patience.wait_max = timeout;
        self
    }

    /// Looks for deadlocks before it waits for a lock: the call that closes a cycle fails at once with
    /// [`Deadlock`](base::ErrorKind::Deadlock). True by default; false: such transactions wait for their time-outs.
    pub fn deadlock_detection(mut self, detects: bool) -> Self {
        self.locking.patience.deadlock_depth = detects.then_some(DEADLOCK_DEPTH);
        self
    }

    /// After this time others may take the locks, as of a program that hangs; the commit then fails with
    /// [`Expired`](base::ErrorKind::Expired). Never by default.
    pub fn expires_after(mut self, time: Option<Duration>) -> Self {
        self.locking.expires_after = time;
        self
    }
}

call_options! {
    /// Options of an ingest.
    struct IngestOptions(EngineIngestOptions);

    /// How the ingest is ordered against writes beside it; by default no writer waits.
    mode: IngestMode;
    /// Links the files, and removes their old names once the ingest is committed.
    move_files: bool;
    /// Links the files and keeps their old names. They must not be changed any more.
    link_files: bool;
    /// Copies files that cannot be linked; true by default.
    failed_move_fall_back_to_copy: bool;
    /// Allows tables to need a sequence number; true by default. Else the ingest fails if it overlaps anything.
    allow_global_seqno: bool;
    /// Allows stopping writers for a flush where the mode needs to; true by default. Else the ingest fails.
    allow_blocking_flush: bool;
    /// Puts the tables under all existing data: keys that exist stay as they are. Needs `cf_allow_ingest_behind`.
    ingest_behind: bool;
    /// Reads every block, and checks checksums, order and counts, before anything is ingested.
    verify_checksums_before_ingest: bool;
    /// Fails unless every table fits into the last level with nothing above it.
    fail_if_not_bottommost_level: bool;
    /// Takes tables of a database, too, and writes them anew.
    allow_db_generated_files: bool;
    /// Fails with `Busy` if the ingest would wait for flushes, compactions or another ingest.
    no_slowdown: bool;
    /// The tables' values carry times, though nothing in the tables says so: [`Family::table_writer`](crate::Family::table_writer) of
    /// an early version wrote them, or RocksDB's `DBWithTTL` did.
    value_times: bool;
}

call_options! {
    /// Options of a compaction by hand.
    struct CompactOptions(CompactRangeOptions);

    /// Waits for running compactions, and keeps automatic ones from starting, in the whole database.
    exclusive_manual_compaction: bool;
    /// Moves the tables to `target_level` afterwards.
    change_level: bool;
    /// The level to move to; `None`: the uppermost with room for them.
    target_level: Option<usize>;
    /// What is done with tables already in the deepest level.
    bottommost_level_compaction: BottommostLevelCompaction;
    /// Threads to split the compaction over; 0 for the database's option.
    max_subcompactions: usize;
    /// A flag that ends the call once it is true: the call fails with `Incomplete`.
    canceled: Option<Arc<AtomicBool>>;
}

call_options! {
    /// Options of a compaction of named tables.
    struct CompactFilesOptions(EngineCompactFilesOptions);

    /// How the new tables are compressed; `Disable`, the default: as those of their level.
    compression: CompressionKind;
    /// Bytes of a new table, at most; no limit by default.
    output_file_size_limit: u64;
    /// Threads to split the compaction over; 0 for the database's option.
    max_subcompactions: usize;
    /// Lets tables go to their level as they are.
    allow_trivial_move: bool;
    /// A flag that ends the call once it is true: the call fails with `Incomplete`.
    canceled: Option<Arc<AtomicBool>>;
}

call_options! {
    /// Options of a directory of backups.
    struct BackupOptions(EngineBackupOptions);

    /// Shares tables between backups; true by default. Else each backup has copies of its own.
    share_table_files: bool;
    /// Syncs all that is written, so that a finished backup survives a loss of power; true by default.
    sync: bool;
    /// Files copied or checked at once; 1 by default.
    max_background_operations: usize;
    /// Deletes all backups in the directory when it is opened.
    destroy_old_data: bool;
}

impl BackupOptions {
    /// A comparator of your own: tables of its families are checked only if it is given.
    pub fn comparator(mut self, comparator: impl Comparator + 'static) -> Self {
        self.0.orders.push(UserOrder::Custom(Arc::new(comparator)));
        self
    }
}
