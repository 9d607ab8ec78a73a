//! Rows in the order of their keys, loaded three ways: as tables made outside and ingested, put one by one, in batches. What is put
//! is flushed, so that all end in tables.

use std::path::PathBuf;

use base::{Error, Result};
use bench::sides::SideRecord;
use bench::store::{Cursor, Store};
use bench::workload::{KeyBuffer, Rng, Values};

use crate::child::Run;
use crate::library::{Database, Options, TableFile};
use crate::measure::Meter;

/// Of keys and values in a table.
const TABLE_BYTES: u64 = 64 << 20;

/// Rows of a batch.
const BATCH_ROWS: u64 = 1000;

pub fn run(run: &Run<'_>) -> Result<SideRecord> {
    let options = run.options()?;
    let database = run.open(&options, &run.flags)?;
    let mut rows = Rows::of(run);
    let ops = rows.left;
    let meter = Meter::start(run.vfs.as_ref());
    match run.spec.mode.as_str() {
        "tables" => load_tables(run, &options, &database, &mut rows)?,
        "puts" => {
            let mut batch = database.new_batch()?;
            while let Some((key, value)) = rows.next() {
                database.put(&mut batch, key, value)?;
            }
            database.flush()?;
        }
        "batches" => load_batches(&database, &mut rows)?,
        other => return Err(Error::invalid_argument(format!("no way to load is called {other:?}"))),
    }
    let used = meter.read();
    let entry = (run.flags.key_size + run.flags.value_size) as u64;
    let record = SideRecord {
        figure: ops as f64 / used.0.as_secs_f64(),
        unit: "rows/s".to_owned(),
        threads: 1,
        ops,
        user_bytes: ops * entry,
        ..SideRecord::default()
    };
    let record = meter.finish(record, used, Some(&database))?;
    check(&database, ops)?;
    Ok(record)
}

fn load_tables(run: &Run<'_>, options: &Options, database: &Database, rows: &mut Rows) -> Result<()> {
    let entry = (run.flags.key_size + run.flags.value_size) as u64;
    let mut files: Vec<PathBuf> = Vec::new();
    while rows.left > 0 {
        let path = run.spec.db.with_extension(format!("load-{}", files.len()));
        let mut table = TableFile::create(options, &path)?;
        for _ in 0..(TABLE_BYTES / entry).max(1) {
            let Some((key, value)) = rows.next() else { break };
            table.put(key, value)?;
        }
        table.finish()?;
        files.push(path);
    }
    database.ingest(&files.iter().map(PathBuf::as_path).collect::<Vec<_>>(), true)?;
    files.iter().try_for_each(|path| run.vfs.remove_file(path))
}

fn load_batches(database: &Database, rows: &mut Rows) -> Result<()> {
    let mut batch = database.new_batch()?;
    while rows.left > 0 {
        database.clear(&mut batch);
        for _ in 0..BATCH_ROWS {
            let Some((key, value)) = rows.next() else { break };
            database.add_put(&mut batch, key, value);
        }
        database.write(&mut batch)?;
    }
    database.flush()
}

/// Every row is there, once.
fn check(database: &Database, rows: u64) -> Result<()> {
    let mut cursor = database.cursor()?;
    let (mut valid, mut found) = (cursor.seek_to_first(), 0);
    while valid {
        found += 1;
        valid = cursor.next();
    }
    cursor.status()?;
    if found != rows {
        return Err(Error::corruption(format!("{rows} rows were loaded and {found} are there")));
    }
    Ok(())
}

/// Keys that count up, and their values.
struct Rows {
    left: u64,
    number: u64,
    key: KeyBuffer,
    values: Values,
}

impl Rows {
    fn of(run: &Run<'_>) -> Rows {
        let flags = &run.flags;
        let values = Values::new(&mut Rng::new(flags.seed), flags.value_size, flags.compression_ratio);
        Rows { left: flags.num, number: 0, key: KeyBuffer::new(flags.key_size), values }
    }

    fn next(&mut self) -> Option<(&[u8], &[u8])> {
        self.left = self.left.checked_sub(1)?;
        self.number += 1;
        Some((self.key.set(self.number - 1), self.values.next()))
    }
}
