//! The guard of a place in the pipeline. Keeps C4.

use base::Error;

use crate::commit::pipeline::Ticket;
use crate::core::Core;

/// A place in the pipeline from when it is given out. Left unfinished, by an error or a panic, it ends the database's ability
/// to write and wakes everyone who waits for it (C4). Made before any lock: failing takes the state lock.
pub(crate) struct Unfinished<'a> {
    core: &'a Core,
    ticket: Option<Ticket>,
}

impl<'a> Unfinished<'a> {
    pub fn new(core: &'a Core) -> Self {
        Unfinished { core, ticket: None }
    }

    pub fn hold(&mut self, ticket: Ticket) {
        self.ticket = Some(ticket);
    }

    /// What has the number is in the log, and in the memtables or the queues.
    pub fn finish(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            self.core.pipeline.finish(ticket);
        }
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if self.ticket.is_some() {
            self.core.fail_numbered(&Error::read_only("a write failed after it was numbered"));
        }
    }
}
