//! Benchmarks under the names, flags and output of RocksDB's `db_bench`, so that both can be run with one command line
//! and their outputs be read by one parser.
//!
//! `db` runs them here; `memtable` runs those of `memtablerep_bench` on memtables by themselves; `ingest` measures writers beside
//! ingests; `report` draws the tables of `docs/benchmarks.md`. The program `bench-compare` runs benchmarks on any libraries with
//! RocksDB's C API, by turns.
#![forbid(unsafe_code)]

pub mod beside;
pub mod cli;
pub mod flags;
pub mod folder;
mod harness;
mod ingest;
pub mod latency;
pub mod machine;
pub mod medians;
mod memtable;
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
