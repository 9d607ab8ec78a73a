//! Calls of the standard library that are the same on every system.
#![allow(clippy::disallowed_methods, reason = "this is where the system is called")]

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use base::{Error, ErrorKind, Result};

use crate::{JoinHandle, Task};

/// Microseconds since the epoch.
pub(crate) fn unix_time_us() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX)
}

/// Skips names other than UTF-8: none of them is the engine's.
pub(crate) fn read_dir(path: &Path) -> Result<Vec<String>> {
    let failed = |e| Error::io("list", path, e);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).map_err(failed)? {
        if let Ok(name) = entry.map_err(failed)?.file_name().into_string() {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Starts a thread of the operating system. Also used by the in-memory file system.
pub(crate) fn spawn_thread(name: &str, task: Task) -> Result<Box<dyn JoinHandle>> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(task);
    let thread =
        thread.map_err(|e| Error::new(ErrorKind::Io, format!("cannot start the thread {name}")).with_source(e))?;
    Ok(Box::new(Thread(thread)))
}

struct Thread(std::thread::JoinHandle<()>);

impl JoinHandle for Thread {
    fn join(self: Box<Self>) {
        if let Err(panic) = self.0.join() {
            std::panic::resume_unwind(panic);
        }
    }
}
