//! Options of a whole database.

use std::sync::Arc;

use crate::error::Result;
use crate::extend::{Listeners, Logger};
use crate::options::choices::{CpuPriority, InfoLogLevel, LogBacking, WalRecoveryMode};
use crate::options::file_mode::FileMode;
use crate::options::known;
use crate::options::row::{ANY, at_least, option_table, within};
use crate::options::string;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;

option_table! {
    for_each: ($) for_each_db_option;
    /// Options of a whole database.
    struct DbOptions = "DBOptions", unhonoured: known::DB;

    /// Creates the database where there is none.
    create_if_missing: bool = false, ANY, RocksDb, Fixed;
    /// Fails where there already is a database.
    error_if_exists: bool = false, ANY, RocksDb, Fixed;
    /// Creates the families named at open that do not exist.
    create_missing_column_families: bool = false, ANY, RocksDb, Fixed;
    /// Opens the tables of level 0 with the database, so that damage in what was written last fails the open.
    paranoid_checks: bool = true, ANY, RocksDb, Fixed;
    /// Table files kept open; -1 keeps all of them open.
    max_open_files: i32 = -1, at_least(-1.0), RocksDb, Mutable;
    /// Threads for flushes and compactions together.
    max_background_jobs: usize = 2, within(1.0, 1024.0), RocksDb, Mutable;
    /// Threads that one compaction can be split over.
    max_subcompactions: usize = 1, within(1.0, 1024.0), RocksDb, Mutable;
    /// Whether compactions give way to all other threads, writers among them, where processors are short
    /// (RocksDB's `Env::LowerThreadPoolCPUPriority`).
    compaction_cpu_priority: CpuPriority = CpuPriority::Normal, ANY, Spillway, Fixed;
    /// Bytes of log at which the families that hold the oldest log are flushed; 0 is four times the memtables' budget.
    max_total_wal_size: u64 = 0, ANY, RocksDb, Mutable;
    /// The folder of the log files; empty for the database's own.
    wal_dir: String = String::new(), ANY, RocksDb, Fixed;
    /// Seconds that logs are kept in the folder `archive` of the log folder once all of them is in tables, for readers of
    /// updates; older ones are deleted. With this and `WAL_size_limit_MB` 0 logs are deleted at once.
    wal_ttl_seconds as "WAL_ttl_seconds": u64 = 0, ANY, RocksDb, Mutable;
    /// Megabytes of logs kept in that folder, the newest ones; 0 for no limit but `WAL_ttl_seconds`.
    wal_size_limit_mb as "WAL_size_limit_MB": u64 = 0, ANY, RocksDb, Mutable;
    /// What recovery makes of a damaged log.
    wal_recovery_mode: WalRecoveryMode = WalRecoveryMode::PointInTime, ANY, RocksDb, Fixed;
    /// Where tables are missing, of another size, or the MANIFEST is damaged: goes back to the newest point of the MANIFEST at
    /// which all tables are there. The logs are replayed where they hold all that followed; else they are not, and
    /// families can stand at different points. What does not count then is kept in `lost/`.
    best_efforts_recovery: bool = false, ANY, RocksDb, Fixed;
    /// Reads memtables' files where a process that ended left them, instead of replaying the log as far as they go
    /// (`convert_to_sst=kFileMmap`). The files' bytes are trusted as memory is: they are not checksummed, and what changes
    /// them changes values for good. The log has the right ones only until the flush; false replays it.
    memtable_crash_safe_recover: bool = true, ANY, Spillway, Fixed;
    /// Bytes of a table after which the disk is to have begun with it and to have ended with those before; 0 is 512 KiB.
    bytes_per_sync: u64 = 0, ANY, RocksDb, Mutable;
    /// Bytes of the log after which the disk is to have begun with it, beside the writers; 0 for not before a sync, or the
    /// system's own time. Where writes are not synced, an ingest, and a write with `sync` among them, then waits for little
    /// more than so many bytes; the disk writes logs too that would have been deleted before. Looked at every 256 KiB.
    wal_bytes_per_sync: u64 = 0, ANY, RocksDb, Mutable;
    /// Most bytes per second written by flushes and compactions; jobs with a waiting caller have no limit. 0: while callers
    /// sync the log, only as fast as needed to keep up; otherwise without a limit. Changed in an open database, it is the
    /// limit of all that share its limiter. (RocksDB reads it and never writes it: to RocksDB 0 is a limit.)
    rate_limiter_bytes_per_sec: u64 = 0, ANY, Spillway, Mutable;
    /// Bytes that all memtables together may hold; 0 for no limit. The largest are flushed before that is reached.
    db_write_buffer_size: usize = 0, ANY, RocksDb, Fixed;
    /// Writers wait where memtables hold `db_write_buffer_size` bytes; else that is passed until a flush has ended. As the
    /// argument of RocksDB's WriteBufferManager, but true if not said otherwise: the limit is one.
    allow_stall: bool = true, ANY, Spillway, Fixed;
    /// The replay of an open flushes where memtables reach their limit, so that they hold no more than while the database is
    /// open; else only full memtables. (RocksDB has it since version 8.)
    enforce_write_buffer_manager_during_recovery: bool = true, ANY, Spillway, Fixed;
    /// Bytes per second that writers are held to while compactions are behind; 0 is 16 MiB.
    delayed_write_rate: u64 = 0, ANY, RocksDb, Mutable;
    /// Bytes at which a new MANIFEST is begun.
    max_manifest_file_size: u64 = GIB, at_least(1024.0), RocksDb, Fixed;
    /// Closes without flushing what only memtables hold and the log does not (writes with `disableWAL` are lost).
    avoid_flush_during_shutdown: bool = false, ANY, RocksDb, Mutable;
    /// Flushes all families together, and their tables count together: of writes without a log, a crash leaves what all
    /// families held at one instant. `min_write_buffer_number_to_merge` is 1 then, no memtable becomes a table as it is,
    /// and ingests flush what they overlap.
    atomic_flush: bool = false, ANY, RocksDb, Fixed;
    /// Lets writers insert into a memtable at the same time, where its representation allows it.
    allow_concurrent_memtable_write: bool = true, ANY, RocksDb, Fixed;
    /// Maps tables into memory: blocks that are not compressed are read without a call, a copy or the block cache. For
    /// data that fits in memory. A page that the disk cannot read is an error. Linux and macOS.
    allow_mmap_reads: bool = false, ANY, RocksDb, Fixed;
    /// `cf_allow_ingest_behind` of every family.
    allow_ingest_behind: bool = false, ANY, RocksDb, Fixed;
    /// Seconds between dumps of statistics to the event log; 0 for never.
    stats_dump_period_sec: u32 = 600, ANY, RocksDb, Mutable;
    /// Bytes of one log file.
    log_file_bytes: u64 = 64 * MIB, within(65536.0, 17179869184.0), Spillway, Fixed;
    /// How log files are written.
    log_backing: LogBacking = LogBacking::Auto, ANY, Spillway, Fixed;
    /// Leaves values in the log where memtables become tables (`convert_to_sst`): memtables and their tables refer to them.
    memtable_as_log_index: bool = false, ANY, Spillway, Fixed;
    /// Bytes above which a batch gets a log file of its own instead of holding up every other writer's publication.
    large_batch_bytes: u64 = 64 * MIB, within(4096.0, 4294000000.0), Spillway, Fixed;
    /// Permissions of new files, as octal digits; a directory that is made can be entered by those who read them. 0640 lets a
    /// group read. The umask takes from them. Files that are there stay as they are. No effect on Windows.
    file_mode: FileMode = FileMode::DEFAULT, ANY, Spillway, Fixed;
    /// The directory of the event log (`LOG`), which then has the database's path in its name; empty for the database's own.
    db_log_dir: String = String::new(), ANY, RocksDb, Fixed;
    /// What the event log takes: lines of this level and above. A logger in its place has a level of its own.
    info_log_level: InfoLogLevel = InfoLogLevel::Info, ANY, RocksDb, Fixed;
    /// Event logs kept, the one being written included.
    keep_log_file_num: usize = 1000, at_least(1.0), RocksDb, Fixed;
    /// Bytes of an event log at which another is begun; 0 for no limit.
    max_log_file_size: u64 = 0, ANY, RocksDb, Fixed;
    /// Seconds after which another event log is begun; 0 for never.
    log_file_time_to_roll: u64 = 0, ANY, RocksDb, Fixed;
    /// Counts what the database does, for the statistics properties.
    statistics: bool = false, ANY, Spillway, Fixed;
    /// Serves readings of the open database at a Unix socket, `OBSERVE.sock` in its directory, to programs of the same user:
    /// `spillway top`, `spillway serve`, `spillway metrics` attach there.
    observe_socket: bool = false, ANY, Spillway, Fixed;
    /// Microseconds from which a write is told of, with where its time went: in the event log, to `Db::events` and `tracing`,
    /// ten a second at most. 0 for never. 10000 suits writes without sync; synced ones take their disk's time.
    slow_operation_micros: u64 = 0, ANY, Spillway, Mutable;
    /// Lets programs attached to that socket change options that can change while the database is open.
    observe_changes: bool = false, ANY, Spillway, Fixed;

    /// Has options that change what is stored, kept or found, and cannot be honoured, told of instead of refused.
    ignore_unsupported_options: bool = false, ANY, Unwritten, Fixed;

    beside
    /// Told about flushes, compactions, stalls and background errors.
    listeners: Listeners = Vec::new();
    /// Takes the lines of the event log, in place of the file.
    info_log: Option<Arc<dyn Logger>> = None;
}

impl DbOptions {
    /// # Errors
    /// `InvalidArgument`: a value out of bounds, named.
    pub fn validate(&self) -> Result<()> {
        string::check_bounds(self)
    }
}
