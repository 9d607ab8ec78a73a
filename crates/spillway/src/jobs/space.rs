//! Jobs that failed for want of space, tried again; and the end of background errors.

use base::{Error, ErrorKind, Result};

use crate::core::FamilyState;
use crate::core::State;
use crate::core::space::Needs;
use crate::jobs::Jobs;

impl Jobs {
    /// Has those tried again that waited long enough, or that there is room for. `has_waited`: until the look was due,
    /// whatever the vfs's clock says. A part of upkeep.
    pub(crate) fn look_for_space(&self, has_waited: bool) {
        let now = self.core.context.vfs.now();
        let Some(left) = self.core.space.until_next_look(now) else { return };
        if !left.is_zero() && !has_waited {
            return;
        }
        let now = now + left; // as a clock would say that stood still meanwhile
        let due = self.core.space.try_what_is_due(now, self.core.free_bytes());
        if due.contains(&Needs::Manifest) {
            let _ = self.mend(); // noted there
        }
        if !due.is_empty() {
            self.core.wake_all();
        }
    }

    /// Ends lacks that nobody is left to try: what lacked space is not wanted any more.
    pub(crate) fn end_idle_lacks(&self, state: &State) {
        if !self.core.space.any() {
            return;
        }
        if state.flushes_running == 0 && !state.families.values().any(FamilyState::wants_flush) {
            self.core.job_succeeded(Needs::Flush, u64::MAX);
        }
        if state.compactions_running == 0 && !state.families.values().any(|family| family.wants_compaction()) {
            self.core.job_succeeded(Needs::Compaction, u64::MAX);
        }
    }

    /// Makes the database take writes again after a background error that can be mended while it is open.
    ///
    /// # Errors
    /// Why it cannot.
    pub(crate) fn mend(&self) -> Result<()> {
        self.check_mendable()?;
        self.core.space.try_now(Needs::Manifest);
        if let Err(error) = self.installer.replace_failed_manifest() {
            match error.kind() {
                ErrorKind::NoSpace => self.core.note_lack(Needs::Manifest, &error, self.core.room_for_manifest()),
                _ => drop(self.core.space.end(Needs::Manifest, u64::MAX)),
            }
            return Err(error);
        }
        self.core.clear_background_error();
        // What failed since it was looked at found an error there, and told nobody.
        self.check_mendable().inspect_err(|error| self.core.fail(error))?;
        self.core.job_succeeded(Needs::Manifest, u64::MAX);
        Ok(())
    }

    /// # Errors
    /// What only a reopening mends.
    fn check_mendable(&self) -> Result<()> {
        self.core.logs.check()?;
        if self.core.pipeline.is_broken() {
            return Err(Error::read_only("a write failed after it was numbered; close and reopen the database"));
        }
        Ok(())
    }

    /// Tries at once whatever lacks space; see [`Db::resume`](crate::Db::resume).
    pub(crate) fn resume(&self) -> Result<()> {
        if self.core.is_closing() {
            return Err(Error::closed("the database is closed"));
        }
        self.mend()?;
        let jobs = [Needs::Flush, Needs::Compaction];
        jobs.iter().for_each(|needs| self.core.space.try_now(*needs));
        self.core.wake_all();
        self.core.upkeep.raise();
        let inline = self.core.context.vfs.runs_inline();
        self.core.wait_until(|state| {
            jobs.iter().try_for_each(|needs| self.core.space.check(*needs))?;
            self.end_idle_lacks(state);
            Ok(inline || !self.core.space.any())
        })
    }
}
