//! Excises that a snapshot made wait. As long as one is older than the excise, a range tombstone hides the span from
//! everybody else; once none is, the tables go or are trimmed as they would have been at once, and the tombstone with them.
//! Keeps F1, V2.
//!
//! What goes is told by its place, not by numbers, which compactions may have made 0: whatever lies below the tombstone's
//! table is older, as long as that stands: nothing sinks beneath range tombstones (V4). Where a compaction took the table, or a newer excise cut it, what it hid is left to
//! compactions; so it is after a reopen, since nothing of this is remembered from one open to the next.

use std::sync::Arc;

use base::note;
use base::{FileNumber, Result};

use crate::core::family::Family;
use crate::core::install::Change;
use crate::core::late_excise::LateExcise;
use crate::ingest::link::Linker;
use crate::version::edit::VersionEdit;
use crate::version::excise::{self, ExcisePlan, ExciseSpan};

impl Linker {
    /// Has an excise taken out of the tables once no snapshot is older. Its tombstone is in a table.
    pub(super) fn excise_later(&self, family: &Family, late: LateExcise) {
        let (seq, upkeep) = (late.tombstone.seq, self.core.upkeep.clone());
        let mut state = self.core.state.lock();
        let Some(family) = state.families.get_mut(&family.id()) else { return };
        family.late_excises.push(late);
        drop(state);
        self.core.snapshots.when_past(seq, move || upkeep.raise());
    }

    /// Does one of the excises that waited for snapshots which are gone: false where there is none. A background job; upkeep,
    /// which has more to do, is raised by its edit, and comes back for the next.
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

    /// Forgets those before it whose tombstones' tables are gone.
    fn due_excise(&self) -> Option<(Arc<Family>, LateExcise)> {
        let mut state = self.core.state.lock();
        if state.families.values().all(|family| family.late_excises.is_empty()) {
            return None;
        }
        let snapshots = self.core.snapshots.capture(|| self.core.pipeline.visible());
        state.families.values_mut().find_map(|family| {
            // What comes in from behind is to be hidden, too, whenever it comes.
            let is_kept = family.family.options().cf_allow_ingest_behind;
            let version = &family.version;
            let stands = |late: &LateExcise| !is_kept && version.file(late.table).is_some();
            family.late_excises.retain(|late| !late.is_due(&snapshots) || stands(late));
            let is_free = |late: &&LateExcise| late.is_due(&snapshots) && !family.compactions.is_busy(late.table);
            let late = family.late_excises.iter().find(is_free)?;
            Some((family.family.clone(), late.clone()))
        })
    }

    /// False where a compaction was faster: it is looked at again then.
    fn excise_late(&self, family: &Arc<Family>, late: &LateExcise) -> Result<bool> {
        let version = self.core.state.lock().families.get(&family.id()).map(|family| family.version.clone());
        let Some(version) = version else { return Ok(false) };
        let Some((level, _)) = version.file(late.table) else { return Ok(false) };
        let span = ExciseSpan { start: &late.tombstone.start, end: &late.tombstone.end };
        let next = &mut || self.core.context.numbers.take();
        let mut plan: ExcisePlan = excise::plan_below(&version, (level, late.table), span, next)?;
        plan.deleted.push((level, late.table)); // what it hid is gone
        let inputs = plan.deleted.clone();
        let mut edit = VersionEdit::new(family.id());
        plan.add_to(&mut edit);
        let done =
            self.installer.install(Change { edit, inputs: &inputs, compaction: None, flushed: &[], adopted: &[] })?;
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
