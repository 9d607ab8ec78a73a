//! Benchmarks that iterate.

use base::Result;
use spillway::DbIterator;

use super::Thread;
use crate::tally::Operation;

pub fn forward(thread: &mut Thread<'_, '_>) -> Result<()> {
    walk(thread, DbIterator::seek_to_first, DbIterator::next)
}

pub fn backward(thread: &mut Thread<'_, '_>) -> Result<()> {
    walk(thread, DbIterator::seek_to_last, DbIterator::prev)
}

fn walk(
    thread: &mut Thread<'_, '_>,
    start: impl FnOnce(&mut DbIterator) -> bool,
    step: impl Fn(&mut DbIterator) -> bool,
) -> Result<()> {
    let reads = thread.ground.flags.reads_per_thread();
    let mut iterator = thread.db.iter(thread.family, &thread.ground.reads)?;
    let mut valid = start(&mut iterator);
    let mut done = 0;
    while valid && done < reads {
        thread.tally.begin();
        thread.tally.bytes += (iterator.key().len() + iterator.value().len()) as u64;
        valid = step(&mut iterator);
        thread.tally.finish(Operation::Read, 1)?;
        done += 1;
    }
    iterator.status()
}

/// A new iterator for each seek, as in db_bench. The bytes of what it steps over are copied out, as db_bench does.
pub fn seeks(thread: &mut Thread<'_, '_>) -> Result<()> {
    let mut key = thread.key_buffer();
    let mut sink = Vec::new();
    let mut extent = thread.extent(thread.ground.flags.reads_per_thread());
    let step = if thread.ground.flags.reverse_iterator { DbIterator::prev } else { DbIterator::next };
    while extent.take(1, thread.ground.vfs) > 0 {
        thread.tally.begin();
        let target = key.set(thread.rng.below(thread.ground.flags.num));
        let mut iterator = thread.db.iter(thread.family, &thread.ground.reads)?;
        let mut valid = iterator.seek(target);
        thread.tally.lookups(1, u64::from(valid && iterator.key() == target));
        let mut steps = 0;
        while valid && steps < thread.ground.flags.seek_nexts {
            sink.clear();
            sink.extend_from_slice(iterator.key());
            sink.extend_from_slice(iterator.value());
            thread.tally.bytes += sink.len() as u64;
            valid = step(&mut iterator);
            steps += 1;
        }
        std::hint::black_box(&sink);
        iterator.status()?;
        thread.tally.finish(Operation::Seek, 1)?;
    }
    Ok(())
}
