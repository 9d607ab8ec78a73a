//! Large batches, one after another: the time for which the caller is blocked.

use base::Result;
use bench::medians::median;
use bench::meter::Meter;
use bench::sides::SideRecord;
use bench::store::Store;
use bench::workload::{EntryBuffer, Rng};

use crate::child::Run;

/// Batches of a run.
const BATCHES: usize = 10;

/// Entries of a batch, or all `--num` if they are fewer.
const BATCH_ENTRIES: u64 = 200_000;

/// Writes batches under random keys. With the mode `flushed` each is flushed by the caller, who waits.
pub fn run(run: &Run<'_>) -> Result<SideRecord> {
    let options = run.options()?;
    let database = run.open(&options, &run.flags)?;
    let vfs = run.vfs.as_ref();
    let entries_per_batch = BATCH_ENTRIES.min(run.flags.num);
    let mut rng = Rng::new(run.flags.seed);
    let (mut entries, mut batch) = (EntryBuffer::new(&run.flags, &mut rng), database.new_batch()?);
    let meter = Meter::start(vfs);
    let mut times = Vec::new();
    for _ in 0..BATCHES {
        database.clear(&mut batch);
        for _ in 0..entries_per_batch {
            let (key, value) = entries.next(rng.next());
            database.add_put(&mut batch, key, value);
        }
        let called = vfs.now();
        database.write(&mut batch)?;
        if run.spec.mode == "flushed" {
            database.flush()?;
        }
        times.push(vfs.now().saturating_sub(called).as_secs_f64() * 1e3);
    }
    let ops = BATCHES as u64 * entries_per_batch;
    let record = SideRecord {
        figure: median(times).unwrap_or_default(),
        unit: "ms blocked".to_owned(),
        threads: 1,
        ops,
        user_bytes: ops * run.entry_bytes(),
        ..SideRecord::default()
    };
    Ok(meter.finish(record, meter.read(), None))
}
