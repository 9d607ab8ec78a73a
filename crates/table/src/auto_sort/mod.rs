//! A table builder for entries in any order, for unsorted bulk loads. Sorts the entries, then writes them with an inner
//! builder, so the file is of the inner builder's kind.
//!
//! Entries fill a buffer in memory. A full buffer is sorted and spilled as a run, and runs are merged, so memory stays
//! bounded. Entries in the table:
//! - of one user key and one sequence number, the entry added last, whatever the kinds: a table cannot hold two;
//! - of one user key, all sequence numbers, the greatest first.
//!
//! Range tombstones go to the inner builder at once. Nothing is written to the table's file before the end.

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use base::tombstone::RangeTombstone;
use base::{Error, Result};
use vfs::Vfs;

use crate::sort::{Buffer, Merge, Run, RunShape, RunWriter, Sequence, Spill, VersionOrder};
use crate::{TableBuilder, TableBuilderConfig, TableSummary};

/// Runs merged into one. More would be read in too small pieces.
const FAN_IN: usize = 64;

/// Limits of a run's block size, in bytes.
const BLOCK_BYTES: std::ops::RangeInclusive<usize> = 4 << 10..=256 << 10;

/// How a table's entries are sorted.
#[derive(Clone)]
pub struct AutoSortSettings {
    /// Where temporary files are.
    pub vfs: Arc<dyn Vfs>,
    /// Directory of the runs. Their files are unlinked at creation.
    pub spill_dir: PathBuf,
    /// Three quarters are for the buffer, the rest for merging. A larger single entry is still accepted.
    pub memory_bytes: usize,
}

impl AutoSortSettings {
    fn buffer_bytes(&self) -> usize {
        self.memory_bytes / 4 * 3
    }

    fn shape(&self) -> RunShape {
        let block_bytes = (self.memory_bytes / 4 / FAN_IN).clamp(*BLOCK_BYTES.start(), *BLOCK_BYTES.end());
        // Samples serve only to split a merge into parts.
        RunShape { block_bytes, sample_bytes: u64::MAX }
    }
}

/// Sorts entries and writes them with an inner builder.
pub struct AutoSortTableBuilder {
    into: Box<dyn TableBuilder>,
    config: TableBuilderConfig,
    order: VersionOrder,
    settings: AutoSortSettings,
    buffer: Buffer,
    /// From old to new, each with its number of merges; at most [`FAN_IN`] with the same number.
    runs: Vec<(u32, Arc<Run>)>,
    /// File of the spilled buffers, until their runs are merged.
    spill: Option<Arc<Spill>>,
    entries: u64,
    payload_bytes: u64,
    failed: bool,
}

impl AutoSortTableBuilder {
    /// Writes with `into`, made with `config` and still empty.
    pub fn new(into: Box<dyn TableBuilder>, config: TableBuilderConfig, settings: AutoSortSettings) -> Self {
        AutoSortTableBuilder {
            into,
            order: VersionOrder(config.order.clone()),
            config,
            buffer: Buffer::new(settings.buffer_bytes()),
            settings,
            runs: Vec::new(),
            spill: None,
            entries: 0,
            payload_bytes: 0,
            failed: false,
        }
    }

    fn add_record(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if !self.buffer.has_room(key.len() + value.len()) {
            self.spill_buffer()?;
        }
        self.buffer.push(&self.order, key, value);
        self.entries += 1;
        self.payload_bytes += (key.len() + value.len()) as u64;
        Ok(())
    }

    fn new_spill(&self) -> Result<Arc<Spill>> {
        Spill::create(&*self.settings.vfs, &self.settings.spill_dir)
    }

    /// Writes the buffer as a run, and merges runs if there are too many.
    fn spill_buffer(&mut self) -> Result<()> {
        self.buffer.sort(&self.order);
        let spill = match self.spill.take() {
            Some(spill) => spill,
            None => self.new_spill()?,
        };
        let (payload_bytes, records) = (self.buffer.payload_bytes(), self.buffer.len() as u64);
        let mut writer = RunWriter::begin(&spill, self.settings.shape(), payload_bytes, records);
        self.buffer.iter().try_for_each(|(key, value)| writer.add(key, value))?;
        self.buffer.clear();
        self.runs.push((0, Arc::new(writer.finish()?)));
        self.spill = Some(spill);
        while let Some(equal) = self.mergeable() {
            self.merge_last(equal)?;
        }
        Ok(())
    }

    /// Number of merges of the last runs, if [`FAN_IN`] of them have the same number.
    fn mergeable(&self) -> Option<u32> {
        let (times, _) = *self.runs.last()?;
        let equal = self.runs.iter().rev().take_while(|run| run.0 == times).count();
        (equal >= FAN_IN).then_some(times)
    }

    /// Merges the last [`FAN_IN`] runs into one, in a new file. Their own file is then free.
    fn merge_last(&mut self, times: u32) -> Result<()> {
        let merged = self.runs.split_off(self.runs.len().saturating_sub(FAN_IN));
        let sequences: Vec<Sequence> = merged.into_iter().map(|(_, run)| Sequence::Spilled(run)).collect();
        let payload_bytes = sequences.iter().map(Sequence::payload_bytes).sum();
        let records = sequences.iter().map(Sequence::records).sum();
        let mut writer = RunWriter::begin(&self.new_spill()?, self.settings.shape(), payload_bytes, records);
        let mut merge = Merge::new(sequences, self.order.clone(), None)?;
        while merge.advance()? {
            writer.add(merge.key(), merge.value())?;
        }
        self.runs.push((times + 1, Arc::new(writer.finish()?)));
        self.spill = None;
        Ok(())
    }

    fn finish_table(mut self) -> Result<TableSummary> {
        if self.failed {
            return Err(Error::invalid_argument("a write of this table has failed"));
        }
        let mut last = std::mem::replace(&mut self.buffer, Buffer::new(0));
        last.sort(&self.order);
        let runs = std::mem::take(&mut self.runs).into_iter().map(|(_, run)| Sequence::Spilled(run));
        let sequences = runs.chain([Sequence::Memory(Arc::new(last))]);
        let mut merge = Merge::new(sequences, self.order.clone(), None)?;
        while merge.advance()? {
            self.into.add(merge.key(), merge.value())?;
        }
        drop(merge);
        self.into.finish()
    }
}

impl TableBuilder for AutoSortTableBuilder {
    /// Adds a point entry, in any order.
    fn add(&mut self, internal_key: &[u8], value: &[u8]) -> Result<()> {
        let entry = self.config.point_entry(internal_key)?;
        if self.failed {
            return Err(Error::invalid_argument("a write of this table has failed").at_path(&self.config.path));
        }
        self.config.check_entry(value, &entry)?;
        let added = self.add_record(internal_key, value).map_err(|e| e.at_path(&self.settings.spill_dir));
        self.failed = added.is_err();
        added
    }

    fn add_tombstone(&mut self, tombstone: &RangeTombstone) -> Result<()> {
        self.into.add_tombstone(tombstone)
    }

    /// Number of entries added, including entries replaced by later ones.
    fn entries(&self) -> u64 {
        self.entries + self.into.entries()
    }

    fn estimated_bytes(&self) -> u64 {
        self.payload_bytes + self.into.estimated_bytes()
    }

    fn finish(self: Box<Self>) -> Result<TableSummary> {
        let path = self.config.path.clone();
        self.finish_table().map_err(|e| e.at_path(path))
    }
}
