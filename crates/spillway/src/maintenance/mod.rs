//! Care of databases that need not be open: backups, checks, repair, dumps.

pub mod backup;
pub mod check;
pub mod dump;
pub mod repair;
pub mod salvaged_table;
pub mod table_walk;
