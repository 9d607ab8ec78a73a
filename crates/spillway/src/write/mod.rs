//! Writing: batches, admission, the commit pipeline, the logs, stalls.
//!
//! `commit.rs` is the way of everything that takes sequence numbers: a batch, a large batch, an ingest. Keeps S1-S3, C1-C4.

pub(crate) mod admission;
pub mod batch;
pub(crate) mod bounds;
pub(crate) mod commit;
mod counted;
mod eager;
pub(crate) mod flushables;
pub(crate) mod large;
mod live_logs;
pub(crate) mod logs;
pub(crate) mod marks;
pub mod memory;
pub mod options;
pub mod pipeline;
pub(crate) mod presence;
pub(crate) mod record;
pub(crate) mod room;
mod spare;
pub(crate) mod staged;
pub mod stall;
pub(crate) mod switch;
pub(crate) mod sync;
pub mod value_logs;
