//! The flush way *link*: ingested tables move from the queue to their levels, without rewriting a byte. Tables are
//! probed without locks. Places are reserved before the edit is written, so no compaction takes them. Keeps Q2, F1, F2,
//! V2.
//!
//! Memtables of the same flush are written to tables first, together with small ingested tables that overlap them. Their
//! tables join level 0 by the same edit. A table ingested above such a memtable is placed above its table, or beneath it
//! if it overlaps nothing older in it (V4).

use std::sync::Arc;

use base::extend::{Event, FlushWay};
use base::metrics::{Histogram, Ticker, record, tick};
use base::note;
use base::tombstone::RangeTombstone;
use base::{Error, FileNumber, Result};

use super::placement::{Cautious, Placed, Placement, TableProbe};
use crate::core::Core;
use crate::core::context::Context;
use crate::core::family::Family;
use crate::core::install::{Change, Installer};
use crate::core::late_excise::LateExcise;
use crate::cursor::snapshot::CapturedSnapshots;
use crate::flush::divide::Divided;
use crate::flush::job::FlushPlan;
use crate::flush::rewrite;
use crate::queue::ingest::QueuedIngest;
use crate::version::builder::VersionBuilder;
use crate::version::edit::VersionEdit;
use crate::version::excise::{self, ExcisePlan, ExciseSpan};
use crate::version::span::Span;
use crate::version::table_file::{FileMeta, TableFile};
use crate::version::version::Version;

/// Searches for places, each lost to a compaction, before the tables go to level 0.
const ATTEMPTS_MAX: usize = 8;

/// Places of a plan's tables: ingested, flushed and excise tombstones.
#[derive(Default)]
pub(crate) struct Linked {
    pub placed: Vec<Placed>,
    /// Tables in `placed` written from memtables.
    flushed: Vec<FileNumber>,
    /// Tables written for excise tombstones. Deleted if the link is not installed.
    written: Vec<FileMeta>,
    /// Tables an excise removes or trims, if no tombstone is needed.
    excised: ExcisePlan,
    /// The excise, if a tombstone hides its span for now.
    late: Option<LateExcise>,
}

impl Linked {
    pub fn edit(&self, plan: &FlushPlan) -> VersionEdit {
        let mut edit = VersionEdit::new(plan.family.id());
        self.excised.clone().add_to(&mut edit);
        edit.added.extend(self.placed.iter().map(|placed| (placed.level, placed.meta.clone())));
        edit
    }

    /// The ingested tables.
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

