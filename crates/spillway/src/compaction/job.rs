//! The compaction job: pick, run, install. Keeps V2, V3.

use std::sync::Arc;

use base::extend::Event;
use base::{ErrorKind, FamilyId, Result};

use super::levels::pending_bytes;
use super::output::FamilyRules;
use super::pick::Picker;
pub(crate) use super::plan::CompactionPlan;
use super::plan::{FamilyCompactions, Pick};
use super::run::{self, Work};
use crate::caught::caught;
use crate::core::{Core, FamilyState, State};
use crate::install::Change;
use crate::version::edit::VersionEdit;
use crate::version::table_file::FileMeta;

impl Core {
    /// The most urgent compaction of any family, noted as running.
    pub(crate) fn pick_compaction(&self, state: &mut State) -> Option<CompactionPlan> {
        let mut most_urgent: Option<(f64, FamilyId, Pick)> = None;
        for family in state.families.values() {
            let options = family.family.options();
            if options.disable_auto_compactions || family.compactions.is_held() {
                continue;
            }
            let picker =
                Picker::new(&family.version, &options, &family.compactions, self.context.options.max_subcompactions);
            let urgency = picker.urgency();
            if most_urgent.as_ref().is_none_or(|(most, ..)| urgency > *most)
                && let Some(pick) = picker.automatic()
            {
                most_urgent = Some((urgency, family.family.id(), pick));
            }
        }
        let (_, id, pick) = most_urgent?;
        let plan = state.begin_compaction(id, pick);
        self.refresh_pace(state);
        plan
    }

    /// Runs a compaction that was picked, installs its outcome, and notes that it has ended. False where nothing was
    /// installed: an input is gone, or the family or the database.
    ///
    /// # Errors
    /// What ended it early, other than the family or the database going away.
    pub(crate) fn compaction_job(&self, plan: CompactionPlan) -> Result<bool> {
        let result = caught("a compaction", || self.compact(&plan));
        let mut state = self.state.lock();
        state.compactions_running -= 1;
        if let Some(family) = state.families.get_mut(&plan.family.id()) {
            family.compactions.end(plan.id);
        }
        drop(state);
        self.state_changed.notify_all();
        match result {
            Err(error) if error.kind() == ErrorKind::Closed || plan.family.is_dropped() => {
                tracing::info!(family = plan.family.name(), %error, "a compaction was given up");
                Ok(false)
            }
            result => result,
        }
    }

    /// Whether it was installed.
    fn compact(&self, plan: &CompactionPlan) -> Result<bool> {
        let (family, pick) = (plan.family.name(), &plan.pick);
        let inputs = pick.files().count();
        self.context.notify(&Event::CompactionBegin {
            family: family.to_owned(),
            level: pick.start_level(),
            output_level: pick.output_level,
            inputs,
            bytes: pick.input_bytes(),
        });
        let start = self.context.vfs.now();
        let (installed, added) = match self.tables_of_compaction(plan)? {
            Some(added) => (self.install_compaction(plan, &added)?, added),
            None => (false, Vec::new()),
        };
        let duration_us = self.context.vfs.now().saturating_sub(start).as_micros() as u64;
        let bytes = added.iter().map(|(_, file)| file.file_bytes).sum();
        tracing::info!(
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
        self.context.notify(&Event::CompactionEnd {
            family: family.to_owned(),
            output_level: pick.output_level,
            outputs: if installed { added.len() } else { 0 },
            bytes,
            duration_us,
        });
        Ok(installed)
    }

    /// What is to be added, and where; `None` where a file cannot sink after all.
    fn tables_of_compaction(&self, plan: &CompactionPlan) -> Result<Option<Vec<(usize, FileMeta)>>> {
        let pick = &plan.pick;
        if pick.trivial_move {
            return Ok(Some(pick.files().map(|(_, file)| (pick.output_level, file.meta.clone())).collect()));
        }
        let written = match self.run_compaction(plan) {
            Err(error) if pick.sinking().is_some_and(|file| file.is_kept_above()) => {
                tracing::info!(family = plan.family.name(), %error, "a table does not sink");
                return Ok(None);
            }
            written => written?.into_iter().map(|file| (pick.written_level(), file)),
        };
        Ok(Some(written.chain(pick.sinking().map(|file| (pick.output_level, file.meta.clone()))).collect()))
    }

    fn run_compaction(&self, plan: &CompactionPlan) -> Result<Vec<FileMeta>> {
        let work = Arc::new(Work {
            context: self.context.clone(),
            family: FamilyRules::of(&plan.family),
            version: plan.version.clone(),
            pick: plan.pick.clone(),
            snapshots: self.snapshots.capture(|| self.pipeline.visible()),
        });
        run::run(&work, &|| self.is_closing() || plan.family.is_dropped())
    }

    /// False where the inputs are no longer what they were: the outputs are deleted then (V2).
    fn install_compaction(&self, plan: &CompactionPlan, added: &[(usize, FileMeta)]) -> Result<bool> {
        let pick = &plan.pick;
        let inputs = pick.input_numbers();
        let mut edit = VersionEdit::new(plan.family.id());
        edit.added = added.to_vec();
        edit.deleted = inputs.clone();
        let change = Change { edit, inputs: &inputs, compaction: Some(plan.id), flushed: &[], adopted: &[] };
        let installed = self.install(change);
        // `Closed`: the MANIFEST was gone, so that it names none of them. After other errors it may.
        let is_refused =
            installed.as_ref().map_or_else(|error| error.kind() == ErrorKind::Closed, |installed| !installed);
        if is_refused {
            let is_new = |file: &&FileMeta| !inputs.iter().any(|(_, input)| *input == file.number);
            self.context.discard_tables(added.iter().map(|(_, file)| file).filter(is_new));
        }
        installed
    }
}

impl State {
    /// Notes that a family's compaction runs from now on.
    pub(super) fn begin_compaction(&mut self, id: FamilyId, pick: Pick) -> Option<CompactionPlan> {
        let family = self.families.get_mut(&id)?;
        let id = family.compactions.begin(&pick);
        self.compactions_running += 1;
        Some(CompactionPlan {
            family: family.family.clone(),
            version: family.version.clone(),
            pick: Arc::new(pick),
            id,
        })
    }
}

impl FamilyState {
    /// Works out again how many bytes compactions are behind. Called after the version changed.
    pub(crate) fn refresh_pending_bytes(&mut self) {
        self.pending_compaction_bytes = pending_bytes(&self.version, &self.family.options());
    }

    /// Whether a compaction of the family runs, or would be picked by itself.
    pub(super) fn wants_compaction(&self) -> bool {
        let FamilyState { family, version, compactions, .. } = self;
        let options = family.options();
        let due = |running: &FamilyCompactions| Picker::new(version, &options, running, 1).automatic().is_some();
        compactions.count() > 0 || (!options.disable_auto_compactions && due(compactions))
    }
}
