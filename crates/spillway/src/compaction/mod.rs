//! Compaction: pick, run, install.

pub mod entries;
