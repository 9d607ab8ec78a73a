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

/// Properties of an idle database: all 0.
const BUSY: [&str; 4] = [
    "rocksdb.mem-table-flush-pending",
    "rocksdb.num-running-flushes",
    "rocksdb.compaction-pending",
    "rocksdb.num-running-compactions",
];

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
        idle = match (is_idle(database)?, idle) {
            (false, _) => (0, elapsed),
            (true, (0, _)) => (1, elapsed),
            (true, (looks, since)) => (looks + 1, since),
        };
        if idle.0 >= IDLE_LOOKS {
            return Ok(idle.1);
        }
        if elapsed > IDLE_TIME_MAX {
            return Err(Error::busy("flushes and compactions do not end"));
        }
        vfs.sleep(LOOK_EVERY);
    }
}

fn is_idle(database: &Database) -> Result<bool> {
    for name in BUSY {
        let busy = database.number(name)?;
        let busy = busy.ok_or_else(|| Error::unsupported(format!("the library has no property {name}")))?;
        if busy > 0 {
            return Ok(false);
        }
    }
    Ok(true)
}
