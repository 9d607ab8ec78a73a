//! Zip tables beside block-based ones of the same rows, blocks of 16 KiB compressed by ZSTD at level 3, with a
//! dictionary and without: bytes and time for each row. Run with `cargo run --release -p spillway-db-table --example
//! zip_bench [ROWS [CORPUS [TABLE [GETS]]]]`; with a TABLE ("blocks", "blocks-dictionary", "zip"; "-cached" behind one
//! of blocks keeps them decompressed in the cache) only that one is read, so that instructions can be counted: those of
//! a run with GETS less those of a run with none.

extern crate spillway_db_table as table;

mod corpora;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::options::CompressionKind;
use base::{LookupKey, Result, SeqNo, ValueKind};
use corpora::Rows;
use table::{BlockBasedTableBuilder, BlockCache, Table, TableBuilder, TableBuilderConfig, TableContext};
use table::{TableReadOptions, ZipSettings, ZipTableBuilder, open_any};
use vfs::{IfExists, MemoryVfs, RealVfs, Vfs};

const ROWS_DEFAULT: u64 = 200_000;
const GETS_DEFAULT: u64 = 20_000;
const TABLES: [&str; 5] = ["blocks", "blocks-cached", "blocks-dictionary", "blocks-dictionary-cached", "zip"];
/// Tables take turns, so that what else the machine does meets all alike; the median counts.
const ROUNDS: usize = 5;

struct Bench {
    clock: Arc<dyn Vfs>,
    memory: Arc<MemoryVfs>,
    rows: Rows,
}

/// A table, and what it took to make.
struct Made {
    name: &'static str,
    table: Arc<dyn Table>,
    file_bytes: u64,
    build: Duration,
    open: Duration,
}

impl Bench {
    fn timed<T>(&self, what: impl FnOnce() -> Result<T>) -> Result<(T, Duration)> {
        let start = self.clock.now();
        let result = what()?;
        Ok((result, self.clock.now() - start))
    }

    fn builder(&self, name: &str, path: &Path) -> Result<Box<dyn TableBuilder>> {
        let mut config = TableBuilderConfig::new(path);
        let file = self.memory.create(path, IfExists::Truncate)?;
        if name == "zip" {
            let (vfs, spill_dir) = (self.memory.clone(), "/".into());
            let settings = ZipSettings { vfs, spill_dir, memory_bytes: 64 << 20 };
            return Ok(Box::new(ZipTableBuilder::new(file, config, settings)?));
        }
        config.options.block_size = 16 << 10;
        config.compression = CompressionKind::Zstd;
        config.compression_options.level = 3;
        if name.contains("dictionary") {
            // What RocksDB's documentation recommends: a hundred bytes of samples for each byte of dictionary.
            config.compression_options.max_dict_bytes = 16 << 10;
            config.compression_options.zstd_max_train_bytes = 1600 << 10;
        }
        Ok(Box::new(BlockBasedTableBuilder::new(file, config)?))
    }

    fn make(&self, name: &'static str) -> Result<Made> {
        let path = Path::new("/t.sst").with_file_name(name);
        let (summary, build) = self.timed(|| {
            let mut builder = self.builder(name, &path)?;
            let mut internal_key = Vec::new();
            for (key, value) in &self.rows {
                internal_key.clear();
                base::key::append(&mut internal_key, key, SeqNo::ZERO, ValueKind::Value as u8);
                builder.add(&internal_key, value)?;
            }
            builder.finish()
        })?;
        let cache = name.ends_with("cached").then(|| Arc::new(BlockCache::new(8 << 30)));
        let context = TableContext { cache, ..TableContext::default() };
        let (table, open) = self.timed(|| {
            Ok(open_any(&*self.memory, self.memory.open(&path)?, &path, summary.file_bytes, &context)?.into_table())
        })?;
        Ok(Made { name, table, file_bytes: summary.file_bytes, build, open })
    }

