//! Benchmarks under the names, flags and output of RocksDB's `db_bench`, so that both can be run with one command line
//! and their outputs be read by one parser.
//!
//! `db` runs them here; `memtable` runs those of `memtablerep_bench` on memtables by themselves, `persist` times writes that are flushed at
//! once, `ingest` what ingests cost whoever writes, `flush` what tables made of memtables cost, `restart` opening after a kill; `report`
//! draws the documentation's tables from all that data. The program `bench-compare` (crate `compare`) runs them on any library with
//! RocksDB's C API.

mod beside_db_bench;
pub mod cli;
mod filling;
pub mod flags;
mod flush;
pub mod folder;
mod harness;
mod ingest;
pub mod latency;
pub mod machine;
pub mod medians;
mod memtable;
pub mod open_loop;
mod options;
pub mod outcome;
mod persist;
mod plot;
mod report;
mod restart;
pub mod sides;
pub mod sinks;
mod state;
pub mod store;
mod switches;
pub mod tally;
pub mod work;
pub mod workload;

pub use flags::Flags;
pub use harness::{processor_time, run_benchmarks};
