//! A fast table beside a block-based one whose blocks are all in the cache, of the same entries (100-byte values). Run with
//! `cargo run --release -p spillway-db-table --example fast_bench [ENTRIES [KEYS [TABLE [WORK [COUNT]]]]]`; KEYS are "random16",
//! "user16" or "random8". Without a TABLE the two take turns, a few thousand operations each, so that whatever else the
//! machine does slows both. With a TABLE ("fast", "blocks") and WORK ("get", "absent", "seek", "multi_get", "next") only
//! that is done, COUNT times, so that instructions can be counted: those of a run with COUNT less those of a run with
//! none.

extern crate spillway_db_table as table;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::{Cursor, LookupKey, Result, SeqNo, ValueKind, key};
use table::{BlockBasedTableBuilder, BlockCache, FastTableBuilder, Table, TableBuilder, TableBuilderConfig};
use table::{TableContext, TableReadOptions, open_any};
use vfs::{IfExists, MemoryVfs, RealVfs, Vfs};

const ENTRIES_DEFAULT: u64 = 1_000_000;
const TABLES: [&str; 2] = ["fast", "blocks"];
const KEYS: [&str; 3] = ["random16", "user16", "random8"];
const WORKS: [&str; 5] = ["get", "absent", "seek", "multi_get", "next"];
const VALUE: [u8; 100] = [b'v'; 100];
/// Turns of each table, and operations in a turn.
const TURNS: u64 = 40;
const TURN_COUNT: u64 = 10_000;
/// Lookups of one multi-get.
const TOGETHER: usize = 32;

