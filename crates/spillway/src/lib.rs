//! Spillway: an embedded LSM key-value store. A foreground write waits only for its own WAL record.
//!
//! The folders are organized by subject: `commit`, `wal`, `queue`, `read`, `flush`, `ingest`, `version`, `compaction`
//! and more. `ARCHITECTURE.md` at the root of the repository describes the lives of a put, a get, a flush, a compaction
//! and a recovery, and the lock order.
#![forbid(unsafe_code)]

pub mod api;
mod background;
pub mod commit;
pub mod compaction;
pub mod config;
pub(crate) mod core;
pub mod flush;
pub mod info_log;
pub mod ingest;
pub(crate) mod jobs;
pub mod maintenance;
pub(crate) mod open;
pub mod queue;
pub mod read;
pub mod version;
pub mod wal;

pub use api::db::{DEFAULT_FAMILY, Db, OpenOptions, OtherFamilies};
pub use api::report;
pub use background::{Env, EnvOptions, RateLimiter};
pub use base::options::{DbOptions, FamilyOptions};
pub use base::{Comparator, FamilyId, FileNumber, UserOrder, extend, limits, merge, metrics, options};
pub use base::{Error, ErrorKind, Pinned, Result, SeqNo, ValueKind};
pub use commit::batch::WriteBatch;
pub use commit::options::WriteOptions;
pub use compaction::{BottommostLevelCompaction, CompactRangeOptions};
pub use core::family::Family;
pub use ingest::table_writer::{TableWriter, WrittenTable};
pub use ingest::{
    FileChecksum, IngestMode, IngestOptions, IngestProgress, IngestReport, IngestRequest, IngestWaitReport, IngestWay,
    PreparedIngest,
};
pub use maintenance::repair::{LostTable, RepairReport, RepairedFamily, repair};
pub use maintenance::{backup, check, checkpoint, dump, export};
pub use read::damage::SkippedDamage;
pub use read::iterator::DbIterator;
pub use read::options::ReadOptions;
pub use read::snapshot::Snapshot;
pub use table::{BlockCache, PassedOver};
pub use vfs;

/// Runs the examples in the user documentation.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/guide.md")]
    struct Guide;

    #[doc = include_str!("../../../docs/configuration.md")]
    struct Configuration;

    #[doc = include_str!("../../../docs/ingest.md")]
    struct Ingest;

    #[doc = include_str!("../../../docs/memtables.md")]
    struct Memtables;

    #[doc = include_str!("../../../README.md")]
    struct Readme;
}
