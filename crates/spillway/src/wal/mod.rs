//! The write-ahead log: files and their windows, values left in them, what is live, replay.

pub(crate) mod live_logs;
pub(crate) mod logs;
pub(crate) mod marks;
pub(crate) mod presence;
pub mod value_logs;
