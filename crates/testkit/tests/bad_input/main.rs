//! Bad input gives a clear error naming the file, or correct data; never a panic, a hang or a wrong value.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod best_efforts;
mod changing;
mod common;
mod copies;
mod cut_repairs;
mod damage;
mod doubts;
mod exchanged_tables;
mod files;
mod images;
mod ingest;
mod limits;
mod locks;
mod logs;
mod lost_ends;
mod manifest_pairs;
mod missing_logs;
mod moved_logs;
mod repair;
mod repaired_tables;
mod restored_logs;
mod rocksdb_logs;
mod rocksdb_lost_logs;
mod rocksdb_rows;
mod salvaged_ingests;
mod strays;
mod unproven_ends;
