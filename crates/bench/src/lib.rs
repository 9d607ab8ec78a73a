//! Benchmarks under the names, flags and output of RocksDB's `db_bench`, so that both can be run with one command line
//! and their outputs be read by one parser.
//!
//! `db` runs them here, `compare` runs both programs in turns and keeps what they print as data; `memtable` runs those of
//! `memtablerep_bench` on memtables by themselves, `persist` times writes that are flushed at once, `ingest` what ingests cost whoever
//! writes, `flush` what tables made of memtables cost, `restart` opening after a kill; `report` draws the documentation's tables from
//! all that data.

pub mod cli;
mod compare;
mod filling;
mod flags;
mod flush;
mod harness;
mod ingest;
mod latency;
mod machine;
mod medians;
mod memtable;
mod options;
mod outcome;
mod persist;
mod plot;
mod report;
mod restart;
mod sinks;
mod state;
mod switches;
mod tally;
mod work;
mod workload;

pub use flags::Flags;
pub use harness::run_benchmarks;
