//! Atomic flush (`atomic_flush`): all families are sealed at one number, and their tables enter the MANIFEST in one edit.
//! So tables hold a prefix of the history, whatever went to a log. Keeps F1, F2, F4, Q2.
//!
//! One such flush runs at a time, and no other does. Any reason for a flush of one family begins it: a full memtable, a
//! limit on memory or logs, a call. The job itself seals, since a writer with a full memtable switches that one alone.
//!
//! Ingests have levels when their call returns, so they are in queues only for lack of disk space. They are rewritten
//! then: a link would be an edit of its own.

use base::Result;

use crate::core::Core;
use crate::core::family::Family;
use crate::core::space::Needs;
use crate::flush::group::Flusher;
use crate::flush::job::FlushPlan;
use std::sync::Arc;

/// Ends the flush that `begin_flush_of_all` began.
struct Running<'a>(&'a Core);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.flushes_all = false;
        state.flushes_running -= 1;
        drop(state);
        self.0.state_changed.notify_all();
    }
}

impl Flusher {
    pub(crate) fn is_atomic(&self) -> bool {
        self.core.context.options.atomic_flush
    }

    /// Runs the flush of all families that was begun.
    ///
    /// # Errors
    /// As of [`flush_group`](Self::flush_group); handled as those of every job.
    pub(crate) fn flush_all(&self) -> Result<()> {
        let _running = Running(&self.core);
        let planned = self.plan_all();
        let bytes = planned.iter().flatten().map(FlushPlan::bytes).sum();
        let flushed = planned.and_then(|plans| if plans.is_empty() { Ok(()) } else { self.flush_group(plans) });
        self.core.end_job(Needs::Flush, bytes, flushed)
    }

    fn plan_all(&self) -> Result<Vec<FlushPlan>> {
        let through = self.memtables.seal_all()?;
        let mut state = self.core.state.lock();
        loop {
            match state.plan_all_through(through) {
                Some(plans) => return Ok(plans),
                None => self.core.state_changed.wait(&mut state), // a hold ends without a flush
            }
        }
    }

    /// Has families of a write flushed, with all others. Families dropped meanwhile are no error.
    ///
    /// # Errors
    /// As of [`flush_families`](Self::flush_families).
    pub(crate) fn flush_written_with_all(&self, families: &[Arc<Family>]) -> Result<()> {
        for family in families {
            match self.flush_families(&[family]) {
                Err(_) if family.is_dropped() => {}
                flushed => flushed?,
            }
        }
        Ok(())
    }
}
