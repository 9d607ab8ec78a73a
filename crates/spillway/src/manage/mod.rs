//! What is done with a whole open database: its families and options, checkpoints, exports, imports.

pub(crate) mod catalog;
pub mod checkpoint;
pub(crate) mod copied_table;
pub(crate) mod drop_tables;
pub mod export;
pub(crate) mod import;
