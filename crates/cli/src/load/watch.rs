//! A write waits for as long as flushes find no space on the disk. Whoever loads is told instead: the database is closed,
//! which ends such waits, when the disk is full, or when Ctrl-C does not end them soon.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use spillway::vfs::RealVfs;
use spillway::{Db, Error, ErrorKind, Family, Result};

use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::threads::Job;

/// Between two looks.
const WATCH_INTERVAL: Duration = Duration::from_millis(100);

/// Looks until a load that Ctrl-C asked to end is taken to wait for the database. It ends between two batches else.
const PATIENCE_LOOKS: u32 = 10;

/// A thread that looks at a load's database from time to time.
pub struct Watch {
    /// Nothing is sent: the thread ends when this is dropped.
    end: mpsc::Sender<()>,
    job: Job<Watched>,
}

/// What a watch did.
struct Watched {
    /// What found no space, where it closed the database for that.
    lack: Option<Error>,
    /// How that ended.
    closed: Result<()>,
}

impl Watch {
    pub fn begin(db: Arc<Db>, family: Arc<Family>, interrupt: Interrupt) -> Outcome<Watch> {
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
        })?;
        Ok(Watch { end, job })
    }

    /// Ends the watch, and closes the database. What failed because that was closed before fails with the reason.
    pub fn close(self, loaded: Outcome, db: &Db) -> (Outcome, Result<()>) {
        drop(self.end);
        let Watched { lack, closed } = self.job.wait();
        let loaded = match (loaded, lack) {
            (Err(Failure::Engine(error)), Some(lack)) if error.kind() == ErrorKind::Closed => Err(lack.into()),
            (loaded, _) => loaded,
        };
        (loaded, closed.and(db.close()))
    }
}

/// What finds no space, even when it is tried again.
fn lack_of_space(db: &Db) -> Option<Error> {
    db.resume().err().filter(|error| error.kind() == ErrorKind::NoSpace)
}
