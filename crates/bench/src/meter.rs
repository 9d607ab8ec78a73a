//! Measures a run: time, processor time, bytes written, memory.

use std::time::Duration;

use vfs::Vfs;

use crate::machine::{peak_resident_bytes, processor_time, reset_peak, storage_bytes, written_bytes};
use crate::sides::SideRecord;
use crate::tally::Tally;

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

    /// Completes a record with `used` and the counts since the start. `waited`: the time from the last acknowledgement to the
    /// end of flushes and compactions, if the run waited for it.
    pub fn finish(&self, mut record: SideRecord, used: Used, waited: Option<Duration>) -> SideRecord {
        let per_op = |cpu: Duration| cpu.as_secs_f64() * 1e6 / record.ops.max(1) as f64;
        let cpu_us = per_op(used.cpu);
        let idle = waited.map(|waited| ((used.wall + waited).as_secs_f64(), per_op(self.read().cpu)));
        record.wall_s = used.wall.as_secs_f64();
        record.cpu_us_per_op = cpu_us;
        (record.idle_wall_s, record.idle_cpu_us_per_op) = idle.unzip();
        record.storage_bytes = storage_bytes(self.vfs).saturating_sub(self.storage_bytes);
        record.call_bytes = written_bytes(self.vfs).saturating_sub(self.call_bytes);
        record.peak_bytes = peak_resident_bytes(self.vfs);
        record
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
