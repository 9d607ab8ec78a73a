//! One ingest of tables over memtables with keys in their range, and the flush after it: on the disk or in memory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base::{Error, ErrorKind, Result};
use bench::folder;
use bench::medians::median;
use bench::meter::Meter;
use bench::sides::SideRecord;
use bench::store::Store;
use bench::workload::{EntryBuffer, Rng};
use vfs::{IfExists, IoClass};

use super::ingest::make_table_of;
use crate::child::Run;
use crate::library::{Database, Options};

/// Databases of a run, with one timed ingest each.
const DATABASES: usize = 5;

/// Bytes of a memtable, or `--write_buffer_size` if that is less.
const MEMTABLE_BYTES: u64 = 2 << 20;

/// The option wal_bytes_per_sync of [`Ground::WrittenBack`].
const BYTES_PER_SYNC: u64 = 512 << 10;

/// Fewest writes in the mutable memtable before a table is ingested over it.
const WRITES_MIN: u64 = 8;

/// Writes in the memtable under the tables of [`with_flush`].
const WRITES_BEFORE_FLUSH: u64 = 100;

/// Syncs of [`disk`].
const SYNCS: usize = 200;

/// Bytes written before each of them.
const SYNCED_BYTES: usize = 4096;

/// The property with the number of sealed memtables.
const SEALED: &str = "rocksdb.num-immutable-mem-table";

/// Where the database is, and what has become of its log when the tables come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// On the disk, the log written but not synced.
    Unsynced,
    /// The same, with parts of [`BYTES_PER_SYNC`] of the log written back meanwhile.
    WrittenBack,
    /// On the disk, the log synced.
    Synced,
    /// In the library's file system in memory, the log synced.
    Memory,
}

/// Ingests over as many memtables as the mode says, all with keys in the table's range.
pub fn over_memtables(run: &Run<'_>, ground: Ground) -> Result<SideRecord> {
    let memtables = number_of(run)?;
    median_of(run, ground, "us to ingest", |options, nth| {
        // Opened first: in memory there is no folder for the table before.
        let database = run.open(options, &run.flags)?;
        let table = make_table_of(run, options, nth, 0..run.flags.num)?;
        fill_memtables(run, &database, memtables)?;
        match ground {
            Ground::Synced => database.sync_log()?,
            // RocksDB's file system in memory has no such sync, and no need of one.
            Ground::Memory => {
                database.sync_log().or_else(|e| if e.kind() == ErrorKind::Unsupported { Ok(()) } else { Err(e) })?;
            }
            Ground::Unsynced | Ground::WrittenBack => {}
        }
        let called = run.vfs.now();
        database.ingest_moved(&[&table])?;
        Ok(run.vfs.now().saturating_sub(called))
    })
}

/// Ingests as many tables as the mode says, one beside the other, over one memtable, and flushes: until all have a level.
pub fn with_flush(run: &Run<'_>, ground: Ground) -> Result<SideRecord> {
    let tables = number_of(run)?;
    median_of(run, ground, "us to ingest and flush", |options, nth| {
        let database = run.open(options, &run.flags)?;
        let part = run.flags.num / tables.max(1);
        let make = |table: u64| make_table_of(run, options, nth * tables + table, table * part..(table + 1) * part);
        let files = (0..tables).map(make).collect::<Result<Vec<PathBuf>>>()?;
        write(run, &database, |nth| Ok(nth < WRITES_BEFORE_FLUSH))?;
        let called = run.vfs.now();
        if tables > 0 {
            database.ingest_moved(&files.iter().map(PathBuf::as_path).collect::<Vec<&Path>>())?;
        }
        database.flush()?;
        Ok(run.vfs.now().saturating_sub(called))
    })
}

/// One write of 4 KiB to a file and its sync.
pub fn disk(run: &Run<'_>) -> Result<SideRecord> {
    let (vfs, path) = (run.vfs.as_ref(), run.spec.db.with_extension("synced"));
    let meter = Meter::start(vfs);
    let mut file = vfs.create(&path, IfExists::Truncate)?;
    let mut times = Vec::new();
    for _ in 0..SYNCS {
        let began = vfs.now();
        file.append(&[7; SYNCED_BYTES], IoClass::Log)?;
        file.sync(IoClass::Log)?;
        times.push(vfs.now().saturating_sub(began));
    }
    vfs.remove_file(&path)?;
    Ok(meter.finish(record_of(times, "us to sync"), meter.read(), None))
}

fn number_of(run: &Run<'_>) -> Result<u64> {
    let mode = &run.spec.mode;
    mode.parse().map_err(|_| Error::invalid_argument(format!("the mode {mode:?} is not a number")))
}

/// Measures in several new databases. `measure` gets the options and the number of the database.
fn median_of(
    run: &Run<'_>,
    ground: Ground,
    unit: &str,
    measure: impl Fn(&Options, u64) -> Result<Duration>,
) -> Result<SideRecord> {
    let meter = Meter::start(run.vfs.as_ref());
    let mut times = Vec::new();
    let mut texts = run.spec.options.clone();
    texts.push(format!("write_buffer_size={}", MEMTABLE_BYTES.min(run.spec.write_buffer_bytes)));
    if ground == Ground::WrittenBack {
        texts.push(format!("wal_bytes_per_sync={BYTES_PER_SYNC}"));
    }
    for nth in 0..DATABASES as u64 {
        let options = Options::from_texts(run.functions, &texts)?;
        let options = if ground == Ground::Memory { options.in_memory()? } else { options };
        times.push(measure(&options, nth)?);
        folder::remove(run.vfs.as_ref(), &run.spec.db)?;
    }
    Ok(meter.finish(record_of(times, unit), meter.read(), None))
}

fn record_of(times: Vec<Duration>, unit: &str) -> SideRecord {
    let ops = times.len() as u64;
    let figure = median(times.into_iter().map(|time| time.as_secs_f64() * 1e6).collect()).unwrap_or_default();
    SideRecord { figure, unit: unit.to_owned(), threads: 1, ops, ..SideRecord::default() }
}

/// Writes over the whole range while `goes_on`, which is asked before each write and gets its number.
fn write(run: &Run<'_>, database: &Database, mut goes_on: impl FnMut(u64) -> Result<bool>) -> Result<()> {
    let flags = &run.flags;
    let mut rng = Rng::new(flags.seed);
    let (mut entries, mut batch) = (EntryBuffer::new(flags, &mut rng), database.new_batch()?);
    for nth in 0.. {
        if !goes_on(nth)? {
            break;
        }
        let (key, value) = entries.next(rng.below(flags.num));
        database.put(&mut batch, key, value)?;
    }
    Ok(())
}

/// Writes until there are so many memtables, each with keys all over the range.
fn fill_memtables(run: &Run<'_>, database: &Database, memtables: u64) -> Result<()> {
    let (mut sealed, mut in_mutable) = (0, 0);
    write(run, database, |_| {
        let now = database.number(SEALED)?.ok_or_else(|| Error::unsupported(format!("no property {SEALED}")))?;
        in_mutable = if now == sealed { in_mutable + 1 } else { 1 };
        sealed = now;
        Ok(sealed + 1 < memtables || in_mutable <= WRITES_MIN)
    })?;
    if sealed + 1 != memtables {
        return Err(Error::invalid_argument(format!("{memtables} memtables were wanted, there are {}", sealed + 1)));
    }
    Ok(())
}
