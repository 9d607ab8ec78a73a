//! The tasks. Each makes a record of one run, starting with the workload's database.

pub mod batches;
pub mod ingest;
pub mod load;
pub mod overlap;
pub mod queue;
pub mod restart;
pub mod transactions;

use base::Result;
use bench::folder;
use bench::meter::{Meter, Used, record_of};
use bench::sides::SideRecord;
use bench::work::threads::{base_of, run_threads};
use bench::work::{Benchmark, Ground};

use crate::child::Run;
use crate::library::wait_until_idle;
use crate::suite::Start;

/// One of db_bench's.
pub fn benchmark(run: &Run<'_>, benchmark: &Benchmark, start: Start) -> Result<SideRecord> {
    let mut flags = run.flags.clone();
    (benchmark.adjust)(&mut flags);
    let options = run.options()?;
    let database = run.open(&options, &flags)?;
    let vfs = run.vfs.as_ref();
    let seed = flags.seed ^ base_of(benchmark.name);
    if start == Start::Filled {
        // Warms the block cache, empty at the start of a process.
        let mut half = flags.clone();
        half.reads = (half.reads / 2).max(1);
        run_threads(benchmark, &database, &Ground { flags: &half, vfs }, seed ^ base_of("warm"))?;
    }
    let meter = Meter::start(vfs);
    let tally = run_threads(benchmark, &database, &Ground { flags: &flags, vfs }, seed)?;
    let used = meter.read();
    let wall = tally.ended.saturating_sub(tally.started);
    let writes = tally.latencies().any(|(operation, _)| operation.name() == "write");
    let record = SideRecord {
        figure: tally.done as f64 / wall.as_secs_f64().max(f64::MIN_POSITIVE),
        unit: "ops/s".to_owned(),
        user_bytes: if writes { tally.bytes } else { tally.background_writes.unwrap_or_default() * run.entry_bytes() },
        ..record_of(&tally, flags.threads)
    };
    let settles = start != Start::Filled;
    let waited = settles.then(|| wait_until_idle(vfs, &database)).transpose()?;
    Ok(meter.finish(record, Used { wall, ..used }, waited))
}

/// Compacts a database after as many random overwrites as it has entries. An operation is an entry.
pub fn compact(run: &Run<'_>) -> Result<SideRecord> {
    let options = run.options()?;
    let database = run.open(&options, &run.flags)?;
    let vfs = run.vfs.as_ref();
    let ops = run.fill_random(&database, "overwrite")?;
    database.flush()?;
    let meter = Meter::start(vfs);
    database.compact();
    let used = meter.read();
    let figure = ops as f64 / used.wall.as_secs_f64();
    let record = SideRecord { figure, unit: "rows/s".to_owned(), threads: 1, ops, ..SideRecord::default() };
    Ok(meter.finish(record, used, None))
}

/// Fills and overwrites at random. The figure is the size of all files after a full compaction and a close.
pub fn space(run: &Run<'_>) -> Result<SideRecord> {
    let options = run.options()?;
    let database = run.open(&options, &run.flags)?;
    let vfs = run.vfs.as_ref();
    let meter = Meter::start(vfs);
    let ops = run.fill_random(&database, "fillrandom")? + run.fill_random(&database, "overwrite")?;
    let used = meter.read();
    let user_bytes = ops * run.entry_bytes();
    let record = SideRecord { threads: run.flags.threads, ops, user_bytes, ..SideRecord::default() };
    let waited = wait_until_idle(run.vfs.as_ref(), &database)?;
    let record = meter.finish(record, used, Some(waited));
    database.flush()?;
    database.compact();
    wait_until_idle(vfs, &database)?;
    drop(database);
    let disk_bytes = folder::bytes(vfs, &run.spec.db)?;
    Ok(SideRecord {
        figure: disk_bytes as f64 / 1e6,
        unit: "MB on disk".to_owned(),
        disk_bytes: Some(disk_bytes),
        ..record
    })
}
