//! Transactions of two puts each, beside plain batches of the same puts; and batches with an index, built and read.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use base::{ErrorKind, Result};
use bench::meter::{Meter, record_of};
use bench::sides::SideRecord;
use bench::store::Store;
use bench::tally::{Operation, Tally};
use bench::work::threads::join;
use bench::workload::{EntryBuffer, KeyBuffer, Rng};

use crate::child::Run;
use crate::library::{Control, IndexedBatch, TransactionDatabase};

/// Puts of a transaction.
const PUTS: usize = 2;

/// Hot keys, and how many keys in a hundred are of them where a mode is `-hot`.
const HOT_KEYS: u64 = 16;
const HOT_PERCENT: u64 = 20;

/// Entries of a batch with an index.
const INDEXED: u64 = 1000;

/// The keys and values of one thread.
struct Source {
    rng: Rng,
    entries: EntryBuffer,
    num: u64,
    hot_percent: u64,
}

impl Source {
    fn new(run: &Run<'_>, thread: usize) -> Source {
        let mut rng = Rng::new(run.flags.seed ^ (thread as u64 + 1).wrapping_mul(0xD6E8_FEB8_6659_FD93));
        let entries = EntryBuffer::new(&run.flags, &mut rng);
        let hot_percent = if run.spec.mode.ends_with("-hot") { HOT_PERCENT } else { 0 };
        Source { rng, entries, num: run.flags.num, hot_percent }
    }

    #[inline]
    fn next(&mut self) -> (&[u8], &[u8]) {
        let is_hot = self.rng.below(100) < self.hot_percent;
        let number = if is_hot { self.rng.below(HOT_KEYS) } else { HOT_KEYS + self.rng.below(self.num) };
        self.entries.next(number)
    }
}

/// The modes: `batch` writes plain batches; the others commit transactions of their kind.
pub fn run(run: &Run<'_>) -> Result<SideRecord> {
    match run.spec.mode.trim_end_matches("-hot") {
        "optimistic" => transactions(run, Control::Optimistic),
        "pessimistic" => transactions(run, Control::Pessimistic),
        _ => batches(run),
    }
}

fn batches(run: &Run<'_>) -> Result<SideRecord> {
    let database = run.open(&run.options()?, &run.flags)?;
    let meter = Meter::start(run.vfs.as_ref());
    let record = by_threads(run, |mut source| {
        let (mut batch, database) = (database.new_batch()?, &database);
        Ok(move || {
            database.clear(&mut batch);
            for _ in 0..PUTS {
                let (key, value) = source.next();
                database.add_put(&mut batch, key, value);
            }
            database.write(&mut batch).map(|()| true)
        })
    })?;
    Ok(meter.finish(record, meter.read(), None))
}

fn transactions(run: &Run<'_>, control: Control) -> Result<SideRecord> {
    let database = TransactionDatabase::open(&run.options()?, &run.spec.db, control)?;
    let meter = Meter::start(run.vfs.as_ref());
    let record = by_threads(run, |mut source| {
        let mut transaction = database.begin()?;
        Ok(move || {
            let mut done = Ok(());
            for _ in 0..PUTS {
                let (key, value) = source.next();
                done = done.and_then(|()| transaction.put(key, value));
            }
            let committed = match done.and_then(|()| transaction.commit()) {
                Err(error) if error.kind() == ErrorKind::Busy => transaction.rollback().map(|()| false),
                ended => ended.map(|()| true),
            }?;
            transaction.restart();
            Ok(committed)
        })
    })?;
    Ok(meter.finish(record, meter.read(), None))
}

/// Runs `--writes` transactions a thread. `make` gives each thread its transaction: true if it was committed.
fn by_threads<T: FnMut() -> Result<bool>>(
    run: &Run<'_>,
    make: impl Fn(Source) -> Result<T> + Sync,
) -> Result<SideRecord> {
    let (flags, vfs) = (&run.flags, run.vfs.as_ref());
    let (start, failed) = (Barrier::new(flags.threads), AtomicU64::new(0));
    let run_one = |thread: usize| {
        let transaction = make(Source::new(run, thread));
        start.wait();
        let (mut transaction, mut tally) = (transaction?, Tally::new(vfs, flags.histogram));
        for _ in 0..flags.writes_per_thread() {
            tally.begin();
            if !transaction()? {
                failed.fetch_add(1, Ordering::Relaxed);
            }
            tally.finish(Operation::Write, 1)?;
        }
        tally.end();
        Ok(tally)
    };
    let ended: Vec<Result<Tally<'_>>> = std::thread::scope(|scope| {
        let run_one = &run_one;
        let threads: Vec<_> = (0..flags.threads).map(|thread| scope.spawn(move || run_one(thread))).collect();
        threads.into_iter().map(join).collect()
    });
    let mut total = Tally::new(vfs, false);
    let mut ended = ended.into_iter();
    if let Some(first) = ended.next() {
        total = first?;
    }
    for tally in ended {
        total.merge(&tally?)?;
    }
    let failed = failed.into_inner();
    let wall = total.ended.saturating_sub(total.started).as_secs_f64().max(f64::MIN_POSITIVE);
    Ok(SideRecord {
        figure: (total.done - failed) as f64 / wall,
        unit: "transactions/s".to_owned(),
        user_bytes: (total.done - failed) * PUTS as u64 * run.entry_bytes(),
        failed: Some(failed),
        ..record_of(&total, flags.threads)
    })
}

/// The modes: `build` puts entries into batches, `read` looks them up there. An operation is an entry.
pub fn indexed(run: &Run<'_>) -> Result<SideRecord> {
    let (flags, vfs) = (&run.flags, run.vfs.as_ref());
    let options = run.options()?;
    let mut batch = IndexedBatch::new(&options)?;
    let mut entries = EntryBuffer::new(flags, &mut Rng::new(flags.seed));
    let mut rng = Rng::new(flags.seed);
    let mut fill = |batch: &mut IndexedBatch<'_>| {
        for _ in 0..INDEXED {
            let (key, value) = entries.next(rng.below(INDEXED));
            batch.put(key, value);
        }
    };
    fill(&mut batch);
    let (mut asked, mut key) = (Rng::new(!flags.seed), KeyBuffer::new(flags.key_size));
    let meter = Meter::start(vfs);
    let mut tally = Tally::new(vfs, false);
    while tally.done < flags.writes_per_thread() {
        tally.begin();
        if run.spec.mode == "build" {
            batch.clear();
            fill(&mut batch);
        } else {
            for _ in 0..INDEXED {
                let found = batch.get(key.set(asked.below(INDEXED)), |value| tally.bytes += value.len() as u64)?;
                tally.lookups(1, found.into());
            }
        }
        tally.finish(Operation::Read, INDEXED)?;
    }
    let used = meter.read();
    let figure = tally.done as f64 / used.wall.as_secs_f64().max(f64::MIN_POSITIVE);
    Ok(meter.finish(SideRecord { figure, unit: "entries/s".to_owned(), ..record_of(&tally, 1) }, used, None))
}
