//! What it costs to make a table of a full memtable: writing its entries into one, or letting its memory become one.

mod flags;
mod record;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::checksum::crc32c;
use base::{Error, ErrorKind, Result};
use spillway::Db;
use vfs::Vfs;

pub use flags::FlushFlags;
pub use record::{CHECKSUM, FLUSH, FlushRecord, KIND, megabytes};

use crate::filling::{Entries, KEY_BYTES, Kind, Memtable, ValuesIn, log_bytes, memtable_bytes, refuse_existing};
use crate::flags::choices::Named;
use crate::harness::processor_time;
use crate::machine::{Occasion, Setting, peak_resident_bytes, reset_peak, resident_bytes, storage_bytes};
use crate::report::flushes;
use crate::sinks::{JsonLine, json_of, with_sinks, write_text};

/// How it is called, for the help.
pub const EXAMPLES: &str = "\
Examples:
  bench flush --db=/tmp/flush                                      64 MiB in every way, values of 100 and of 1000 bytes
  bench flush --db=/tmp/flush --memtables=trie --ways=rewrite,convert --values=memtable --bytes=1073741824
  bench flush --db=/tmp/flush --rounds=1 --json=lines.jsonl";

/// Bytes that a converted table has one checksum for (docs/format/converted.md).
const EXTENT_BYTES: usize = 256 << 10;

/// What a memtable may take for an entry beside its key and value.
const ENTRY_OVERHEAD_BYTES_MAX: usize = 128;

/// The least that a memtable can hold: some memtables give out their memory in steps.
const CAPACITY_BYTES_MIN: usize = 16 << 20;

/// A database is left alone before its flush until its background threads used less than `QUIET` of processor time in one
/// `LOOK`; for `LOOKS_MAX` of them at most.
const LOOK: Duration = Duration::from_millis(20);
const QUIET: Duration = Duration::from_millis(1);
const LOOKS_MAX: u32 = 250;

/// How a memtable becomes a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Its entries are written.
    Rewrite,
    /// It lies in the file that becomes the table.
    Convert,
    /// The same, and the kernel is left to write the file back.
    ConvertUnsynced,
    /// Its memory is written out.
    Dump,
}

impl Way {
    fn convert_to_sst(self) -> &'static str {
        match self {
            Way::Rewrite => "kDontConvert",
            Way::Convert | Way::ConvertUnsynced => "kFileMmap",
            Way::Dump => "kDumpMem",
        }
    }
}

/// One of the flushes that are measured by turns.
#[derive(Clone, Copy, Debug)]
struct Case {
    memtable: Memtable,
    way: Way,
    values: ValuesIn,
    bytes: usize,
    value_size: usize,
}

/// Runs what the flags ask for; text goes to standard output, or to standard error where JSON goes there.
///
/// # Errors
/// As [`run_cases`].
pub fn run(flags: &FlushFlags, vfs: &Arc<dyn Vfs>) -> Result<()> {
    with_sinks(vfs, &flags.json, |text, json| run_cases(flags, vfs, text, json))
}

/// Flushes in every way by turns: a line of text and one of JSON for each result, tables of medians at the end.
///
/// # Errors
/// `InvalidArgument`: there is a database already. `Unsupported`: a memtable did not become a table in the way that was
/// asked for. Otherwise the first failure of an operation.
pub fn run_cases(flags: &FlushFlags, vfs: &Arc<dyn Vfs>, text: &mut dyn Write, json: &mut JsonLine<'_>) -> Result<()> {
    vfs.create_dir_all(Path::new(&flags.db))?;
    let occasion = Occasion::now(vfs.as_ref(), Path::new(&flags.db));
    let setting = Setting::new(KIND, &occasion, flags.conditions());
    let cases = cases(flags);
    let mut records = Vec::new();
    for round in 0..flags.rounds {
        for turn in 0..cases.len() {
            let Some(case) = cases.get((turn + round as usize) % cases.len()) else { continue };
            let blank = FlushRecord { round, setting: setting.clone(), ..FlushRecord::default() };
            for record in case.measure(flags, vfs, &blank)? {
                write_text(text, &record.text())?;
                json(&json_of(&record)?)?;
                records.push(record);
            }
        }
    }
    write_text(text, &flushes::tables(&records))
}

/// What the flags ask for, the ways next to each other.
fn cases(flags: &FlushFlags) -> Vec<Case> {
    let mut cases = Vec::new();
    for (&bytes, &value_size) in flags.bytes.0.iter().flat_map(|b| flags.value_sizes.0.iter().map(move |v| (b, v))) {
        for &memtable in &flags.memtables.0 {
            for &way in &flags.ways.0 {
                // A rewrite has copies, whatever is asked for.
                let values: &[ValuesIn] =
                    if way == Way::Rewrite { &[ValuesIn::Memtable] } else { flags.values.0.as_slice() };
                cases.extend(values.iter().map(|&values| Case { memtable, way, values, bytes, value_size }));
            }
        }
    }
    cases
}

