//! What one thread of each memtable benchmark does. Loops that allocate nothing for an operation; the clock is read at
//! their ends only.

use std::hint::black_box;
use std::ops::Range;
use std::sync::Arc;

use base::{Cursor, LookupKey, Result, SeqNo, key};

use super::filled::{Filled, Pool};
use super::flags::MemtableFlags;
use super::keys::KeyList;

/// Lookups whose keys are prepared together before they are given to multi-gets.
const PREPARED: usize = 512;

/// Bytes of an entry of `memtablerep_bench` beside user key and value: the key's length and the sequence number.
const ENTRY_OVERHEAD_BYTES: u64 = 9;

/// What a thread has to do.
pub struct Task<'a> {
    pub flags: &'a MemtableFlags,
    pub filled: &'a Filled,
    pub keys: &'a KeyList,
    /// This thread's part of the keys.
    pub places: Range<usize>,
    pub values: &'a Pool,
}

/// What a thread did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    pub ops: u64,
    /// Lookups and seeks that found their key.
    pub found: u64,
    /// As `memtablerep_bench` counts an entry: with its length and sequence number.
    pub bytes: u64,
}

/// What one thread of a benchmark does.
pub type Body = fn(&Task<'_>) -> Result<Counts>;

/// Inserts the task's keys.
pub fn fill(task: &Task<'_>) -> Result<Counts> {
    let mut value_at = 0;
    let mut start = task.places.start;
    while start < task.places.end {
        let end = task.places.end.min(start + task.flags.batch_size);
        if !task.filled.insert(task.keys, start..end, task.values, &mut value_at) {
            return Err(task.filled.full());
        }
        start = end;
    }
    let ops = task.places.len() as u64;
    let payload = (task.keys.bytes_in(&task.places) + task.places.len() * task.values.value_bytes()) as u64;
    Ok(Counts { ops, found: 0, bytes: payload + ops * ENTRY_OVERHEAD_BYTES })
}

pub fn look_up(task: &Task<'_>) -> Result<Counts> {
    let mut lookup = LookupKey::default();
    let mut counts = Counts { ops: task.places.len() as u64, ..Counts::default() };
    for at in task.places.clone() {
        let user_key = task.keys.key(at);
        lookup.set(user_key, SeqNo::MAX);
        task.filled.memtable.get(&lookup, &mut |_, _, value| {
            counts.see(user_key, black_box(value));
            false
        });
    }
    Ok(counts)
}

/// `--multi_get` lookups together.
pub fn look_up_many(task: &Task<'_>) -> Result<Counts> {
    let mut lookups = vec![LookupKey::default(); PREPARED];
    let mut counts = Counts { ops: task.places.len() as u64, ..Counts::default() };
    let mut start = task.places.start;
    while start < task.places.end {
        let end = task.places.end.min(start + PREPARED);
        for (lookup, at) in lookups.iter_mut().zip(start..end) {
            lookup.set(task.keys.key(at), SeqNo::MAX);
        }
        let prepared: Vec<&LookupKey> = lookups.iter().take(end - start).collect();
        for asked in prepared.chunks(task.flags.multi_get) {
            task.filled.memtable.multi_get(asked, &mut |which, _, _, value| {
                counts.see(asked.get(which).map_or(&[], |lookup| lookup.user_key()), black_box(value));
                false
            });
        }
        start = end;
    }
    Ok(counts)
}

/// The first lookup and the first step of a cursor, which in some representations sort what was inserted.
pub fn read_first(task: &Task<'_>) -> Result<Counts> {
    let mut counts = Counts { ops: 1, ..Counts::default() };
    let user_key = task.keys.key(task.places.start);
    task.filled.memtable.get(&LookupKey::new(user_key, SeqNo::MAX), &mut |_, _, value| {
        counts.see(user_key, black_box(value));
        false
    });
    let mut cursor = Arc::clone(&task.filled.memtable).cursor();
    black_box(cursor.seek_to_first());
    cursor.status()?;
    Ok(counts)
}

/// Seeks with one cursor, and `--seek_nexts` steps after each.
pub fn seek(task: &Task<'_>) -> Result<Counts> {
    let mut lookup = LookupKey::default();
    let mut counts = Counts { ops: task.places.len() as u64, ..Counts::default() };
    let mut cursor = Arc::clone(&task.filled.memtable).cursor();
    for at in task.places.clone() {
        let user_key = task.keys.key(at);
        lookup.set(user_key, SeqNo::MAX);
        let mut valid = cursor.seek(lookup.internal());
        if valid && key::user_key(cursor.key()) == user_key {
            counts.see(user_key, black_box(cursor.value()));
        }
        for _ in 0..task.flags.seek_nexts {
            valid = valid && cursor.next();
            black_box(cursor.value());
        }
    }
    cursor.status()?;
    Ok(counts)
}

pub fn walk_forward(task: &Task<'_>) -> Result<Counts> {
    walk(task, |cursor| cursor.seek_to_first(), |cursor| cursor.next())
}

pub fn walk_backward(task: &Task<'_>) -> Result<Counts> {
    walk(task, |cursor| cursor.seek_to_last(), |cursor| cursor.prev())
}

/// Passes over all entries, each with a new cursor. An operation is a step.
fn walk(
    task: &Task<'_>,
    first: impl Fn(&mut dyn Cursor) -> bool,
    step: impl Fn(&mut dyn Cursor) -> bool,
) -> Result<Counts> {
    let mut counts = Counts::default();
    for _ in 0..task.flags.num_scans {
        let mut cursor = Arc::clone(&task.filled.memtable).cursor();
        let mut valid = first(&mut *cursor);
        while valid {
            counts.ops += 1;
            // The trailer of the internal key is part of the overhead.
            counts.bytes += (black_box(cursor.key()).len() + black_box(cursor.value()).len() + 1) as u64;
            valid = step(&mut *cursor);
        }
        cursor.status()?;
    }
    Ok(counts)
}

impl Counts {
    #[inline]
    fn see(&mut self, user_key: &[u8], value: &[u8]) {
        self.found += 1;
        self.bytes += (user_key.len() + value.len()) as u64 + ENTRY_OVERHEAD_BYTES;
    }

    pub fn add(&mut self, other: &Counts) {
        self.ops += other.ops;
        self.found += other.found;
        self.bytes += other.bytes;
    }
}

/// The benchmarks of the list that readers' threads run on a memtable that is there.
#[derive(Clone, Copy)]
pub enum Work {
    /// Makes a memtable and fills it with the numbers in their order, or shuffled.
    Fill { shuffled: bool },
    /// On the memtable that the last fill made; with keys drawn at random where `draws`.
    Read { draws: bool, body: Body },
    /// One thread's first reads of the memtable that the last fill made.
    First,
}

/// A benchmark by its name.
pub struct Benchmark {
    pub name: &'static str,
    pub about: &'static str,
    pub work: Work,
}

const fn benchmark(name: &'static str, about: &'static str, work: Work) -> Benchmark {
    Benchmark { name, about, work }
}

pub const BENCHMARKS: &[Benchmark] = &[
    benchmark(
        "fillrandom",
        "inserts num_operations keys, shuffled, into a new memtable",
        Work::Fill { shuffled: true },
    ),
    benchmark("fillseq", "inserts num_operations keys in the order of their numbers", Work::Fill { shuffled: false }),
    benchmark("firstread", "looks up one key and seeks one cursor: what the first reader waits for", Work::First),
    benchmark("readrandom", "looks up random keys", Work::Read { draws: true, body: look_up }),
    benchmark(
        "multireadrandom",
        "looks up random keys, multi_get at a time",
        Work::Read { draws: true, body: look_up_many },
    ),
    benchmark("seekrandom", "seeks random keys, then takes seek_nexts steps", Work::Read { draws: true, body: seek }),
    benchmark(
        "readseq",
        "steps through the memtable from its first key, num_scans times",
        Work::Read { draws: false, body: walk_forward },
    ),
    benchmark(
        "readreverse",
        "steps through the memtable from its last key, num_scans times",
        Work::Read { draws: false, body: walk_backward },
    ),
];
