//! Excises delayed by an older snapshot. A range tombstone hides the span until the last older snapshot is released.
//! Then tables are deleted or trimmed as in an immediate excise, and the tombstone goes too. Keeps F1, V2.
//!
//! Data to remove is found by position, not by sequence numbers: compactions may have zeroed them. Everything below the
//! tombstone's table is older: nothing newer sinks beneath a range tombstone (V4). If a compaction took the table, or a
//! newer excise cut it, compactions remove the hidden data. A reopen leaves it to them, too: delayed excises are not
//! persisted.

use std::sync::Arc;

use base::note;
use base::{FileNumber, Result};

use crate::core::family::Family;
use crate::core::install::Change;
use crate::core::late_excise::LateExcise;
use crate::flush::link::Linker;
use crate::version::edit::VersionEdit;
use crate::version::excise::{self, ExcisePlan, ExciseSpan};

impl Linker {
    /// Schedules an excise for when no snapshot is older. Its tombstone is already in a table.
    pub(super) fn excise_later(&self, family: &Family, late: LateExcise) {
        let (seq, upkeep) = (late.tombstone.seq, self.core.upkeep.clone());
        let mut state = self.core.state.lock();
        let Some(family) = state.families.get_mut(&family.id()) else { return };
        family.late_excises.push(late);
        state.has_late_excises = true;
        drop(state);
        self.core.snapshots.when_past(seq, move || upkeep.raise());
    }

    /// Runs one due excise. False if none is due, or if a compaction was first. Called by upkeep, and raises upkeep
    /// again for the next.
    pub(crate) fn excise_what_waited(&self) -> bool {
        if self.core.read_only || self.core.is_closing() || self.core.background_error().is_some() {
            return false;
        }
        let Some((family, late)) = self.due_excise() else { return false };
        self.excise_late(&family, &late).unwrap_or_else(|error| {
            note::warn!(%error, "an excise leaves its span to a range tombstone");
            self.forget_excise(&family, late.table);
            true
        })
    }

    /// Returns a due excise. Forgets due excises if their tombstone's table is gone, or must stay.
    fn due_excise(&self) -> Option<(Arc<Family>, LateExcise)> {
        let mut state = self.core.state.lock();
        if !state.has_late_excises {
            return None;
        }
        state.has_late_excises = state.families.values().any(|family| !family.late_excises.is_empty());
        let snapshots = self.core.snapshots.capture(|| self.core.pipeline.visible());
        state.families.values_mut().find_map(|family| {
            // Later ingests from behind must stay hidden, so the tombstone is kept.
            let is_kept = family.family.options().cf_allow_ingest_behind;
            let version = &family.version;
            let stands = |late: &LateExcise| !is_kept && version.file(late.table).is_some();
            family.late_excises.retain(|late| !late.is_due(&snapshots) || stands(late));
            let is_free = |late: &&LateExcise| late.is_due(&snapshots) && !family.compactions.is_busy(late.table);
            let late = family.late_excises.iter().find(is_free)?;
            Some((family.family.clone(), late.clone()))
        })
    }

    /// False if a compaction was first; the excise stays due.
    fn excise_late(&self, family: &Arc<Family>, late: &LateExcise) -> Result<bool> {
        let version = self.core.state.lock().families.get(&family.id()).map(|family| family.version.clone());
        let Some(version) = version else { return Ok(false) };
        let Some((level, _)) = version.file(late.table) else { return Ok(false) };
        let span = ExciseSpan { start: &late.tombstone.start, end: &late.tombstone.end };
        let next = &mut || self.core.context.numbers.take();
        let mut plan: ExcisePlan = excise::plan_below(&version, level, late.table, span, next)?;
        plan.deleted.push((level, late.table)); // it hides nothing any more
        let inputs = plan.deleted.clone();
        let mut edit = VersionEdit::new(family.id());
        plan.add_to(&mut edit);
        let done = self.installer.install(Change {
            edit,
            inputs: &inputs,
            compaction: None,
            flushed: &[],
            adopted: &[],
            uncovers: false,
            keeps_content: false,
        })?;
        if done {
            self.forget_excise(family, late.table);
        }
        Ok(done)
    }

    fn forget_excise(&self, family: &Family, table: FileNumber) {
        if let Some(family) = self.core.state.lock().families.get_mut(&family.id()) {
            family.late_excises.retain(|late| late.table != table);
        }
        self.core.upkeep.raise(); // for the next
    }
}
