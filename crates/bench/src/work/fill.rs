//! Benchmarks that write.

use std::time::Duration;

use base::Result;
use spillway::WriteBatch;
use vfs::Vfs;

use super::Thread;
use crate::tally::Operation;
use crate::workload::KeyBuffer;

/// Which key comes next.
type NextKey = fn(&mut Thread<'_, '_>, u64) -> u64;

pub fn in_order(thread: &mut Thread<'_, '_>) -> Result<()> {
    fill(thread, |_, done| done)
}

pub fn random(thread: &mut Thread<'_, '_>) -> Result<()> {
    fill(thread, |thread, _| thread.rng.below(thread.ground.flags.num))
}

fn fill(thread: &mut Thread<'_, '_>, next_key: NextKey) -> Result<()> {
    let mut writer = Writer::new(thread);
    let mut extent = thread.extent(thread.ground.flags.writes_per_thread());
    let mut done = 0;
    loop {
        let puts = extent.take(thread.ground.flags.batch_size, thread.ground.vfs);
        if puts == 0 {
            return Ok(());
        }
        writer.write(thread, puts, |thread, nth| next_key(thread, done + nth))?;
        done += puts;
    }
}

/// Writes under random keys until the benchmark's threads have ended.
pub fn until_over(thread: &mut Thread<'_, '_>) -> Result<()> {
    let mut writer = Writer::new(thread);
    while !thread.is_over() {
        writer.write(thread, 1, |thread, _| thread.rng.below(thread.ground.flags.num))?;
    }
    Ok(())
}

/// A thread's batch and pace.
pub struct Writer {
    batch: WriteBatch,
    key: KeyBuffer,
    pace: Option<Pace>,
}

impl Writer {
    pub fn new(thread: &Thread<'_, '_>) -> Self {
        let rate = thread.ground.flags.benchmark_write_rate_limit;
        let pace = (rate > 0).then(|| Pace { rate, start: thread.ground.vfs.now(), bytes: 0 });
        Writer { batch: WriteBatch::new(), key: thread.key_buffer(), pace }
    }

    /// Writes a batch of `puts` values, under the numbers that `next_key` gives.
    #[inline]
    pub fn write(
        &mut self,
        thread: &mut Thread<'_, '_>,
        puts: u64,
        mut next_key: impl FnMut(&mut Thread<'_, '_>, u64) -> u64,
    ) -> Result<()> {
        thread.tally.begin();
        self.batch.clear();
        let mut bytes = 0;
        for nth in 0..puts {
            let key = self.key.set(next_key(thread, nth));
            let value = thread.values.next();
            self.batch.put(thread.family.id(), key, value);
            bytes += (key.len() + value.len()) as u64;
        }
        thread.db.write(&self.batch, &thread.ground.writes)?;
        thread.tally.bytes += bytes;
        thread.tally.finish(Operation::Write, puts)?;
        if let Some(pace) = &mut self.pace {
            pace.keep(bytes, thread.ground.vfs);
        }
        Ok(())
    }
}

/// Keeps a thread to so many bytes per second.
struct Pace {
    rate: u64,
    start: Duration,
    bytes: u64,
}

impl Pace {
    /// Sleeping takes a tenth of a millisecond at least, so it is not begun for less than this.
    const AHEAD_MAX: Duration = Duration::from_millis(1);

    fn keep(&mut self, bytes: u64, vfs: &dyn Vfs) {
        self.bytes += bytes;
        let due = self.start + Duration::from_secs_f64(self.bytes as f64 / self.rate as f64);
        let ahead = due.saturating_sub(vfs.now());
        if ahead > Self::AHEAD_MAX {
            vfs.sleep(ahead);
        }
    }
}
