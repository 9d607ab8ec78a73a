//! Nanoseconds for each operation on one table in memory: add, get from cached blocks, next.
//! Run with `cargo run --release -p spillway-db-table --example table_bench [ENTRIES]`.

extern crate spillway_db_table as table;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use base::options::FilterPolicy;
use base::{Cursor, LookupKey, Result, SeqNo, ValueKind};
use table::{BlockBasedTable, BlockBasedTableBuilder, BlockCache, Table, TableBuilder, TableBuilderConfig};
use table::{TableContext, TableReadOptions};
use vfs::{IfExists, MemoryVfs, Vfs};

/// 128 MB: more than any processor's cache.
const ENTRIES_DEFAULT: u64 = 1_000_000;
const GETS: u64 = 1_000_000;

fn user_key(i: u64) -> [u8; 16] {
    let mut key = *b"user0000........";
    key[8..].copy_from_slice(&i.to_be_bytes());
    key
}

fn report(what: &str, operations: u64, taken: Duration) {
    println!("{what:<32} {:>8.1} ns", taken.as_nanos() as f64 / operations as f64);
}

fn main() -> Result<()> {
    let entries = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(ENTRIES_DEFAULT);
    let clock = vfs::RealVfs::new();
    let memory = MemoryVfs::new(1);
    let path = Path::new("/t.sst");
    let value = [b'v'; 100];
    for bits in [None, Some(10.0)] {
        let mut config = TableBuilderConfig::new(path);
        config.options.filter_policy = FilterPolicy { bits_per_key: bits };
        let start = clock.now();
        let file = memory.create(path, IfExists::Truncate)?;
        let mut builder = Box::new(BlockBasedTableBuilder::new(file, config)?);
        let mut internal = Vec::new();
        for i in 0..entries {
            internal.clear();
            base::key::append(&mut internal, &user_key(i), SeqNo(i + 1), ValueKind::Value as u8);
            builder.add(&internal, &value)?;
        }
        let added = clock.now() - start;
        let summary = builder.finish()?;
        report(&format!("add, filter {bits:?}"), entries, added);
        report("add and finish", entries, clock.now() - start);

        let cache = Arc::new(BlockCache::new(512 << 20));
        let context = TableContext { cache: Some(cache), ..TableContext::default() };
        let table = BlockBasedTable::open(memory.open(path)?, path, summary.file_bytes, &context)?;
        let options = TableReadOptions::default();
        for round in ["next, cold", "next, cached"] {
            let mut cursor = table.clone().cursor(&options);
            let start = clock.now();
            let mut valid = cursor.seek_to_first();
            let mut bytes = 0;
            while valid {
                bytes += cursor.key().len() + cursor.value().len();
                valid = cursor.next();
            }
            cursor.status()?;
            report(round, entries, clock.now() - start);
            assert_eq!(bytes as u64, entries * 124);
        }
        let mut lookup = LookupKey::default();
        for (what, absent) in [("get, cached", 0), ("get, absent", 1u64 << 40)] {
            let start = clock.now();
            let mut found = 0;
            let mut state = 1u64;
            for _ in 0..GETS {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                lookup.set(&user_key(((state >> 33) % entries) ^ absent), SeqNo::MAX);
                table.get(&lookup, &options, &mut |_, _, _| {
                    found += 1;
                    false
                })?;
            }
            report(what, GETS, clock.now() - start);
            assert_eq!(found, if absent == 0 { GETS } else { 0 });
        }
        let mut cursor = table.clone().cursor(&options);
        let start = clock.now();
        let mut valid = cursor.seek_to_last();
        while valid {
            valid = cursor.prev();
        }
        report("prev, cached", entries, clock.now() - start);
    }
    Ok(())
}
