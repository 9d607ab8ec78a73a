//! Writes the output tables of flushes and compactions.
//!
//! One writer's tables cover its range without gaps. Each table has the range tombstones clipped to its two cuts, so
//! neighbours' bounds meet and never overlap. A table that ends with a tombstone has the tombstone's end as its largest
//! key, exclusive.
//!
//! Started tables are deleted unless [`Outputs::keep`] is called, so an error leaves none behind.

use std::path::PathBuf;
use std::sync::Arc;

use base::extend::Event;
use base::key::{encode, split, user_key};
use base::metrics::{Ticker, tick};
use base::note;
use base::options::{CompressionKind, FamilyOptions, FilterPolicy};
use base::tombstone::RangeTombstone;
use base::{Cursor, Error, FamilyId, FileNumber, InternalOrder, Result, SeqNo, ValueKind};
use table::{TableBuilder, TableBuilderConfig, TableContext, TableOrigin, TableSummary, new_builder, open_any};
use vfs::{IfExists, IoClass};

use super::cutter::Cutter;
use super::dense::Density;
use super::entries::EntryStream;
use crate::core::context::Context;
use crate::core::family::Family;
use crate::version::table_file::{FileMeta, has_mostly_deletions};

/// Settings for writing a family's tables.
#[derive(Clone)]
pub struct FamilyRules {
    pub id: FamilyId,
    pub name: String,
    pub order: InternalOrder,
    pub options: Arc<FamilyOptions>,
}

impl FamilyRules {
    pub fn of(family: &Family) -> Self {
        FamilyRules {
            id: family.id(),
            name: family.name().to_owned(),
            order: family.order().clone(),
            options: family.options(),
        }
    }

    /// Empty without a merge operator.
    pub fn merge_operator_name(&self) -> String {
        self.options.merge_operator.as_ref().map_or_else(String::new, |operator| operator.name().to_owned())
    }

    /// The table's origin properties. Times in seconds: roughly the oldest entry's, and the file's creation.
    pub fn origin(&self, context: &Context, number: FileNumber, oldest_s: u64, created_s: u64) -> TableOrigin {
        TableOrigin {
            family: Some(self.id),
            family_name: self.name.clone(),
            value_times: *self.options.value_times,
            db_id: context.db_id.clone(),
            session_id: context.session_id.clone(),
            host_id: String::new(),
            file_number: number,
            creation_time_s: oldest_s,
            oldest_key_time_s: 0,
            file_creation_time_s: created_s,
        }
    }
}

/// Settings shared by all tables of one job.
#[derive(Clone)]
pub struct OutputRules {
    pub family: FamilyRules,
    /// Level of the tables; it selects their format.
    pub level: usize,
    pub compression: CompressionKind,
    /// Nothing lies below the tables.
    pub bottommost: bool,
    pub class: IoClass,
    pub epoch_number: u64,
    /// Approximate write time of the oldest entry, in seconds since the epoch.
    pub oldest_ancestor_time: u64,
}

/// The tables written so far; deleted on drop without [`keep`](Self::keep).
pub struct Outputs<'a> {
    context: &'a Context,
    rules: &'a OutputRules,
    /// Every started file.
    paths: Vec<PathBuf>,
    metas: Vec<FileMeta>,
}

/// The table being written.
struct OpenTable<'a> {
    density: Density<'a>,
    builder: Box<dyn TableBuilder>,
    number: FileNumber,
    path: PathBuf,
    creation_time: u64,
}

impl<'a> Outputs<'a> {
    pub fn new(context: &'a Context, rules: &'a OutputRules) -> Self {
        Outputs { context, rules, paths: Vec::new(), metas: Vec::new() }
    }

