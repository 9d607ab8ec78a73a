//! Spillway: an embedded LSM key-value store whose foreground writes wait for nothing but their own log record.
//!
//! The folders follow the lives of data: `write`, `read`, `flush`, `ingest`, `version`, `compaction`. `ARCHITECTURE.md` at the
//! root of the repository tells the lives of a put, a get, a flush, a compaction and a recovery, and the lock order.
#![forbid(unsafe_code)]

mod background;
pub mod backup;
pub(crate) mod caught;
pub mod check;
pub mod checkpoint;
pub mod compaction;
pub mod config;
pub mod context;
pub(crate) mod core;
pub mod db;
mod drop_tables;
pub mod dump;
pub mod export;
pub mod family;
pub mod flush;
pub mod info_log;
pub mod ingest;
pub(crate) mod install;
pub(crate) mod jobs;
pub mod manage;
pub(crate) mod meter;
pub(crate) mod notices;
pub(crate) mod open;
pub(crate) mod pace;
pub mod read;
pub(crate) mod removal;
pub mod repair;
pub(crate) mod replay;
pub mod report;
pub(crate) mod space;
pub(crate) mod staging;
pub mod table_writer;
pub(crate) mod tables;
pub(crate) mod tasks;
pub mod version;
pub(crate) mod work;
pub mod write;

pub use background::{Env, EnvOptions};
pub use base::options::{DbOptions, FamilyOptions};
pub use base::{Comparator, FamilyId, FileNumber, UserOrder, extend, limits, merge, metrics, options};
pub use base::{Error, ErrorKind, Pinned, Result, SeqNo, ValueKind};
pub use compaction::{BottommostLevelCompaction, CompactRangeOptions};
pub use db::{DEFAULT_FAMILY, Db, OpenOptions, OtherFamilies};
pub use family::Family;
pub use ingest::{
    FileChecksum, IngestMode, IngestOptions, IngestProgress, IngestReport, IngestRequest, IngestWaitReport, IngestWay,
    PreparedIngest,
};
pub use read::damage::SkippedDamage;
pub use read::iterator::DbIterator;
pub use read::options::ReadOptions;
pub use read::snapshot::Snapshot;
pub use repair::{LostTable, RepairReport, RepairedFamily, repair};
pub use table::{BlockCache, PassedOver};
pub use table_writer::{TableWriter, WrittenTable};
pub use vfs;
pub use write::batch::WriteBatch;
pub use write::options::WriteOptions;

/// The examples of the pages for users.
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