impl Case {
    /// Fills a new database and flushes it. A flush that converts is followed by a checksum pass.
    fn measure(&self, flags: &FlushFlags, vfs: &Arc<dyn Vfs>, blank: &FlushRecord) -> Result<Vec<FlushRecord>> {
        let path = Path::new(&flags.db).join("flushed");
        refuse_existing(vfs.as_ref(), &path)?;
        let stored = storage_bytes(vfs.as_ref());
        let db = Db::open(&path, &self.kind().open_options(vfs))?;
        let held = resident_bytes(vfs.as_ref());
        Entries::new(flags.seed, self.value_size).write(&db, self.entries())?;
        settle(vfs.as_ref());
        let mut record = FlushRecord {
            part: FLUSH.to_owned(),
            way: self.way.name().to_owned(),
            memtable: self.memtable.name().to_owned(),
            bytes: self.entries() * (KEY_BYTES + self.value_size) as u64,
            values: self.values.name().to_owned(),
            value_size: self.value_size as u64,
            entries: self.entries(),
            memtable_bytes: memtable_bytes(&db)?,
            log_bytes: log_bytes(&db),
            ..blank.clone()
        };
        flush(&db, vfs.as_ref(), held, &mut record)?;
        let table = self.table_of(&db, &mut record)?;
        record.kernel_written_bytes = storage_bytes(vfs.as_ref()).saturating_sub(stored);
        let checksum = (self.way == Way::Convert).then(|| checksum_pass(vfs.as_ref(), &table, &record)).transpose()?;
        db.close()?;
        drop(db);
        Db::destroy(&path, None, vfs)?;
        Ok([Some(record), checksum].into_iter().flatten().collect())
    }

    fn entries(&self) -> u64 {
        self.bytes.div_ceil(KEY_BYTES + self.value_size) as u64
    }

    fn kind(&self) -> Kind {
        let most = KEY_BYTES + self.value_size + ENTRY_OVERHEAD_BYTES_MAX;
        Kind {
            memtable: self.memtable,
            values: self.values,
            convert_to_sst: self.way.convert_to_sst(),
            sync_sst_file: self.way != Way::ConvertUnsynced,
            capacity_bytes: (2 * self.entries() as usize * most).max(CAPACITY_BYTES_MIN),
        }
    }

    /// The table that the flush made, which must be one, made in the way asked for.
    fn table_of(&self, db: &Db, record: &mut FlushRecord) -> Result<PathBuf> {
        let report = db.flushes();
        let made = if self.way == Way::Rewrite { report.rewritten } else { report.converted };
        let mut files = db.live_files();
        let table = files.pop().filter(|_| files.is_empty() && made == 1 && report.fallen_back == 0);
        let Some(table) = table else {
            let why =
                report.last_fall_back.unwrap_or_else(|| format!("{made} memtables did, to {} tables", files.len()));
            let message = format!("one {} was to become one table by {}: {why}", record.memtable, record.way);
            return Err(Error::new(ErrorKind::Unsupported, message));
        };
        record.table_bytes = table.bytes;
        record.written_bytes = record.log_bytes + record.table_bytes;
        Ok(table.path)
    }
}

/// Waits until nothing is done in the background: what is made ahead there is no part of a flush.
fn settle(vfs: &dyn Vfs) {
    for _ in 0..LOOKS_MAX {
        let before = processor_time();
        vfs.sleep(LOOK);
        if processor_time().saturating_sub(before) < QUIET {
            return;
        }
    }
}

/// Times the flush. `held` is what was resident before the memtable was filled.
fn flush(db: &Db, vfs: &dyn Vfs, held: u64, record: &mut FlushRecord) -> Result<()> {
    let family = db.default_family();
    let filled = resident_bytes(vfs);
    let tells_peak = reset_peak(vfs).is_ok();
    let (start, cpu) = (vfs.now(), processor_time());
    db.flush(&[&family])?;
    let (ended, cpu_ended) = (vfs.now(), processor_time());
    let peak = tells_peak.then(|| peak_resident_bytes(vfs));
    record.wall_ms = milliseconds(ended.saturating_sub(start));
    record.cpu_ms = milliseconds(cpu_ended.saturating_sub(cpu));
    record.peak_bytes = peak.map(|peak| peak.saturating_sub(held));
    record.growth_bytes = peak.map(|peak| peak.saturating_sub(filled));
    Ok(())
}

/// Computes what the flush computed to seal the image: pages are present, as they were there.
fn checksum_pass(vfs: &dyn Vfs, table: &Path, flushed: &FlushRecord) -> Result<FlushRecord> {
    let mapping = vfs.map_read(table)?;
    let bytes: &[u8] = (*mapping).as_ref();
    let pass = || bytes.chunks(EXTENT_BYTES).fold(0, |all, extent| all ^ crc32c(extent));
    let touched = pass();
    let (start, cpu) = (vfs.now(), processor_time());
    let again = pass();
    let (ended, cpu_ended) = (vfs.now(), processor_time());
    if again != touched {
        return Err(Error::corruption("the table changed while it was read").at_path(table));
    }
    Ok(FlushRecord {
        part: CHECKSUM.to_owned(),
        cpu_ms: milliseconds(cpu_ended.saturating_sub(cpu)),
        wall_ms: milliseconds(ended.saturating_sub(start)),
        written_bytes: 0,
        peak_bytes: None,
        growth_bytes: None,
        kernel_written_bytes: 0,
        ..flushed.clone()
    })
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests;