    /// Gives every linked table of the flush a level. `flushed`: the table written for each of its rewrites, oldest first.
    /// Returns the events for the listeners; the caller sends them while holding nothing a listener might wait
    /// for.
    ///
    /// # Errors
    /// Errors of reading or writing a table or the MANIFEST.
    pub(crate) fn link(
        &self,
        divided: &Divided,
        flushed: &[Option<FileMeta>],
        snapshots: &CapturedSnapshots,
    ) -> Result<Vec<Event>> {
        let plan = &*divided.plan;
        let start = self.core.context.vfs.now();
        let file = |table: &Option<FileMeta>| table.clone().map(|table| plan.family.tables().file(table));
        let flushed: Vec<Option<Arc<TableFile>>> = flushed.iter().map(file).collect();
        let mut handles: Vec<Arc<TableFile>> = divided.linked().cloned().collect();
        handles.extend(flushed.iter().flatten().cloned());
        let discard = || self.core.context.discard_tables(flushed.iter().flatten().map(|file| &file.meta));
        for attempt in 0.. {
            let reserved = self.reserve_places(divided, &flushed, snapshots, attempt).inspect_err(|_| discard())?;
            let Some((linked, reservation)) = reserved else { continue };
            let change = Change {
                edit: linked.edit(plan),
                inputs: &linked.excised.deleted,
                compaction: None,
                flushed: &plan.entries,
                adopted: &handles,
                uncovers: false,
                keeps_content: false,
            };
            let installed = self.installer.install(change);
            self.end_reservation(plan, reservation);
            // After an error the edit may be durable, so its tables must stay.
            if installed? {
                divided.merged().for_each(|file| file.mark_obsolete()); // the edit is durable (V3)
                if let Some(late) = linked.late.clone() {
                    self.excise_later(&plan.family, late);
                }
                self.core.context.flushes.note(&self.core.context.statistics, FlushWay::Link);
                let micros = self.core.context.vfs.now().saturating_sub(start).as_micros() as u64;
                record(&self.core.context.statistics, Histogram::IngestLink, micros);
                return Ok(self.count_all_placed(plan, &linked));
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

    /// Finds a level for every table and reserves the places. `None` if a compaction took one first.
    fn reserve_places(
        &self,
        divided: &Divided,
        flushed: &[Option<Arc<TableFile>>],
        snapshots: &CapturedSnapshots,
        attempt: usize,
    ) -> Result<Option<(Linked, u64)>> {
        let plan = &divided.plan;
        let own: Vec<u64> = plan.ingests().filter_map(QueuedIngest::reservation).collect();
        let (version, taken) = {
            let mut state = self.core.state.lock();
            let family = self.core.family_state(&mut state, plan.family.id())?;
            (family.version.clone(), family.compactions.places_taken(&own))
        };
        let ground = Ground { version: &version, taken: &taken, flushed, attempt };
        let linked = ground.place(divided, snapshots, &self.core.context)?;
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

    /// Releases the places, whether the tables were installed or not. The end of the job wakes waiters.
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

    /// Counts merged tables, placed in level 0. Returns the events for the listeners.
    pub(crate) fn count_merged(&self, divided: &Divided) -> Vec<Event> {
        let (family, levels) = (&divided.plan.family, divided.plan.version.num_levels());
        tick(&self.core.context.statistics, Ticker::IngestMerged, divided.merged().count() as u64);
        divided.merged().map(|file| self.count_placed(family, 0, levels, &file.meta)).collect()
    }

    /// Counts the ingested tables. Returns the events for the listeners.
    fn count_all_placed(&self, plan: &FlushPlan, linked: &Linked) -> Vec<Event> {
        let levels = plan.version.num_levels();
        let note = |Placed { level, meta, .. }: &Placed| self.count_placed(&plan.family, *level, levels, meta);
        linked.ingested().map(note).collect()
    }
}

/// Inputs of a placement.
pub(crate) struct Ground<'a> {
    pub version: &'a Version,
    /// Levels and spans of running compactions and other jobs' reservations.
    pub taken: &'a [(usize, Span)],
    /// Tables written for the flush's rewrites, oldest first. `None` if nothing of one was left.
    pub flushed: &'a [Option<Arc<TableFile>>],
    /// Number of earlier searches.
    pub attempt: usize,
}

impl<'a> Ground<'a> {
    /// For recovery: no other job runs.
    pub fn without_compactions(version: &'a Version) -> Self {
        Ground { version, taken: &[], flushed: &[], attempt: 0 }
    }
}

impl Ground<'_> {
    /// Finds a level for every table of the flush, and writes an excise's tombstone if one is needed.
    ///
    /// # Errors
    /// Errors of reading and writing tables; no file is left behind.
    pub(crate) fn place(&self, divided: &Divided, snapshots: &CapturedSnapshots, context: &Context) -> Result<Linked> {
        let mut linked = Linked::default();
        let placed = self.place_all(divided, snapshots, context, &mut linked);
        placed.inspect_err(|_| context.discard_tables(&linked.written))?;
        let first_epoch = self.version.max_epoch() + 1;
        for (placed, epoch) in linked.placed.iter_mut().zip(first_epoch..) {
            placed.meta.epoch_number = epoch; // later in the queue is newer in level 0
        }
        Ok(linked)
    }

    fn place_all(
        &self,
        divided: &Divided,
        snapshots: &CapturedSnapshots,
        context: &Context,
        linked: &mut Linked,
    ) -> Result<()> {
        let plan = &*divided.plan;
        let options = plan.family.options();
        let mut excised = None;
        if let Some(tombstone) = plan.ingests().find_map(QueuedIngest::excise) {
            // Later ingests from behind must stay hidden by the excise, so it needs a tombstone.
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
        for run in &divided.runs {
            for file in &run.linked {
                match self.attempt {
                    0..ATTEMPTS_MAX => placement.place(file.meta.clone(), &probe)?,
                    _ => placement.place_on_top(file.meta.clone()),
                }
            }
            if run.rewrite.is_some() {
                flushed.next().into_iter().flatten().for_each(|file| placement.place_flushed(file));
            }
        }
        assert!(flushed.next().is_none(), "every table that was flushed has its place");
        linked.flushed = self.flushed.iter().flatten().map(|file| file.number()).collect();
        linked.placed = placement.placed();
        Ok(())
    }

    /// Plans an excise. `None` if a table needed for it cannot be read; a tombstone then hides the same keys.
    fn plan_excise(&self, tombstone: &RangeTombstone, context: &Context) -> Option<ExcisePlan> {
        let span = ExciseSpan { start: &tombstone.start, end: &tombstone.end };
        let planned = excise::plan(self.version, span, &mut || context.numbers.take());
        planned.inspect_err(|error| note::warn!(%error, "an excise leaves its span to a range tombstone")).ok()
    }

    /// The version after an excise. The ingest's tables are placed in it.
    fn without(&self, excised: &ExcisePlan, plan: &FlushPlan) -> Result<Version> {
        let mut edit = VersionEdit::new(plan.family.id());
        excised.clone().add_to(&mut edit);
        let mut builder = VersionBuilder::new(self.version, plan.family.tables()).for_planning();
        builder.apply(&edit)?;
        Ok(builder.build()?.version)
    }
}

impl Linker {
    /// Counts a table placed in `level` of `levels`. Returns the event for the listeners; the caller sends it while
    /// holding nothing a listener might wait for.
    pub(crate) fn count_placed(&self, family: &Family, level: usize, levels: usize, meta: &FileMeta) -> Event {
        let ticker = match level {
            0 => Ticker::IngestPlacedL0,
            _ if level + 1 == levels => Ticker::IngestPlacedLast,
            _ => Ticker::IngestPlacedMiddle,
        };
        tick(&self.core.context.statistics, ticker, 1);
        family.work().ingested(level, meta.file_bytes);
        let (family, table, bytes) = (family.name(), meta.number, meta.file_bytes);
        note::info!(family, table = table.0, level, bytes, "an ingested table was given a level");
        Event::TablePlaced { family: family.to_owned(), table, level, bytes }
    }
}