/// Any number, told by its place.
fn scattered(i: u64) -> u64 {
    let mixed = (i ^ (i >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB)
}

fn user_key(keys: &str, i: u64) -> Vec<u8> {
    match keys {
        "user16" => format!("user{i:016}").into_bytes(),
        "random8" => scattered(i + 1).to_be_bytes().to_vec(),
        _ => [scattered(i + 1), scattered(i + 1000)].map(u64::to_be_bytes).concat(),
    }
}

struct Bench {
    clock: Arc<dyn Vfs>,
    memory: Arc<MemoryVfs>,
    /// In order.
    keys: Vec<Vec<u8>>,
    options: TableReadOptions,
}

impl Bench {
    fn new(entries: u64, keys: &str) -> Bench {
        let mut all: Vec<Vec<u8>> = (0..entries).map(|i| user_key(keys, i)).collect();
        all.sort_unstable();
        Bench { clock: RealVfs::new(), memory: MemoryVfs::new(1), keys: all, options: TableReadOptions::default() }
    }

    fn timed<T>(&self, what: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
        let start = self.clock.now();
        let result = what()?;
        Ok((result, self.clock.now() - start))
    }

    /// The table called `name`; its bytes, and the time it took.
    fn make(&self, name: &str) -> Result<(Arc<dyn Table>, u64, Duration)> {
        let path = Path::new(name);
        let (file, config) = (self.memory.create(path, IfExists::Truncate)?, TableBuilderConfig::new(path));
        let mut builder: Box<dyn TableBuilder> = match name {
            "fast" => Box::new(FastTableBuilder::new(file, config)?),
            _ => Box::new(BlockBasedTableBuilder::new(file, config)?),
        };
        let (bytes, time) = self.timed(|| {
            let mut internal = Vec::new();
            for (user_key, seq) in self.keys.iter().zip(1..) {
                internal.clear();
                key::append(&mut internal, user_key, SeqNo(seq), ValueKind::Value as u8);
                builder.add(&internal, &VALUE)?;
            }
            Ok(builder.finish()?.file_bytes)
        })?;
        let cache = Some(Arc::new(BlockCache::new(4 << 30)));
        let context = TableContext { cache, ..TableContext::default() };
        let table = open_any(&*self.memory, self.memory.open(path)?, path, bytes, &context)?.into_table();
        self.run(&table, "next", self.keys.len() as u64, 0)?;
        Ok((table, bytes, time))
    }

    fn lookups(&self, from: u64, count: u64) -> impl Iterator<Item = LookupKey> {
        let entries = self.keys.len() as u64;
        let keys = (from..from + count).filter_map(move |i| self.keys.get((scattered(i) % entries) as usize));
        keys.map(|user_key| LookupKey::new(user_key, SeqNo::MAX))
    }

    /// Does `work` `count` times, the random sequence beginning at `from`.
    fn run(&self, table: &Arc<dyn Table>, work: &str, count: u64, from: u64) -> Result<Duration> {
        let mut lookups: Vec<LookupKey> = match work {
            "next" => Vec::new(),
            _ => self.lookups(from, count).collect(),
        };
        if work == "absent" {
            // Behind the key, and before any other.
            lookups = lookups.iter().map(|key| LookupKey::new(&[key.user_key(), b"\0"].concat(), SeqNo::MAX)).collect();
        }
        if work == "multi_get" {
            lookups.chunks_mut(TOGETHER).for_each(|chunk| chunk.sort_by(|a, b| a.user_key().cmp(b.user_key())));
        }
        let (found, time) = self.timed(|| self.work(table, work, count, &lookups))?;
        assert_eq!(found, if work == "absent" { 0 } else { count });
        Ok(time)
    }

    fn work(&self, table: &Arc<dyn Table>, work: &str, count: u64, lookups: &[LookupKey]) -> Result<u64> {
        let mut found = 0;
        let mut cursor = table.clone().cursor(&self.options);
        match work {
            "get" | "absent" => {
                for lookup in lookups {
                    table.get(lookup, &self.options, &mut |_, _, value| {
                        found += u64::from(value.bytes.len() == VALUE.len());
                        false
                    })?;
                }
            }
            "seek" => found = lookups.iter().filter(|lookup| cursor.seek(lookup.internal())).count() as u64,
            "multi_get" => {
                for chunk in lookups.chunks(TOGETHER) {
                    let chunk: Vec<&LookupKey> = chunk.iter().collect();
                    table.multi_get(&chunk, &self.options, &mut |_, _, _, value| {
                        found += u64::from(value.bytes.len() == VALUE.len());
                        false
                    })?;
                }
            }
            _ => {
                let mut valid = count > 0 && cursor.seek_to_first();
                while valid && found < count {
                    found += u64::from(cursor.value().len() == VALUE.len() && !cursor.key().is_empty());
                    valid = cursor.next();
                }
            }
        }
        cursor.status().map(|()| found)
    }

    /// All tables and works, by turns.
    fn compare(&self, keys: &str) -> Result<()> {
        let entries = self.keys.len() as f64;
        let mut tables = Vec::new();
        for name in TABLES {
            let (table, bytes, time) = self.make(name)?;
            let (per_entry, nanoseconds) = (bytes as f64 / entries, time.as_nanos() as f64 / entries);
            println!("{keys} {name}: {per_entry:.1} bytes and {nanoseconds:.0} ns to build for each entry");
            tables.push(table);
        }
        for work in WORKS {
            let mut times = [Duration::ZERO; TABLES.len()];
            for turn in 0..TURNS {
                for (table, time) in tables.iter().zip(&mut times) {
                    *time += self.run(table, work, TURN_COUNT.min(self.keys.len() as u64), turn * TURN_COUNT)?;
                }
            }
            let [fast, blocks] = times.map(|time| time.as_nanos() as f64 / (TURNS * TURN_COUNT) as f64);
            println!("{keys} {work}: fast {fast:.0} ns, blocks {blocks:.0} ns, ratio {:.2}", blocks / fast);
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |nth: usize, default| arguments.get(nth).and_then(|n| n.parse().ok()).unwrap_or(default);
    let entries = number(0, ENTRIES_DEFAULT);
    let Some(keys) = arguments.get(1) else {
        return KEYS.iter().try_for_each(|keys| Bench::new(entries, keys).compare(keys));
    };
    let bench = Bench::new(entries, keys);
    match (arguments.get(2), arguments.get(3)) {
        (Some(name), Some(work)) => {
            let (table, ..) = bench.make(name)?;
            bench.run(&table, work, number(4, 100_000), 0).map(drop)
        }
        _ => bench.compare(keys),
    }
}
