//! The task of a child process, and the lines of its answer.

use std::path::PathBuf;

use bench::sides::SideRecord;
use serde::{Deserialize, Serialize};

use crate::peers::Kind;

/// The workloads of a run, on one database.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Set {
    /// redb's benchmark: bulk load, durable and other writes, reads, range reads, removals, sizes.
    Suite,
    /// YCSB: the load, then A, B, C, F, D, E.
    Ycsb,
}

/// The input of a child.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Spec {
    pub set: Set,
    pub peer: Kind,
    /// RocksDB's library.
    pub library: Option<PathBuf>,
    /// The database's folder, empty at the start.
    pub db: PathBuf,
    /// The memory group to enter, if there is one.
    pub group: Option<PathBuf>,
    pub memory_bytes: u64,
    pub num: u64,
    pub value_bytes: usize,
    /// Reads of the suite, operations of a YCSB workload.
    pub ops: u64,
    /// Durable single writes of the suite.
    pub writes: u64,
    /// Of the YCSB workloads.
    pub threads: usize,
    /// Writes of YCSB wait for the disk.
    pub durable: bool,
    /// A YCSB workload ends after so many seconds.
    pub seconds: u64,
    pub seed: u64,
}

/// A line of a child's answer.
#[derive(Debug, Deserialize, Serialize)]
pub enum Line {
    Record(Box<SideRecord>),
    Failed(String),
}
