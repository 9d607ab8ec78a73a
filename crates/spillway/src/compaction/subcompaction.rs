//! Subcompaction: merges one range of user keys from input tables to output tables.

use std::sync::Arc;

use base::extend::CompactionFilterContext;
use base::tombstone::FragmentedTombstones;
use base::{Cursor, Result};
use table::TableReadOptions;
use vfs::IoClass;

use super::below::key_not_below;
use super::cutter::{CutLimits, Cutter};
use super::entries::{Beneath, DropCounts, EntryRules, EntryStream, PAUSE_ENTRIES};
use super::output::{OutputRules, Outputs};
use super::run::Work;
use crate::core::plan::Reason;
use crate::cursor::level::{LevelContext, LevelCursor, LevelFiles, UserBounds};
use crate::cursor::merging::MergingCursor;
use crate::version::table_file::{FileMeta, TableFile};

/// Bytes per read of each input, while the system prefetches the next. Compactions read sequentially. Small enough for
/// a processor's cache.
const READAHEAD_BYTES: usize = 256 << 10;

/// Output of one subcompaction.
pub(super) struct Part {
    pub files: Vec<FileMeta>,
    pub drops: DropCounts,
}

/// Compacts the keys of `range`; `stop` is polled.
///
/// # Errors
/// The inputs' and the file system's; `Closed` if stopped. No files are left behind.
pub(super) fn run(work: &Work, range: &UserBounds, stop: &dyn Fn() -> bool) -> Result<Part> {
    let options = TableReadOptions {
        fill_cache: false,
        readahead_bytes: READAHEAD_BYTES,
        total_order_seek: true,
        class: IoClass::Compaction,
        ..TableReadOptions::default()
    };
    let order = &work.family.order;
    let context = Arc::new(LevelContext::new(order.clone(), options).within(range.clone()));
    let cursor = |files: Vec<Arc<TableFile>>| LevelCursor::new(context.clone(), 0, LevelFiles::Listed(files));
    let mut cursors = Vec::new();
    for inputs in &work.pick.inputs {
        match inputs.level {
            0 => cursors.extend(
                work.pick.rewritten().filter(|(level, _)| *level == 0).map(|(_, file)| cursor(vec![file.clone()])),
            ),
            _ => cursors.push(cursor(inputs.files.clone())),
        }
    }
    match cursors.len() {
        1 => write(work, range, cursors.swap_remove(0), stop),
        _ => write(work, range, MergingCursor::new(order.clone(), cursors), stop),
    }
}

fn write<C: Cursor>(work: &Work, range: &UserBounds, input: C, stop: &dyn Fn() -> bool) -> Result<Part> {
    let (pick, options) = (&work.pick, &work.family.options);
    let in_level0 = pick.written_level() == 0;
    let rules = EntryRules {
        order: work.family.order.clone(),
        snapshots: work.snapshots.clone(),
        merge_operator: options.merge_operator.clone(),
        filter: options.compaction_filter_for(filter_context(work)),
        level: pick.written_level(),
        bottommost: pick.bottommost,
        // Unknown in level 0: older level-0 files remain beside the merge. With ingest-behind, tables may come below
        // later.
        key_not_below: (!in_level0 && !options.cf_allow_ingest_behind)
            .then(|| key_not_below(work.version.clone(), pick.output_level, range.lower.as_deref())),
        range: range.clone(),
        beneath: pick.sinking().map(|file| Beneath::new(&work.family.order, file)).transpose()?,
    };
    let tombstones = tombstones(work, range)?;
    if let Some(beneath) = rules.beneath.as_ref().filter(|_| !tombstones.is_empty()) {
        return Err(beneath.refuse()); // readers assume tables beneath a tombstone are older
    }
    let mut stream = EntryStream::new(input, &tombstones, rules);
    let limits = CutLimits { target_bytes: pick.output_file_bytes, grandparent_bytes_max: pick.grandparent_bytes_max };
    let cutter = |order| Cutter::new(order, limits, pick.grandparents.clone());
    let cutter = cutter(work.family.order.user.clone()).partitioned(options.sst_partitioner_factory);
    let cutter = (!in_level0).then_some(cutter);
    let rules = output_rules(work);
    let mut outputs = Outputs::new(&work.context, &rules);
    let pause = || {
        work.done.add(PAUSE_ENTRIES.into());
        stop()
    };
    outputs.write(&mut stream, cutter, &pause)?;
    Ok(Part { files: outputs.keep()?, drops: stream.drops() })
}

fn filter_context(work: &Work) -> CompactionFilterContext {
    let inputs = work.pick.rewritten().count();
    let mut context = CompactionFilterContext::default();
    context.is_full = inputs == work.version.all_files().count();
    context.is_manual = work.pick.reason == Reason::Manual;
    context
}

/// The inputs' range tombstones, each clipped to its file's bounds.
fn tombstones(work: &Work, range: &UserBounds) -> Result<Vec<Arc<FragmentedTombstones>>> {
    let order = &work.family.order;
    let mut all = Vec::new();
    for (_, file) in work.pick.rewritten().filter(|(_, file)| !range.exclude(order, file)) {
        if let Some(tombstones) = file.open()?.tombstones() {
            all.push(file.meta.tombstones_inside(&tombstones));
        }
    }
    Ok(all)
}

fn output_rules(work: &Work) -> OutputRules {
    let metas = || work.pick.rewritten().map(|(_, file)| &file.meta);
    OutputRules {
        family: work.family.clone(),
        level: work.pick.written_level(),
        compression: work.pick.compression,
        bottommost: work.pick.bottommost,
        class: IoClass::Compaction,
        epoch_number: metas().map(|meta| meta.epoch_number).min().unwrap_or(0),
        oldest_ancestor_time: metas().map(|meta| meta.oldest_ancestor_time).filter(|&time| time > 0).min().unwrap_or(0),
    }
}
