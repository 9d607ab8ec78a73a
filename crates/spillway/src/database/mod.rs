//! The calls of the database handle: reads and writes, ingests, flushes and compactions by hand, copies, reports.

pub mod handle;
mod ingest;
pub mod manage;
pub mod report;
