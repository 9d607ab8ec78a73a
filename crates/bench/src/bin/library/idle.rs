//! Detects an idle database.

use std::time::Duration;

use base::{Error, Result};
use vfs::Vfs;

use super::Database;

/// Time between two checks for an idle database.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Successive checks to pass before a database counts as idle: nothing runs for a moment between a flush and the compaction due
/// after it.
const IDLE_LOOKS: u32 = 25;

/// Limit of the wait for an idle database.
const IDLE_TIME_MAX: Duration = Duration::from_secs(3600);

/// Universal compaction says that one is due from a number of sorted runs on, whether it finds any to merge or not. If nothing
/// runs for so long, none is.
const STANDSTILL: Duration = Duration::from_secs(2);

/// Properties of a database at rest: all 0.
const RUNNING: [&str; 3] =
    ["rocksdb.mem-table-flush-pending", "rocksdb.num-running-flushes", "rocksdb.num-running-compactions"];
const DUE: [&str; 1] = ["rocksdb.compaction-pending"];

/// Waits until no flush or compaction is due or running. Returns the time from the call to the begin of idleness. RocksDB's C API
/// has a waiting call only from 8.5 on, so every library is polled in the same way.
///
/// # Errors
/// `Unsupported`: the library lacks the properties. `Busy`: the work does not end.
pub fn wait_until_idle(vfs: &dyn Vfs, database: &Database) -> Result<Duration> {
    let asked = vfs.now();
    let mut idle = (0, Duration::ZERO);
    loop {
        let elapsed = vfs.now().saturating_sub(asked);
        idle = match (are_zero(database, &RUNNING)?, idle) {
            (false, _) => (0, elapsed),
            (true, (0, _)) => (1, elapsed),
            (true, (looks, since)) => (looks + 1, since),
        };
        let (looks, since) = idle;
        if looks >= IDLE_LOOKS && (are_zero(database, &DUE)? || elapsed - since >= STANDSTILL) {
            return Ok(since);
        }
        if elapsed > IDLE_TIME_MAX {
            return Err(Error::busy("flushes and compactions do not end"));
        }
        vfs.sleep(LOOK_EVERY);
    }
}

fn are_zero(database: &Database, names: &[&str]) -> Result<bool> {
    for name in names {
        let busy = database.number(name)?;
        let busy = busy.ok_or_else(|| Error::unsupported(format!("the library has no property {name}")))?;
        if busy > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
