//! Flush by conversion: a sealed memtable's memory becomes a table without reading its entries. A memtable in a file
//! gets a table's tail appended there, and the file is renamed; a memtable in memory is written out. The memtable goes
//! on serving reads, as the open table, from the same pages. Format: docs/format/converted.md
//!
//! The table has all versions of all keys, whatever snapshots exist. Nothing relies on it until its name is durable. A
//! failure leaves neither the table nor a file that could be mistaken for it; a file with a failed sync is abandoned
//! (D4). Keeps F1: the WAL is synced before the edit with the table, unless the table is unsynced too
//! (`sync_sst_file=false`, without safety on power loss).

use std::path::PathBuf;
use std::sync::Arc;

use base::extend::{Event, FlushWay};
use base::metrics::{Ticker, tick};
use base::note;
use base::tombstone::{Fragment, FragmentedTombstones, RangeTombstone};
use base::value_source::ValueSource;
use base::{Error, FileNumber, Result, SeqNo};
use memtable::image::SealedImage;
use memtable::{Conversion, Memtable, SealedFile};
use table::{ConvertConfig, ConvertedTable, Table, TableContext, TableSummary};
use vfs::{AppendFile, IfExists, IoClass};

use crate::compaction::output::{FamilyRules, bounds};
use crate::core::context::Context;
use crate::flush::build::BuiltTable;
use crate::flush::job::FlushPlan;
use crate::log_files::value_logs::ValueLogs;
use crate::queue::images;
use crate::version::table_file::{FileMeta, has_mostly_deletions};

/// Makes a table of the plan's only memtable, not empty and with all writers done.
///
/// # Errors
/// The failure of the conversion; the memtable is unchanged, and sealed.
pub(crate) fn run(
    plan: &FlushPlan,
    context: &Context,
    memtable: &Arc<dyn Memtable>,
    conversion: Conversion,
) -> Result<BuiltTable> {
    memtable.seal();
    let image = memtable.image().ok_or_else(|| Error::unsupported("a memtable that has no image"))?;
    let job = Job::new(context, plan, &image, conversion)?;
    let family = || plan.family.name().to_owned();
    context.notify(&Event::TableBegin { family: family(), path: job.path.clone(), by_flush: true });
    let (meta, table) = job.run(memtable, &image).inspect_err(|_| job.discard())?;
    tick(&context.statistics, Ticker::FlushWriteBytes, meta.file_bytes);
    let handle = plan.family.tables().open_file(meta.clone(), table);
    let (path, bytes) = (job.path, meta.file_bytes);
    context.notify(&Event::TableCreated { family: family(), path, bytes, by_flush: true });
    Ok(BuiltTable { meta, way: FlushWay::Convert, adopted: Some(handle), is_synced: conversion.sync_sst_file })
}

/// A running conversion.
struct Job<'a> {
    context: &'a Context,
    plan: &'a FlushPlan,
    family: FamilyRules,
    number: FileNumber,
    /// The table's path.
    path: PathBuf,
    /// The file's path until it is renamed to `path`.
    made_at: PathBuf,
    /// Seconds since the epoch.
    now_s: u64,
    sync: bool,
}

impl<'a> Job<'a> {
    fn new(context: &'a Context, plan: &'a FlushPlan, image: &SealedImage<'_>, conversion: Conversion) -> Result<Self> {
        let place = image.file.as_ref().map(SealedFile::place);
        let number = match place {
            Some(place) => images::number_of(place)
                .ok_or_else(|| Error::unsupported("not the name of a memtable's file").at_path(&place.path))?,
            None => context.numbers.take(),
        };
        let path = context.table_path(number);
        Ok(Job {
            context,
            plan,
            family: FamilyRules::of(&plan.family),
            number,
            made_at: place.map_or_else(|| path.clone(), |place| place.path.clone()),
            path,
            now_s: context.vfs.unix_time_us() / 1_000_000,
            sync: conversion.sync_sst_file,
        })
    }

