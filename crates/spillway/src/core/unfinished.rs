//! A sequence number on its way.

use base::Error;

use crate::core::Core;
use crate::order::pipeline::Ticket;

/// A pipeline slot, from its allocation on. Dropped unfinished, by an error or a panic, it turns the database read-only
/// and wakes every waiter (C4). Made before any lock: failing takes the state lock.
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

    /// The numbered write is in the WAL, and in the memtables or the queues.
    #[inline]
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
