//! External merge sort: sorts any number of records in bounded memory.
//!
//! Records fill a [`Buffer`]; a full one is sorted on its own thread while the next one fills. Once the memory is used
//! up, sorted buffers go to disk as *runs*. Passes merge runs into fewer until one merge can take them all. Among
//! records with equal keys the last one added wins.
//!
//! Memory: buffers get three quarters of the limit, merges one quarter. Bytes of keys, values and slots count. A single
//! record larger than a buffer is accepted.

mod merge;
mod parts;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use spillway::internal::vfs::Vfs;
use spillway::internal::{Result, UserOrder, ValueKind, limits};
use table::sort::{Buffer, RunShape, RunWriter, Sequence, Spill};

use crate::interrupt::Interrupt;
use crate::threads::{self, Job};

pub use self::merge::Merge;
pub use self::parts::Part;

/// The least memory, in bytes: buffers and blocks of a few KiB.
pub const MEMORY_BYTES_MIN: u64 = 64 << 10;

/// Sorting threads. One thread reads the records and keeps no more of them busy.
const SORTING_THREADS_MAX: usize = 8;

/// Sources of one merge, whatever the memory: with more sources a further pass is cheaper than the disk seeks.
const FAN_IN_MAX: usize = 512;

/// Number of blocks in the merges' memory; smallest and largest block, in bytes.
const BLOCKS: u64 = 1024;
const BLOCK_BYTES: std::ops::RangeInclusive<u64> = 4 << 10..=256 << 10;

/// Records between two interrupt checks.
const INTERRUPT_CHECK_RECORDS: u64 = 4096;

/// How to sort.
#[derive(Clone)]
pub struct SortSettings {
    pub order: UserOrder,
    pub memory_bytes: u64,
    pub threads: usize,
    /// Directory for runs. Run files are unlinked right after creation: nothing stays behind, however the command ends.
    pub spill_dir: PathBuf,
}

impl SortSettings {
    fn merge_bytes(&self) -> u64 {
        self.memory_bytes / 4
    }

    /// Buffers alive at once: one being filled, and one for each sorting thread.
    fn buffers(&self) -> usize {
        self.threads.clamp(1, SORTING_THREADS_MAX) + 1
    }

    fn buffer_bytes(&self) -> usize {
        let bytes = (self.memory_bytes - self.merge_bytes()) / self.buffers() as u64;
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    fn shape(&self) -> RunShape {
        let block_bytes = (self.merge_bytes() / BLOCKS).clamp(*BLOCK_BYTES.start(), *BLOCK_BYTES.end()) as usize;
        RunShape { block_bytes, sample_bytes: (self.buffer_bytes() / 16).clamp(block_bytes, 4 << 20) as u64 }
    }
}

/// Collects records into buffers, and sorts and spills them.
pub struct Sorter {
    vfs: Arc<dyn Vfs>,
    settings: Arc<SortSettings>,
    interrupt: Interrupt,
    current: Buffer,
    /// Full buffers being sorted, and perhaps written, oldest first.
    jobs: VecDeque<Job<Result<Sequence>>>,
    /// Finished sequences, all older than `jobs`.
    done: Vec<Sequence>,
    /// `Some` once the memory was used up; buffers are then written as soon as they are sorted.
    spill: Option<Arc<Spill>>,
    records: u64,
}

impl Sorter {
    pub fn new(vfs: Arc<dyn Vfs>, settings: SortSettings, interrupt: Interrupt) -> Sorter {
        let current = Buffer::new(settings.buffer_bytes());
        let settings = Arc::new(settings);
        Sorter { vfs, settings, interrupt, current, jobs: VecDeque::new(), done: Vec::new(), spill: None, records: 0 }
    }

    /// Adds a record. A later one with the same key replaces it.
    ///
    /// # Errors
    /// `InvalidArgument`: larger than a table entry can be. `Closed`: interrupted. `Io`, `NoSpace`: of runs.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        limits::check_change(ValueKind::Value, key, value)?;
        if self.records.is_multiple_of(INTERRUPT_CHECK_RECORDS) {
            self.interrupt.check()?;
        }
        if !self.current.has_room(key.len() + value.len()) {
            self.hand_over()?;
        }
        self.current.push(&self.settings.order, key, value);
        self.records += 1;
        Ok(())
    }

