//! Measures a run: time, processor time, bytes written, memory. Detects an idle database.

use std::time::Duration;

use base::{Error, Result};
use bench::machine::{peak_resident_bytes, processor_time, reset_peak, storage_bytes, written_bytes};
use bench::sides::SideRecord;
use bench::tally::Tally;
use vfs::Vfs;

use crate::library::Database;

/// Time between two checks for an idle database.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Successive checks to pass before a database counts as idle: nothing runs for a moment between a flush and the compaction due
/// after it.
const IDLE_LOOKS: u32 = 25;

/// Limit of the wait for an idle database.
const IDLE_TIME_MAX: Duration = Duration::from_secs(3600);

/// Properties of an idle database: all 0.
const BUSY: [&str; 4] = [
    "rocksdb.mem-table-flush-pending",
    "rocksdb.num-running-flushes",
    "rocksdb.compaction-pending",
    "rocksdb.num-running-compactions",
];

/// Time and processor time to the last acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub wall: Duration,
    pub cpu: Duration,
}

/// The counts of the process at the start of a measurement.
pub struct Meter<'a> {
    vfs: &'a dyn Vfs,
    began: Duration,
    cpu: Duration,
    storage_bytes: u64,
    call_bytes: u64,
}

impl<'a> Meter<'a> {
    pub fn start(vfs: &'a dyn Vfs) -> Self {
        // If the kernel does not allow it, the peak is the one of the process's whole life, for every library.
        let _ = reset_peak(vfs);
        Meter {
            vfs,
            began: vfs.now(),
            cpu: processor_time(),
            storage_bytes: storage_bytes(vfs),
            call_bytes: written_bytes(vfs),
        }
    }

    /// Since the start.
    pub fn read(&self) -> Used {
        let (wall, cpu) = (self.vfs.now().saturating_sub(self.began), processor_time().saturating_sub(self.cpu));
        Used { wall, cpu }
    }

    /// Completes a record with `used` and the counts since the start. First waits until the database, if given, is idle.
    pub fn finish(&self, mut record: SideRecord, used: Used, database: Option<&Database>) -> Result<SideRecord> {
        let per_op = |cpu: Duration| cpu.as_secs_f64() * 1e6 / record.ops.max(1) as f64;
        let (cpu_us, mut idle) = (per_op(used.cpu), None);
        if let Some(database) = database {
            let waited = wait_until_idle(self.vfs, database)?;
            idle = Some(((used.wall + waited).as_secs_f64(), per_op(self.read().cpu)));
        }
        record.wall_s = used.wall.as_secs_f64();
        record.cpu_us_per_op = cpu_us;
        (record.idle_wall_s, record.idle_cpu_us_per_op) = idle.unzip();
        record.storage_bytes = storage_bytes(self.vfs).saturating_sub(self.storage_bytes);
        record.call_bytes = written_bytes(self.vfs).saturating_sub(self.call_bytes);
        record.peak_bytes = peak_resident_bytes(self.vfs);
        Ok(record)
    }
}

/// A record of the threads' counts.
pub fn record_of(tally: &Tally<'_>, threads: usize) -> SideRecord {
    let latency = tally.latencies().map(|(operation, times)| (operation.name().to_owned(), times.distribution()));
    SideRecord {
        threads,
        ops: tally.done,
        latency: latency.collect(),
        found: (tally.looked_up > 0).then_some(tally.found),
        background_writes: tally.background_writes,
        ..SideRecord::default()
    }
}

/// Waits until no flush or compaction is due or running. Returns the time from the call to the begin of idleness. RocksDB's C API
/// has a waiting call only from 8.5 on, so every library is polled in the same way.
///
/// # Errors
/// `Unsupported`: the library lacks the properties. `Busy`: the work does not end.
pub fn wait_until_idle(vfs: &dyn Vfs, database: &Database) -> Result<Duration> {
    let asked = vfs.now();
    let mut idle = (0, Duration::ZERO);
    loop {
        let elapsed = vfs.now().saturating_sub(asked);
        idle = match (is_idle(database)?, idle) {
            (false, _) => (0, elapsed),
            (true, (0, _)) => (1, elapsed),
            (true, (looks, since)) => (looks + 1, since),
        };
        if idle.0 >= IDLE_LOOKS {
            return Ok(idle.1);
        }
        if elapsed > IDLE_TIME_MAX {
            return Err(Error::busy("flushes and compactions do not end"));
        }
        vfs.sleep(LOOK_EVERY);
    }
}

fn is_idle(database: &Database) -> Result<bool> {
    for name in BUSY {
        let busy = database.number(name)?;
        let busy = busy.ok_or_else(|| Error::unsupported(format!("the library has no property {name}")))?;
        if busy > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