    /// Makes the table durable under its name.
    fn run(&self, memtable: &Arc<dyn Memtable>, image: &SealedImage<'_>) -> Result<(FileMeta, Arc<ConvertedTable>)> {
        let summary = table::convert(memtable, self.file_to_append(image)?, &self.config())?;
        let file = self.context.open_metered(&self.made_at)?;
        let table = ConvertedTable::of_memtable(memtable.clone(), &summary, file, &self.path, &self.table_context())?;
        if self.family.options.paranoid_file_checks {
            table.verify()?;
        }
        let meta = self.meta(&summary, memtable.tombstones().as_deref())?;
        if image.file.is_some() {
            self.context.vfs.rename(&self.made_at, &self.path)?;
        }
        self.context.sync_dir()?;
        image.file.as_ref().inspect(|file| file.keep());
        Ok((meta, table))
    }

    /// The memtable's file, for appending the tail, or a new empty file.
    fn file_to_append(&self, image: &SealedImage<'_>) -> Result<Box<dyn AppendFile>> {
        match &image.file {
            Some(file) => {
                file.give_back_the_rest()?;
                self.context.vfs.open_append(&self.made_at)
            }
            None => self.context.vfs.create(&self.made_at, IfExists::Fail),
        }
    }

    fn config(&self) -> ConvertConfig {
        ConvertConfig {
            order: self.family.order.clone(),
            merge_operator: self.family.merge_operator_name(),
            origin: self.family.origin(self.context, self.number, self.now_s, self.now_s),
            references: self.value_logs().map(|logs| logs.description()),
            smallest_seq: self.smallest_seq(),
            largest_seq: self.plan.through,
            sync: self.sync,
            path: self.made_at.clone(),
            class: IoClass::Flush,
        }
    }

    /// The logs with the memtable's out-of-line values, if any.
    fn value_logs(&self) -> Option<&Arc<ValueLogs>> {
        self.plan.entries.iter().find_map(|entry| entry.value_logs())
    }

    /// The read context of the open table.
    fn table_context(&self) -> TableContext {
        let values = self.value_logs().map(|logs| Arc::new(logs.as_set()) as Arc<dyn ValueSource>);
        TableContext { order: self.family.order.clone(), values, ..TableContext::default() }
    }

    /// A lower bound: a conversion reads no entries.
    fn smallest_seq(&self) -> SeqNo {
        let created_at = self.plan.entries.iter().map(|entry| entry.created_at()).min().unwrap_or(SeqNo::ZERO);
        SeqNo(created_at.0 + 1).min(self.plan.through)
    }

    fn meta(&self, summary: &TableSummary, tombstones: Option<&FragmentedTombstones>) -> Result<FileMeta> {
        let (smallest, largest) = bounds(&self.family.order, summary, &outermost(tombstones))
            .ok_or_else(|| Error::corruption("a memtable that counts entries has none").at_path(&self.made_at))?;
        Ok(FileMeta {
            number: self.number,
            file_bytes: summary.file_bytes,
            smallest,
            largest,
            smallest_seq: summary.smallest_seq,
            largest_seq: summary.largest_seq,
            epoch_number: self.plan.version.max_epoch() + 1,
            oldest_ancestor_time: self.now_s,
            file_creation_time: self.now_s,
            value_logs: self.value_logs().map(|logs| logs.shares()).unwrap_or_default(),
            mostly_deletions: has_mostly_deletions(&summary.properties),
            deletes_ranges: summary.properties.range_deletions > 0,
            unique_id: summary.properties.unique_id(),
            ..FileMeta::default()
        })
    }

    /// Removes the file at the table's path. A memtable's own file is removed with the memtable.
    fn discard(&self) {
        match self.context.vfs.remove_file(&self.path) {
            Err(error) if !error.is_not_found() => {
                note::warn!(%error, "cannot delete what should have been a table")
            }
            _ => {}
        }
    }
}

/// The first and the last tombstone fragment.
fn outermost(tombstones: Option<&FragmentedTombstones>) -> Vec<RangeTombstone> {
    let fragments = tombstones.map_or(&[][..], FragmentedTombstones::fragments);
    let newest = |fragment: &Fragment| {
        let seq = *fragment.seqs.first()?;
        Some(RangeTombstone { start: fragment.start.clone(), end: fragment.end.clone(), seq })
    };
    fragments.first().into_iter().chain(fragments.last()).filter_map(newest).collect()
}
