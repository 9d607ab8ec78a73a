//! The compaction job: pick, run, install. Keeps V2, V3.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::extend::Event;
use base::note;
use base::{ErrorKind, FamilyId, FileNumber, Result};

use super::levels::pending_bytes;
use super::output::FamilyRules;
use super::pick::{Picker, next_due_s};
use super::run::{self, Ran, Work};
use crate::background::caught::caught;
use crate::core::install::{Change, Installer};
pub(crate) use crate::core::plan::CompactionPlan;
use crate::core::plan::{FamilyCompactions, Pick};
use crate::core::running::{EntriesDone, JobPlan};
use crate::core::{Core, FamilyState, State};
use crate::observe::ObservedJobKind;
use crate::version::edit::VersionEdit;
use crate::version::table_file::FileMeta;
use crate::version::work::LevelWork;

/// Runs compactions.
pub(crate) struct Compactor {
    pub(super) core: Arc<Core>,
    installer: Arc<Installer>,
}

impl Compactor {
    pub fn new(core: Arc<Core>, installer: Arc<Installer>) -> Arc<Self> {
        Arc::new(Compactor { core, installer })
    }

    /// Picks the most urgent compaction of any family and registers it as running.
    pub(crate) fn pick_compaction(&self, state: &mut State) -> Option<CompactionPlan> {
        if state.pauses > 0 {
            return None;
        }
        let now_s = self.core.context.now_s();
        let mut most_urgent: Option<(f64, FamilyId, Pick)> = None;
        for family in state.families.values() {
            let options = family.family.options();
            if options.disable_auto_compactions || family.compactions.is_held() {
                continue;
            }
            let subcompactions_max = self.core.context.options_now.load().max_subcompactions;
            let picker = Picker::new(&family.version, &options, &family.compactions, subcompactions_max).at(now_s);
            let urgency = picker.urgency();
            if most_urgent.as_ref().is_none_or(|(most, ..)| urgency > *most)
                && let Some(pick) = picker.automatic()
            {
                most_urgent = Some((urgency, family.family.id(), pick));
            }
        }
        let (_, id, pick) = most_urgent?;
        let plan = state.begin_compaction(id, pick);
        self.core.refresh_throttle(state);
        plan
    }

    /// Runs a picked compaction, installs its outcome, and unregisters it. Returns the new tables; `None` if nothing was
    /// installed: an input or the family is gone, the database is closing, the caller gave up, or a file cannot sink.
    ///
    /// # Errors
    /// Any failure, unless the family was dropped or the database is closing.
    pub(crate) fn compaction_job(&self, plan: CompactionPlan) -> Result<Option<Vec<FileNumber>>> {
        let result = caught("a compaction", || self.compact(&plan));
        let mut state = self.core.state.lock();
        state.compactions_running -= 1;
        if let Some(family) = state.families.get_mut(&plan.family.id()) {
            family.compactions.end(plan.id);
        }
        drop(state);
        self.core.state_changed.notify_all();
        match result {
            Err(error) if error.kind() == ErrorKind::Closed || plan.family.is_dropped() => {
                note::info!(family = plan.family.name(), %error, "a compaction was given up");
                Ok(None)
            }
            result => result,
        }
    }

