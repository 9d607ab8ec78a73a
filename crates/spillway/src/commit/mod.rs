//! Writing: batches, admission, range latches, the commit pipeline, stalls.
//!
//! `committer.rs` runs every operation with sequence numbers: a batch, a large batch, an ingest. Keeps S1-S3, C1-C4.

pub(crate) mod admission;
pub mod batch;
pub(crate) mod bounds;
pub(crate) mod committer;
pub(crate) mod counted;
pub(crate) mod flushables;
pub(crate) mod ingest_waits;
pub(crate) mod large;
pub(crate) mod latch;
pub mod options;
pub(crate) mod overlap;
pub mod pipeline;
pub(crate) mod record;
pub mod stall;
pub(crate) mod sync;
pub(crate) mod unfinished;
