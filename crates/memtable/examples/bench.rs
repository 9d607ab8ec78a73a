//! Times memtables: `cargo run --release --example bench -- [entries [option strings]]`.
//!
//! Nanoseconds of processor time, so that a busy machine matters less; with two threads, of the clock.
//! Keys are 16 bytes: random ones, those of `db_bench` (eight bytes of a number below the count, big-endian, then zeros),
//! and `user%012d`; values are 100 bytes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use base::{FamilyId, InternalOrder, LookupKey, Result, SeqNo, ValueKind};
use memtable::{Entry, Memtable, MemtableConfig, factory_from_option_string};
use vfs::{IoClass, RealVfs, Vfs};

const VALUE: [u8; 100] = [0x76; 100];
const BATCH: usize = 64;

type Key = [u8; 16];

fn mix(i: u64) -> u64 {
    let x = i.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 31)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    x ^ (x >> 32)
}

fn random_key(i: u64, _count: u64) -> Key {
    (u128::from(mix(i)) << 64 | u128::from(mix(!i))).to_be_bytes()
}

fn db_bench_key(i: u64, count: u64) -> Key {
    let mut key = [b'0'; 16];
    key.iter_mut().zip((mix(i) % count).to_be_bytes()).for_each(|(to, from)| *to = from);
    key
}

fn user_key(i: u64, count: u64) -> Key {
    let mut key = [0; 16];
    let text = format!("user{:012}", mix(i) % count);
    key.copy_from_slice(text.as_bytes());
    key
}

fn ascending_key(i: u64, _count: u64) -> Key {
    u128::from(i).rotate_left(64).to_be_bytes()
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

fn entry(key: &Key, i: u64) -> Entry<'_> {
    Entry { user_key: key, seq: SeqNo(i + 1), kind: ValueKind::Value, value: &VALUE }
}

fn insert(memtable: &dyn Memtable, key: fn(u64, u64) -> Key, range: std::ops::Range<u64>, count: u64) {
    for i in range {
        let key = key(i, count);
        assert!(memtable.try_reserve(memtable.worst_case_bytes(1, key.len() + VALUE.len())), "capacity");
        memtable.insert(entry(&key, i));
    }
}

fn insert_batches(memtable: &dyn Memtable, key: fn(u64, u64) -> Key, count: u64) {
    for start in (0..count).step_by(BATCH) {
        let keys: Vec<Key> = (start..count.min(start + BATCH as u64)).map(|i| key(i, count)).collect();
        let payload = keys.len() * (16 + VALUE.len());
        assert!(memtable.try_reserve(memtable.worst_case_bytes(keys.len(), payload)), "capacity");
        memtable.insert_all(&mut keys.iter().zip(start..).map(|(key, i)| entry(key, i)));
    }
}

fn reads(timer: &Timer, memtable: &Arc<dyn Memtable>, key: fn(u64, u64) -> Key, count: u64) -> String {
    let found = AtomicU64::new(0);
    let find = |_: SeqNo, _: ValueKind, value: &[u8]| {
        found.fetch_add(value.len() as u64, Relaxed);
        false
    };
    let at = |i: u64| mix(i ^ 0x5555) % count;
    let mut lookup = LookupKey::default();
    let get = timer.each(count, || {
        for i in 0..count {
            lookup.set(&key(at(i), count), SeqNo::MAX);
            memtable.get(&lookup, &mut { find });
        }
    });
    let mut lookups = vec![LookupKey::default(); BATCH];
    let many = timer.each(count, || {
        for start in (0..count).step_by(BATCH) {
            lookups.iter_mut().zip(start..).for_each(|(l, i)| l.set(&key(at(i), count), SeqNo::MAX));
            let keys: Vec<&LookupKey> = lookups.iter().collect();
            memtable.multi_get(&keys, &mut |_, seq, kind, value| find(seq, kind, value));
        }
    });
    assert!(found.load(Relaxed) >= 2 * count * VALUE.len() as u64, "every key is there");
    let mut sum = 0usize;
    let mut cursor = Arc::clone(memtable).cursor();
    let next = timer.each(count, || {
        let mut more = cursor.seek_to_first();
        while more {
            sum += cursor.key().len();
            more = cursor.next();
        }
    });
    let prev = timer.each(count, || {
        let mut more = cursor.seek_to_last();
        while more {
            sum += cursor.key().len();
            more = cursor.prev();
        }
    });
    assert_eq!(sum as u64, 2 * 24 * count);
    format!("get {get:5}  multi_get {many:5}  next {next:4}  prev {prev:4}")
}

fn main() -> Result<()> {
    let vfs = RealVfs::new();
    let timer = Timer { vfs };
    let mut arguments = std::env::args().skip(1);
    let counts: Vec<u64> = match arguments.next().and_then(|count| count.parse().ok()) {
        Some(count) => vec![count],
        None => vec![500_000, 5_000_000],
    };
    let mut options: Vec<String> = arguments.collect();
    if options.is_empty() {
        options = memtable::names().map(str::to_owned).collect();
    }
    println!("ns for each entry; keys of 16 bytes, values of 100");
    for option in &options {
        let factory = factory_from_option_string(option)?;
        for &count in &counts {
            let config = MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, count as usize * 200);
            type MakeKey = fn(u64, u64) -> Key;
            let kinds: [(&str, MakeKey); 4] =
                [("random", random_key), ("db_bench", db_bench_key), ("user", user_key), ("ascending", ascending_key)];
            for (kind, key) in kinds {
                let memtable = factory.create(&config)?;
                let inserted = timer.each(count, || insert(&*memtable, key, 0..count, count));
                let memory = memtable.memory_bytes() as u64 / count;
                let reads = reads(&timer, &memtable, key, count);
                drop(memtable);
                let batched = factory.create(&config)?;
                let batch = timer.each(count, || insert_batches(&*batched, key, count));
                drop(batched);
                let shared = factory.create(&config)?;
                let two = timer.threads(2, count, move |range| insert(&*shared, key, range, count))?;
                println!(
                    "{option:10} {count:8} {kind:10} insert {inserted:5}  batched {batch:5}  2 threads {two:5}  {reads}  {memory} bytes"
                );
            }
        }
    }
    Ok(())
}
