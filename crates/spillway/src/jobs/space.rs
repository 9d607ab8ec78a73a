//! Retries of jobs that failed for lack of space, and the end of background errors.

use base::{Error, ErrorKind, Result};

use crate::core::space::Needs;
use crate::core::{FamilyState, State};
use crate::jobs::Jobs;

impl Jobs {
    /// Retries jobs whose retry delay has passed or whose space is free now. `has_waited`: the time until the look has
    /// passed, whatever the vfs's clock says. Part of upkeep.
    pub(crate) fn look_for_space(&self, has_waited: bool) {
        let now = self.core.context.vfs.now();
        let Some(left) = self.core.space.until_next_look(now) else { return };
        if !left.is_zero() && !has_waited {
            return;
        }
        let now = now + left; // the vfs's clock may have stood still meanwhile
        let due = self.core.space.try_what_is_due(now, self.core.free_bytes());
        if due.contains(&Needs::Manifest) {
            let _ = self.mend(); // handled there
        }
        if !due.is_empty() {
            self.core.wake_all();
        }
    }

    /// Ends lacks without a job left to retry: the work is no longer wanted.
    pub(crate) fn end_idle_lacks(&self, state: &State) {
        if !self.core.space.any() {
            return;
        }
        if state.flushes_running == 0 && !state.families.values().any(FamilyState::wants_flush) {
            self.core.job_succeeded(Needs::Flush, u64::MAX);
        }
        let now_s = self.core.context.now_s();
        if state.compactions_running == 0 && !state.families.values().any(|family| family.wants_compaction(now_s)) {
            self.core.job_succeeded(Needs::Compaction, u64::MAX);
        }
    }

    /// Makes the database writable again after a background error, if this needs no reopening.
    ///
    /// # Errors
    /// The reason, if a reopening is needed or a new MANIFEST cannot be written.
    pub(crate) fn mend(&self) -> Result<()> {
        self.check_mendable()?;
        self.core.space.try_now(Needs::Manifest);
        if let Err(error) = self.installer.replace_failed_manifest() {
            match error.kind() {
                ErrorKind::NoSpace => self.core.record_lack(Needs::Manifest, &error, self.core.room_for_manifest()),
                _ => drop(self.core.space.end(Needs::Manifest, u64::MAX)),
            }
            return Err(error);
        }
        self.core.clear_background_error();
        // A failure since the first check met the old background error and was not reported.
        self.check_mendable().inspect_err(|error| self.core.fail(error))?;
        self.core.job_succeeded(Needs::Manifest, u64::MAX);
        Ok(())
    }

    /// # Errors
    /// Failures that only a reopening mends.
    fn check_mendable(&self) -> Result<()> {
        self.core.logs.check()?;
        if self.core.pipeline.is_broken() {
            return Err(Error::read_only("a write failed after it was numbered; close and reopen the database"));
        }
        Ok(())
    }

    /// Retries at once all jobs lacking space; see [`Database::resume`](crate::internal::Database::resume).
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