    /// The new tables, if installed.
    fn compact(&self, plan: &CompactionPlan) -> Result<Option<Vec<FileNumber>>> {
        let (family, pick) = (plan.family.name(), &plan.pick);
        let inputs = pick.files().count();
        self.core.context.notify(&Event::CompactionBegin {
            family: family.to_owned(),
            level: pick.start_level(),
            output_level: pick.output_level,
            inputs,
            bytes: pick.input_bytes(),
            reason: pick.reason.name(),
            input_tables: pick.files().map(|(_, file)| file.meta.number).collect(),
        });
        let start = self.core.context.vfs.now();
        let entries_read = entries_read(pick);
        let (done, bytes) = (EntriesDone::default(), pick.input_bytes());
        let measured = done.clone();
        let measure = move || measured.bytes(bytes, entries_read);
        let _running = self.core.context.running.begin(job_plan(plan), start, measure);
        let made = self.tables_of_compaction(plan, &done)?;
        let installed = match &made {
            Some(made) => self.install_compaction(plan, made)?,
            None => false,
        };
        let Made { added, dropped: entries_dropped, .. } = made.unwrap_or_default();
        let duration_us = self.core.context.vfs.now().saturating_sub(start).as_micros() as u64;
        if installed {
            let work = LevelWork { micros: duration_us, entries_read, entries_dropped, ..work_of(pick, &added) };
            plan.family.work().compacted(pick.output_level, work);
        }
        let bytes = added.iter().map(|(_, file)| file.file_bytes).sum();
        note::info!(
            family,
            reason = pick.reason.name(),
            level = pick.start_level(),
            output_level = pick.output_level,
            inputs,
            input_bytes = pick.input_bytes(),
            outputs = added.len(),
            output_bytes = bytes,
            moved = pick.trivial_move,
            installed,
            duration_us,
            "compacted"
        );
        self.core.context.notify(&Event::CompactionEnd {
            family: family.to_owned(),
            output_level: pick.output_level,
            outputs: if installed { added.len() } else { 0 },
            bytes,
            duration_us,
            reason: pick.reason.name(),
            level: pick.start_level(),
            input_tables: pick.files().map(|(_, file)| file.meta.number).collect(),
            output_tables: added.iter().filter(|_| installed).map(|(_, file)| file.number).collect(),
        });
        Ok(installed.then(|| added.into_iter().map(|(_, file)| file.number).collect()))
    }

    /// `None` if a file cannot sink after all.
    fn tables_of_compaction(&self, plan: &CompactionPlan, done: &EntriesDone) -> Result<Option<Made>> {
        let pick = &plan.pick;
        if pick.drops {
            return Ok(Some(Made { uncovers: true, ..Made::default() }));
        }
        if pick.trivial_move {
            let added = pick.files().map(|(_, file)| (pick.output_level, file.meta.clone())).collect();
            return Ok(Some(Made { added, ..Made::default() }));
        }
        let ran = match self.run_compaction(plan, done) {
            Err(error) if pick.sinking().is_some_and(|file| file.is_kept_above()) => {
                note::info!(family = plan.family.name(), %error, "a table does not sink");
                return Ok(None);
            }
            ran => ran?,
        };
        let written = ran.files.into_iter().map(|file| (pick.written_level(), file));
        let sunk = pick.sinking().map(|file| (pick.output_level, file.meta.clone()));
        Ok(Some(Made { added: written.chain(sunk).collect(), dropped: ran.dropped, uncovers: ran.skipped }))
    }

    fn run_compaction(&self, plan: &CompactionPlan, done: &EntriesDone) -> Result<Ran> {
        let work = Arc::new(Work {
            context: self.core.context.clone(),
            family: FamilyRules::of(&plan.family),
            version: plan.version.clone(),
            pick: plan.pick.clone(),
            snapshots: self.core.snapshots.capture(|| self.core.pipeline.visible()),
            done: done.clone(),
        });
        let is_canceled = || plan.canceled.as_ref().is_some_and(|canceled| canceled.load(Ordering::Acquire));
        run::run(&work, &|| self.core.is_closing() || plan.family.is_dropped() || is_canceled())
    }

    /// False if an input no longer stands; the outputs are deleted then (V2).
    fn install_compaction(&self, plan: &CompactionPlan, made: &Made) -> Result<bool> {
        let pick = &plan.pick;
        let inputs = pick.input_numbers();
        let mut edit = VersionEdit::new(plan.family.id());
        edit.added.clone_from(&made.added);
        edit.deleted = inputs.clone();
        let change = Change {
            edit,
            inputs: &inputs,
            compaction: Some(plan.id),
            flushed: &[],
            adopted: &[],
            uncovers: made.uncovers,
            keeps_content: !pick.drops && (pick.trivial_move || !plan.family.options().filters_compactions()),
        };
        let installed = self.installer.install(change);
        // `Closed`: the MANIFEST was closed before the edit, so it names no output. After other errors it may.
        let is_refused =
            installed.as_ref().map_or_else(|error| error.kind() == ErrorKind::Closed, |installed| !installed);
        if is_refused {
            let is_new = |file: &&FileMeta| !inputs.iter().any(|(_, input)| *input == file.number);
            self.core.context.discard_tables(made.added.iter().map(|(_, file)| file).filter(is_new));
        }
        installed
    }
}

