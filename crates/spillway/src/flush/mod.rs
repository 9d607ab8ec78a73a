//! From memory to tables: what can be flushed, the queue it stands in, and the job that empties it.

pub mod flushable;
pub(crate) mod group;
pub mod held;
pub(crate) mod job;
pub(crate) mod progress;
pub mod rebased;
pub(crate) mod rewrite;
