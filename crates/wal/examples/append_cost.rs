//! What an append costs: 128-byte payloads into a log in the directory given (or the current one), by backing.
//!
//! `cargo run --release -p spillway-db-wal --example append_cost -- DIRECTORY`

extern crate spillway_db_wal as wal;

use std::path::Path;

use base::options::LogBacking;
use base::{FileNumber, Result};
use vfs::{RealVfs, Vfs};
use wal::{LogConfig, LogFile, RecordKind};

const BATCHES: u64 = 20;
const RECORDS: u64 = 10_000;
const SYNCED_RECORDS: u64 = 50;
const PAYLOAD_BYTES: usize = 128;
const CAPACITY_BYTES: u64 = 64 << 20;

fn main() -> Result<()> {
    let directory = std::env::args().nth(1).unwrap_or_else(|| ".".into());
    let vfs = RealVfs::new();
    for (backing, populate) in [(LogBacking::Mapped, true), (LogBacking::Mapped, false), (LogBacking::Pwrite, false)] {
        let path = Path::new(&directory).join("append-cost.splog");
        let config =
            LogConfig { capacity_bytes: CAPACITY_BYTES, extent_bytes: CAPACITY_BYTES, backing, ..LogConfig::default() };
        let log = LogFile::create(&*vfs, &path, FileNumber(1), config)?;
        if populate {
            log.populate_ahead(CAPACITY_BYTES);
        }
        let append_ns = nanos_each(&*vfs, RECORDS, || append(&log))?;
        log.sync()?;
        let synced_ns = nanos_each(&*vfs, SYNCED_RECORDS, || append(&log).and_then(|()| log.sync().map(drop)))?;
        println!("{backing:?} populated={populate}: append {append_ns} ns, append and sync {} us", synced_ns / 1000);
        drop(log);
        vfs.remove_file(&path)?;
    }
    Ok(())
}

fn append(log: &LogFile) -> Result<()> {
    let body = [7u8; PAYLOAD_BYTES - 12];
    let Some(reservation) = log.try_reserve(PAYLOAD_BYTES) else { return Err(base::Error::busy("the log is full")) };
    log.append(&reservation, RecordKind::Batch, &[&[1; 12], &body])?;
    log.publish(reservation.end());
    Ok(())
}

/// The best of some batches: what else the machine does is not of interest.
fn nanos_each(vfs: &dyn Vfs, times: u64, mut action: impl FnMut() -> Result<()>) -> Result<u64> {
    let mut best = u64::MAX;
    for _ in 0..BATCHES {
        let start = vfs.now();
        for _ in 0..times {
            action()?;
        }
        best = best.min((vfs.now() - start).as_nanos() as u64 / times);
    }
    Ok(best)
}
