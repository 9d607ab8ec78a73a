//! What a change is given that joins the queues as a whole.

use base::SeqNo;

use crate::flush::flushable::Flushable;
use crate::write::pipeline::LogPosition;

/// What a change was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// The last number before it.
    pub before: SeqNo,
    pub last: SeqNo,
    /// Where its log record ends; 0 where it has none.
    pub log_end: LogPosition,
}

/// An entry of a queue that gets its numbers when it joins.
pub(crate) trait Joins: Flushable {
    /// Called once, under the commit lock, before any reader can find the entry.
    fn set_numbers(&self, given: &Given);

    /// Called once, before a flush can find it, where a memtable that will be written into a table was sealed because the
    /// entry overlaps it.
    fn stands_over_memtable(&self) {}
}
