//! Errors as RocksDB's texts: a status by which callers go, and a message for people.

use std::fmt;

use spillway::{Error, ErrorKind};

/// An error as C gets it.
#[derive(Clone)]
pub struct Failure {
    status: &'static str,
    message: String,
}

/// RocksDB's name for what a caller can do about an error, as its texts begin.
fn status(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::InvalidArgument => "Invalid argument",
        ErrorKind::Corruption => "Corruption",
        ErrorKind::Io | ErrorKind::ReadOnly => "IO error",
        ErrorKind::NoSpace => "IO error: No space left on device",
        ErrorKind::Conflict | ErrorKind::Busy => "Resource busy",
        ErrorKind::Closed => "Shutdown in progress",
        ErrorKind::Unsupported => "Not implemented",
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

    pub fn corruption(message: impl Into<String>) -> Failure {
        Failure::new(status(ErrorKind::Corruption), message)
    }

    /// A batch alone does not say what a key's value is.
    pub fn merge_in_progress(message: impl Into<String>) -> Failure {
        Failure::new("Merge in progress", message)
    }

    /// The caller asked not to be kept waiting, or set a limit that was reached.
    pub fn incomplete(message: impl Into<String>) -> Failure {
        Failure::new("Result incomplete", message)
    }

    /// Another process, or another handle, has the database.
    pub fn locked(message: impl Into<String>) -> Failure {
        Failure::new("IO error: lock", message)
    }

    pub fn aborted(message: impl Into<String>) -> Failure {
        Failure::new("Operation aborted", message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(status(error.kind()), error.to_string())
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.message)
    }
}
