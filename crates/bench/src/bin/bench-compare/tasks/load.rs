//! Loads rows in key order in three ways: as tables made outside and ingested, by single puts, in batches. Puts are flushed, so all
//! three end in tables.

use std::path::PathBuf;

use base::{Error, Result};
use bench::meter::Meter;
use bench::sides::SideRecord;
use bench::store::{Cursor, Store};
use bench::workload::{EntryBuffer, Rng};

use crate::child::Run;
use crate::library::{Database, Options, TableFile, wait_until_idle};

/// Bytes of keys and values in a table.
const TABLE_BYTES: u64 = 64 << 20;

/// Rows of a batch.
const BATCH_ROWS: u64 = 1000;

pub fn run(run: &Run<'_>) -> Result<SideRecord> {
    let options = run.options()?;
    let database = run.open(&options, &run.flags)?;
    let mut entries = EntryBuffer::new(&run.flags, &mut Rng::new(run.flags.seed));
    let ops = run.flags.num;
    let meter = Meter::start(run.vfs.as_ref());
    match run.spec.mode.as_str() {
        "tables" => load_tables(run, &options, &database, &mut entries)?,
        "puts" => {
            let mut batch = database.new_batch()?;
            for number in 0..ops {
                let (key, value) = entries.next(number);
                database.put(&mut batch, key, value)?;
            }
            database.flush()?;
        }
        "batches" => {
            let mut batch = database.new_batch()?;
            for first in (0..ops).step_by(BATCH_ROWS as usize) {
                database.clear(&mut batch);
                for number in first..ops.min(first + BATCH_ROWS) {
                    let (key, value) = entries.next(number);
                    database.add_put(&mut batch, key, value);
                }
                database.write(&mut batch)?;
            }
            database.flush()?;
        }
        other => return Err(Error::invalid_argument(format!("unknown mode {other:?} of load"))),
    }
    let used = meter.read();
    let record = SideRecord {
        figure: ops as f64 / used.wall.as_secs_f64(),
        unit: "rows/s".to_owned(),
        threads: 1,
        ops,
        user_bytes: ops * run.entry_bytes(),
        ..SideRecord::default()
    };
    let waited = wait_until_idle(run.vfs.as_ref(), &database)?;
    let record = meter.finish(record, used, Some(waited));
    check(&database, ops)?;
    Ok(record)
}

fn load_tables(run: &Run<'_>, options: &Options, database: &Database, entries: &mut EntryBuffer) -> Result<()> {
    let (rows, of_table) = (run.flags.num, (TABLE_BYTES / run.entry_bytes()).max(1));
    let mut files: Vec<PathBuf> = Vec::new();
    for first in (0..rows).step_by(of_table as usize) {
        let path = run.spec.db.with_extension(format!("load-{}", files.len()));
        let mut table = TableFile::create(options, &path)?;
        for number in first..rows.min(first + of_table) {
            let (key, value) = entries.next(number);
            table.put(key, value)?;
        }
        table.finish()?;
        files.push(path);
    }
    database.ingest(&files.iter().map(PathBuf::as_path).collect::<Vec<_>>(), true)?;
    files.iter().try_for_each(|path| run.vfs.remove_file(path))
}

/// Checks the number of rows.
fn check(database: &Database, rows: u64) -> Result<()> {
    let mut cursor = database.cursor()?;
    let (mut valid, mut found) = (cursor.seek_to_first(), 0);
    while valid {
        found += 1;
        valid = cursor.next();
    }
    cursor.status()?;
    if found != rows {
        return Err(Error::corruption(format!("{rows} rows were loaded, and {found} found")));
    }
    Ok(())
}
