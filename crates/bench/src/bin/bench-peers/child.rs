//! A child process: one engine, one set of workloads on one database. Prints a line for each result.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::{Error, Result};
use bench::folder;
use bench::meter::{Meter, Used, record_of};
use bench::sides::SideRecord;
use bench::tally::Tally;
use vfs::Vfs;

use crate::entries::KEY_BYTES;
use crate::peers::{Fjall, Kind, Lmdb, Peer, Redb, Rocks, Setup, Spillway};
use crate::spec::{Line, Set, Spec};
use crate::{group, suite, ycsb};

/// Time between two looks at the size of the files.
const SIZE_LOOK_EVERY: Duration = Duration::from_millis(50);

/// Successive looks at one size before it counts.
const SIZE_LOOKS: u32 = 8;

/// Limit of the wait for one size.
const SIZE_TIME_MAX: Duration = Duration::from_secs(20);

/// Shared by the steps of a run.
pub struct Run<'a> {
    pub spec: &'a Spec,
    pub vfs: &'a dyn Vfs,
    version: String,
    options: String,
}

/// Does the work of a [`Spec`], and prints the answer.
///
/// # Errors
/// The answer cannot be printed. A failure of the work is part of the answer.
pub fn run(spec: &str, vfs: &Arc<dyn Vfs>) -> Result<()> {
    let spec: Spec = serde_json::from_str(spec).map_err(|e| Error::invalid_argument(e.to_string()))?;
    match work(&spec, vfs) {
        Ok(()) => Ok(()),
        Err(error) => say(&Line::Failed(error.to_string())),
    }
}

fn work(spec: &Spec, vfs: &Arc<dyn Vfs>) -> Result<()> {
    if let Some(dir) = &spec.group {
        group::enter(vfs.as_ref(), dir)?;
    }
    match spec.peer {
        Kind::Spillway | Kind::SpillwayMapped => on::<Spillway>(spec, vfs),
        Kind::Rocksdb | Kind::RocksdbMapped => on::<Rocks>(spec, vfs),
        Kind::Lmdb => on::<Lmdb>(spec, vfs),
        Kind::Redb => on::<Redb>(spec, vfs),
        Kind::Fjall => on::<Fjall>(spec, vfs),
    }
}

fn on<P: Peer>(spec: &Spec, vfs: &Arc<dyn Vfs>) -> Result<()> {
    let setup = Setup {
        vfs,
        dir: &spec.db,
        memory_bytes: spec.memory_bytes,
        data_bytes: spec.num * (KEY_BYTES + spec.value_bytes) as u64,
        is_mapped: spec.peer.is_mapped(),
        library: spec.library.as_deref(),
    };
    let described = P::describe(&setup)?;
    let limit = match &spec.group {
        Some(_) => format!("memory group of {} MiB", spec.memory_bytes >> 20),
        None => "no memory group: page cache without a limit".to_owned(),
    };
    let options = format!("{limit}; {}", described.options);
    let run = Run { spec, vfs: vfs.as_ref(), version: described.version, options };
    let peer = P::open(&setup)?;
    match spec.set {
        Set::Suite => suite::run(&run, peer),
        Set::Ycsb => {
            ycsb::load(&run, peer)?;
            // Opened again: no engine begins with what its load left in memory.
            ycsb::run(&run, P::open(&setup)?)
        }
    }
}

impl<'a> Run<'a> {
    pub fn meter(&self) -> Meter<'a> {
        Meter::start(self.vfs)
    }

    /// Bytes of a key and its value.
    pub fn entry_bytes(&self) -> u64 {
        (KEY_BYTES + self.spec.value_bytes) as u64
    }

    /// Settles the engine. Returns the time it took.
    pub fn settled<P: Peer>(&self, peer: &mut P) -> Result<Duration> {
        let asked = self.vfs.now();
        peer.settle()?;
        Ok(self.vfs.now().saturating_sub(asked))
    }

    /// Bytes of the database's files, once they stop changing: some engines delete old files after the call that replaced them.
    pub fn disk_bytes(&self) -> Result<u64> {
        let (mut bytes, mut looks, begun) = (folder::bytes(self.vfs, &self.spec.db)?, 0, self.vfs.now());
        while looks < SIZE_LOOKS && self.vfs.now().saturating_sub(begun) < SIZE_TIME_MAX {
            self.vfs.sleep(SIZE_LOOK_EVERY);
            let now = folder::bytes(self.vfs, &self.spec.db)?;
            looks = if now == bytes { looks + 1 } else { 0 };
            bytes = now;
        }
        Ok(bytes)
    }

    /// The record of a rate of operations. `waited`: as of [`Meter::finish`].
    pub fn rate(&self, step: Step<'_>, tally: &Tally<'_>, meter: &Meter<'_>, used: Used) -> SideRecord {
        let wall = tally.ended.saturating_sub(tally.started);
        let record = SideRecord {
            workload: step.workload.to_owned(),
            mode: step.mode.to_owned(),
            figure: tally.done as f64 / wall.as_secs_f64().max(f64::MIN_POSITIVE),
            unit: step.unit.to_owned(),
            user_bytes: step.user_bytes,
            checksum: step.checksum,
            ..record_of(tally, step.threads)
        };
        meter.finish(record, Used { wall, ..used }, step.waited)
    }

    /// Prints a record, with what is common to all of this run.
    pub fn keep(&self, record: SideRecord) -> Result<()> {
        let record = SideRecord { version: self.version.clone(), options: self.options.clone(), ..record };
        say(&Line::Record(Box::new(record)))
    }
}

/// What a record says of a step beside its counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Step<'a> {
    pub workload: &'a str,
    pub mode: &'a str,
    pub unit: &'a str,
    pub threads: usize,
    pub user_bytes: u64,
    /// The sum of the stamps read, if it has to be equal for all engines.
    pub checksum: Option<u64>,
    pub waited: Option<Duration>,
}

fn say(line: &Line) -> Result<()> {
    let mut out = std::io::stdout();
    let line = serde_json::to_string(line).map_err(|e| Error::invalid_argument(e.to_string()))?;
    let said = writeln!(out, "{line}").and_then(|()| out.flush());
    said.map_err(|e| Error::io("write", Path::new("standard output"), e))
}
