//! Benchmarks that look keys up.

use base::Result;

use super::Thread;
use super::fill::Writer;
use crate::tally::Operation;
use crate::workload::KeyBuffer;

pub fn random(thread: &mut Thread<'_, '_>) -> Result<()> {
    let mut key = thread.key_buffer();
    let mut extent = thread.extent(thread.ground.flags.reads_per_thread());
    while extent.take(1, thread.ground.vfs) > 0 {
        look_up(thread, &mut key)?;
    }
    Ok(())
}

#[inline]
fn look_up(thread: &mut Thread<'_, '_>, key: &mut KeyBuffer) -> Result<()> {
    thread.tally.begin();
    let key = key.set(thread.rng.below(thread.ground.flags.num));
    let value = thread.db.get(thread.family, key, &thread.ground.reads)?;
    thread.tally.lookups(1, u64::from(value.is_some()));
    if let Some(value) = value {
        thread.tally.bytes += (key.len() + value.len()) as u64;
    }
    thread.tally.finish(Operation::Read, 1)
}

/// `--batch_size` keys at a time. The time of a batch is one time, as in db_bench.
pub fn many(thread: &mut Thread<'_, '_>) -> Result<()> {
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
        let mut found = 0;
        for (key, value) in asked.iter().zip(thread.db.multi_get(thread.family, &asked, &thread.ground.reads)?) {
            if let Some(value) = value? {
                found += 1;
                thread.tally.bytes += (key.len() + value.len()) as u64;
            }
        }
        thread.tally.lookups(wanted, found);
        thread.tally.finish(Operation::Read, wanted)?;
    }
}

/// Reads and writes in turns, `--readwritepercent` of a hundred operations being reads.
pub fn mixed(thread: &mut Thread<'_, '_>) -> Result<()> {
    let mut key = thread.key_buffer();
    let mut writer = Writer::new(thread);
    let mut extent = thread.extent(thread.ground.flags.mixed_per_thread());
    let mut nth = 0;
    while extent.take(1, thread.ground.vfs) > 0 {
        if nth % 100 < thread.ground.flags.readwritepercent {
            look_up(thread, &mut key)?;
        } else {
            writer.write(thread, 1, |thread, _| thread.rng.below(thread.ground.flags.num))?;
        }
        nth += 1;
    }
    Ok(())
}
