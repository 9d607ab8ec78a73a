//! The flush of one or more families. Their tables are built in parallel, and the WAL is synced meanwhile if other
//! families still need it. One MANIFEST edit installs all rewritten tables. Keeps F1, F2, V2, V3.

use std::sync::Arc;
use std::time::Duration;

use base::extend::Event;
use base::note;
use base::{Error, ErrorKind, FileNumber, Result, SeqNo};

use crate::background::caught::caught;
use crate::background::{Helpers, run_parts};
use crate::core::context::Context;
use crate::core::family::Family;
use crate::core::install::{Change, Installer};
use crate::core::{Core, FamilyState};
use crate::cursor::snapshot::CapturedSnapshots;
use crate::flush::build::{Built, BuiltTable, build, count_built, leaves_values, needs_synced_log};
use crate::flush::divide::Divided;
use crate::flush::images as damaged_images;
use crate::flush::job::FlushPlan;
use crate::flush::link::Linker;
use crate::memtables::Memtables;
use crate::order::pipeline::LogPosition;
use crate::queue::entries::memtable_bytes;
use crate::queue::memory::Charge;
use crate::rollover::roll::Wal;
use crate::version::edit::VersionEdit;
use crate::version::table_file::FileMeta;

/// Runs with fewer bytes of memtables are built on the calling thread: handing one over costs more.
const HANDED_OVER_BYTES_MIN: usize = 256 << 10;

/// A divided plan, and the table built for each of its rewrites.
struct Written {
    divided: Divided,
    tables: Vec<Built>,
}

impl Written {
    fn metas(&self) -> Vec<Option<FileMeta>> {
        self.tables.iter().map(|table| table.as_ref().map(|table| table.meta.clone())).collect()
    }
}

/// Flushes sealed memtables and ingests of families into tables.
pub(crate) struct Flusher {
    pub core: Arc<Core>,
    pub installer: Arc<Installer>,
    pub memtables: Arc<Memtables>,
    pub wal: Arc<Wal>,
    pub linker: Arc<Linker>,
}

impl Flusher {
    pub fn new(memtables: Arc<Memtables>, wal: Arc<Wal>, linker: Arc<Linker>) -> Arc<Self> {
        Arc::new(Flusher { core: wal.core.clone(), installer: wal.installer.clone(), memtables, wal, linker })
    }

    /// Runs plans of different families to completion.
    ///
    /// # Errors
    /// The first failure. If a table could not be built, no plan is installed. Families dropped meanwhile are no error.
    pub(crate) fn flush_group(&self, plans: Vec<FlushPlan>) -> Result<()> {
        let plans: Vec<Arc<FlushPlan>> = plans.into_iter().map(Arc::new).collect();
        // A damaged image may make the caller's code panic.
        let result = caught("a flush", || self.flush(&plans)).map_err(|error| self.without_images(error, &plans));
        let families: Vec<Arc<Family>> = plans.iter().map(|plan| plan.family.clone()).collect();
        let mut state = self.core.state.lock();
        state.flushes_running -= plans.len();
        for family in &families {
            if let Some(family) = state.families.get_mut(&family.id()) {
                family.flushing = false;
            }
        }
        drop(state);
        self.core.state_changed.notify_all(); // callers wait until the flush was told
        let entries = plans.iter().flat_map(|plan| &plan.entries);
        let charges: Vec<Arc<Charge>> = entries.filter_map(|entry| entry.charge().cloned()).collect();
        drop(plans); // mostly the last handles: memtables are freed in the background
        if result.is_ok() {
            charges.iter().for_each(|charge| charge.left_queue());
        }
        if let Err(error) = self.wal.leave_flushed_log(self.core.context.options.log_file_bytes / 2) {
            note::warn!(%error, "the log goes on, though all of it is in tables");
        }
        if families.iter().all(|family| family.is_dropped()) { Ok(()) } else { result }
    }

