//! Benchmarks of iterators.

use base::Result;

use super::Thread;
use crate::store::{Cursor, Store};
use crate::tally::Operation;

pub fn forward<S: Store>(thread: &mut Thread<'_, '_, S>) -> Result<()> {
    walk(thread, |cursor| cursor.seek_to_first(), |cursor| cursor.next())
}

pub fn backward<S: Store>(thread: &mut Thread<'_, '_, S>) -> Result<()> {
    walk(thread, |cursor| cursor.seek_to_last(), |cursor| cursor.prev())
}

fn walk<S: Store>(
    thread: &mut Thread<'_, '_, S>,
    start: impl FnOnce(&mut S::Cursor<'_>) -> bool,
    step: impl Fn(&mut S::Cursor<'_>) -> bool,
) -> Result<()> {
    let reads = thread.ground.flags.reads_per_thread();
    let mut iterator = thread.store.cursor()?;
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

/// A new iterator for each seek, and a copy of every entry passed, as in db_bench.
pub fn seeks<S: Store>(thread: &mut Thread<'_, '_, S>) -> Result<()> {
    let mut key = thread.key_buffer();
    let mut sink = Vec::new();
    let mut extent = thread.extent(thread.ground.flags.reads_per_thread());
    let reverse = thread.ground.flags.reverse_iterator;
    while extent.take(1, thread.ground.vfs) > 0 {
        thread.tally.begin();
        let target = key.set(thread.rng.below(thread.ground.flags.num));
        let mut iterator = thread.store.cursor()?;
        let mut valid = iterator.seek(target);
        thread.tally.lookups(1, u64::from(valid && iterator.key() == target));
        let mut steps = 0;
        while valid && steps < thread.ground.flags.seek_nexts {
            sink.clear();
            sink.extend_from_slice(iterator.key());
            sink.extend_from_slice(iterator.value());
            thread.tally.bytes += sink.len() as u64;
            valid = if reverse { iterator.prev() } else { iterator.next() };
            steps += 1;
        }
        std::hint::black_box(&sink);
        iterator.status()?;
        thread.tally.finish(Operation::Seek, 1)?;
    }
    Ok(())
}
