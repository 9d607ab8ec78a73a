//! An embedded key-value store: an LSM tree with column families, atomic batches, snapshots, merge operators and bulk
//! loads. A write waits for its own log record: not for a flush, a compaction or a file. Tables, MANIFEST and options are
//! RocksDB's: a directory of RocksDB 7.8 to 11.9 opens as it is. The first open for writing locks RocksDB out of it;
//! [`Db::export`] leads back.
//!
//! # A first program
//!
#![doc = concat!("```no_run\n", include_str!("../examples/quickstart.rs"), "```")]
//!
//! # Where to go next
//!
//! | for | see |
//! |---|---|
//! | opening, families, snapshots, batches | [`Db`] |
//! | reading and writing | [`Family`], [`Batch`], [`Snapshot`], [`Transaction`]; a `Db` has the same calls for its default family |
//! | iterating | [`Iter`], an `Iterator` from both ends over a [`KeyRange`]; [`Cursor`], which moves freely and copies nothing |
//! | options | [`Options`] of the database, [`FamilyOptions`], [`TableOptions`]; [`WriteOptions`] and [`ReadOptions`] of one call |
//! | what survives a crash or a loss of power | [Durability](docs::durability) |
//! | memory, compression, writers that wait, what to watch | [Tuning](docs::tuning) |
//! | loading much at once | [Bulk loads](docs::bulk_loads), [`TableWriter`] |
//! | merge operators, compaction filters, listeners | [`merge`], [`extend`]; all of them can be closures |
//! | health, levels, latencies, metrics, advice of a live database | [`Db::observe`], [`observe`] |
//! | copies, backups, checks, repairs | [`Db::checkpoint`], [`Backups`], [`Db::check`], [`Db::repair`] |
//! | following a database | [`Db::updates_since`], the log's batches; [`Db::open_as_secondary`], a reader beside the writer |
//! | databases from JSON and YAML documents | `Config`, with the feature `config` |
//! | programs on tokio | `AsyncDb`, with the feature `tokio` |
//! | programs to start from | `crates/spillway/examples`: a time series, a queue, an inverted index, a bulk load, a web service |
//! | coming from RocksDB, going back | [Moving from RocksDB](docs::from_rocksdb) |
//! | what can go wrong | [`Error`], [`ErrorKind`] |
//!
//! # Threads
//!
//! [`Db`], [`Family`] and [`Snapshot`] are `Send + Sync`, cheap to clone, and usable from any number of threads at a
//! time. Batches, transactions, iterators and cursors can be sent to another thread. A directory is open once: a
//! second open, in this process or another, fails with [`Busy`](ErrorKind::Busy). Calls block: a write for microseconds
//! unless it syncs or [has to wait](docs::tuning), a read for its disk. To change what was read, use a
//! [`Transaction`], or merge operators. Flushes and compactions run on threads that all
//! databases of a process share ([`Env`]).
//!
//! # Features and platforms
//!
//! | feature | has | default |
//! |---|---|---|
//! | `snappy`, `lz4`, `zlib`, `zstd` | these compressions of tables | yes |
//! | `config` | `Config`, databases from JSON and YAML documents | no |
//! | `tokio` | `AsyncDb`, whose calls do not block the runtime | no |
//! | `observe` | [`observe`]: readings as JSON, and the socket of a live database | no |
//! | `topling` | tables of ToplingDB's kinds ([`FamilyOptions::table_format`]) | no |
//!
//! A table in a compression that the build lacks is an error of the read, [`Unsupported`](ErrorKind::Unsupported), and
//! the message names the feature. Linux is the platform that is tested; the library builds for macOS and Windows.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod api;
mod background;
mod batch;
mod commit;
mod compaction;
#[cfg(feature = "config")]
mod config;
mod core;
mod cursor;
mod database;
#[cfg(any(doc, doctest))]
pub mod docs;
mod engine;
mod flush;
mod info_log;
mod ingest;
#[doc(hidden)]
pub mod internal;
mod jobs;
mod log_files;
mod maintenance;
mod manage;
mod memtables;
pub mod observe;
mod open;
mod order;
mod queue;
mod read;
mod records;
mod rollover;
mod transaction;
mod ttl;
mod updates;
mod version;

pub use crate::core::doubt::Doubt;
pub use api::*;
pub use background::{Env, EnvOptions, RateLimiter};
pub use base::metrics::{Distribution, Histogram, Statistics, Ticker};
pub use base::options::{
    ChecksumKind, CompactOnDeletion, CompactionPri, CompactionStopStyle, CompactionStyle, CompressionKind, CpuPriority,
    DataBlockIndexType, IndexType, InfoLogLevel, LogBacking, SstPartitioner, WalRecoveryMode,
};
pub use base::{Comparator, Error, ErrorKind, FileNumber, Pinned, Result, SeqNo, extend, limits, merge};
pub use compaction::BottommostLevelCompaction;
pub use core::live_file::LiveFile;
pub use cursor::damage::SkippedDamage;
pub use cursor::options::ReadTier;
pub use database::report::{LevelReport, PinReport, StallReport};
pub use engine::Lag;
pub use ingest::table_writer::WrittenTable;
pub use ingest::{IngestMode, IngestProgress, IngestReport, IngestWay};
pub use maintenance::backup::{BackupInfo, DamagedBackup};
pub use maintenance::check::{CheckReport, Problem};
pub use maintenance::repair::{LostTable, RepairReport, RepairedFamily};
pub use manage::export::ExportSummary;
pub use order::stall::StallCause;
pub use table::PassedOver;
pub use updates::Update;

/// Runs the examples in the user documentation.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../docs/guide.md")]
    struct Guide;

    #[cfg(feature = "config")]
    #[doc = include_str!("../../../docs/configuration.md")]
    struct Configuration;

    #[doc = include_str!("../../../docs/ingest.md")]
    struct Ingest;

    #[doc = include_str!("../../../docs/memtables.md")]
    struct Memtables;

    #[doc = include_str!("../../../README.md")]
    struct Readme;
}
