//! Chooses how a flush makes its table. A memtable with a conversion is converted. If the conversion fails, the same
//! flush rewrites the memtable before anything relies on the conversion. Everything else is rewritten.

use std::sync::Arc;

use base::Result;
use base::extend::FlushWay;
use base::metrics::{Histogram, Ticker, record, tick};
use base::note;

use crate::core::context::Context;
use crate::cursor::snapshot::CapturedSnapshots;
use crate::flush::job::FlushPlan;
use crate::flush::{convert, rewrite};
use crate::version::table_file::{FileMeta, TableFile};
use crate::version::work::LevelWork;

/// A table that no version names yet.
pub(crate) struct BuiltTable {
    pub meta: FileMeta,
    pub way: FlushWay,
    /// Its handle, if already open: the converted memtable goes on serving the table.
    pub adopted: Option<Arc<TableFile>>,
    /// False if write-back is left to the kernel (`sync_sst_file`).
    pub is_synced: bool,
}

/// The table of a plan; `None` if all its entries turned out to be deleted or shadowed.
pub(crate) type Built = Option<BuiltTable>;

/// Makes a table of the plan's entries. Their writers are done.
///
/// # Errors
/// The file system's; no file is left behind then.
pub(crate) fn build(plan: &FlushPlan, context: &Context, snapshots: &CapturedSnapshots) -> Result<Built> {
    let start = context.vfs.now();
    // Before sealing: a sealed memtable takes no mark. A crash may still come before the table is installed.
    plan.entries.iter().for_each(|entry| entry.mark_complete(plan.through));
    let built = match convert(plan, context) {
        Some(table) => Some(table),
        None => rewrite::run(plan, context, snapshots)?.map(BuiltTable::rewritten),
    };
    let micros = context.vfs.now().saturating_sub(start).as_micros() as u64;
    record(&context.statistics, Histogram::FlushTime, micros);
    let memtables = plan.entries.iter().filter_map(|entry| entry.as_memtable());
    plan.family.work().flushed(LevelWork {
        jobs: 1,
        micros,
        written_bytes: built.as_ref().map_or(0, |table| table.meta.file_bytes),
        entries_read: memtables.map(|memtable| memtable.entries()).sum(),
        ..LevelWork::default()
    });
    Ok(built)
}

/// Counts a built table, once no failure of another plan can have it rebuilt.
pub(crate) fn count_built(plan: &FlushPlan, context: &Context, built: &Built) {
    let memtables = plan.entries.iter().filter_map(|entry| entry.as_memtable());
    let payload_bytes = memtables.map(|memtable| memtable.counts().payload_bytes).sum();
    tick(&context.statistics, Ticker::MemtablePayloadBytesAtFlush, payload_bytes);
    if let Some(table) = built {
        context.flushes.note(&context.statistics, table.way);
    }
}

/// Whether the plan's table relies on a synced WAL: always, except for an unsynced conversion.
pub(crate) fn needs_synced_log(plan: &FlushPlan) -> bool {
    let conversions = plan.entries.iter().map(|entry| entry.conversion());
    plan.entries.len() != 1 || conversions.flatten().all(|conversion| conversion.sync_sst_file)
}

/// Whether a synced conversion of the plan will refer to values in the WAL. Its writers are done.
pub(crate) fn leaves_values(plan: &FlushPlan) -> bool {
    let synced = plan.entries.iter().filter(|entry| entry.conversion().is_some_and(|way| way.sync_sst_file));
    synced.filter_map(|entry| entry.value_logs()).any(|logs| !logs.shares().is_empty())
}

/// `None` if the plan is to be rewritten: it has no conversion, or its conversion failed and was undone. The WAL is
/// kept (F1, F2), and nothing relied on the failed table.
fn convert(plan: &FlushPlan, context: &Context) -> Option<BuiltTable> {
    let [entry] = plan.entries.as_slice() else { return None };
    let (memtable, conversion) = (entry.as_memtable()?, entry.conversion()?);
    if memtable.entries() == 0 {
        return None;
    }
    match convert::run(plan, context, memtable, conversion) {
        Ok(table) => Some(table),
        Err(error) => {
            note::warn!(%error, family = plan.family.name(), "a memtable could not become a table; it is rewritten");
            entry.give_up_conversion();
            context.flushes.count_fall_back(&context.statistics, &error);
            None
        }
    }
}

impl BuiltTable {
    fn rewritten(meta: FileMeta) -> Self {
        BuiltTable { meta, way: FlushWay::Rewrite, adopted: None, is_synced: true }
    }

    /// Whether a power loss could take the table's values if its logs are not synced.
    pub fn relies_on_logs(&self) -> bool {
        self.is_synced && !self.meta.value_logs.is_empty()
    }

    /// Called once the table is installed. A converted memtable's memory now belongs to the table and is no longer
    /// charged against writers.
    pub fn installed(&self, plan: &FlushPlan) {
        if self.way != FlushWay::Convert {
            return;
        }
        for entry in &plan.entries {
            if let (Some(memtable), Some(charge)) = (entry.as_memtable(), entry.charge()) {
                plan.family.record_converted(memtable);
                charge.release();
            }
        }
    }
}
