//! Benchmarks of lookups.

use base::Result;

use super::Thread;
use super::fill::Writer;
use crate::store::Store;
use crate::tally::Operation;
use crate::workload::KeyBuffer;

pub fn random<S: Store>(thread: &mut Thread<'_, '_, S>) -> Result<()> {
    look_up_below(thread, thread.ground.flags.num)
}

/// A hundredth of the keys, as in db_bench: most caches hold them all.
pub fn hot<S: Store>(thread: &mut Thread<'_, '_, S>) -> Result<()> {
    look_up_below(thread, (thread.ground.flags.num / 100).max(1))
}

fn look_up_below<S: Store>(thread: &mut Thread<'_, '_, S>, end: u64) -> Result<()> {
    let mut key = thread.key_buffer();
    let mut extent = thread.extent(thread.ground.flags.reads_per_thread());
    while extent.take(1, thread.ground.vfs) > 0 {
        look_up(thread, &mut key, end)?;
    }
    Ok(())
}

#[inline]
fn look_up<S: Store>(thread: &mut Thread<'_, '_, S>, key: &mut KeyBuffer, end: u64) -> Result<()> {
    thread.tally.begin();
    let key = key.set(thread.rng.below(end));
    let bytes = &mut thread.tally.bytes;
    let found = thread.store.get(key, |value| *bytes += (key.len() + value.len()) as u64)?;
    thread.tally.lookups(1, u64::from(found));
    thread.tally.finish(Operation::Read, 1)
}

/// `--batch_size` keys at a time. The time of a batch is one time, as in db_bench.
pub fn many<S: Store>(thread: &mut Thread<'_, '_, S>) -> Result<()> {
    let batch = thread.ground.flags.batch_size;
    let mut keys: Vec<KeyBuffer> = (0..batch).map(|_| thread.key_buffer()).collect();
    let mut extent = thread.extent(thread.ground.flags.reads_per_thread());
    loop {
        let wanted = extent.take(batch, thread.ground.vfs);
        if wanted == 0 {
            return Ok(());
        }
        thread.tally.begin();
        keys.truncate(wanted as usize);
        for key in &mut keys {
            key.set(thread.rng.below(thread.ground.flags.num));
        }
        let asked: Vec<&[u8]> = keys.iter().map(KeyBuffer::bytes).collect();
        let (mut found, mut bytes) = (0, 0);
        thread.store.multi_get(&asked, |key, value| {
            found += 1;
            bytes += (key.len() + value.len()) as u64;
        })?;
        thread.tally.bytes += bytes;
        thread.tally.lookups(wanted, found);
        thread.tally.finish(Operation::Read, wanted)?;
    }
}

/// Reads and writes in turns, `--readwritepercent` of a hundred operations being reads.
pub fn mixed<S: Store>(thread: &mut Thread<'_, '_, S>) -> Result<()> {
    let mut key = thread.key_buffer();
    let mut writer = Writer::new(thread)?;
    let mut extent = thread.extent(thread.ground.flags.mixed_per_thread());
    let mut nth = 0;
    while extent.take(1, thread.ground.vfs) > 0 {
        if nth % 100 < thread.ground.flags.readwritepercent {
            look_up(thread, &mut key, thread.ground.flags.num)?;
        } else {
            writer.write(thread, 1, |thread, _| thread.rng.below(thread.ground.flags.num))?;
        }
        nth += 1;
    }
    Ok(())
}
