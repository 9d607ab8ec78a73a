//! The flush way *link*: ingested tables leave the queue and get their levels, without a byte rewritten. Tables are probed
//! off every lock; the places are reserved before the edit is written, so that no compaction comes in between. Keeps Q2,
//! F1, F2, V2.
//!
//! Memtables that leave the queue in the same flush were rewritten before, small ingests over them with them: their tables
//! join level 0 with the same edit, and an ingest that lies above one is placed above its table.

use std::sync::Arc;

use base::extend::{Event, FlushWay};
use base::metrics::{Histogram, Ticker, record, tick};
use base::note;
use base::tombstone::RangeTombstone;
use base::{Error, FileNumber, Result};

use super::placement::{Cautious, Placed, Placement, TableProbe};
use crate::core::Core;
use crate::core::context::Context;
use crate::core::install::Change;
use crate::core::install::Installer;
use crate::core::late_excise::LateExcise;
use crate::flush::job::FlushPlan;
use crate::flush::rewrite;
use crate::queue::due::is_linked;
use crate::queue::ingest::QueuedIngest;
use crate::read::snapshot::CapturedSnapshots;
use crate::version::builder::VersionBuilder;
use crate::version::edit::VersionEdit;
use crate::version::excise::{self, ExcisePlan, ExciseSpan};
use crate::version::span::Span;
use crate::version::table_file::{FileMeta, TableFile};
use crate::version::version::Version;

/// Times that places are sought again because a compaction took them meanwhile; then level 0 has to do.
const ATTEMPTS_MAX: usize = 8;

/// Where the tables of a plan's ingests go, and those of its memtables.
#[derive(Default)]
pub(crate) struct Linked {
    pub placed: Vec<Placed>,
    /// Those of `placed` that memtables were written to.
    flushed: Vec<FileNumber>,
    /// Tables that were written: tombstones of excises. Deleted where the link comes to nothing.
    written: Vec<FileMeta>,
    /// What an excise takes out of the tables, where no snapshot is older than it.
    excised: ExcisePlan,
    /// The excise, where one is.
    late: Option<LateExcise>,
}

impl Linked {
    pub fn edit(&self, plan: &FlushPlan) -> VersionEdit {
        let mut edit = VersionEdit::new(plan.family.id());
        self.excised.clone().add_to(&mut edit);
        edit.added.extend(self.placed.iter().map(|placed| (placed.level, placed.meta.clone())));
        edit
    }

    /// The tables that somebody ingested.
    fn ingested(&self) -> impl Iterator<Item = &Placed> {
        let is_own = |number| self.flushed.contains(&number) || self.written.iter().any(|table| table.number == number);
        self.placed.iter().filter(move |placed| !is_own(placed.meta.number))
    }
}

/// Gives ingested tables their levels.
pub(crate) struct Linker {
    pub(super) core: Arc<Core>,
    pub(super) installer: Arc<Installer>,
}

impl Linker {
    pub fn new(core: Arc<Core>, installer: Arc<Installer>) -> Arc<Self> {
        Arc::new(Linker { core, installer })
    }

    /// Gives every table of the plan's ingests a level. `flushed`: for each of its runs of memtables the table that was
    /// written, oldest first. Returns what listeners are to be told of it, once the caller holds nothing that they might
    /// wait for.
    ///
    /// # Errors
    /// What reading a table, writing one or the MANIFEST yields.
    pub(crate) fn link(
        &self,
        plan: &FlushPlan,
        flushed: &[Option<FileMeta>],
        snapshots: &CapturedSnapshots,
    ) -> Result<Vec<Event>> {
        let start = self.core.context.vfs.now();
        let file = |table: &Option<FileMeta>| table.clone().map(|table| plan.family.tables().file(table));
        let flushed: Vec<Option<Arc<TableFile>>> = flushed.iter().map(file).collect();
        let mut handles = plan.handles();
        handles.extend(flushed.iter().flatten().cloned());
        let discard = || self.core.context.discard_tables(flushed.iter().flatten().map(|file| &file.meta));
        for attempt in 0.. {
            let reserved = self.reserve_places(plan, &flushed, snapshots, attempt).inspect_err(|_| discard())?;
            let Some((linked, reservation)) = reserved else { continue };
            let change = Change {
                edit: linked.edit(plan),
                inputs: &linked.excised.deleted,
                compaction: None,
                flushed: &plan.entries,
                adopted: &handles,
            };
            let installed = self.installer.install(change);
            self.end_reservation(plan, reservation);
            // After an error nobody knows whether the edit is durable: what it names must stay.
            if installed? {
                if let Some(late) = linked.late.clone() {
                    self.excise_later(&plan.family, late);
                }
                self.core.context.flushes.note(&self.core.context.statistics, FlushWay::Link);
                let micros = self.core.context.vfs.now().saturating_sub(start).as_micros() as u64;
                record(&self.core.context.statistics, Histogram::IngestLink, micros);
                return Ok(self.note_all_placed(plan, &linked));
            }
            self.core.context.discard_tables(&linked.written);
            self.check_still_queued(plan).inspect_err(|_| discard())?;
            if plan.family.is_dropped() {
                discard();
                break;
            }
        }
        Ok(Vec::new())
    }

