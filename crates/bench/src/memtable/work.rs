//! The loops of the memtable benchmarks. They allocate nothing per operation. The clock is read only around a loop.

use std::hint::black_box;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use base::{Cursor, Error, LookupKey, Result, SeqNo, ValueKind, key};
use memtable::{Entry, Memtable};
use vfs::Vfs;

use super::flags::MemtableFlags;
use super::keys::KeyList;
use crate::work::threads::join;
use crate::workload::Values;

/// Lookup keys prepared together, ahead of the multi-gets.
const PREPARED: usize = 512;

/// Keys of a multi-get.
const MULTI_GET: usize = 16;

/// Bytes of an entry of `memtablerep_bench` beside user key and value: the key's length and the sequence number.
const ENTRY_OVERHEAD_BYTES: u64 = 9;

/// The input of a loop.
pub struct Task<'a> {
    pub flags: &'a MemtableFlags,
    pub memtable: &'a Arc<dyn Memtable>,
    pub keys: &'a KeyList,
    pub values: &'a mut Values,
    pub vfs: &'a dyn Vfs,
}

/// The result of a loop.
#[derive(Clone, Copy, Debug)]
pub struct Counts {
    /// Inserts, lookups, seeks or steps.
    pub ops: u64,
    /// Threads that did them.
    pub threads: usize,
    /// What memtablerep_bench divides the time by for its "read us/op": lookups of a thread, or passes. 0: none there.
    pub reads: u64,
    /// The same for "write us/op".
    pub writes: u64,
    /// The time of the writes, if it is not the loop's.
    pub write_time: Option<Duration>,
    /// Lookups and seeks with their key found.
    pub found: u64,
    /// As `memtablerep_bench` counts an entry: with its length and sequence number.
    pub bytes: u64,
}

impl Default for Counts {
    fn default() -> Self {
        Counts { ops: 0, threads: 1, reads: 0, writes: 0, write_time: None, found: 0, bytes: 0 }
    }
}

/// A benchmark's loop.
pub type Body = fn(&mut Task<'_>) -> Result<Counts>;

/// Inserts the task's keys as the engine does: a reservation, then the entry with the next sequence number.
fn fill(task: &mut Task<'_>) -> Result<Counts> {
    insert(task.memtable, task.keys, task.values, 0..task.keys.len(), || true)
}

/// Inserts a part of the keys in their order, while `goes_on`, which is asked after each.
fn insert(
    memtable: &Arc<dyn Memtable>,
    keys: &KeyList,
    values: &mut Values,
    part: Range<usize>,
    goes_on: impl Fn() -> bool,
) -> Result<Counts> {
    let mut counts = Counts::default();
    for (nth, at) in part.enumerate() {
        let (user_key, value) = (keys.key(at), values.next());
        if !memtable.try_reserve(memtable.worst_case_bytes(1, user_key.len() + value.len())) {
            let (name, entries) = (memtable.name(), memtable.entries());
            return Err(Error::invalid_argument(format!("the memtable {name} was full after {entries} entries")));
        }
        let entry = Entry { user_key, seq: SeqNo(nth as u64 + 1), kind: ValueKind::Value, value };
        memtable.insert_all(&mut std::iter::once(entry));
        counts.see(user_key, value);
        counts.writes += 1;
        if !goes_on() {
            break;
        }
    }
    Ok(Counts { ops: counts.writes, ..counts })
}

fn look_up(task: &mut Task<'_>) -> Result<Counts> {
    Ok(look_up_by(task.flags.num_threads, task.memtable, task.keys, task.keys.len()))
}

/// Looks up the first `count` keys by so many threads, each a part of them.
fn look_up_by(threads: usize, memtable: &Arc<dyn Memtable>, keys: &KeyList, count: usize) -> Counts {
    let of_each = count / threads;
    let part = |thread: usize| look_up_part(memtable, keys, thread * of_each..(thread + 1) * of_each);
    if threads == 1 {
        return part(0);
    }
    std::thread::scope(|scope| {
        let part = &part;
        let readers: Vec<_> = (0..threads).map(|thread| scope.spawn(move || part(thread))).collect();
        let sum = |sum: Counts, part: Counts| Counts {
            ops: sum.ops + part.ops,
            found: sum.found + part.found,
            bytes: sum.bytes + part.bytes,
            ..sum
        };
        let none = Counts { threads, reads: of_each as u64, ..Counts::default() };
        readers.into_iter().map(join).fold(none, sum)
    })
}

fn look_up_part(memtable: &Arc<dyn Memtable>, keys: &KeyList, part: Range<usize>) -> Counts {
    let mut lookup = LookupKey::default();
    let ops = part.len() as u64;
    let mut counts = Counts { ops, reads: ops, ..Counts::default() };
    for at in part {
        let user_key = keys.key(at);
        lookup.set(user_key, SeqNo::MAX);
        memtable.get(&lookup, &mut |_, _, value| {
            counts.see(user_key, black_box(value));
            false
        });
    }
    counts
}

/// Looks random keys up by all threads but one, which inserts random keys into a new memtable until the others end. With one
/// thread nothing happens, as in memtablerep_bench.
fn look_up_beside_writes(task: &mut Task<'_>) -> Result<Counts> {
    let Task { flags, memtable, keys, vfs, .. } = *task;
    let (readers, lookups) = (flags.num_threads - 1, flags.lookups() as usize);
    if readers == 0 {
        return Ok(Counts::default());
    }
    let (values, start, over) = (&mut *task.values, &Barrier::new(2), &AtomicBool::new(false));
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            start.wait();
            let began = vfs.now();
            let done = insert(memtable, keys, values, lookups..keys.len(), || !over.load(Ordering::Relaxed));
            done.map(|done| (done.writes, vfs.now().saturating_sub(began)))
        });
        start.wait();
        let read = look_up_by(readers, memtable, keys, lookups);
        over.store(true, Ordering::Relaxed);
        let (writes, took) = join(writer)?;
        Ok(Counts { writes, write_time: Some(took), ..read })
    })
}

