//! Ingests of tables overlapping the written keys, beside writers at a fixed rate.

use std::ops::Range;
use std::path::{Path, PathBuf};

use base::{Error, ErrorKind, Result};
use bench::beside::Plan;
use bench::meter::Meter;
use bench::sides::SideRecord;
use bench::store::Store;
use bench::workload::{EntryBuffer, Rng};

use crate::child::Run;
use crate::library::{Database, Options, Own, TableFile, wait_until_idle};

/// Entries of an ingested table, spread over all keys.
const TABLE_ENTRIES: u64 = 1000;

/// Tries of an ingest not allowed to flush, each after a flush: writers may refill the memtable in between.
const TRIES_MAX: u32 = 1000;

/// Writers, and one ingest per interval.
pub fn beside_writers(run: &Run<'_>) -> Result<SideRecord> {
    let (flags, vfs) = (&run.flags, run.vfs.as_ref());
    let plan = Plan { writers: flags.threads as u64, ..run.spec.plan };
    let options = run.options()?;
    let count = if run.spec.mode == "none" { 0 } else { plan.ingests() };
    let tables = (0..count).map(|nth| make_table(run, &options, nth)).collect::<Result<Vec<_>>>()?;
    let database = run.open(&options, flags)?;
    let meter = Meter::start(vfs);
    let writer = |first: u64| {
        let mut rng = Rng::new(flags.seed ^ (first + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93));
        let mut entries = EntryBuffer::new(flags, &mut rng);
        let (mut batch, database) = (database.new_batch()?, &database);
        Ok(move |_| {
            let (key, value) = entries.next(rng.below(flags.num));
            database.put(&mut batch, key, value)
        })
    };
    let ingest = |nth: u64| tables.get(nth as usize).map_or(Ok(()), |path| ingest_one(run, &database, path));
    let done = plan.run(vfs, writer, (count > 0).then_some(&ingest));
    let used = meter.read();
    tables.iter().try_for_each(|path| vfs.remove_file(path))?; // after a failure too: other turns follow
    let done = done?;
    let ops = done.writes.count();
    let record = SideRecord {
        figure: done.writes.percentile_us(99.9),
        unit: "us at p99.9".to_owned(),
        threads: flags.threads,
        ops,
        user_bytes: ops * run.entry_bytes(),
        ingests: done.ingests.count(),
        ingest_ms: done.ingests.percentile_us(50.0) / 1e3,
        latency: [("write".to_owned(), done.writes.distribution())].into(),
        ..SideRecord::default()
    };
    let waited = wait_until_idle(run.vfs.as_ref(), &database)?;
    Ok(meter.finish(record, used, Some(waited)))
}

/// A table of keys scattered over the whole range.
fn make_table(run: &Run<'_>, options: &Options, nth: u64) -> Result<PathBuf> {
    make_table_of(run, options, nth, 0..run.flags.num)
}

/// A table of keys scattered over a range of numbers.
pub fn make_table_of(run: &Run<'_>, options: &Options, nth: u64, range: Range<u64>) -> Result<PathBuf> {
    let flags = &run.flags;
    let mut rng = Rng::new(flags.seed ^ 0x1D6E ^ (nth << 32));
    let mut entries = EntryBuffer::new(flags, &mut rng);
    let mut numbers: Vec<u64> =
        (0..TABLE_ENTRIES).map(|_| range.start + rng.below((range.end - range.start).max(1))).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let path = run.spec.db.with_extension(format!("ingest-{nth}"));
    let mut table = TableFile::create(options, &path)?;
    for number in numbers {
        let (key, value) = entries.next(number);
        table.put(key, value)?;
    }
    table.finish()?;
    Ok(path)
}

fn ingest_one(run: &Run<'_>, database: &Database, path: &Path) -> Result<()> {
    match run.spec.mode.as_str() {
        "default" => return database.ingest(&[path], true),
        "flush-first" => {}
        mode => return database.ingest_in_mode(&[path], Own::load(&run.spec.library)?, mode),
    }
    for _ in 0..TRIES_MAX {
        database.flush()?;
        match database.ingest(&[path], false) {
            // The error if a memtable has keys in the table's range.
            Err(error) if error.kind() == ErrorKind::InvalidArgument => {}
            done => return done,
        }
    }
    Err(Error::busy("after every flush the memtable had keys in the table's range again"))
}
