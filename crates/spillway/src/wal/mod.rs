//! The write-ahead log: log files, roll-over and sync, the live range, prefault, values left in logs, prepared
//! transactions. Keeps C1, D1, D4, P1.

pub(crate) mod archive;
mod end;
pub(crate) mod live_logs;
pub(crate) mod logs;
pub(crate) mod marks;
pub(crate) mod prepared;
pub(crate) mod presence;
pub(crate) mod record;
pub(crate) mod rocksdb_record;
pub(crate) mod roll;
pub(crate) mod two_phase_record;
pub(crate) mod updates;
pub mod value_logs;
