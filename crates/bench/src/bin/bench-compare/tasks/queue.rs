//! A queue: entries are put at one end and deleted at the other, and each scan reads ten from the end where they are deleted. The
//! figure counts scans alone, without the writes between them.

use std::time::Duration;

use base::{Error, Result};
use bench::meter::{Meter, Used, record_of};
use bench::sides::SideRecord;
use bench::store::{Cursor, Store};
use bench::tally::{Operation, Tally};
use bench::workload::{EntryBuffer, Rng};

use crate::child::Run;
use crate::library::{Database, wait_until_idle};

/// Entries in the queue.
const LENGTH: u64 = 1000;

/// Entries of a scan.
const SCANNED: usize = 10;

/// A scan past a million deletions takes a tenth of a second.
const SCANS_TIME_MAX: Duration = Duration::from_secs(5);

struct Queue<'a> {
    database: &'a Database,
    batch: <Database as Store>::Batch,
    entries: EntryBuffer,
    /// Entries are put at descending keys and scanned from the last key on.
    backward: bool,
    /// Entries put and deleted so far.
    put: u64,
    deleted: u64,
}

impl Queue<'_> {
    /// The key of the `nth` entry put.
    fn number(&self, nth: u64) -> u64 {
        if self.backward { u64::MAX / 2 - nth } else { nth }
    }

    fn put(&mut self) -> Result<()> {
        let (key, value) = self.entries.next(self.number(self.put));
        self.put += 1;
        self.database.put(&mut self.batch, key, value)
    }

    fn delete(&mut self) -> Result<()> {
        let (key, _) = self.entries.next(self.number(self.deleted));
        self.deleted += 1;
        self.database.clear(&mut self.batch);
        self.database.add_delete(&mut self.batch, key);
        self.database.write(&mut self.batch)
    }

    /// Returns the bytes of the entries read.
    fn scan(&self) -> Result<u64> {
        let mut cursor = self.database.cursor()?;
        let mut valid = if self.backward { cursor.seek_to_last() } else { cursor.seek_to_first() };
        let (mut seen, mut bytes) = (0, 0);
        while valid && seen < SCANNED {
            seen += 1;
            bytes += cursor.key().len() + cursor.value().len();
            valid = if self.backward { cursor.prev() } else { cursor.next() };
        }
        cursor.status()?;
        if seen < SCANNED {
            return Err(Error::corruption(format!("{seen} entries found in a queue of {LENGTH}")));
        }
        Ok(bytes as u64)
    }
}

/// The modes: `clean` has no deletions; `dead` has `--num` of them at the end of the scans, none flushed, and one more with each
/// scan. `-back`: the scans go backward. The first scan is not counted.
pub fn run(run: &Run<'_>) -> Result<SideRecord> {
    let mode = run.spec.mode.as_str();
    let is_dead = mode.starts_with("dead");
    let options = run.options()?;
    let database = run.open(&options, &run.flags)?;
    let vfs = run.vfs.as_ref();
    let entries = EntryBuffer::new(&run.flags, &mut Rng::new(run.flags.seed));
    let batch = database.new_batch()?;
    let mut queue = Queue { database: &database, batch, entries, backward: mode.ends_with("back"), put: 0, deleted: 0 };
    let dead = if is_dead { run.flags.num } else { 0 };
    (0..dead + LENGTH).try_for_each(|_| queue.put())?;
    database.flush()?;
    wait_until_idle(vfs, &database)?;
    (0..dead).try_for_each(|_| queue.delete())?;
    queue.scan()?;
    let meter = Meter::start(vfs);
    let mut tally = Tally::new(vfs, true);
    let (mut spent, began) = (Duration::ZERO, vfs.now());
    while tally.done < run.flags.reads_per_thread() && vfs.now().saturating_sub(began) < SCANS_TIME_MAX {
        queue.put()?;
        if is_dead {
            queue.delete()?;
        }
        tally.resume();
        let start = vfs.now();
        tally.bytes += queue.scan()?;
        spent += vfs.now().saturating_sub(start);
        tally.finish(Operation::Seek, 1)?;
    }
    let figure = tally.done as f64 / spent.as_secs_f64().max(f64::MIN_POSITIVE);
    let record = SideRecord { figure, unit: "scans/s".to_owned(), ..record_of(&tally, 1) };
    Ok(meter.finish(record, Used { wall: spent, ..meter.read() }, None))
}
