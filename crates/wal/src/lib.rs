//! The write-ahead log: format, parallel appends, sync and recovery. [`framed`] reads and writes RocksDB's log framing,
//! for RocksDB's WALs and every MANIFEST. Formats: docs/format/log.md.
//!
//! The life of a WAL: [`LogFile::create`] ahead of need; per write, [`ensure`](LogFile::ensure) at admission,
//! [`try_reserve`](LogFile::try_reserve) under the commit lock, [`append`](LogFile::append) in parallel,
//! [`publish`](LogFile::publish) in order, [`sync`](LogFile::sync) on request; [`seal`](LogFile::seal) at the switch to
//! the next WAL; [`replay`] after a crash.
//!
//! Keeps C1 and C3 (reservations are ordered, and cost no I/O), C4 (space is allocated before it is reserved), D1 and
//! D2 (recovery tells a torn tail from corruption, and ends without a hole), D4 (a failed sync is final), B1 and B2.
//!
//! An internal part of the package `spillway-db`, published because that needs it. It may change in any release.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod framed;

mod backing;
mod database_id;
mod format;
mod log_bytes;
mod log_file;
mod reader;
mod replay;
mod values;

pub use database_id::DatabaseId;
pub use format::{
    FILE_HEADER_BYTES, Frontiers, NotedManifest, PAYLOAD_BYTES_MAX, Position, RECORD_HEADER_BYTES, RecordKind,
    header_of,
};
pub use log_file::{LogConfig, LogFile, Reservation};
pub use reader::LogReader;
pub use replay::{
    EndReason, KnownEnd, LogHead, OF_A_COPY, ReplayEnd, ReplayOptions, ReplayRecord, database_of, reaches, read_head,
    replay,
};
pub use values::SealedLog;
