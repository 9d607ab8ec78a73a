//! The flush of one family, or of several at once: their tables are built beside each other, the log is synced beside
//! that, and one edit of the MANIFEST makes all of it count. Keeps F1, F2, V2, V3.

use std::sync::Arc;

use base::extend::Event;
use base::{Error, Result};
use parking_lot::{Condvar, Mutex};

use crate::context::Context;
use crate::core::Core;
use crate::family::Family;
use crate::flush::build::{Built, build};
use crate::flush::job::FlushPlan;
use crate::install::Change;
use crate::read::snapshot::CapturedSnapshots;
use crate::version::edit::VersionEdit;
use crate::version::table_file::FileMeta;
use crate::write::memory::Charge;
use crate::write::pipeline::LogPosition;

impl Core {
    /// Runs plans of different families to their end.
    ///
    /// # Errors
    /// What kept one of them from ending; then none counts. Families dropped meanwhile are no error.
    pub(crate) fn flush_group(&self, plans: Vec<FlushPlan>) -> Result<()> {
        let plans: Vec<Arc<FlushPlan>> = plans.into_iter().map(Arc::new).collect();
        let result = self.flush(&plans);
        let families: Vec<Arc<Family>> = plans.iter().map(|plan| plan.family.clone()).collect();
        let mut state = self.state.lock();
        state.flushes_running -= plans.len();
        for family in &families {
            if let Some(family) = state.families.get_mut(&family.id()) {
                family.flushing = false;
            }
        }
        drop(state);
        let entries = plans.iter().flat_map(|plan| &plan.entries);
        let charges: Vec<Arc<Charge>> = entries.filter_map(|entry| entry.charge().cloned()).collect();
        drop(plans); // mostly the last handles: the memtables go to the background
        if result.is_ok() {
            charges.iter().for_each(|charge| charge.left_queue());
        }
        self.release_logs();
        if families.iter().all(|family| family.is_dropped()) { Ok(()) } else { result }
    }

    fn flush(&self, plans: &[Arc<FlushPlan>]) -> Result<()> {
        for plan in plans {
            // Writers that were noted to the memtables before the switch may still be inserting; they end by themselves.
            self.pipeline.wait_visible(plan.through)?;
            self.context.notify(&Event::FlushBegin { family: plan.family.name().to_owned() });
        }
        let entries = plans.iter().flat_map(|plan| &plan.entries);
        let logged = entries.map(|entry| entry.logged_through()).max().unwrap_or(0);
        self.pipeline.wait_published(logged)?;
        self.sync_beside(logged);
        let start = self.context.vfs.now();
        let snapshots = self.snapshots.capture(|| self.pipeline.visible());
        let (links, rewrites): (Vec<_>, Vec<_>) = plans.iter().cloned().partition(|plan| plan.is_of_ingests());
        let tables = build_all(&self.context, &rewrites, &snapshots)?;
        // No table is durable ahead of its log (F1). What was logged later is left to be written back in its own time.
        self.logs.sync_through(logged, || logged)?;
        self.install_flushes(&rewrites, &tables)?;
        let mut placed = Vec::new();
        for plan in &links {
            match self.link(plan, &snapshots) {
                Err(_) if plan.family.is_dropped() => {}
                linked => placed.extend(linked?),
            }
        }
        placed.iter().for_each(|event| self.context.notify(event));
        for (plan, table) in rewrites.iter().zip(&tables) {
            let Some(table) = table else { continue };
            let (family, way) = (plan.family.name().to_owned(), table.way);
            let (number, bytes) = (table.meta.number, table.meta.file_bytes);
            let duration_us = (self.context.vfs.now().saturating_sub(start)).as_micros() as u64;
            tracing::info!(family, table = number.0, bytes, way = way.name(), duration_us, "flushed");
            self.context.notify(&Event::FlushEnd { family, table: number, bytes, duration_us, way });
        }
        Ok(())
    }

    /// Has the logs synced through a published position while tables are built. Whether that was done, or failed, shows
    /// when it is asked for after them.
    fn sync_beside(&self, logged: LogPosition) {
        let logs = self.logs.clone();
        self.context.tasks.run(Box::new(move || {
            if let Err(error) = logs.sync_through(logged, || logged) {
                tracing::warn!(%error, "a log could not be synced"); // sticky: told to whoever syncs next (D4)
            }
        }));
    }

