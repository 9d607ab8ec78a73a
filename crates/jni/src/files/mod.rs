//! Files of databases: checkpoints, backups, tables outside, logs, and lists of them.

pub mod backups;
pub mod checkpoint;
pub mod compaction_info;
pub mod ingest;
pub mod lists;
pub mod properties;
pub mod table_reader;
pub mod table_writer;
pub mod updates;
