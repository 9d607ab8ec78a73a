//! Copies and care of databases: checkpoints, backups, exports, checks, repair.

pub mod backup;
pub(crate) mod catalog;
pub mod check;
pub mod checkpoint;
mod copied_table;
pub(crate) mod drop_tables;
pub mod dump;
pub mod export;
pub(crate) mod import;
pub mod repair;
pub mod salvaged_table;
pub mod table_walk;