    /// Writes the stream into one table or, with a cutter, into as many as it cuts. `stop` is polled; once true, the
    /// write fails with `Closed`.
    ///
    /// # Errors
    /// The stream's and the file system's.
    pub fn write<C: Cursor>(
        &mut self,
        stream: &mut EntryStream<C>,
        mut cutter: Option<Cutter>,
        stop: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mut open: Option<OpenTable<'_>> = None;
        // Lower bound of the current table; `None` is the start of the stream's range.
        let mut lower: Option<Vec<u8>> = None;
        let mut pause = || check_stop(stop);
        while stream.advance_with_pauses(&mut pause)? {
            let key = stream.key();
            if let Some(cutter) = &mut cutter
                && cutter.cuts_before(user_key(key))
                && let Some(table) = open.take()
            {
                let cut = user_key(key).to_vec();
                self.finish(table, &stream.tombstones_out(lower.as_deref(), Some(&cut)))?;
                cutter.begin_file();
                lower = Some(cut);
            }
            let table = match &mut open {
                Some(table) => table,
                None => open.insert(self.begin()?),
            };
            let value = stream.value();
            table.builder.add(key, value)?;
            table.density.add(split(key).map_or(0, |(_, trailer)| trailer as u8));
            if let Some(cutter) = &mut cutter {
                cutter.wrote(user_key(key), key.len() + value.len(), || table.builder.estimated_bytes());
            }
        }
        let tombstones = stream.tombstones_out(lower.as_deref(), None);
        match open {
            Some(table) => self.finish(table, &tombstones),
            None if tombstones.is_empty() => Ok(()),
            None => {
                let table = self.begin()?;
                self.finish(table, &tombstones)
            }
        }
    }

    /// Syncs the directory and keeps the tables: they survive a power loss.
    ///
    /// # Errors
    /// The file system's; the tables are deleted.
    pub fn keep(mut self) -> Result<Vec<FileMeta>> {
        if !self.paths.is_empty() {
            self.context.sync_dir()?;
        }
        self.paths.clear();
        Ok(std::mem::take(&mut self.metas))
    }

