//! RocksDB's C API over Spillway: `librocksdb.so`, with `include/rocksdb/c.h`.
//!
//! Names, signatures and behaviour are those of RocksDB 11. All that is unsafe is in `boundary`, with what it takes for
//! granted (K1 to K6); the other modules are grouped by the handles that C knows. What RocksDB has and Spillway has not is
//! refused (`absent`); of options that only change how something is done the values are kept, for getters, and warned
//! about once (`options::kept`).

mod absent;
mod backup;
mod batch;
mod boundary;
mod cache;
mod checkpoint;
mod database;
mod env;
mod extend;
mod failure;
mod file_manager;
mod free;
mod indexed_batch;
mod ingest;
mod iterator;
mod job_options;
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
mod ttl;
mod write_options;
