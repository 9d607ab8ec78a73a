//! What a batch costs whoever waits until it lies in a table: random keys, written as one batch and flushed, again and
//! again on a growing database. That is how a state trie is persisted.

mod flags;
mod record;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::options::CompressionKind;
use base::{Error, Result};
use memtable::factory_from_option_string;
use spillway::{DEFAULT_FAMILY, Db, FamilyOptions, OpenOptions, WriteBatch, WriteOptions};
use vfs::Vfs;

pub use flags::PersistFlags;
pub use record::{KIND, PersistRecord};

use crate::machine::Occasion;
use crate::medians::{in_order, median, spread};
use crate::sinks::{JsonLine, json_of, with_sinks, write_text};
use crate::workload::{Rng, Values};

/// How a batch gets into a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Written, then flushed.
    Flush,
    /// By a write that ends with its flush.
    Eager,
    /// The same, without a log: its table is what makes it durable.
    Unlogged,
}

const WAYS: &[(&str, Way)] = &[("flush", Way::Flush), ("eager", Way::Eager), ("unlogged", Way::Unlogged)];

/// A memtable and a way.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    memtable: String,
    way: Way,
}

impl Side {
    pub fn flushed(memtable: &str) -> Self {
        Side { memtable: memtable.to_owned(), way: Way::Flush }
    }

    /// Reads `MEMTABLE+WAY`.
    pub fn parse(text: &str) -> Option<Self> {
        let (memtable, name) = text.rsplit_once('+')?;
        let (_, way) = WAYS.iter().find(|(known, _)| *known == name)?;
        Some(Side { memtable: memtable.to_owned(), way: *way })
    }

    pub fn text(&self) -> String {
        format!("{}+{}", self.memtable, self.way.name())
    }
}

impl Way {
    fn name(self) -> &'static str {
        WAYS.iter().find(|(_, way)| *way == self).map_or("", |(name, _)| name)
    }

    fn write_options(self) -> WriteOptions {
        WriteOptions { flush_after: self != Way::Flush, disable_wal: self == Way::Unlogged, ..WriteOptions::default() }
    }
}

/// Runs what the flags ask for; text goes to standard output, or to standard error where JSON goes there.
///
/// # Errors
/// As [`run_sides`].
pub fn run(flags: &PersistFlags, vfs: &Arc<dyn Vfs>) -> Result<()> {
    with_sinks(vfs, &flags.json, |text, json| run_sides(flags, vfs, text, json))
}

/// Persists batches on each side by turns. The databases are idle before a batch is written.
///
/// # Errors
/// `InvalidArgument`: a memtable that does not exist. Otherwise the first failure of an operation.
pub fn run_sides(
    flags: &PersistFlags,
    vfs: &Arc<dyn Vfs>,
    text: &mut dyn Write,
    json: &mut JsonLine<'_>,
) -> Result<()> {
    vfs.create_dir_all(Path::new(&flags.db))?;
    let occasion = Occasion::now(vfs.as_ref(), Path::new(&flags.db));
    let mut open = Vec::new();
    for (at, side) in flags.sides.0.iter().enumerate() {
        factory_from_option_string(&side.memtable)?;
        open.push(Persisted::open(flags, side, at, vfs)?);
    }
    let mut records = Vec::new();
    for nth in 0..flags.repeats {
        for side in &mut open {
            let mut record = side.persist(flags, nth, vfs.as_ref())?;
            occasion.put_into(&mut record.machine, &mut record.commit, &mut record.unix_time_s);
            write_text(text, &record.text())?;
            json(&json_of(&record)?)?;
            records.push(record);
        }
    }
    for side in open {
        side.destroy(vfs)?;
    }
    write_text(text, &summary(&records))
}

/// A side's database and its batches.
struct Persisted<'a> {
    side: &'a Side,
    path: PathBuf,
    db: Db,
    batch: WriteBatch,
    rng: Rng,
    values: Values,
}

impl<'a> Persisted<'a> {
    fn open(flags: &PersistFlags, side: &'a Side, at: usize, vfs: &Arc<dyn Vfs>) -> Result<Self> {
        let path = Path::new(&flags.db).join(format!("side-{at}"));
        if vfs.exists(&path)? {
            return Err(Error::invalid_argument("there is a database already").at_path(&path));
        }
        let family = FamilyOptions {
            memtable_factory: side.memtable.clone().into(),
            write_buffer_size: flags.write_buffer_size,
            compression: CompressionKind::None,
            ..FamilyOptions::default()
        };
        let mut options = OpenOptions::create_if_missing().family(DEFAULT_FAMILY, family);
        options.vfs = vfs.clone();
        let db = Db::open(&path, &options)?;
        let mut rng = Rng::new(flags.seed);
        let values = Values::new(&mut rng, flags.value_size, 0.5);
        Ok(Persisted { side, path, db, batch: WriteBatch::new(), rng, values })
    }

    /// Makes a batch, and times what its caller waits for.
    fn persist(&mut self, flags: &PersistFlags, nth: u32, vfs: &dyn Vfs) -> Result<PersistRecord> {
        self.db.wait_for_compaction()?;
        let family = self.db.default_family();
        let mut key = vec![0; flags.key_size];
        self.batch.clear();
        for _ in 0..flags.keys {
            key.chunks_mut(8).for_each(|part| {
                part.iter_mut().zip(self.rng.next().to_le_bytes()).for_each(|(to, from)| *to = from);
            });
            self.batch.put(family.id(), &key, self.values.next());
        }
        let start = vfs.now();
        self.db.write(&self.batch, &self.side.way.write_options())?;
        let written = vfs.now();
        if self.side.way == Way::Flush {
            self.db.flush(&[&family])?;
        }
        let ended = vfs.now();
        Ok(PersistRecord {
            bench: "persist".to_owned(),
            memtable: self.side.memtable.clone(),
            way: self.side.way.name().to_owned(),
            keys: flags.keys,
            nth,
            blocked_ms: milliseconds(ended - start),
            write_ms: milliseconds(written - start),
            flush_ms: milliseconds(ended - written),
            kind: KIND.to_owned(),
            batch_bytes: self.batch.as_bytes().len() as u64,
            flags: flags.conditions(),
            ..PersistRecord::default()
        })
    }

    fn destroy(self, vfs: &Arc<dyn Vfs>) -> Result<()> {
        self.db.close()?;
        drop(self.db);
        Db::destroy(&self.path, None, vfs)
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// The medians of each side.
fn summary(records: &[PersistRecord]) -> String {
    let mut text = format!(
        "\n{:<28} {:>13} {:>21} {:>11} {:>11} {:>9}\n",
        "side", "blocked ms", "lowest - highest", "write ms", "flush ms", "vs first"
    );
    let mut first = None;
    for (side, batches) in in_order(records, PersistRecord::side) {
        let of =
            |figure: fn(&PersistRecord) -> f64| -> Vec<f64> { batches.iter().map(|record| figure(record)).collect() };
        let (low, high) = spread(&of(|record| record.blocked_ms));
        let median_of = |figure| median(of(figure)).unwrap_or_default();
        let blocked = median_of(|record| record.blocked_ms);
        let ratio = *first.get_or_insert(blocked) / blocked.max(f64::MIN_POSITIVE);
        text.push_str(&format!(
            "{side:<28} {blocked:>13.2} {:>21} {:>11.2} {:>11.2} {ratio:>8.2}x\n",
            format!("{low:.2} - {high:.2}"),
            median_of(|record| record.write_ms),
            median_of(|record| record.flush_ms)
        ));
    }
    text
}

#[cfg(test)]
mod tests;
