//! Spillway: an embedded LSM key-value store. A foreground write waits only for its own WAL record.
//!
//! The folders are organized by subject: `commit`, `wal`, `queue`, `read`, `flush`, `ingest`, `version`, `compaction`
//! and more. `ARCHITECTURE.md` at the root of the repository describes the lives of a put, a get, a flush, a compaction
//! and a recovery, and the lock order.
#![forbid(unsafe_code)]

mod background;
pub mod commit;
pub mod compaction;
pub mod config;
pub(crate) mod core;
pub(crate) mod database;
pub mod flush;
pub mod info_log;
pub mod ingest;
#[doc(hidden)]
pub mod internal;
pub(crate) mod jobs;
pub mod maintenance;
pub(crate) mod open;
pub mod queue;
pub mod read;
pub mod version;
pub mod wal;

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
