//! Benchmarks of writes.

use std::time::Duration;

use base::Result;
use vfs::Vfs;

use super::Thread;
use crate::store::Store;
use crate::tally::Operation;
use crate::workload::KeyBuffer;

/// Chooses the next key.
type NextKey<S> = fn(&mut Thread<'_, '_, S>, u64) -> u64;

pub fn in_order<S: Store>(thread: &mut Thread<'_, '_, S>) -> Result<()> {
    fill(thread, |_, done| done)
}

pub fn random<S: Store>(thread: &mut Thread<'_, '_, S>) -> Result<()> {
    fill(thread, |thread, _| thread.rng.below(thread.ground.flags.num))
}

fn fill<S: Store>(thread: &mut Thread<'_, '_, S>, next_key: NextKey<S>) -> Result<()> {
    let mut writer = Writer::new(thread)?;
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

/// `--batch_size` deletions at a time.
pub fn deletes<S: Store>(thread: &mut Thread<'_, '_, S>) -> Result<()> {
    let mut key = thread.key_buffer();
    let mut batch = thread.store.new_batch()?;
    let mut extent = thread.extent(thread.ground.flags.writes_per_thread());
    loop {
        let wanted = extent.take(thread.ground.flags.batch_size, thread.ground.vfs);
        if wanted == 0 {
            return Ok(());
        }
        thread.tally.begin();
        thread.store.clear(&mut batch);
        for _ in 0..wanted {
            let key = key.set(thread.rng.below(thread.ground.flags.num));
            thread.store.add_delete(&mut batch, key);
            thread.tally.bytes += key.len() as u64;
        }
        thread.store.write(&mut batch)?;
        thread.tally.finish(Operation::Write, wanted)?;
    }
}

/// Writes under random keys until the benchmark's threads have ended.
pub fn until_over<S: Store>(thread: &mut Thread<'_, '_, S>) -> Result<()> {
    let mut writer = Writer::new(thread)?;
    while !thread.is_over() {
        writer.write(thread, 1, |thread, _| thread.rng.below(thread.ground.flags.num))?;
    }
    Ok(())
}

/// A thread's batch and rate limit.
pub struct Writer<S: Store> {
    batch: S::Batch,
    key: KeyBuffer,
    pace: Option<Pace>,
}

impl<S: Store> Writer<S> {
    pub fn new(thread: &Thread<'_, '_, S>) -> Result<Self> {
        let rate = thread.ground.flags.benchmark_write_rate_limit;
        let pace = (rate > 0).then(|| Pace { rate, start: thread.ground.vfs.now(), bytes: 0 });
        Ok(Writer { batch: thread.store.new_batch()?, key: thread.key_buffer(), pace })
    }

    /// Writes `puts` values together, under the numbers from `next_key`.
    #[inline]
    pub fn write(
        &mut self,
        thread: &mut Thread<'_, '_, S>,
        puts: u64,
        mut next_key: impl FnMut(&mut Thread<'_, '_, S>, u64) -> u64,
    ) -> Result<()> {
        thread.tally.begin();
        let bytes = puts * (thread.ground.flags.key_size + thread.ground.flags.value_size) as u64;
        if puts == 1 {
            let key = self.key.set(next_key(thread, 0));
            thread.store.put(&mut self.batch, key, thread.values.next())?;
        } else {
            thread.store.clear(&mut self.batch);
            for nth in 0..puts {
                let key = self.key.set(next_key(thread, nth));
                thread.store.add_put(&mut self.batch, key, thread.values.next());
            }
            thread.store.write(&mut self.batch)?;
        }
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
    /// A sleep takes at least a tenth of a millisecond; shorter leads than this do not sleep.
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
