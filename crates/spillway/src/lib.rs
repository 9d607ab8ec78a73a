//! Spillway: an embedded LSM key-value store. A foreground write waits only for its own WAL record.
//!
//! The folders are organized by subject: `commit`, `wal`, `queue`, `read`, `flush`, `ingest`, `version`, `compaction`
//! and more. `ARCHITECTURE.md` at the root of the repository describes the lives of a put, a get, a flush, a compaction
//! and a recovery, and the lock order.
#![forbid(unsafe_code)]

mod api;
mod background;
mod commit;
mod compaction;
#[cfg(feature = "config")]
mod config;
mod core;
mod database;
mod flush;
mod info_log;
mod ingest;
#[doc(hidden)]
pub mod internal;
mod jobs;
mod maintenance;
mod open;
mod queue;
mod read;
mod ttl;
mod version;
mod wal;

pub use api::*;
pub use background::{Env, EnvOptions, RateLimiter};
pub use base::metrics::{Histogram, Statistics, Ticker};
pub use base::options::{
    ChecksumKind, CompressionKind, CpuPriority, DataBlockIndexType, IndexType, InfoLogLevel, LogBacking,
    WalRecoveryMode,
};
pub use base::{Comparator, Error, ErrorKind, Pinned, Result, extend, limits, merge};
pub use commit::stall::StallCause;
pub use compaction::BottommostLevelCompaction;
pub use database::report::{LevelReport, LiveFile, StallReport};
pub use ingest::table_writer::WrittenTable;
pub use ingest::{IngestMode, IngestProgress, IngestReport, IngestWay};
pub use maintenance::backup::{BackupInfo, DamagedBackup};
pub use maintenance::check::{CheckReport, Problem};
pub use maintenance::export::ExportSummary;
pub use maintenance::repair::{LostTable, RepairReport, RepairedFamily};
pub use read::damage::SkippedDamage;

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