/// [`MULTI_GET`] lookups together.
fn look_up_many(task: &mut Task<'_>) -> Result<Counts> {
    let mut lookups = vec![LookupKey::default(); PREPARED];
    let mut counts = Counts { ops: task.keys.len() as u64, ..Counts::default() };
    for start in (0..task.keys.len()).step_by(PREPARED) {
        let end = task.keys.len().min(start + PREPARED);
        for (lookup, at) in lookups.iter_mut().zip(start..end) {
            lookup.set(task.keys.key(at), SeqNo::MAX);
        }
        let prepared: Vec<&LookupKey> = lookups.iter().take(end - start).collect();
        for asked in prepared.chunks(MULTI_GET) {
            task.memtable.multi_get(asked, &mut |which, _, _, value| {
                counts.see(asked.get(which).map_or(&[], |lookup| lookup.user_key()), black_box(value));
                false
            });
        }
    }
    Ok(counts)
}

/// The first lookup and the first step of a cursor: some memtables sort their entries then.
fn read_first(task: &mut Task<'_>) -> Result<Counts> {
    let mut counts = look_up_part(task.memtable, task.keys, 0..task.keys.len());
    (counts.ops, counts.reads) = (1, 0);
    let mut cursor = Arc::clone(task.memtable).cursor();
    black_box(cursor.seek_to_first());
    cursor.status()?;
    Ok(counts)
}

/// Seeks with one cursor.
fn seek(task: &mut Task<'_>) -> Result<Counts> {
    let mut lookup = LookupKey::default();
    let mut counts = Counts { ops: task.keys.len() as u64, ..Counts::default() };
    let mut cursor = Arc::clone(task.memtable).cursor();
    for at in 0..task.keys.len() {
        let user_key = task.keys.key(at);
        lookup.set(user_key, SeqNo::MAX);
        if cursor.seek(lookup.internal()) && key::user_key(cursor.key()) == user_key {
            counts.see(user_key, black_box(cursor.value()));
        }
    }
    cursor.status()?;
    Ok(counts)
}

fn walk_forward(task: &mut Task<'_>) -> Result<Counts> {
    walk(task, |cursor| cursor.seek_to_first(), |cursor| cursor.next())
}

fn walk_backward(task: &mut Task<'_>) -> Result<Counts> {
    walk(task, |cursor| cursor.seek_to_last(), |cursor| cursor.prev())
}

/// Passes over all entries, each with a new cursor. An operation is a step.
fn walk(
    task: &Task<'_>,
    first: impl Fn(&mut dyn Cursor) -> bool,
    step: impl Fn(&mut dyn Cursor) -> bool,
) -> Result<Counts> {
    let mut counts = Counts { reads: u64::from(task.flags.num_scans), ..Counts::default() };
    for _ in 0..task.flags.num_scans {
        let mut cursor = Arc::clone(task.memtable).cursor();
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
}

/// The keys for a benchmark's loop, made before the clock starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keys {
    /// None: the loop iterates.
    None,
    One,
    /// Random ones, one for each lookup.
    Drawn,
    /// Random ones, for lookups and then for writes into a new memtable.
    Mixed,
    /// All, in the order of their numbers, for filling a new memtable.
    InOrder,
    /// All, shuffled, for filling a new memtable.
    Shuffled,
}

/// A benchmark by its name.
pub struct Benchmark {
    pub name: &'static str,
    pub about: &'static str,
    pub keys: Keys,
    pub body: Body,
}

impl Benchmark {
    /// Whether the benchmark begins with a new memtable. If not, it uses the one of the last fill.
    pub fn is_new(&self) -> bool {
        matches!(self.keys, Keys::InOrder | Keys::Shuffled | Keys::Mixed)
    }
}

const fn benchmark(name: &'static str, about: &'static str, keys: Keys, body: Body) -> Benchmark {
    Benchmark { name, about, keys, body }
}

pub const BENCHMARKS: &[Benchmark] = &[
    benchmark("fillrandom", "inserts num_operations keys, shuffled, into a new memtable", Keys::Shuffled, fill),
    benchmark("fillseq", "inserts num_operations keys in the order of their numbers", Keys::InOrder, fill),
    benchmark(
        "firstread",
        "looks up one key and seeks one cursor: the wait of the first reader",
        Keys::One,
        read_first,
    ),
    benchmark("readrandom", "looks up random keys", Keys::Drawn, look_up),
    benchmark("multireadrandom", "looks up random keys, 16 at a time", Keys::Drawn, look_up_many),
    benchmark("seekrandom", "seeks random keys", Keys::Drawn, seek),
    benchmark(
        "readwrite",
        "looks up random keys in a new memtable by num_threads - 1 threads; one more inserts random keys until they end",
        Keys::Mixed,
        look_up_beside_writes,
    ),
    benchmark("readseq", "steps through all entries from the first, num_scans times", Keys::None, walk_forward),
    benchmark("readreverse", "steps through all entries from the last, num_scans times", Keys::None, walk_backward),
];
