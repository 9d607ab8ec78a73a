//! `rocksdb_perfcontext_t`: costs of one thread's calls. Nothing is counted by thread here, at any level; a database's
//! statistics have its counts.

use std::ffi::{c_char, c_int};

use crate::boundary::reply::Given;
use crate::boundary::{export, handles};
use crate::kept::warn;

/// All counts of a thread: 0.
pub struct PerfContext;

handles!(PerfContext);

/// RocksDB's `kDisable`.
const DISABLED: c_int = 1;

export! {
    fn rocksdb_set_perf_level(level: c_int) {
        if level > DISABLED {
            warn("perf_level", &level.to_string());
        }
    }

    fn rocksdb_perfcontext_create() -> Box<PerfContext> {
        Box::new(PerfContext)
    }

    fn rocksdb_perfcontext_destroy(context: Option<Box<PerfContext>>) {
        drop(context);
    }

    fn rocksdb_perfcontext_reset(_context: &mut PerfContext) {}

    /// Names and counts: none.
    fn rocksdb_perfcontext_report(_context: &PerfContext, _exclude_zero_counters: bool) -> Given<c_char> {
        Given::text("")
    }

    fn rocksdb_perfcontext_metric(_context: &PerfContext, _metric: c_int) -> u64 {
        0
    }
}
