//! Work on the write-ahead log: roll-over, its limit, syncs for callers, recovery watermarks, prefault. Keeps C1, D1, D4.

mod end;
pub(crate) mod prefault;
pub(crate) mod roll;
mod watermarks;