    /// Records added so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Starts sorting the current buffer, and continues with an empty one. Waits for the oldest job if too many run.
    fn hand_over(&mut self) -> Result<()> {
        self.start_sorting();
        while self.jobs.len() >= self.settings.buffers() {
            if self.spill.is_none() {
                self.begin_spilling()?;
            }
            let Some(oldest) = self.jobs.pop_front() else { break };
            self.done.push(oldest.wait()?);
        }
        self.current = Buffer::new(self.settings.buffer_bytes());
        Ok(())
    }

    fn start_sorting(&mut self) {
        let mut buffer = std::mem::replace(&mut self.current, Buffer::new(0));
        let (settings, spill) = (self.settings.clone(), self.spill.clone());
        let job = Job::begin(&*self.vfs, "sort", move || {
            buffer.sort(&settings.order);
            match spill {
                None => Ok(Sequence::Memory(Arc::new(buffer))),
                Some(spill) => write(&buffer, &settings, &spill),
            }
        });
        self.jobs.push_back(job);
    }

    /// Writes all sorted buffers, each on its own thread.
    fn begin_spilling(&mut self) -> Result<()> {
        let spill = Spill::create(&*self.vfs, &self.settings.spill_dir)?;
        self.spill = Some(spill.clone());
        for job in std::mem::take(&mut self.jobs) {
            let (settings, spill) = (self.settings.clone(), spill.clone());
            let writing = Job::begin(&*self.vfs, "spill", move || match job.wait()? {
                Sequence::Memory(buffer) => write(&buffer, &settings, &spill),
                spilled @ Sequence::Spilled(_) => Ok(spilled),
            });
            self.jobs.push_back(writing);
        }
        Ok(())
    }

    /// Ends the input. Merges in passes until a single merge is left, the caller's. `merging` gets the bytes merged by
    /// the passes.
    ///
    /// # Errors
    /// As of [`add`](Self::add).
    pub fn finish(mut self, merging: impl Fn(u64) + Send + Sync + 'static) -> Result<Sorted> {
        self.spill = None; // no buffer follows: the last one may stay in memory
        self.start_sorting();
        for job in std::mem::take(&mut self.jobs) {
            self.done.push(job.wait()?);
        }
        self.done.retain(|sequence| sequence.records() > 0);
        let mut sorted = Sorted {
            runs: self.done.iter().filter(|sequence| matches!(sequence, Sequence::Spilled(_))).count(),
            sequences: std::mem::take(&mut self.done),
            settings: self.settings.clone(),
            interrupt: self.interrupt.clone(),
            passes: 0,
        };
        let merging = Arc::new(merging);
        while sorted.must_pass() {
            sorted.pass(&self.vfs, merging.clone())?;
        }
        Ok(sorted)
    }
}

fn write(buffer: &Buffer, settings: &SortSettings, spill: &Arc<Spill>) -> Result<Sequence> {
    let mut writer = RunWriter::begin(spill, settings.shape(), buffer.payload_bytes(), buffer.len() as u64);
    for (key, value) in buffer.iter() {
        writer.add(key, value)?;
    }
    Ok(Sequence::Spilled(Arc::new(writer.finish()?)))
}

/// All records, in few enough sequences for one merge.
pub struct Sorted {
    /// Oldest first.
    sequences: Vec<Sequence>,
    settings: Arc<SortSettings>,
    interrupt: Interrupt,
    /// Runs written before any merge.
    pub runs: usize,
    /// Merges of all runs into fewer runs.
    pub passes: usize,
}

impl Sorted {
    /// Keys and values, in bytes. Replaced records still count.
    pub fn payload_bytes(&self) -> u64 {
        self.sequences.iter().map(Sequence::payload_bytes).sum()
    }

