//! What a run used: time, processor, bytes written, memory; and when a database is idle.

use std::time::Duration;

use base::{Error, Result};
use bench::machine::{peak_resident_bytes, processor_time, reset_peak, storage_bytes, written_bytes};
use bench::sides::SideRecord;
use bench::tally::Tally;
use vfs::Vfs;

use crate::library::Database;

/// From one look to the next at whether a database is idle.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Looks in a row that find a database idle before it counts as that: between a flush and the compaction that it calls for there is
/// a moment when nothing is running.
const IDLE_LOOKS: u32 = 25;

/// How long a database may take to become idle.
const IDLE_TIME_MAX: Duration = Duration::from_secs(3600);

/// Properties that are all 0 when flushes and compactions have nothing to do.
const BUSY: [&str; 4] = [
    "rocksdb.mem-table-flush-pending",
    "rocksdb.num-running-flushes",
    "rocksdb.compaction-pending",
    "rocksdb.num-running-compactions",
];

/// What was used to the last acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Used {
    pub wall: Duration,
    pub cpu: Duration,
}

/// What the process had used when a measurement began.
pub struct Meter<'a> {
    vfs: &'a dyn Vfs,
    began: Duration,
    cpu: Duration,
    storage_bytes: u64,
    call_bytes: u64,
}

impl<'a> Meter<'a> {
    pub fn start(vfs: &'a dyn Vfs) -> Self {
        // Where the kernel does not allow it, the peak is that of the process's whole life, on every side.
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

    /// Completes a record of which `used` was used. Waits until the database is idle, where it is given.
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

/// A record of what threads did.
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

/// Waits until flushes and compactions have nothing to do; answers when that was, counted from the call. RocksDB's C API has a call
/// that waits only from 8.5 on: every library is asked in the same way instead.
///
/// # Errors
/// `Unsupported`: the library does not tell. `Busy`: it does not end.
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