    /// Finds a level for every table and reserves the places; `None` where a compaction was faster.
    fn reserve_places(
        &self,
        plan: &FlushPlan,
        flushed: &[Option<Arc<TableFile>>],
        snapshots: &CapturedSnapshots,
        attempt: usize,
    ) -> Result<Option<(Linked, u64)>> {
        let own: Vec<u64> = plan.ingests().filter_map(QueuedIngest::reservation).collect();
        let (version, taken) = {
            let mut state = self.core.state.lock();
            let family = self.core.family_state(&mut state, plan.family.id())?;
            (family.version.clone(), family.compactions.places_taken(&own))
        };
        let ground = Ground { version: &version, taken: &taken, flushed, attempt };
        let linked = ground.place(plan, snapshots, &self.core.context)?;
        let reserved = {
            let mut state = self.core.state.lock();
            self.core.family_state(&mut state, plan.family.id()).map(|family| {
                let now = family.compactions.places_taken(&own);
                let is_same = Arc::ptr_eq(&version, &family.version) && now == taken;
                let leaving = &linked.excised.deleted;
                let holds = is_same || Placement::still_holds(&linked.placed, leaving, &family.version, &now);
                let spans = linked.placed.iter().map(|placed| (placed.level, placed.span.clone()));
                holds.then(|| family.compactions.reserve(spans.collect()))
            })
        };
        if let Ok(Some(reservation)) = reserved {
            return Ok(Some((linked, reservation)));
        }
        self.core.context.discard_tables(&linked.written);
        reserved.map(|_| None)
    }

    /// Lets go of the places, whether or not the tables are there now. Whoever waits for them is told by the end of the job.
    fn end_reservation(&self, plan: &FlushPlan, reservation: u64) {
        let mut state = self.core.state.lock();
        if let Some(family) = state.families.get_mut(&plan.family.id()) {
            family.compactions.end_reservation(reservation);
        }
    }

    fn check_still_queued(&self, plan: &FlushPlan) -> Result<()> {
        let state = self.core.state.lock();
        match state.families.get(&plan.family.id()) {
            Some(family) if !family.may_leave(&plan.entries) => {
                Err(Error::corruption("an ingest left its queue while its tables were linked"))
            }
            _ => Ok(()),
        }
    }

    /// Counts the tables of ingests that were merged, whose place is level 0; returns what listeners are to be told.
    pub(crate) fn note_merged(&self, plan: &FlushPlan) -> Vec<Event> {
        let levels = plan.version.num_levels();
        let merged: Vec<_> = plan.merged().flat_map(QueuedIngest::files).collect();
        tick(&self.core.context.statistics, Ticker::IngestMerged, merged.len() as u64);
        merged.iter().map(|file| self.note_placed(&plan.family, (0, levels), &file.meta)).collect()
    }

    /// Counts the ingested tables; returns what listeners are to be told.
    fn note_all_placed(&self, plan: &FlushPlan, linked: &Linked) -> Vec<Event> {
        let levels = plan.version.num_levels();
        let note = |Placed { level, meta, .. }: &Placed| self.note_placed(&plan.family, (*level, levels), meta);
        linked.ingested().map(note).collect()
    }
}

