//! The types with handles: one for each class of Java's, or for several of one kind.

use capi::backup::{BackupSettings, Backups, RestoreSettings};
use capi::cache::Cache;
use capi::checkpoint::Checkpoint;
use capi::compact_files::CompactFilesSettings;
use capi::env::EnvHandle;
use capi::family::FamilyHandle;
use capi::file_manager::FileManager;
use capi::ingest::IngestSettings;
use capi::job_options::{CompactSettings, FlushSettings};
use capi::metadata::exported::{Exported, ImportSettings};
use capi::options::Options;
use capi::options::styles::{Fifo, Universal};
use capi::options::table::Filter as TableFilter;
use capi::perf::PerfContext;
use capi::read_options::ReadSettings;
use capi::snapshot::SnapshotHandle;
use capi::statistics::SharedStatistics;
use capi::table_writer::TableMaker;
use capi::transactions::OptimisticSettings;
use capi::transactions::locking::{DbSettings, TransactionSettings};
use capi::updates::LogIterator;
use capi::write_buffer_manager::WriteBufferManager;
use capi::write_options::WriteSettings;
use spillway::internal::TableWalk;

use crate::batch::Batch;
use crate::batch::handler::Handler;
use crate::batch::indexed::Indexed;
use crate::batch::walk::BatchWalk;
use crate::boundary::handle::held;
use crate::callbacks::comparator::{ComparatorOptions, Order};
use crate::callbacks::filter::{Factory, Filter};
use crate::callbacks::flink::ConfigHolder;
use crate::callbacks::listener::Listener;
use crate::callbacks::logger::Logger;
use crate::callbacks::table_filter::Chooser;
use crate::database::Db;
use crate::extend::{Collector, Merge, Partitioner};
use crate::files::compaction_info::{JobInfo, JobStats};
use crate::files::table_reader::TableReader;
use crate::iterator::Walk;
use crate::objects::limiter::{RateLimit, TaskLimiter};
use crate::objects::slice::Slice;
use crate::options::compression::CompressionSettings;
use crate::options::config::ConfigSettings;
use crate::options::env::EnvSettings;
use crate::options::table::{Memtable, TableFormat};
use crate::transactions::Txn;
use crate::transactions::notifier::Notifier;

held! {
    Database = Db,
    // `Options`, `DBOptions` and `ColumnFamilyOptions`: each reads its own part.
    Options = Options,
    ReadOptions = ReadSettings,
    WriteOptions = WriteSettings,
    FlushOptions = FlushSettings,
    CompactRangeOptions = CompactSettings,
    CompactionOptions = CompactFilesSettings,
    Family = FamilyHandle,
    Snapshot = SnapshotHandle,
    Iterator = Walk,
    Comparator = Order,
    ComparatorOptions = ComparatorOptions,
    CompactionFilter = Filter,
    CompactionFilterFactory = Factory,
    FlinkConfig = ConfigHolder,
    Logger = Logger,
    EventListener = Listener,
    Statistics = SharedStatistics,
    Cache = Cache,
    TableFilter = TableFilter,
    TableChooser = Chooser,
    TableFactory = TableFormat,
    MemtableFactory = Memtable,
    MergeOperator = Merge,
    Partitioner = Partitioner,
    Collector = Collector,
    Slice = Slice,
    Env = EnvHandle,
    EnvOptions = EnvSettings,
    RateLimiter = RateLimit,
    TaskLimiter = TaskLimiter,
    WriteBufferManager = WriteBufferManager,
    SstFileManager = FileManager,
    CompressionOptions = CompressionSettings,
    UniversalOptions = Universal,
    FifoOptions = Fifo,
    ConfigOptions = ConfigSettings,
    IngestOptions = IngestSettings,
    ImportOptions = ImportSettings,
    BackupOptions = BackupSettings,
    RestoreOptions = RestoreSettings,
    TransactionDbOptions = DbSettings,
    TransactionOptions = TransactionSettings,
    OptimisticTransactionOptions = OptimisticSettings,
    PerfContext = PerfContext,
    Batch = Batch,
    IndexedBatch = Indexed,
    BatchWalk = BatchWalk,
    BatchHandler = Handler,
    Transaction = Txn,
    TransactionNotifier = Notifier,
    Checkpoint = Checkpoint,
    Exported = Exported,
    Backups = Backups,
    CompactionJobInfo = JobInfo,
    CompactionJobStats = JobStats,
    TableReader = TableReader,
    TableWalk = TableWalk,
    TableWriter = TableMaker,
    Updates = LogIterator,
}
