//! The set of log files: the current one and those before it, their live range and syncs, the archive, values left in them,
//! prepared transactions. Keeps C1, D1, D4, P1.

pub(crate) mod archive;
pub(crate) mod live_logs;
pub(crate) mod logs;
pub(crate) mod pace;
pub(crate) mod prepared;
pub mod value_logs;
