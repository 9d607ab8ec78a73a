//! Records of the log: ours, of every kind of commit, and RocksDB's.

pub(crate) mod ingest_record;
pub(crate) mod record;
pub(crate) mod rocksdb_record;
pub(crate) mod two_phase_record;
