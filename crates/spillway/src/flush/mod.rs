//! From memory to tables: what can be flushed, the queue it stands in, and the job that empties it.

pub(crate) mod build;
pub(crate) mod convert;
pub(crate) mod group;
pub(crate) mod job;
pub(crate) mod later;
pub(crate) mod progress;
pub(crate) mod rewrite;
