//! Benchmarks with the names, flags and output of RocksDB's `db_bench`: one command line runs both, one parser reads both.
//!
//! `db` runs them in this process; `memtable` runs the benchmarks of `memtablerep_bench` on memtables alone; `ingest` measures
//! writers beside ingests; `report` draws the tables of `docs/benchmarks.md`. The program `bench-compare` runs benchmarks on any
//! libraries with RocksDB's C API, by turns; `bench-peers` (feature `peers`) runs workloads on engines of other kinds beside both.
#![forbid(unsafe_code)]

pub mod beside;
pub mod child;
pub mod cli;
pub mod flags;
pub mod folder;
mod harness;
mod ingest;
pub mod latency;
pub mod machine;
pub mod medians;
mod memtable;
pub mod meter;
mod options;
pub mod outcome;
pub mod report;
pub mod sides;
pub mod sinks;
mod state;
pub mod store;
pub mod tally;
pub mod work;
pub mod workload;

pub use flags::Flags;
