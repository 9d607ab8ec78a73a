//! Makes sorted tables from files of records, for any number of databases.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use spillway::internal::ttl::Times;
use spillway::internal::vfs::Vfs;
use spillway::internal::{FamilyOptions, Result, TableWriter, WrittenTable};

use crate::failure::{Failure, Outcome};
use crate::input::{Input, Record, Skipped};
use crate::interrupt::Interrupt;
use crate::progress::{Reading, Step};
use crate::sort::{MEMORY_BYTES_MIN, Part, SortSettings, Sorted, Sorter};
use crate::{human, memory, threads};

const MEMORY_BYTES_DEFAULT: u64 = 512 << 20;
const TARGET_BYTES_DEFAULT: u64 = 64 << 20;
const TARGET_BYTES_MIN: u64 = 4 << 10;

/// Records between two updates of the terminal.
const PROGRESS_RECORDS: u64 = 4096;

/// Resources for making tables, and their size.
#[derive(clap::Args, Debug)]
pub struct MakeArgs {
    /// Memory for sorting, in bytes or with a suffix K, M or G. More records than fit are sorted on disk. The index and filter of
    /// tables need some megabytes per thread in addition. Default: 512M, or a quarter of the memory that the process's group (a
    /// container), or its address space (`ulimit -v`), leaves.
    #[arg(long, value_name = "BYTES", value_parser = human::parse_bytes)]
    memory: Option<u64>,
    /// Threads for sorting, merging and writing. Default: one per processor.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    threads: Option<u16>,
    /// Directory for sorted runs beyond memory. Default: beside the tables.
    #[arg(long, value_name = "DIR")]
    tmp: Option<PathBuf>,
    /// Approximate size of a table, in bytes or with a suffix K, M or G. Default: 64M.
    #[arg(long, value_name = "BYTES", value_parser = human::parse_bytes)]
    target_size: Option<u64>,
}

impl MakeArgs {
    /// Name of the first given argument.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--memory", self.memory.is_some()),
            ("--threads", self.threads.is_some()),
            ("--tmp", self.tmp.is_some()),
            ("--target-size", self.target_size.is_some()),
        ];
        given.into_iter().find(|(_, is_given)| *is_given).map(|(name, _)| name)
    }

    /// # Errors
    /// A size is too small.
    pub fn check(&self) -> Outcome {
        self.memory_bytes()?;
        self.target_bytes().map(drop)
    }

    fn memory_bytes(&self) -> Outcome<u64> {
        let own = memory::limit_bytes().map_or(MEMORY_BYTES_DEFAULT, |limit| MEMORY_BYTES_DEFAULT.min(limit / 4));
        at_least("--memory", self.memory.unwrap_or(own.max(MEMORY_BYTES_MIN)), MEMORY_BYTES_MIN)
    }

    fn target_bytes(&self) -> Outcome<u64> {
        at_least("--target-size", self.target_size.unwrap_or(TARGET_BYTES_DEFAULT), TARGET_BYTES_MIN)
    }
}

fn at_least(name: &str, bytes: u64, least: u64) -> Outcome<u64> {
    if bytes < least {
        return Err(Failure::refused(format!("{name} is at least {}", human::bytes(least))));
    }
    Ok(bytes)
}

/// Directory and family of the tables.
pub struct Place {
    pub vfs: Arc<dyn Vfs>,
    /// An existing directory without tables.
    pub dir: PathBuf,
    pub family: Arc<FamilyOptions>,
    pub interrupt: Interrupt,
}

/// Result of [`make`].
pub struct Made {
    /// Ascending, without overlap. Their contents survive a power loss, their names not yet.
    pub tables: Vec<WrittenTable>,
    /// Records read, including records replaced by later ones of the same key.
    pub records: u64,
    /// Bytes of their keys and values.
    pub payload_bytes: u64,
    /// Skipped malformed records.
    pub skipped: Skipped,
    pub runs: usize,
    pub passes: usize,
    pub time: Duration,
}

impl Made {
    pub fn entries(&self) -> u64 {
        self.tables.iter().map(|table| table.entries).sum()
    }

    pub fn file_bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.file_bytes).sum()
    }
}

/// Reads all records, sorts them and writes them into tables.
pub fn make(mut input: Input<'_>, args: &MakeArgs, place: &Place) -> Outcome<Made> {
    let start = place.vfs.now();
    let target_bytes = args.target_bytes()?;
    let settings = SortSettings {
        order: place.family.order.clone(),
        memory_bytes: args.memory_bytes()?,
        threads: args.threads.map_or_else(threads::available, usize::from),
        spill_dir: args.tmp.clone().unwrap_or_else(|| place.dir.clone()),
    };
    let threads = settings.threads;
    let mut sorter = Sorter::new(place.vfs.clone(), settings, place.interrupt.clone());
    let payload_bytes = read(&mut input, &mut sorter, place)?;
    let records = sorter.records();
    let merging = Step::begin("merging", None);
    let sorted = sorter.finish({
        let merging = merging.clone();
        move |bytes| merging.advance(bytes)
    });
    merging.end();
    let sorted = sorted?;
    let (runs, passes) = (sorted.runs, sorted.passes);
    let tables = write(Arc::new(sorted), threads, target_bytes, place)?;
    let (skipped, time) = (input.skipped().clone(), place.vfs.now().saturating_sub(start));
    skipped.check(records)?;
    Ok(Made { tables, records, payload_bytes, skipped, runs, passes, time })
}

