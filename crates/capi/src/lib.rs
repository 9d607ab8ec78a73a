//! RocksDB's C API over Spillway: `librocksdb.so`, with `include/rocksdb/c.h`.
//!
//! Names, signatures and behaviour are RocksDB 11's. All unsafe code is in `boundary`, with its assumptions K1 to K6.
//! The other modules are grouped by C's handles. RocksDB features missing from Spillway are refused (`absent`). Options
//! without effect on results keep their values for getters, and give one warning (`kept`).

mod absent;
mod backup;
mod batch;
mod boundary;
mod cache;
mod checkpoint;
mod compact_files;
mod database;
mod env;
mod extend;
mod failure;
mod family;
mod file_manager;
mod free;
mod indexed_batch;
mod ingest;
mod iterator;
mod job_options;
mod kept;
mod lent;
mod logger;
mod memory;
mod metadata;
mod options;
mod perf;
mod read_options;
mod snapshot;
mod statistics;
mod table_writer;
mod text;
mod transactions;
mod updates;
mod watched;
mod write_buffer_manager;
mod write_options;
