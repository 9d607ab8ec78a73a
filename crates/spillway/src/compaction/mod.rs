//! Compaction: pick inputs (`pick`), merge them (`run`), install the outputs (`job`).
//!
//! A compaction is picked under the state lock as plain data, runs without locks, and is installed only if its inputs
//! still stand (V2). Outputs are on disk before the edit naming them, and inputs are deleted only after it (V3). Only
//! entries invisible to every reader are dropped: see [`entries`].

mod below;
mod cutter;
mod dense;
pub mod entries;
pub(crate) mod job;
pub(crate) mod levels;
pub(crate) mod manual;
mod named;
pub(crate) mod output;
mod pick;
pub(crate) mod run;
mod subcompaction;

pub use self::levels::{LevelTargets, compacted_levels, compacted_of};
pub use self::manual::{BottommostLevelCompaction, CompactRangeOptions};
pub use self::named::CompactFilesOptions;

#[cfg(test)]
mod tests;