    /// Looks up rows in no order, each present.
    fn get(&self, table: &dyn Table, gets: u64) -> Result<Duration> {
        let options = TableReadOptions::default();
        let (mut lookup, mut state, mut found) = (LookupKey::default(), 1u64, 0);
        let ((), taken) = self.timed(|| {
            for _ in 0..gets {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                let row = self.rows.get((state >> 33) as usize % self.rows.len());
                lookup.set(row.map_or(&[], |row| &row.0), SeqNo::MAX);
                table.get(&lookup, &options, &mut |_, _, value| {
                    found += u64::from(row.is_some_and(|row| row.1.len() == value.bytes.len()));
                    false
                })?;
            }
            Ok(())
        })?;
        assert_eq!(found, gets);
        Ok(taken)
    }

    fn scan(&self, table: &Arc<dyn Table>) -> Result<Duration> {
        let mut cursor = table.clone().cursor(&TableReadOptions::default());
        let (walked, taken) = self.timed(|| {
            let (mut found, mut walked) = (cursor.seek_to_first(), 0);
            while found {
                walked += usize::from(!cursor.key().is_empty());
                found = cursor.next();
            }
            cursor.status().map(|()| walked)
        })?;
        assert_eq!(walked, self.rows.len());
        Ok(taken)
    }

    fn compare(&self, gets: u64) -> Result<()> {
        let made = TABLES.iter().map(|name| self.make(name)).collect::<Result<Vec<Made>>>()?;
        let mut times = vec![(Vec::new(), Vec::new()); made.len()];
        for _ in 0..ROUNDS {
            for (made, (scans, all_gets)) in made.iter().zip(&mut times) {
                scans.push(self.scan(&made.table)?);
                all_gets.push(self.get(&*made.table, gets)?);
            }
        }
        for (made, (scans, all_gets)) in made.iter().zip(times) {
            let each = |time: Duration, count: u64| time.as_nanos() as f64 / count.max(1) as f64;
            let rows = self.rows.len() as u64;
            println!(
                "{:<26} {:>7.2} bytes/row; build {:>6.0}, get {:>6.0}, next {:>5.0} ns; open {:>5.0} us, {:>5.2} bytes of memory/row",
                made.name,
                made.file_bytes as f64 / rows as f64,
                each(made.build, rows),
                each(median(all_gets), gets),
                each(median(scans), rows),
                made.open.as_nanos() as f64 / 1000.0,
                made.table.memory_bytes() as f64 / rows as f64,
            );
        }
        Ok(())
    }
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |nth: usize, default| arguments.get(nth).and_then(|n| n.parse().ok()).unwrap_or(default);
    let (count, gets) = (number(0, ROWS_DEFAULT), number(3, GETS_DEFAULT));
    let chosen = arguments.get(1).filter(|name| *name != "all");
    for name in corpora::NAMES.iter().filter(|name| chosen.is_none_or(|chosen| chosen == *name)) {
        let bench = Bench { clock: RealVfs::new(), memory: MemoryVfs::new(1), rows: corpora::rows(name, count)? };
        if let Some(table) = arguments.get(2).filter(|name| *name != "all") {
            let known = TABLES.iter().find(|known| *known == table);
            let known = known.ok_or_else(|| base::Error::invalid_argument(format!("no table is called {table}")))?;
            let made = bench.make(known)?;
            println!("{name}, {known}: {:.2} bytes/row", made.file_bytes as f64 / bench.rows.len() as f64);
            bench.scan(&made.table)?;
            bench.get(&*made.table, gets)?;
            continue;
        }
        let bytes = |of: fn(&(Vec<u8>, Vec<u8>)) -> usize| bench.rows.iter().map(of).sum::<usize>() as f64;
        let rows = bench.rows.len() as f64;
        let (keys, values) = (bytes(|row| row.0.len()) / rows, bytes(|row| row.1.len()) / rows);
        println!("{name}: {rows} rows, keys of {keys:.1} bytes, values of {values:.1}");
        bench.compare(gets)?;
    }
    Ok(())
}
