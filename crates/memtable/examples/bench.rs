//! Times memtables: `cargo run --release --example bench -- [entries [value bytes [option strings]]]`.
//!
//! Nanoseconds of processor time for each entry, so that a busy machine matters less; with two threads, of the clock. The
//! representations are made and filled one after the other for each kind of key, so that what a neighbour takes is
//! spread over all. Keys are inserted in one random order and read in another.

extern crate spillway_db_memtable as memtable;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::{FamilyId, InternalOrder, LookupKey, Result, SeqNo, ValueKind};
use memtable::{Entry, Memtable, MemtableConfig, MemtableFactory, factory_from_option_string};
use vfs::{IoClass, RealVfs, Vfs};

/// Entries of a batch, and keys of a multi_get.
const BATCH: usize = 64;

/// What a seek is followed by.
const STEPS_AFTER_SEEK: u64 = 1;

/// Arena bytes for each entry beside key and value.
const ROOM_BYTES: usize = 160;

fn mix(i: u64) -> u64 {
    let x = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 31)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}

/// A key of at most 24 bytes, made where it is needed.
#[derive(Clone, Copy)]
struct Key {
    bytes: [u8; 24],
    len: usize,
}

impl Key {
    fn new(from: &[u8]) -> Key {
        let mut bytes = [0; 24];
        bytes.iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        Key { bytes, len: from.len() }
    }

    fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(&self.bytes)
    }
}

type MakeKey = fn(u64) -> Key;

const KINDS: [(&str, MakeKey); 5] = [
    ("little", |i| Key::new(&i.to_le_bytes())),
    ("big", |i| Key::new(&i.to_be_bytes())),
    ("random16", |i| Key::new(&(u128::from(mix(i)) << 64 | u128::from(mix(!i))).to_be_bytes())),
    ("user", user_key),
    ("random8", |i| Key::new(&mix(i).to_be_bytes())),
];

/// `user%016d`
fn user_key(mut i: u64) -> Key {
    let mut key = *b"user0000000000000000";
    for digit in key.iter_mut().rev().take(16) {
        *digit = b'0' + (i % 10) as u8;
        i /= 10;
    }
    Key::new(&key)
}

/// The numbers below `count` in a random order.
fn shuffled(count: u64, seed: u64) -> Arc<[u32]> {
    let mut numbers: Vec<u32> = (0..count as u32).collect();
    for i in (1..numbers.len()).rev() {
        numbers.swap(i, (mix(seed ^ i as u64) % (i as u64 + 1)) as usize);
    }
    numbers.into()
}

struct Timer {
    vfs: Arc<dyn Vfs>,
}

impl Timer {
    /// Nanoseconds of processor for each of `count` things that `work` does; those of the clock where the system does not
    /// tell.
    fn each(&self, count: u64, work: impl FnOnce()) -> u64 {
        let start = self.thread_ns();
        work();
        (self.thread_ns() - start) / count.max(1)
    }

    fn thread_ns(&self) -> u64 {
        let mut text = [0; 64];
        let file = self.vfs.open(Path::new("/proc/thread-self/schedstat"));
        let read = file.and_then(|file| file.read_at(0, &mut text, IoClass::Other));
        let ns = read.ok().and_then(|_| std::str::from_utf8(&text).ok()?.split(' ').next()?.parse().ok());
        ns.unwrap_or_else(|| self.vfs.now().as_nanos() as u64)
    }

    /// The same, divided between threads; `work` gets a range of the count.
    fn threads(
        &self,
        threads: u64,
        count: u64,
        work: impl Fn(std::ops::Range<u64>) + Send + Sync + 'static,
    ) -> Result<u64> {
        let work = Arc::new(work);
        let start = self.vfs.now();
        let mut running = Vec::new();
        for t in 0..threads {
            let work = Arc::clone(&work);
            let range = t * count / threads..(t + 1) * count / threads;
            running.push(self.vfs.spawn("bench", Box::new(move || work(range)))?);
        }
        running.into_iter().for_each(|thread| thread.join());
        Ok((self.vfs.now() - start).as_nanos() as u64 / count)
    }
}

/// What is inserted and read.
#[derive(Clone)]
struct Load {
    key: MakeKey,
    value: Arc<[u8]>,
    written: Arc<[u32]>,
    read: Arc<[u32]>,
}

impl Load {
    fn count(&self) -> u64 {
        self.written.len() as u64
    }

    fn payload(&self) -> usize {
        (self.key)(0).len + self.value.len()
    }

    fn entry<'a>(&'a self, key: &'a Key, i: u64) -> Entry<'a> {
        Entry { user_key: key.as_slice(), seq: SeqNo(i + 1), kind: ValueKind::Value, value: &self.value }
    }

    fn insert(&self, memtable: &dyn Memtable, range: std::ops::Range<u64>) {
        let written = self.written.get(range.start as usize..range.end as usize).expect("within the count");
        for (&number, i) in written.iter().zip(range.start..) {
            let key = (self.key)(number.into());
            assert!(memtable.try_reserve(memtable.worst_case_bytes(1, self.payload())), "capacity");
            memtable.insert(self.entry(&key, i));
        }
    }