/// What places are sought on.
pub(crate) struct Ground<'a> {
    pub version: &'a Version,
    /// Levels and spans that others may bring tables into.
    pub taken: &'a [(usize, Span)],
    /// What the plan's runs of memtables were written to, oldest first; `None` where nothing of a run was left.
    pub flushed: &'a [Option<Arc<TableFile>>],
    /// How often places were sought before.
    pub attempt: usize,
}

impl<'a> Ground<'a> {
    /// For recovery, when nothing else runs.
    pub fn without_compactions(version: &'a Version) -> Self {
        Ground { version, taken: &[], flushed: &[], attempt: 0 }
    }
}

impl Ground<'_> {
    /// Seeks a level for every table of the plan's ingests, and writes the excises' tombstones.
    ///
    /// # Errors
    /// What reading and writing tables yields; nothing is left behind then.
    pub(crate) fn place(&self, plan: &FlushPlan, snapshots: &CapturedSnapshots, context: &Context) -> Result<Linked> {
        let mut linked = Linked::default();
        let placed = self.place_all(plan, snapshots, context, &mut linked);
        placed.inspect_err(|_| context.discard_tables(&linked.written))?;
        let first_epoch = self.version.max_epoch() + 1;
        for (placed, epoch) in linked.placed.iter_mut().zip(first_epoch..) {
            placed.meta.epoch_number = epoch; // what was queued later is newer in level 0
        }
        Ok(linked)
    }

    fn place_all(
        &self,
        plan: &FlushPlan,
        snapshots: &CapturedSnapshots,
        context: &Context,
        linked: &mut Linked,
    ) -> Result<()> {
        let options = plan.family.options();
        let mut excised = None;
        if let Some(tombstone) = plan.ingests().find_map(QueuedIngest::excise) {
            // What comes in from behind is to be hidden by the excise, whenever it comes: that takes a tombstone.
            let hides = options.cf_allow_ingest_behind || snapshots.snapshots.iter().any(|seq| *seq < tombstone.seq);
            if let Some(taken_out) = (!hides).then(|| self.plan_excise(&tombstone, context)).flatten() {
                excised = Some(self.without(&taken_out, plan)?);
                linked.excised = taken_out;
            } else if let Some(table) = rewrite::write_tombstone(plan, context, snapshots, tombstone.clone())? {
                linked.late = Some(LateExcise { tombstone, table: table.number });
                linked.written.push(table);
            }
        }
        let probe = Cautious(TableProbe::uncached(plan.family.order().user.clone()));
        let mut placement = Placement::new(excised.as_ref().unwrap_or(self.version), &options, self.taken);
        linked.written.iter().for_each(|table| placement.place_on_top(table.clone()));
        let mut flushed = self.flushed.iter();
        for run in plan.runs() {
            if !run.iter().all(is_linked) {
                flushed.next().into_iter().flatten().for_each(|file| placement.place_flushed(file));
                continue;
            }
            for file in run.iter().filter_map(|entry| entry.as_ingest()).flat_map(QueuedIngest::files) {
                match self.attempt {
                    0..ATTEMPTS_MAX => placement.place(file.meta.clone(), &probe)?,
                    _ => placement.place_on_top(file.meta.clone()),
                }
            }
        }
        assert!(flushed.next().is_none(), "every table that was flushed has its place");
        linked.flushed = self.flushed.iter().flatten().map(|file| file.number()).collect();
        linked.placed = placement.placed();
        Ok(())
    }

    /// What an excise takes out; `None` where a table has to be read for that and cannot be. A tombstone says the same.
    fn plan_excise(&self, tombstone: &RangeTombstone, context: &Context) -> Option<ExcisePlan> {
        let span = ExciseSpan { start: &tombstone.start, end: &tombstone.end };
        let planned = excise::plan(self.version, span, &mut || context.numbers.take());
        planned.inspect_err(|error| note::warn!(%error, "an excise leaves its span to a range tombstone")).ok()
    }

    /// The version without what an excise takes out: where its ingest's tables are to be placed.
    fn without(&self, excised: &ExcisePlan, plan: &FlushPlan) -> Result<Version> {
        let mut edit = VersionEdit::new(plan.family.id());
        excised.clone().add_to(&mut edit);
        let mut builder = VersionBuilder::new(self.version, plan.family.tables()).for_planning();
        builder.apply(&edit)?;
        Ok(builder.build()?.version)
    }
}