/// Returns the bytes of all keys and values. After an interrupt, the end of the input or its error counts as
/// interrupted.
fn read(input: &mut Input<'_>, sorter: &mut Sorter, place: &Place) -> Outcome<u64> {
    let times = Times::of(&place.vfs, &place.family);
    let progress = Reading::begin(input.total_bytes(), input.counter());
    let mut record = Record::default();
    let mut payload_bytes = 0;
    let mut next = |record: &mut Record| {
        let found = input.next(record);
        place.interrupt.check()?;
        found
    };
    while next(&mut record)? {
        sorter.add(&record.key, &Times::stored(times.as_ref(), &record.value))?;
        payload_bytes += (record.key.len() + record.value.len()) as u64;
        if sorter.records().is_multiple_of(PROGRESS_RECORDS) {
            progress.advance(sorter.records());
        }
    }
    Ok(payload_bytes)
}

/// Writes the sorted records, several parts in parallel.
fn write(sorted: Arc<Sorted>, threads: usize, target_bytes: u64, place: &Place) -> Result<Vec<WrittenTable>> {
    let tables = sorted.payload_bytes().div_ceil(target_bytes).max(1);
    let count = threads.min(usize::try_from(tables).unwrap_or(usize::MAX));
    let parts: Vec<(usize, Part)> = sorted.parts(count).into_iter().enumerate().collect();
    let progress = Step::begin("writing tables", Some(sorted.payload_bytes()));
    let writer = PartWriter {
        sorted,
        vfs: place.vfs.clone(),
        dir: place.dir.clone(),
        family: place.family.clone(),
        target_bytes,
        progress: progress.clone(),
    };
    let written = threads::map(&*place.vfs, threads, parts, move |(at, part)| writer.write(*at, part));
    progress.end();
    Ok(written?.into_iter().flatten().collect())
}

struct PartWriter {
    sorted: Arc<Sorted>,
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    family: Arc<FamilyOptions>,
    target_bytes: u64,
    progress: Step,
}

impl PartWriter {
    fn write(&self, at: usize, part: &Part) -> Result<Vec<WrittenTable>> {
        // A table can outgrow its target by this much.
        let check_bytes = (self.target_bytes / 64).min(64 << 10);
        let mut merge = self.sorted.merge(part)?;
        let mut tables = Vec::new();
        let mut open: Option<TableWriter> = None;
        let mut unchecked_bytes = 0;
        while merge.advance()? {
            if unchecked_bytes >= check_bytes {
                self.progress.advance(std::mem::take(&mut unchecked_bytes));
                if let Some(full) = open.take_if(|table| table.estimated_bytes() >= self.target_bytes) {
                    tables.push(full.finish()?);
                }
            }
            let table = match &mut open {
                Some(table) => table,
                None => open.insert(TableWriter::create(
                    self.vfs.clone(),
                    self.dir.join(format!("{at:03}-{:06}.sst", tables.len() + 1)),
                    &self.family,
                )?),
            };
            table.put(merge.key(), merge.value())?;
            unchecked_bytes += (merge.key().len() + merge.value().len()) as u64;
        }
        if let Some(last) = open {
            tables.push(last.finish()?);
        }
        Ok(tables)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use spillway::internal::vfs::{IfExists, IoClass, RealVfs};

    use super::*;
    use crate::input::InputArgs;
    use crate::progress::screen::Screen;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        input: InputArgs,
    }

    /// Tables made of little memory, in `dir`, of enough records for several passes.
    fn made(dir: PathBuf) -> Made {
        let (vfs, file) = (RealVfs::new(), dir.join("in"));
        let count = 2 * PROGRESS_RECORDS;
        let lines: String = (0..count).map(|i| format!("{:05}\tvalue {i:030}\n", i * 7919 % count)).collect();
        vfs.create(&file, IfExists::Fail).unwrap().append(lines.as_bytes(), IoClass::Other).unwrap();
        let line = Line::parse_from(["make", "--format", "kv"]);
        let input = Input::open(&line.input, &[file], &Interrupt::default()).ok().unwrap();
        let (memory, target_size) = (Some(MEMORY_BYTES_MIN), Some(64 << 10));
        let args = MakeArgs { memory, threads: Some(2), tmp: None, target_size };
        let place = Place { vfs, dir, family: Arc::default(), interrupt: Interrupt::default() };
        make(input, &args, &place).ok().unwrap()
    }

    #[test]
    fn the_terminal_shows_how_far_each_step_has_come() {
        let (screen, dir) = (Screen::of_this_thread(), tempfile::tempdir().unwrap());
        assert!(made(dir.path().to_owned()).passes > 0, "nothing was merged before the tables were written");
        for (step, begins) in [("4,096 records", "%  0 B/"), ("merging", " 0 B  "), ("writing tables", "%  0 B/")] {
            let has_advanced = |line: &str| line.contains(step) && !line.contains(begins);
            assert!(screen.showed(has_advanced), "{step}: {screen:?}");
        }
        assert!(screen.is_clear(), "{screen:?}");
    }
}