    fn flush(&self, plans: &[Arc<FlushPlan>]) -> Result<()> {
        for plan in plans {
            // Writers registered with a memtable before the switch may still be inserting; they finish on their own.
            self.core.pipeline.wait_visible(plan.through)?;
            let (family, by_hand) = (plan.family.name().to_owned(), plan.by_hand);
            self.core.context.notify(&Event::FlushBegin { family, by_hand });
        }
        let entries = plans.iter().flat_map(|plan| &plan.entries);
        let logged = entries.map(|entry| entry.logged_through()).max().unwrap_or(0);
        self.core.pipeline.wait_published(logged)?;
        let snapshots = self.core.snapshots.capture(|| self.core.pipeline.visible());
        let divided = divide_all(plans)?;
        let rewrites = rewrites_of(&divided);
        let is_missed = !self.leaves_nothing_behind(plans);
        let wants_log = is_missed && rewrites.iter().any(|plan| needs_synced_log(plan));
        if (wants_log || rewrites.iter().any(|plan| leaves_values(plan))) && !self.core.logs.is_synced_through(logged) {
            self.sync_beside(logged);
        }
        let start = self.core.context.vfs.now();
        let running = &self.core.context.running;
        let begin = |plan: &Arc<FlushPlan>| {
            let (job, measure) = plan.as_job();
            running.begin(job, start, measure)
        };
        let _running: Vec<_> = plans.iter().map(begin).collect();
        let (divided, tables) = self.build_tables(divided, rewrites, &snapshots)?;
        // No table becomes durable before the WAL, if other families need the WAL or the table refers to values in it
        // (F1). Later records are left to ordinary write-back.
        let has_synced = tables.iter().any(|table| table.as_ref().is_none_or(|table| table.is_synced));
        let refers = tables.iter().flatten().any(BuiltTable::relies_on_logs);
        if is_missed && has_synced || refers || plans.iter().any(|plan| plan.has_ingests()) {
            self.core.logs.sync_through(logged, || logged)?;
        }
        let mut tables = tables.into_iter();
        let written = divided.into_iter().map(|divided| {
            let tables = tables.by_ref().take(divided.rewrites().count()).collect();
            Written { divided, tables }
        });
        let (links, rewrites): (Vec<Written>, Vec<Written>) = written.partition(|written| written.divided.links());
        self.install_flushes(&rewrites)?;
        rewrites.iter().for_each(|written| self.tell_flushed(written, &[], start));
        for written in &links {
            match self.linker.link(&written.divided, &written.metas(), &snapshots) {
                Err(_) if written.divided.plan.family.is_dropped() => {}
                linked => self.tell_flushed(written, &linked?, start),
            }
        }
        Ok(())
    }

    /// Makes a table for each rewrite. Counts only the final tables. Returns the plans as carried out.
    fn build_tables(
        &self,
        divided: Vec<Divided>,
        rewrites: Vec<Arc<FlushPlan>>,
        snapshots: &CapturedSnapshots,
    ) -> Result<(Vec<Divided>, Vec<Built>)> {
        let built = self.core.removals.with_all_space(|| build_all(&self.core.context, &rewrites, snapshots));
        let (divided, rewrites, tables) = match built {
            // A link reads next to nothing: damage in an ingested table shows when it is read.
            Err(error) if divided.iter().any(|divided| divided.merged().next().is_some()) => {
                note::warn!(%error, "small ingested tables could not be written into others; they are linked");
                let plans: Vec<_> = divided.iter().map(|divided| Arc::new(divided.plan.linking())).collect();
                let divided = divide_all(&plans)?;
                let rewrites = rewrites_of(&divided);
                let tables = build_all(&self.core.context, &rewrites, snapshots)?;
                (divided, rewrites, tables)
            }
            built => (divided, rewrites, built?),
        };
        rewrites.iter().zip(&tables).for_each(|(plan, built)| count_built(plan, &self.core.context, built));
        Ok((divided, tables))
    }

    /// Notifies listeners of an installed plan; `placed` are the events of its linked tables.
    fn tell_flushed(&self, Written { divided, tables }: &Written, placed: &[Event], start: Duration) {
        let plan = &divided.plan;
        let merged = if plan.family.is_dropped() { Vec::new() } else { self.linker.count_merged(divided) };
        placed.iter().chain(&merged).for_each(|event| self.core.context.notify(event));
        let duration_us = self.core.context.vfs.now().saturating_sub(start).as_micros() as u64;
        for table in tables.iter().flatten() {
            let (family, way) = (plan.family.name().to_owned(), table.way);
            let (number, bytes) = (table.meta.number, table.meta.file_bytes);
            note::info!(family, table = number.0, bytes, way = way.name(), duration_us, "flushed");
            self.core.context.notify(&Event::FlushEnd {
                family,
                table: number,
                bytes,
                duration_us,
                way,
                by_hand: plan.by_hand,
                smallest_seq: table.meta.smallest_seq,
                largest_seq: table.meta.largest_seq,
            });
        }
    }

    /// If a restored memtable turned out to be damaged, lets the images go of each family with one that cannot be read. The next open
    /// then replays the WAL, kept until the flush is durable (F2).
    fn without_images(&self, error: Error, plans: &[Arc<FlushPlan>]) -> Error {
        if error.kind() != ErrorKind::Corruption {
            return error;
        }
        let images_of = |family: &FamilyState| {
            let images = family.queue.iter().filter(|entry| entry.image_number().is_some());
            (family.family.clone(), images.cloned().collect::<Vec<_>>())
        };
        let restored: Vec<_> = self.core.state.lock().families.values().map(images_of).collect();
        let restored = restored.into_iter().filter(|(_, images)| !images.is_empty());
        let (damaged, whole): (Vec<_>, Vec<_>) =
            restored.partition(|(_, images)| damaged_images::find_damage(images).is_some());
        let is_planned = |family: &Family| plans.iter().any(|plan| plan.family.id() == family.id());
        // What reads well can still make a wrong table.
        let is_found = damaged.iter().any(|(family, _)| is_planned(family));
        let suspect = whole.into_iter().filter(|(family, _)| !is_found && is_planned(family));
        let mut let_go = damaged.into_iter().chain(suspect).peekable();
        if let_go.peek().is_none() {
            return error;
        }
        for (family, images) in let_go {
            let images: Vec<FileNumber> = images.iter().filter_map(|entry| entry.image_number()).collect();
            if let Err(error) = damaged_images::let_go(&self.core.context, family.name(), &images, &error) {
                note::warn!(%error, "a memtable's file stays: open with memtable_crash_safe_recover=false");
                return error;
            }
        }
        error.context("a memtable that an earlier process left is damaged; open again, and the log is replayed instead")
    }

