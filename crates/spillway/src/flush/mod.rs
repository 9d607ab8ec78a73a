//! Flush: from memtables to tables. Plans, table builds, group flushes, eager and manual flushes.

mod atomic;
pub(crate) mod build;
pub(crate) mod convert;
pub(crate) mod divide;
mod eager;
pub(crate) mod group;
mod hand;
pub(crate) mod images;
pub(crate) mod job;
pub(crate) mod late;
pub(crate) mod link;
pub(crate) mod placement;
pub(crate) mod rewrite;
