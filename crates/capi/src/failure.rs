//! Errors as RocksDB's texts: a status for callers, and a message for people.

use std::fmt;

use spillway::internal::{Error, ErrorKind, SECONDARY_REFUSAL};

/// An error as C gets it.
#[derive(Clone)]
pub struct Failure {
    status: &'static str,
    message: String,
}

/// Status of what the caller's own limits stopped.
const INCOMPLETE: &str = "Result incomplete";

/// RocksDB's status of an error, the start of its texts.
fn status(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidArgument => "Invalid argument",
        ErrorKind::Corruption => "Corruption",
        ErrorKind::NoSpace => "IO error: No space left on device",
        ErrorKind::Conflict | ErrorKind::Busy => "Resource busy",
        ErrorKind::TimedOut => "Operation timed out",
        ErrorKind::Deadlock => "Resource busy: Deadlock",
        ErrorKind::Expired => "Operation expired",
        ErrorKind::Closed => "Shutdown in progress",
        ErrorKind::Unsupported => "Not implemented",
        ErrorKind::Incomplete => INCOMPLETE,
        ErrorKind::MemoryLimit => "Operation aborted: Memory limit reached",
        ErrorKind::NotLogged => "NotFound",
        // `Io`, `ReadOnly`.
        _ => "IO error",
    }
}

impl Failure {
    fn new(status: &'static str, message: impl Into<String>) -> Failure {
        Failure { status, message: message.into() }
    }

    pub fn invalid_argument(message: impl Into<String>) -> Failure {
        Failure::new(status(ErrorKind::InvalidArgument), message)
    }

    pub fn not_implemented(message: impl Into<String>) -> Failure {
        Failure::new(status(ErrorKind::Unsupported), message)
    }

    pub fn not_found(message: impl Into<String>) -> Failure {
        Failure::new("NotFound", message)
    }

    /// A key's value cannot be told from the batch alone.
    pub fn merge_in_progress(message: impl Into<String>) -> Failure {
        Failure::new("Merge in progress", message)
    }

    /// The caller forbade waiting, or its limit was reached.
    pub fn incomplete(message: impl Into<String>) -> Failure {
        Failure::new(INCOMPLETE, message)
    }

    /// A different process or handle has the database open.
    pub fn locked(message: impl Into<String>) -> Failure {
        Failure::new("IO error: lock", message)
    }

    pub fn aborted(message: impl Into<String>) -> Failure {
        Failure::new("Operation aborted", message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        if error.message().starts_with(SECONDARY_REFUSAL) {
            return Failure::not_implemented(error.to_string());
        }
        let message = match error.kind() {
            ErrorKind::MemoryLimit => format!("Insert failed due to LRU cache being full. Here {error}"),
            ErrorKind::NotLogged => format!("Gap in sequence numbers. Here {error}"),
            _ => error.to_string(),
        };
        Failure::new(status(error.kind()), message)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.message)
    }
}
