//! What a family's queue is: memtables, large batches and ingests to be flushed; their memory and read views. Keeps Q1, Q2,
//! V1.

mod cache_charge;
pub(crate) mod entries;
pub mod flushable;
pub mod images;
pub(crate) mod ingest;
pub mod memory;
pub mod rebased;
pub(crate) mod sharers;
pub mod view;
pub(crate) mod watermark;
