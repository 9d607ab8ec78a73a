//! What users call: databases, families, their upkeep by hand, table writers, and what the engine tells of itself.

pub mod db;
pub mod manage;
pub mod report;
