//! Benchmarks under the names, flags and output of RocksDB's `db_bench`, so that both can be run with one command line
//! and their outputs be read by one parser.
//!
//! `db` runs them here, `compare` runs both programs in turns and keeps what they print as data, `report` draws the
//! documentation's tables from that data.

pub mod cli;
mod compare;
mod flags;
mod harness;
mod latency;
mod machine;
mod options;
mod outcome;
mod report;
mod state;
mod tally;
mod work;
mod workload;

pub use flags::Flags;
pub use harness::run_benchmarks;
