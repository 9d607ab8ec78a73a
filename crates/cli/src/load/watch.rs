//! Watches a load for lack of disk space. Writes wait while flushes find no space, but a load should fail instead. The
//! watch closes the database, which ends such waits, if the disk is full, or if Ctrl-C does not end them soon.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use spillway::internal::vfs::RealVfs;
use spillway::internal::{Database, Error, ErrorKind, Family, Result};

use crate::failure::{Failure, Outcome, note};
use crate::interrupt::Interrupt;
use crate::threads::Job;

/// Interval between checks.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// Checks after Ctrl-C until the load is assumed to wait for the database. A load without a wait ends between two
/// batches.
const PATIENCE_LOOKS: u32 = 10;

/// Thread that polls a load's database.
pub struct Watch {
    /// Never sent to: dropping it ends the thread.
    end: mpsc::Sender<()>,
    /// `None` where no thread can be had.
    job: Option<Job<Watched>>,
}

/// Result of a watch.
struct Watched {
    /// The no-space error, if the watch closed the database for it.
    lack: Option<Error>,
    /// Result of closing it.
    closed: Result<()>,
}

impl Watch {
    pub fn begin(db: Arc<Database>, family: Arc<Family>, interrupt: Interrupt) -> Watch {
        let (end, ended) = mpsc::channel();
        let job = Job::start(&*RealVfs::new(), "watch", move || {
            let (mut errors_seen, mut looks_asked) = (0, 0);
            while ended.recv_timeout(WATCH_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let errors = db.int_property(&family, "rocksdb.background-errors").unwrap_or(0);
                let lack = (errors > errors_seen).then(|| lack_of_space(&db)).flatten();
                errors_seen = errors;
                looks_asked += u32::from(interrupt.is_asked());
                if lack.is_some() || looks_asked > PATIENCE_LOOKS {
                    return Watched { lack, closed: db.close() };
                }
            }
            Watched { lack: None, closed: Ok(()) }
        });
        if let Err(error) = &job {
            note(&format!("a full disk, and Ctrl-C while the database waits, do not end this load: {error}"));
        }
        Watch { end, job: job.ok() }
    }

    /// Ends the watch and closes the database. If the watch closed it for lack of space, a `Closed` failure becomes
    /// `NoSpace`.
    pub fn close(self, loaded: Outcome, db: &Database) -> (Outcome, Result<()>) {
        drop(self.end);
        let Watched { lack, closed } = self.job.map_or(Watched { lack: None, closed: Ok(()) }, Job::wait);
        let loaded = match (loaded, lack) {
            (Err(Failure::Engine(error)), Some(lack)) if error.kind() == ErrorKind::Closed => Err(lack.into()),
            (loaded, _) => loaded,
        };
        (loaded, closed.and(db.close()))
    }
}

/// Returns the error if there is no space even after a retry.
fn lack_of_space(db: &Database) -> Option<Error> {
    db.resume().err().filter(|error| error.kind() == ErrorKind::NoSpace)
}
