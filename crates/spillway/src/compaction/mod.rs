//! Compaction: what to merge (`pick`), merging it (`run`), and putting the outcome in its place (`job`).
//!
//! A compaction is picked under the state lock as plain data, runs without any lock, and is installed only if its inputs
//! still stand (V2); its outputs are on disk before the edit that names them, and its inputs are deleted only after
//! (V3). What it drops, no reader can see: see [`entries`].

mod below;
mod cutter;
pub mod entries;
pub(crate) mod job;
pub(crate) mod levels;
pub(crate) mod manual;
pub(crate) mod output;
mod pick;
mod plan;
pub(crate) mod run;
mod subcompaction;

pub use self::levels::{LevelTargets, compacted_levels, pending_bytes};
pub use self::manual::{BottommostLevelCompaction, CompactRangeOptions};
pub use self::plan::{CompactionPlan, FamilyCompactions, LevelInputs, Pick, Reason};

#[cfg(test)]
mod tests;