    fn insert_batches(&self, memtable: &dyn Memtable, batch: usize) {
        let mut keys = Vec::with_capacity(batch);
        for (numbers, start) in self.written.chunks(batch).zip((0..).step_by(batch)) {
            keys.clear();
            keys.extend(numbers.iter().map(|&number| (self.key)(number.into())));
            let room = memtable.worst_case_bytes(keys.len(), keys.len() * self.payload());
            assert!(memtable.try_reserve(room), "capacity");
            memtable.insert_all(&mut keys.iter().zip(start..).map(|(key, i)| self.entry(key, i)));
        }
    }
}

fn point_reads(timer: &Timer, memtable: &Arc<dyn Memtable>, load: &Load) -> String {
    let found = AtomicU64::new(0);
    let find = |_: SeqNo, _: ValueKind, _: &[u8]| {
        found.fetch_add(1, Relaxed);
        false
    };
    let mut lookup = LookupKey::default();
    let get = timer.each(load.count(), || {
        for &number in &*load.read {
            lookup.set((load.key)(number.into()).as_slice(), SeqNo::MAX);
            memtable.get(&lookup, &mut { find });
        }
    });
    let many = |width: usize| {
        let mut lookups = vec![LookupKey::default(); width];
        timer.each(load.count(), || {
            for numbers in load.read.chunks(width) {
                for (lookup, &number) in lookups.iter_mut().zip(numbers) {
                    lookup.set((load.key)(number.into()).as_slice(), SeqNo::MAX);
                }
                let keys: Vec<&LookupKey> = lookups.iter().take(numbers.len()).collect();
                memtable.multi_get(&keys, &mut |_, seq, kind, value| find(seq, kind, value));
            }
        })
    };
    let (sixteen, wide) = (many(16), many(BATCH));
    assert_eq!(found.load(Relaxed), 3 * load.count(), "every key is there");
    format!("get {get:5}  16 {sixteen:5}  {BATCH} {wide:5}")
}

fn ordered_reads(timer: &Timer, memtable: &Arc<dyn Memtable>, load: &Load) -> String {
    let mut cursor = Arc::clone(memtable).cursor();
    let mut sum = 0usize;
    let next = timer.each(load.count(), || {
        let mut more = cursor.seek_to_first();
        while more {
            sum += cursor.key().len();
            more = cursor.next();
        }
    });
    let prev = timer.each(load.count(), || {
        let mut more = cursor.seek_to_last();
        while more {
            sum += cursor.key().len();
            more = cursor.prev();
        }
    });
    assert_eq!(sum as u64, 2 * ((load.key)(0).len as u64 + 8) * load.count());
    let seeks = load.read.get(..load.read.len() / 4).unwrap_or(&load.read);
    let mut lookup = LookupKey::default();
    let seek = timer.each(seeks.len() as u64, || {
        for &number in seeks {
            lookup.set((load.key)(number.into()).as_slice(), SeqNo::MAX);
            assert!(cursor.seek(lookup.internal()));
            for _ in 0..STEPS_AFTER_SEEK {
                if cursor.next() {
                    sum += cursor.key().len();
                }
            }
        }
    });
    format!("next {next:4}  prev {prev:4}  seek {seek:5}")
}

fn measure(timer: &Timer, factory: &dyn MemtableFactory, load: &Load) -> Result<String> {
    let count = load.count();
    let capacity = count as usize * (ROOM_BYTES + load.payload()) + (64 << 20);
    let config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, capacity);
    let memtable = factory.create(&config)?;
    let inserted = timer.each(count, || load.insert(&*memtable, 0..count));
    let memory = memtable.memory_bytes() as f64 / count as f64;
    let reserved = memtable.reserved_bytes() as f64 / count as f64;
    let points = point_reads(timer, &memtable, load);
    let ordered = ordered_reads(timer, &memtable, load);
    drop(memtable);
    let batched = |width: usize| {
        let memtable = factory.create(&config)?;
        Ok(timer.each(count, || load.insert_batches(&*memtable, width)))
    };
    let (sixteen, wide): (Result<u64>, Result<u64>) = (batched(16), batched(BATCH));
    let shared = factory.create(&config)?;
    let two = timer.threads(2, count, {
        let load = load.clone();
        move |range| load.insert(&*shared, range)
    })?;
    Ok(format!(
        "insert {inserted:5}  16 {:5}  {BATCH} {:5}  2 threads {two:5}  {points}  {ordered}  {memory:6.1} bytes held {reserved:6.1} reserved",
        sixteen?, wide?
    ))
}

fn main() -> Result<()> {
    let timer = Timer { vfs: RealVfs::new() };
    let mut arguments = std::env::args().skip(1);
    let mut number = |default| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let (count, value_bytes): (u64, u64) = (number(1_000_000), number(0));
    let mut options: Vec<String> = arguments.collect();
    if options.is_empty() {
        options = memtable::names().map(str::to_owned).collect();
    }
    println!("ns for each of {count} entries with values of {value_bytes} bytes");
    let (written, read) = (shuffled(count, 1), shuffled(count, 2));
    for (kind, key) in KINDS {
        for option in &options {
            let factory = factory_from_option_string(option)?;
            let value = vec![0x76; value_bytes as usize].into();
            let load = Load { key, value, written: Arc::clone(&written), read: Arc::clone(&read) };
            println!("{kind:9} {option:10} {}", measure(&timer, &*factory, &load)?);
        }
    }
    Ok(())
}