    fn begin(&mut self) -> Result<OpenTable<'a>> {
        let context = self.context;
        let number = context.numbers.take();
        let path = context.table_path(number);
        let (family, by_flush) = (self.rules.family.name.clone(), self.by_flush());
        context.notify(&Event::TableBegin { family, path: path.clone(), by_flush });
        let file = context.vfs.create(&path, IfExists::Fail)?;
        self.paths.push(path.clone());
        let file = context.throttle.limit(file, self.rules.class);
        let creation_time = context.vfs.unix_time_us() / 1_000_000;
        let config = self.config(&path, number, creation_time);
        let kind = self.rules.family.options.table_factory.at_level(self.rules.level);
        let builder = new_builder(kind, &context.vfs, file, config).map_err(|e| e.at_path(&path))?;
        let density = Density::new(&self.rules.family.options.table_properties_collectors.0);
        Ok(OpenTable { density, builder, number, path, creation_time })
    }

    fn by_flush(&self) -> bool {
        self.rules.class == IoClass::Flush
    }

    fn config(&self, path: &std::path::Path, number: FileNumber, creation_time: u64) -> TableBuilderConfig {
        let (context, rules) = (self.context, self.rules);
        let options = &rules.family.options;
        let mut table_options = options.table.clone();
        if rules.bottommost && options.optimize_filters_for_hits {
            table_options.filter_policy = FilterPolicy::NONE;
        }
        let mut compression_options = options.compression_opts.clone();
        // Only Zstd writes dictionaries, and only for the last level.
        if !rules.bottommost || rules.compression != CompressionKind::Zstd {
            compression_options.max_dict_bytes = 0;
        }
        TableBuilderConfig {
            order: rules.family.order.clone(),
            options: table_options,
            compression: rules.compression,
            compression_options,
            prefix_extractor: options.prefix_extractor(),
            merge_operator: rules.family.merge_operator_name(),
            origin: rules.family.origin(context, number, rules.oldest_ancestor_time, creation_time),
            ingestable: false,
            path: path.to_owned(),
            class: rules.class,
            bytes_per_sync: self.bytes_per_sync(),
        }
    }

    /// A WAL sync waits for all data given to the disk before it. So a table is synced in pieces, each no slower than a
    /// WAL sync, instead of as a whole at its end.
    fn bytes_per_sync(&self) -> u64 {
        const PIECE_BYTES: u64 = 512 << 10;
        match self.context.options_now.load().bytes_per_sync {
            0 => PIECE_BYTES,
            bytes => bytes,
        }
    }

    fn finish(&mut self, mut table: OpenTable<'_>, tombstones: &[RangeTombstone]) -> Result<()> {
        for tombstone in tombstones {
            table.builder.add_tombstone(tombstone)?;
        }
        let summary = table.builder.finish()?;
        let (smallest, largest) = bounds(&self.rules.family.order, &summary, tombstones)
            .ok_or_else(|| Error::corruption("a table without entries was written").at_path(&table.path))?;
        let meta = FileMeta {
            number: table.number,
            file_bytes: summary.file_bytes,
            smallest,
            largest,
            smallest_seq: summary.smallest_seq,
            largest_seq: summary.largest_seq,
            epoch_number: self.rules.epoch_number,
            oldest_ancestor_time: self.rules.oldest_ancestor_time,
            file_creation_time: table.creation_time,
            marked_for_compaction: table.density.marks(summary.file_bytes),
            mostly_deletions: has_mostly_deletions(&summary.properties),
            deletes_ranges: summary.properties.range_deletions > 0,
            unique_id: summary.properties.unique_id(),
            ..FileMeta::default()
        };
        let ticker = if self.by_flush() { Ticker::FlushWriteBytes } else { Ticker::CompactWriteBytes };
        tick(&self.context.statistics, ticker, meta.file_bytes);
        if self.rules.family.options.paranoid_file_checks {
            self.read_back(&meta, &table.path)?;
        }
        self.context.notify(&Event::TableCreated {
            family: self.rules.family.name.clone(),
            path: table.path,
            bytes: meta.file_bytes,
            by_flush: self.by_flush(),
        });
        self.metas.push(meta);
        Ok(())
    }

    /// Reads every block of a table just written.
    fn read_back(&self, meta: &FileMeta, path: &std::path::Path) -> Result<()> {
        let context = TableContext {
            order: self.rules.family.order.clone(),
            prefix_extractor: self.rules.family.options.prefix_extractor(),
            largest_seq: Some(meta.largest_seq),
            class: self.rules.class,
            ..TableContext::default()
        };
        let file = self.context.vfs.open(path)?;
        open_any(&*self.context.vfs, file, path, meta.file_bytes, &context)?.table().verify()
    }
}

impl Drop for Outputs<'_> {
    fn drop(&mut self) {
        for path in &self.paths {
            if let Err(error) = self.context.vfs.remove_file(path) {
                note::warn!(%error, "cannot delete the output of a job that failed");
            }
        }
    }
}

pub(super) fn check_stop(stop: &dyn Fn() -> bool) -> Result<()> {
    if stop() { Err(Error::closed("the job was told to stop")) } else { Ok(()) }
}

/// First and last internal key over points and tombstones; `None` without any.
pub(crate) fn bounds(
    order: &InternalOrder,
    summary: &TableSummary,
    tombstones: &[RangeTombstone],
) -> Option<(Vec<u8>, Vec<u8>)> {
    let (first, last) = summary.point_bounds.clone().unzip();
    let starts = tombstones.iter().map(|t| encode(&t.start, t.seq, ValueKind::RangeDeletion));
    let ends = tombstones.iter().map(|t| encode(&t.end, SeqNo::MAX, ValueKind::RangeDeletion));
    let smallest = first.into_iter().chain(starts).min_by(|a, b| order.compare(a, b))?;
    let largest = last.into_iter().chain(ends).max_by(|a, b| order.compare(a, b))?;
    Some((smallest, largest))
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
