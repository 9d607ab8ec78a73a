//! `rocksdb_logger_t`: receives the event log's lines in place of the file.

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use spillway::internal::extend;
use spillway::internal::options::InfoLogLevel;

use crate::boundary::callback::{Log, State, StatePointer};
use crate::boundary::{export, handles};

/// A handle of a logger. The logger lives until the last database opened with it is closed.
#[derive(Clone)]
pub struct Logger(pub Arc<dyn extend::Logger>);

handles!(Logger);

struct ToStderr {
    level: InfoLogLevel,
    prefix: String,
}

impl extend::Logger for ToStderr {
    fn level(&self) -> InfoLogLevel {
        self.level
    }

    fn log(&self, _level: InfoLogLevel, line: &str) {
        let space = if self.prefix.is_empty() { "" } else { " " };
        eprintln!("{}{space}{line}", self.prefix);
    }
}

struct ToCallback {
    level: InfoLogLevel,
    log: Log,
    state: State,
}

impl extend::Logger for ToCallback {
    fn level(&self) -> InfoLogLevel {
        self.level
    }

    fn log(&self, level: InfoLogLevel, line: &str) {
        self.log.call(&self.state, level.number(), line);
    }
}

/// The level of a number; above the highest, the level with the fewest lines.
fn level(number: c_int) -> InfoLogLevel {
    u8::try_from(number.max(0)).ok().and_then(InfoLogLevel::from_number).unwrap_or(InfoLogLevel::Header)
}

export! {
    fn rocksdb_logger_create_stderr_logger(level_number: c_int, prefix: Option<&CStr>) -> Box<Logger> {
        let prefix = prefix.map_or_else(String::new, |prefix| prefix.to_string_lossy().into_owned());
        Box::new(Logger(Arc::new(ToStderr { level: level(level_number), prefix })))
    }

    /// The function gets a line without a zero byte, and its length; the state stays the caller's.
    fn rocksdb_logger_create_callback_logger(level_number: c_int, log: Log, state: StatePointer) -> Box<Logger> {
        Box::new(Logger(Arc::new(ToCallback { level: level(level_number), log, state: State::borrowed(state) })))
    }

    fn rocksdb_logger_destroy(logger: Option<Box<Logger>>) {
        drop(logger);
    }
}
