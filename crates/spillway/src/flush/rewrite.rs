//! The ordinary flush: writes the entries of memtables, and of small ingests over them, as one level-0 table.

use std::sync::Arc;

use base::tombstone::{FragmentedTombstones, RangeTombstone};
use base::{Cursor, Result};
use table::TableReadOptions;
use vfs::IoClass;

use crate::compaction::entries::{EntryRules, EntryStream, PAUSE_ENTRIES};
use crate::compaction::output::{FamilyRules, OutputRules, Outputs};
use crate::core::context::Context;
use crate::cursor::merging::MergingCursor;
use crate::cursor::snapshot::CapturedSnapshots;
use crate::flush::job::FlushPlan;
use crate::version::table_file::FileMeta;

/// Writes the plan's entries into a table; `None` if no entry is left. Their writers are done.
///
/// # Errors
/// The file system's; no file is left behind then.
pub(crate) fn run(plan: &FlushPlan, context: &Context, captured: &CapturedSnapshots) -> Result<Option<FileMeta>> {
    for memtable in plan.entries.iter().filter_map(|entry| entry.as_memtable()) {
        memtable.seal();
    }
    let options = TableReadOptions { fill_cache: false, class: IoClass::Flush, ..TableReadOptions::default() };
    // A merge needs its inputs youngest first.
    let young_first = plan.entries.iter().rev();
    let mut cursors =
        young_first.map(|entry| entry.clone().cursor(&options)).collect::<Result<Vec<Box<dyn Cursor>>>>()?;
    let mut tombstones = Vec::new();
    for entry in &plan.entries {
        tombstones.extend(entry.tombstones(&options)?);
    }
    match cursors.len() {
        // One memtable passes through without a heap.
        1 => write(plan, context, captured, cursors.swap_remove(0), tombstones),
        _ => {
            let merged = MergingCursor::new(plan.family.order().clone(), cursors);
            write(plan, context, captured, merged, tombstones)
        }
    }
}

/// Writes a table with a single range tombstone.
pub(crate) fn write_tombstone(
    plan: &FlushPlan,
    context: &Context,
    captured: &CapturedSnapshots,
    tombstone: RangeTombstone,
) -> Result<Option<FileMeta>> {
    let order = plan.family.order();
    let tombstones = Arc::new(FragmentedTombstones::build(order.user.clone(), vec![tombstone]));
    let nothing = MergingCursor::<Box<dyn Cursor>>::new(order.clone(), Vec::new());
    write(plan, context, captured, nothing, vec![tombstones])
}

fn write<C: Cursor>(
    plan: &FlushPlan,
    context: &Context,
    captured: &CapturedSnapshots,
    input: C,
    tombstones: Vec<Arc<FragmentedTombstones>>,
) -> Result<Option<FileMeta>> {
    let family = FamilyRules::of(&plan.family);
    let rules = EntryRules::in_level0(&family, captured.clone());
    let mut stream = EntryStream::new(input, &tombstones, rules);
    let rules = OutputRules {
        compression: family.options.compression_at(0, false),
        family,
        level: 0,
        bottommost: false,
        class: IoClass::Flush,
        epoch_number: plan.version.max_epoch() + 1,
        oldest_ancestor_time: context.vfs.unix_time_us() / 1_000_000,
    };
    let mut outputs = Outputs::new(context, &rules);
    // A started flush always finishes: closing waits for it instead of repeating its work at the next open.
    let go_on = || {
        plan.done.add(PAUSE_ENTRIES.into());
        false
    };
    outputs.write(&mut stream, None, &go_on)?;
    Ok(outputs.keep()?.pop())
}
