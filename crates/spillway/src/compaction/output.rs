//! Writes what a flush or a compaction yields into tables.
//!
//! The tables of one writer cover its range without gaps: each gets the range tombstones from where the one before it
//! was cut to where it is cut itself, so that neighbours' bounds meet and never overlap. A table that ends with a
//! tombstone has the tombstone's end as its largest key, exclusive.
//!
//! Tables that were begun are deleted unless [`Outputs::keep`] is called: on an error nothing is left behind.

use std::path::PathBuf;
use std::sync::Arc;

use base::extend::Event;
use base::key::{encode, user_key};
use base::metrics::{Ticker, tick};
use base::note;
use base::options::{CompressionKind, FamilyOptions, FilterPolicy};
use base::tombstone::RangeTombstone;
use base::{Cursor, Error, FamilyId, FileNumber, InternalOrder, Result, SeqNo, ValueKind};
use table::{TableBuilder, TableBuilderConfig, TableContext, TableOrigin, TableSummary, new_builder, open_any};
use vfs::{IfExists, IoClass};

use super::cutter::Cutter;
use super::entries::EntryStream;
use crate::core::context::Context;
use crate::core::family::Family;
use crate::version::table_file::FileMeta;

/// What a family's tables are written with.
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

    /// Empty for none.
    pub fn merge_operator_name(&self) -> String {
        self.options.merge_operator.as_ref().map_or_else(String::new, |operator| operator.name().to_owned())
    }

    /// What a table says of where it comes from: its times are those of its oldest entry, about, and of the file.
    pub fn origin(&self, context: &Context, number: FileNumber, (oldest_s, created_s): (u64, u64)) -> TableOrigin {
        TableOrigin {
            family: Some(self.id),
            family_name: self.name.clone(),
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

/// What all tables of one job have in common.
#[derive(Clone)]
pub struct OutputRules {
    pub family: FamilyRules,
    /// Where the tables go, which decides what kind they are of.
    pub level: usize,
    pub compression: CompressionKind,
    /// Nothing lies below the tables.
    pub bottommost: bool,
    pub class: IoClass,
    pub epoch_number: u64,
    /// Seconds since the epoch; when the oldest entry was written, about.
    pub oldest_ancestor_time: u64,
}

/// The tables written so far. Dropped without [`keep`](Self::keep), it deletes them.
pub struct Outputs<'a> {
    context: &'a Context,
    rules: &'a OutputRules,
    /// Every file begun.
    paths: Vec<PathBuf>,
    metas: Vec<FileMeta>,
}

/// The table being written.
struct OpenTable {
    builder: Box<dyn TableBuilder>,
    number: FileNumber,
    path: PathBuf,
    creation_time: u64,
}

impl<'a> Outputs<'a> {
    pub fn new(context: &'a Context, rules: &'a OutputRules) -> Self {
        Outputs { context, rules, paths: Vec::new(), metas: Vec::new() }
    }

    /// Writes everything that the stream yields, into one table or, with a cutter, into as many as it asks for. `stop`
    /// is asked now and then; once true, the write ends with an error of kind `Closed`.
    ///
    /// # Errors
    /// The stream's and the file system's.
    pub fn write<C: Cursor>(
        &mut self,
        stream: &mut EntryStream<C>,
        mut cutter: Option<Cutter>,
        stop: &dyn Fn() -> bool,
    ) -> Result<()> {
        let mut open: Option<OpenTable> = None;
        // Where the table being written begins; `None` at the beginning of the stream's range.
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

    /// Ends the job's writing: the tables survive a power loss, and stay.
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

    fn begin(&mut self) -> Result<OpenTable> {
        let context = self.context;
        let number = context.numbers.take();
        let path = context.table_path(number);
        let file = context.vfs.create(&path, IfExists::Fail)?;
        self.paths.push(path.clone());
        let file = context.throttle.limit(file, self.rules.class);
        let creation_time = context.vfs.unix_time_us() / 1_000_000;
        let config = self.config(&path, number, creation_time);
        let kind = self.rules.family.options.table_factory.at_level(self.rules.level);
        let builder = new_builder(kind, &context.vfs, file, config).map_err(|e| e.at_path(&path))?;
        Ok(OpenTable { builder, number, path, creation_time })
    }

    fn config(&self, path: &std::path::Path, number: FileNumber, creation_time: u64) -> TableBuilderConfig {
        let (context, rules) = (self.context, self.rules);
        let options = &rules.family.options;
        let mut table_options = options.table.clone();
        if rules.bottommost && options.optimize_filters_for_hits {
            table_options.filter_policy = FilterPolicy::NONE;
        }
        let mut compression_options = options.compression_opts.clone();
        // Dictionaries are for the last level, and only one compressor writes them.
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
            origin: rules.family.origin(context, number, (rules.oldest_ancestor_time, creation_time)),
            ingestable: false,
            path: path.to_owned(),
            class: rules.class,
            bytes_per_sync: self.bytes_per_sync(),
        }
    }

    /// Syncs of the log stand behind whatever the disk was given before: it is to have a table in pieces of which each takes
    /// no longer than such a sync, not as a whole at the table's end.
    fn bytes_per_sync(&self) -> u64 {
        const PIECE_BYTES: u64 = 512 << 10;
        match self.context.options.bytes_per_sync {
            0 => PIECE_BYTES,
            bytes => bytes,
        }
    }

    fn finish(&mut self, mut table: OpenTable, tombstones: &[RangeTombstone]) -> Result<()> {
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
            ..FileMeta::default()
        };
        let ticker =
            if self.rules.class == IoClass::Flush { Ticker::FlushWriteBytes } else { Ticker::CompactWriteBytes };
        tick(&self.context.statistics, ticker, meta.file_bytes);
        if self.rules.family.options.paranoid_file_checks {
            self.read_back(&meta, &table.path)?;
        }
        self.context.notify(&Event::TableCreated { path: table.path, bytes: meta.file_bytes });
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

/// First and last internal key of points and tombstones together.
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
