//! The engine as the workspace's own crates use it: the C library, the command, the benchmarks and the tests. Names
//! here change without notice; programs use the items at the crate's root.

pub use base::options::{DbOptions, FamilyOptions};
pub use base::{Comparator, FamilyId, FileNumber, UserOrder, extend, limits, merge, metrics, name, options};
pub use base::{Error, ErrorKind, Pinned, Result, SeqNo, ValueKind, shell};
pub use table::{BlockCache, PassedOver};
pub use vfs;

pub use crate::background::{Env, EnvOptions, RateLimiter};
pub use crate::batch::options::WriteOptions;
pub use crate::batch::{UNKNOWN_TAG, WriteBatch};
pub use crate::compaction::{BottommostLevelCompaction, CompactFilesOptions, CompactRangeOptions};
pub use crate::core::doubt::Doubt;
pub use crate::core::family::Family;
pub use crate::core::open_options::{DEFAULT_FAMILY, OpenOptions, OtherFamilies};
pub use crate::core::{FAMILY_DROPPED, READING_REFUSAL, SECONDARY_REFUSAL};
pub use crate::cursor::damage::SkippedDamage;
pub use crate::cursor::options::{ReadOptions, ReadTier, TableFilter};
pub use crate::cursor::snapshot::Snapshot;
pub use crate::database::handle::Database;
pub use crate::database::report;
pub use crate::engine::Lag;
pub use crate::ingest::table_writer::{TableWriter, WrittenTable};
pub use crate::ingest::{
    FileChecksum, IngestMode, IngestOptions, IngestProgress, IngestReport, IngestRequest, IngestWaitReport, IngestWay,
    NOT_BOTTOMMOST, PreparedIngest,
};
pub use crate::maintenance::repair::{LostTable, RepairReport, RepairedFamily, repair};
pub use crate::maintenance::salvaged_table::{SalvagedTable, salvage_table};
pub use crate::maintenance::table_walk::TableWalk;
pub use crate::maintenance::{backup, check, dump};
pub use crate::manage::{checkpoint, export};
pub use crate::order::stall;
pub use crate::queue::memory::MemoryBudget;
pub use crate::read::iterator::DbIterator;
pub use crate::transaction::locks::{DEADLOCK_DEPTH, LOCK_LIMIT, LockLimits, LockTable, Mode as LockMode, Patience};
pub use crate::transaction::{Change, Counts, Pessimistic, PreparedTransactions, Track, Transaction, lock_and_write};
pub use crate::updates::{LogCursor, LogFileReport, Update};

pub mod batch {
    pub use crate::batch::*;
}

pub mod compaction {
    pub use crate::compaction::{BottommostLevelCompaction, CompactFilesOptions, CompactRangeOptions};
}

#[cfg(feature = "config")]
pub mod config {
    pub use crate::config::{Config, ConfiguredDb, Environment, Start};
}

pub mod indexed {
    pub use crate::transaction::indexed::{
        Below, Entries, IndexedBatch, Move, Operator, OverBase, SharedBatch, merged, operator_of,
    };
}

pub mod version {
    pub use crate::version::{backup_dirs, edit, edit_codec, file_name, incomplete, recover};
}

pub mod ttl {
    pub use crate::ttl::{MergeName, STAMPED_MERGE, Stamps, Times, WITHOUT_TIME, timed, unstamp, unstamped};
}