    /// Whether these plans leave everything through their largest number in tables, and nothing is prepared. If so, a power loss may take the
    /// WAL before that number and still leave a prefix (D2). All of it is visible, so no family can gain more of it.
    fn leaves_nothing_behind(&self, plans: &[Arc<FlushPlan>]) -> bool {
        let through = plans.iter().map(|plan| plan.through).max().unwrap_or(SeqNo::ZERO);
        let state = self.core.state.lock();
        let is_flushed = |family: &FamilyState| {
            let plan = plans.iter().find(|plan| plan.family.id() == family.family.id());
            let flushed = plan.map_or(&[][..], |plan| &plan.entries);
            family.needed_without(flushed) >= through || (family.queue.is_empty() && family.mutable.is_unused())
        };
        state.families.values().all(is_flushed) && self.core.logs.prepared.count() == 0
    }

    /// Starts a sync of the WAL through a published position while tables are built. The `sync_through` after the
    /// builds returns its outcome.
    fn sync_beside(&self, logged: LogPosition) {
        let logs = self.core.logs.clone();
        self.core.context.tasks.run(Box::new(move || {
            if let Err(error) = logs.sync_through(logged, || logged) {
                note::warn!(%error, "a log could not be synced"); // sticky: the next sync returns it (D4)
            }
        }));
    }

    fn install_flushes(&self, flushes: &[Written]) -> Result<()> {
        if flushes.is_empty() {
            return Ok(());
        }
        let installed = self.installer.install_all(flushes.iter().map(change_of).collect())?;
        for (Written { divided, tables }, installed) in flushes.iter().zip(installed) {
            let plan = &divided.plan;
            if installed {
                divided.merged().for_each(|file| file.mark_obsolete()); // the edit is durable (V3)
                tables.iter().flatten().for_each(|table| table.installed(plan));
                continue;
            }
            self.core.context.discard_tables(tables.iter().flatten().map(|table| &table.meta));
            if !plan.family.is_dropped() {
                return Err(Error::corruption("a flush's memtables left their queue while it ran"));
            }
        }
        Ok(())
    }
}

fn divide_all(plans: &[Arc<FlushPlan>]) -> Result<Vec<Divided>> {
    plans.iter().cloned().map(Divided::new).collect()
}

/// A plan for each table to be written.
fn rewrites_of(divided: &[Divided]) -> Vec<Arc<FlushPlan>> {
    divided.iter().flat_map(Divided::rewrites).cloned().collect()
}

fn change_of(Written { divided, tables }: &Written) -> Change<'_> {
    let plan = &divided.plan;
    let mut edit = VersionEdit::new(plan.family.id());
    edit.added.extend(tables.iter().flatten().map(|table| (0, table.meta.clone())));
    // A converted memtable leaves the queue alone, so there is one handle at most.
    let adopted = tables.iter().flatten().find_map(|table| table.adopted.as_ref());
    Change {
        edit,
        inputs: &[],
        compaction: None,
        flushed: &plan.entries,
        adopted: adopted.map_or(&[], std::slice::from_ref),
        uncovers: false,
        keeps_content: false,
    }
}

/// Builds the tables of all plans; helpers build those of large memtables. No plan has linked ingests. On failure, removes
/// the tables that were made.
///
/// # Errors
/// The first error of a build.
fn build_all(context: &Arc<Context>, plans: &[Arc<FlushPlan>], snapshots: &CapturedSnapshots) -> Result<Vec<Built>> {
    if let [plan] = plans {
        return Ok(vec![caught("a flush", || build(plan, context, snapshots))?]);
    }
    let is_worth_it = |plan: &&Arc<FlushPlan>| memtable_bytes(&plan.entries) >= HANDED_OVER_BYTES_MIN;
    let large = plans.iter().skip(1).filter(is_worth_it).count();
    let helpers = context.tasks.registration().map_or_else(Helpers::none, |env| env.helpers(large));
    let (of_parts, captured) = (context.clone(), snapshots.clone());
    let work =
        move |plan: &Arc<FlushPlan>, _: &dyn Fn() -> bool| caught("a flush", || build(plan, &of_parts, &captured));
    let outcome = run_parts(helpers, plans.to_vec(), &|| false, work);
    if outcome.error.is_some() {
        context.discard_tables(outcome.done.iter().flatten().map(|table| &table.meta));
    }
    outcome.all()
}
