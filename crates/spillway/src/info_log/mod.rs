//! The event log: a record of the database's work for people, with RocksDB's path (`LOG`) and form; or a caller's
//! logger.
//!
//! Lines may be queued under any lock; upkeep writes them with no lock held. If there is no upkeep thread, the caller's
//! thread writes them. Failed writes do no harm.
//!
//! There is no file if the database is read-only, or if background work runs inline: such a run is counted by its
//! operations. A logger is called there too.

use std::cell::RefCell;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use base::note::{self, Sink};
use base::options::{DbOptions, InfoLogLevel};
use parking_lot::{Mutex, ReentrantMutex};
use vfs::Vfs;

use crate::background::caught::caught_panic;
use crate::background::{Signal, as_away};
use crate::info_log::file::LogFile;
pub(crate) use crate::info_log::line::date_and_time;
use crate::info_log::line::{Line, thread_number};

mod file;
mod line;
pub(crate) mod names;
#[cfg(test)]
mod tests;

/// Limit on queued lines; lines beyond it are only counted.
const WAITING_MAX: usize = 4096;

pub struct InfoLog {
    vfs: Arc<dyn Vfs>,
    least: Least,
    /// A leaf lock.
    waiting: Mutex<Waiting>,
    /// Held while lines are written; never acquired under a different lock. A logger may call the database, and so
    /// re-enter `write_out`.
    target: ReentrantMutex<RefCell<Target>>,
    /// The upkeep thread, if there is one.
    writer: OnceLock<Arc<Signal>>,
}

/// The lowest level of lines that are wanted.
enum Least {
    /// There is neither file nor logger.
    Nothing,
    Fixed(InfoLogLevel),
    /// A logger may change its level at any time.
    OfLogger(Arc<dyn base::extend::Logger>),
}

#[derive(Default)]
struct Waiting {
    lines: Vec<Line>,
    left_out: usize,
}

enum Target {
    Nobody,
    Logger(Arc<dyn base::extend::Logger>),
    File(Box<LogFile>),
}

impl InfoLog {
    /// The event log of the database in `dir`. The file is made at the first line.
    pub(crate) fn new(vfs: &Arc<dyn Vfs>, dir: &Path, options: &DbOptions, read_only: bool) -> Arc<InfoLog> {
        let (target, least) = match &options.info_log {
            Some(logger) => (Target::Logger(logger.clone()), Least::OfLogger(logger.clone())),
            None if read_only || vfs.runs_inline() => (Target::Nobody, Least::Nothing),
            None => {
                let file = LogFile::new(vfs.clone(), dir, options);
                (Target::File(Box::new(file)), Least::Fixed(options.info_log_level))
            }
        };
        Arc::new(InfoLog {
            vfs: vfs.clone(),
            least,
            waiting: Mutex::default(),
            target: ReentrantMutex::new(RefCell::new(target)),
            writer: OnceLock::new(),
        })
    }

    /// From now on an upkeep thread writes the lines.
    pub(crate) fn written_by(&self, upkeep: Arc<Signal>) {
        let _ = self.writer.set(upkeep); // already set
    }

    /// Writes the queued lines. Called with no lock held.
    pub(crate) fn write_out(&self) {
        if matches!(self.least, Least::Nothing) {
            return;
        }
        let target = self.target.lock();
        let Ok(mut target) = target.try_borrow_mut() else { return }; // called by a logger: the outer call goes on
        loop {
            let waiting = std::mem::take(&mut *self.waiting.lock());
            if waiting.lines.is_empty() {
                break;
            }
            let mut lines = waiting.lines;
            if waiting.left_out > 0 {
                let text = format!("{} lines are left out: they came faster than they were written", waiting.left_out);
                lines.push(self.line(InfoLogLevel::Warn, text));
            }
            target.take(&lines, self.vfs.unix_time_us());
        }
    }

    /// Writes no file: the directory stays as it was. A logger is still called.
    pub(crate) fn leave_no_file(&self) {
        let target = self.target.lock();
        let Ok(mut target) = target.try_borrow_mut() else { return };
        if matches!(*target, Target::File(_)) {
            *target = Target::Nobody;
        }
    }

    fn line(&self, level: InfoLogLevel, text: String) -> Line {
        let thread = if self.vfs.runs_inline() { 0 } else { thread_number() };
        Line { time_us: self.vfs.unix_time_us(), thread, level, text }
    }
}

impl Sink for InfoLog {
    fn takes(&self, level: InfoLogLevel) -> bool {
        match &self.least {
            Least::Nothing => false,
            Least::Fixed(least) => level >= *least,
            Least::OfLogger(logger) => level >= logger.level(),
        }
    }

    fn take(&self, level: InfoLogLevel, text: String) {
        let line = self.line(level, text);
        let mut waiting = self.waiting.lock();
        if waiting.lines.len() >= WAITING_MAX {
            waiting.left_out += 1;
            return;
        }
        waiting.lines.push(line);
        let is_first = waiting.lines.len() == 1;
        drop(waiting);
        if is_first && let Some(upkeep) = self.writer.get() {
            upkeep.raise_soon();
        }
    }
}

impl Target {
    fn take(&mut self, lines: &[Line], now_us: u64) {
        match self {
            Target::Nobody => {}
            Target::Logger(logger) => {
                let tell = || as_away(|| lines.iter().for_each(|line| logger.log(line.level, &line.text)));
                if let Err(error) = caught_panic("a logger", tell) {
                    tracing::error!(%error, "the database goes on");
                }
            }
            Target::File(file) => file.write(lines, now_us),
        }
    }
}

/// While it lives, the thread's notes go to a database's event log.
pub(crate) struct Noting<'a> {
    scope: Option<note::Scope>,
    log: &'a InfoLog,
}

impl<'a> Noting<'a> {
    pub(crate) fn new(scope: note::Scope, log: &'a InfoLog) -> Self {
        Noting { scope: Some(scope), log }
    }
}

impl Drop for Noting<'_> {
    fn drop(&mut self) {
        drop(self.scope.take());
        if self.log.writer.get().is_none() {
            self.log.write_out();
        }
    }
}