/// Result of a compaction, to be added to its version.
#[derive(Default)]
struct Made {
    /// Tables, by level.
    added: Vec<(usize, FileMeta)>,
    /// Input entries left out of the outputs.
    dropped: u64,
    /// See [`Change::uncovers`].
    uncovers: bool,
}

fn job_plan(plan: &CompactionPlan) -> JobPlan {
    JobPlan {
        kind: ObservedJobKind::Compaction,
        family: plan.family.name().to_owned(),
        level: Some(plan.pick.start_level()),
        output_level: Some(plan.pick.output_level),
        reason: plan.pick.reason.name(),
    }
}

/// Entries of the rewritten tables; an unreadable table counts 0.
fn entries_read(pick: &Pick) -> u64 {
    let rewritten = (!pick.trivial_move && !pick.drops).then(|| pick.rewritten()).into_iter().flatten();
    rewritten.map(|(_, file)| file.with(|table| Ok(table.properties().entries)).unwrap_or(0)).sum()
}

/// Work of a compaction at its output level, without times and entries. A trivial move is no job, nor is a deletion.
fn work_of(pick: &Pick, added: &[(usize, FileMeta)]) -> LevelWork {
    if pick.drops {
        return LevelWork::default();
    }
    if pick.trivial_move {
        return LevelWork { moved_bytes: pick.input_bytes(), ..LevelWork::default() };
    }
    let mut work = LevelWork { jobs: 1, ..LevelWork::default() };
    for (level, file) in pick.rewritten() {
        let bytes = if level == pick.output_level { &mut work.read_level_bytes } else { &mut work.read_above_bytes };
        *bytes += file.meta.file_bytes;
    }
    work.moved_bytes = pick.sinking().map_or(0, |file| file.meta.file_bytes);
    work.written_bytes = added.iter().map(|(_, file)| file.file_bytes).sum::<u64>() - work.moved_bytes;
    work
}

impl State {
    /// Registers a family's compaction as running; `None` if the family is gone.
    pub(super) fn begin_compaction(&mut self, id: FamilyId, pick: Pick) -> Option<CompactionPlan> {
        let family = self.families.get_mut(&id)?;
        let id = family.compactions.begin(&pick);
        self.compactions_running += 1;
        Some(CompactionPlan {
            family: family.family.clone(),
            version: family.version.clone(),
            pick: Arc::new(pick),
            id,
            canceled: None,
        })
    }
}

impl State {
    /// Notes when the next table of a family becomes due for its age, after its tables or options changed.
    pub(crate) fn record_age(&mut self, family: FamilyId, now_s: u64) {
        let due_s = self.families.get(&family).and_then(|family| family.next_age_due_s(now_s));
        self.age_due_s = self.age_due_s.into_iter().chain(due_s).min();
    }

    /// Seconds since the epoch at which the next table of all becomes due for its age, after `now_s`; or earlier, if that
    /// table has gone.
    pub(crate) fn next_age_due_s(&mut self, now_s: u64) -> Option<u64> {
        if self.age_due_s.is_some_and(|due_s| due_s <= now_s) {
            self.age_due_s = self.families.values().filter_map(|family| family.next_age_due_s(now_s)).min();
        }
        self.age_due_s
    }
}

impl FamilyState {
    /// Seconds since the epoch at which the next table becomes due for its age, after `now_s`.
    fn next_age_due_s(&self, now_s: u64) -> Option<u64> {
        let options = self.family.options();
        if options.disable_auto_compactions { None } else { next_due_s(&self.version, &options, now_s) }
    }

    /// Recomputes the pending compaction bytes. Called after the version changed.
    pub(crate) fn refresh_pending_bytes(&mut self) {
        self.pending_compaction_bytes = pending_bytes(&self.version, &self.family.options());
    }

    /// Whether a compaction of the family runs or is due automatically.
    pub(crate) fn wants_compaction(&self, now_s: u64) -> bool {
        let FamilyState { family, version, compactions, .. } = self;
        let options = family.options();
        let due =
            |running: &FamilyCompactions| Picker::new(version, &options, running, 1).at(now_s).automatic().is_some();
        compactions.count() > 0 || (!options.disable_auto_compactions && due(compactions))
    }
}