    /// Cuts the keys into ranges of similar size, at most `count`. The memory suffices to merge all ranges in parallel.
    pub fn parts(&self, count: usize) -> Vec<Part> {
        let reading: u64 = self.sequences.iter().map(Sequence::reading_bytes).sum();
        let fitting = self.settings.merge_bytes().checked_div(reading).unwrap_or(u64::MAX).max(1);
        let count = count.min(usize::try_from(fitting).unwrap_or(usize::MAX));
        parts::cut(&self.sequences, &self.settings.order, count)
    }

    /// The records of a part, sorted, each key once.
    pub fn merge(&self, part: &Part) -> Result<Merge> {
        let sequences = self.sequences.iter().cloned();
        Merge::new(sequences, &self.settings.order, part.clone(), self.interrupt.clone())
    }

    /// Whether the sequences are too many for one merge.
    fn must_pass(&self) -> bool {
        // Two can always be merged, however large their records are.
        self.sequences.len() > 2 && self.groups(self.settings.merge_bytes(), 0).len() > 1
    }

    /// Groups of neighbours to merge within `memory_bytes`; two are always allowed. Only neighbours, to keep the order
    /// of age.
    fn groups(&self, memory_bytes: u64, writing_bytes: u64) -> Vec<Vec<Sequence>> {
        let mut groups: Vec<Vec<Sequence>> = Vec::new();
        let mut used_bytes = 0;
        for sequence in &self.sequences {
            let bytes = sequence.reading_bytes();
            match groups.last_mut() {
                Some(group) if group.len() < 2 || (group.len() < FAN_IN_MAX && used_bytes + bytes <= memory_bytes) => {
                    group.push(sequence.clone());
                    used_bytes += bytes;
                }
                _ => {
                    groups.push(vec![sequence.clone()]);
                    used_bytes = writing_bytes + bytes;
                }
            }
        }
        groups
    }

    /// Largest block read or written in a pass: a record larger than a block has its own.
    fn block_bytes_max(&self) -> u64 {
        let largest = self.sequences.iter().map(Sequence::reading_bytes).max();
        largest.unwrap_or(0).max(self.settings.shape().block_bytes as u64)
    }

    /// Threads of a pass. Each should merge eight sources at a time, rather than many threads two at a time.
    fn pass_threads(&self) -> usize {
        let fitting = self.settings.merge_bytes() / self.block_bytes_max().saturating_mul(9);
        self.settings.threads.min(usize::try_from(fitting).unwrap_or(usize::MAX)).max(1)
    }

    /// Merges groups of runs into one run each, several groups in parallel.
    fn pass(&mut self, vfs: &Arc<dyn Vfs>, merging: Arc<impl Fn(u64) + Send + Sync + 'static>) -> Result<()> {
        let (shape, memory_bytes) = (self.settings.shape(), self.settings.merge_bytes());
        let (threads, block_bytes) = (self.pass_threads(), self.block_bytes_max());
        let groups = self.groups(memory_bytes / threads as u64, block_bytes);
        let spill = Spill::create(&**vfs, &self.settings.spill_dir)?;
        let (order, interrupt) = (self.settings.order.clone(), self.interrupt.clone());
        self.sequences.clear();
        self.sequences = threads::map(&**vfs, threads, groups, move |group| match group.as_slice() {
            [only] => Ok(only.clone()),
            _ => {
                let records = group.iter().map(Sequence::records).sum();
                let payload_bytes = group.iter().map(Sequence::payload_bytes).sum();
                let mut writer = RunWriter::begin(&spill, shape, payload_bytes, records);
                let mut merge = Merge::new(group.iter().cloned(), &order, Part::default(), interrupt.clone())?;
                let mut told_bytes = 0;
                while merge.advance()? {
                    writer.add(merge.key(), merge.value())?;
                    told_bytes += (merge.key().len() + merge.value().len()) as u64;
                    if told_bytes >= shape.sample_bytes {
                        merging(std::mem::take(&mut told_bytes));
                    }
                }
                Ok(Sequence::Spilled(Arc::new(writer.finish()?)))
            }
        })?;
        self.passes += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
