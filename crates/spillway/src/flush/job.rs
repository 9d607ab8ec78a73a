//! Flushing: the old end of a family's queue becomes a table in level 0. Keeps Q2, F1, F2.

use std::sync::Arc;

use base::extend::Event;
use base::{Error, Result, SeqNo};

use crate::core::{Core, FamilyState, State};
use crate::family::Family;
use crate::flush::flushable::Flushable;
use crate::flush::rewrite;
use crate::version::edit::VersionEdit;
use crate::version::table_file::FileMeta;
use crate::version::version::Version;

/// What to flush: plain data, fixed when it is picked.
pub(crate) struct FlushPlan {
    pub family: Arc<Family>,
    /// The family's tables when the plan was made.
    pub version: Arc<Version>,
    /// Oldest first, from the queue's old end (Q2).
    pub entries: Vec<Arc<dyn Flushable>>,
    /// The largest number in them.
    pub through: SeqNo,
}

impl Core {
    /// The next flush: of the family whose oldest sealed entry is oldest.
    pub(crate) fn pick_flush(&self, state: &mut State) -> Option<FlushPlan> {
        let oldest = |family: &FamilyState| family.queue.last().map(|entry| entry.created_at());
        let due = state.families.values_mut().filter(|family| !family.flushing && wants_flush(family));
        let family = due.min_by_key(|family| oldest(family))?;
        let entries: Vec<_> = family.queue.iter().rev().cloned().collect();
        let through = entries.last().and_then(|entry| entry.largest_seq())?;
        family.flushing = true;
        state.flushes_running += 1;
        let id = family.family.id();
        state.families.get(&id).map(|family| FlushPlan {
            family: family.family.clone(),
            version: family.version.clone(),
            entries,
            through,
        })
    }

    pub(crate) fn flush_job(&self, plan: FlushPlan) -> Result<()> {
        let family = plan.family.clone();
        let result = self.flush(&plan);
        let mut state = self.state.lock();
        state.flushes_running -= 1;
        if let Some(family) = state.families.get_mut(&family.id()) {
            family.flushing = false;
        }
        drop(state);
        drop(plan);
        self.release_logs();
        if family.is_dropped() { Ok(()) } else { result }
    }

    fn flush(&self, plan: &FlushPlan) -> Result<()> {
        // Writers that were noted to the memtable before the switch may still be inserting; they end by themselves (F1).
        self.pipeline.wait_visible(plan.through)?;
        for memtable in plan.entries.iter().filter_map(|entry| entry.as_memtable()) {
            memtable.seal();
        }
        let family = plan.family.name().to_owned();
        self.context.notify(&Event::FlushBegin { family: family.clone() });
        let start = self.context.vfs.now();
        let snapshots = self.snapshots.capture(|| self.pipeline.visible());
        let table = rewrite::run(&self.context, plan, &snapshots)?;
        // No table is durable ahead of its log (F1). What was logged later is left to be written back in its own time.
        let logged = plan.entries.iter().map(|entry| entry.logged_through()).max().unwrap_or(0);
        self.pipeline.wait_published(logged)?;
        self.logs.sync_through(logged, || logged)?;
        self.install_flush(plan, table.as_ref())?;
        if let Some(table) = table {
            let duration_us = (self.context.vfs.now().saturating_sub(start)).as_micros() as u64;
            tracing::info!(family, table = table.number.0, bytes = table.file_bytes, duration_us, "flushed");
            self.context.notify(&Event::FlushEnd { family, table: table.number, bytes: table.file_bytes, duration_us });
        }
        Ok(())
    }

    /// `table` is `None` where everything in the entries turned out to be deleted or shadowed.
    fn install_flush(&self, plan: &FlushPlan, table: Option<&FileMeta>) -> Result<()> {
        let mut edit = VersionEdit::new(plan.family.id());
        edit.flushed_through = Some(plan.through);
        edit.added.extend(table.map(|table| (0, table.clone())));
        let count = plan.entries.len();
        let installed = self.install(
            edit,
            |family| still_at_the_old_end(family, &plan.entries),
            |family| {
                family.queue.truncate(family.queue.len() - count);
                assert!(plan.through >= family.flushed_through, "flushed-through only grows (F2)");
                family.flushed_through = plan.through;
            },
        )?;
        if !installed {
            if let Some(table) = table {
                let _ = self.context.vfs.remove_file(&self.context.table_path(table.number));
            }
            plan.family.check_live()?;
            return Err(Error::corruption("a flush's memtables left their queue while it ran"));
        }
        Ok(())
    }
}

/// Whether a family has something to flush: enough sealed entries, or any that somebody waits for.
pub(crate) fn wants_flush(family: &FamilyState) -> bool {
    let enough = family.family.options().min_write_buffer_number_to_merge;
    let waited_for = |oldest: &Arc<dyn Flushable>| oldest.created_at() < family.flush_wanted_through;
    family.queue.last().is_some_and(|oldest| family.queue.len() >= enough || waited_for(oldest))
}

fn still_at_the_old_end(family: &FamilyState, entries: &[Arc<dyn Flushable>]) -> bool {
    let same = |(a, b): (&Arc<dyn Flushable>, &Arc<dyn Flushable>)| Arc::ptr_eq(a, b);
    family.queue.len() >= entries.len() && family.queue.iter().rev().zip(entries).all(same)
}
