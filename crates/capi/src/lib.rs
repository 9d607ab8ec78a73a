//! RocksDB's C API over Spillway: `librocksdb.so`, with `include/rocksdb/c.h`.
//!
//! Names, signatures and behaviour are RocksDB 11's. All unsafe code is in `boundary`, with its assumptions K1 to K6.
//! The other modules are grouped by C's handles. RocksDB features missing from Spillway are refused (`absent`). Options
//! without effect on results keep their values for getters, and give one warning (`kept`).

#![allow(rustdoc::private_intra_doc_links, reason = "of the public modules the JVM's library reads the code")]

mod absent;
pub mod backup;
pub mod batch;
pub mod boundary;
pub mod cache;
pub mod checkpoint;
pub mod compact_files;
pub mod database;
pub mod env;
pub mod extend;
pub mod failure;
pub mod family;
pub mod file_manager;
pub mod free;
pub mod indexed_batch;
pub mod ingest;
pub mod iterator;
pub mod job_options;
pub mod kept;
mod lent;
pub mod logger;
pub mod memory;
pub mod metadata;
pub mod options;
pub mod perf;
pub mod read_options;
pub mod snapshot;
pub mod statistics;
pub mod table_writer;
pub mod text;
pub mod transactions;
pub mod updates;
pub mod watched;
pub mod write_buffer_manager;
pub mod write_options;
