//! From memory to tables: what can be flushed, the queue it stands in, and the job that empties it.

pub(crate) mod build;
pub(crate) mod convert;
mod eager;
pub(crate) mod group;
mod hand;
pub(crate) mod job;
pub(crate) mod rewrite;