    fn install_flushes(&self, plans: &[Arc<FlushPlan>], tables: &[Built]) -> Result<()> {
        if plans.is_empty() {
            return Ok(());
        }
        let changes = plans.iter().zip(tables).map(|(plan, table)| change_of(plan, table)).collect();
        let installed = self.install_all(changes)?;
        for ((plan, table), installed) in plans.iter().zip(tables).zip(installed) {
            if installed {
                table.as_ref().inspect(|table| table.installed(plan));
                continue;
            }
            if let Some(table) = table {
                remove_table(&self.context, &table.meta);
            }
            if !plan.family.is_dropped() {
                return Err(Error::corruption("a flush's memtables left their queue while it ran"));
            }
        }
        Ok(())
    }
}

fn change_of<'a>(plan: &'a FlushPlan, table: &'a Built) -> Change<'a> {
    let mut edit = VersionEdit::new(plan.family.id());
    edit.added.extend(table.iter().map(|table| (0, table.meta.clone())));
    let adopted = table.as_ref().map_or(&[][..], |table| table.adopted.as_slice());
    Change { edit, inputs: &[], compaction: None, flushed: &plan.entries, adopted }
}

/// A table that nothing names; left for the next open where it cannot be deleted.
pub(crate) fn remove_table(context: &Context, table: &FileMeta) {
    if let Err(error) = context.vfs.remove_file(&context.table_path(table.number)) {
        tracing::warn!(%error, "cannot delete the output of a flush that does not count");
    }
}

/// A plan's table, built by whoever comes first: a thread for tasks, or the one that wants it.
struct Build {
    plan: Arc<FlushPlan>,
    stage: Mutex<Stage>,
    changed: Condvar,
}

enum Stage {
    Waiting,
    Claimed,
    Done(Box<Result<Built>>),
    Taken,
}

/// Builds the tables of all plans, on this thread and on those that are idle.
fn build_all(context: &Arc<Context>, plans: &[Arc<FlushPlan>], snapshots: &CapturedSnapshots) -> Result<Vec<Built>> {
    if let [plan] = plans {
        return Ok(vec![build(context, plan, snapshots)?]);
    }
    let builds: Vec<Arc<Build>> = plans.iter().map(|plan| Arc::new(Build::new(plan.clone()))).collect();
    for build in builds.iter().skip(1) {
        let (build, context, snapshots) = (build.clone(), context.clone(), snapshots.clone());
        context.clone().tasks.run(Box::new(move || build.run_if_waiting(&context, &snapshots)));
    }
    builds.iter().for_each(|build| build.run_if_waiting(context, snapshots));
    let results: Vec<Result<Built>> = builds.iter().map(|build| build.result()).collect();
    if results.iter().any(Result::is_err) {
        results.iter().flatten().flatten().for_each(|table| remove_table(context, &table.meta));
    }
    results.into_iter().collect()
}

impl Build {
    fn new(plan: Arc<FlushPlan>) -> Self {
        Build { plan, stage: Mutex::new(Stage::Waiting), changed: Condvar::new() }
    }

    fn run_if_waiting(&self, context: &Context, snapshots: &CapturedSnapshots) {
        {
            let mut stage = self.stage.lock();
            if !matches!(*stage, Stage::Waiting) {
                return;
            }
            *stage = Stage::Claimed;
        }
        let ending = Ending(self);
        let result = build(context, &self.plan, snapshots);
        ending.with(result);
    }

    /// The result, once; waits for whoever builds it.
    fn result(&self) -> Result<Built> {
        let mut stage = self.stage.lock();
        loop {
            match std::mem::replace(&mut *stage, Stage::Taken) {
                Stage::Done(result) => return *result,
                other => *stage = other,
            }
            self.changed.wait(&mut stage);
        }
    }

    fn end(&self, result: Result<Built>) {
        *self.stage.lock() = Stage::Done(Box::new(result));
        self.changed.notify_all();
    }
}

/// A build under way: ends in an error where its thread panics, so that nobody waits for it for ever.
struct Ending<'a>(&'a Build);

impl Ending<'_> {
    fn with(self, result: Result<Built>) {
        self.0.end(result);
        std::mem::forget(self);
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.end(Err(Error::corruption("a flush panicked")));
    }
}
