//! From memory to tables: what can be flushed, the queue it stands in, and the job that empties it.

pub(crate) mod build;
pub(crate) mod convert;
pub mod flushable;
pub(crate) mod group;
pub mod held;
pub mod images;
pub(crate) mod job;
pub(crate) mod later;
pub(crate) mod progress;
pub mod rebased;
pub(crate) mod restored;
pub(crate) mod rewrite;
pub mod ways;
