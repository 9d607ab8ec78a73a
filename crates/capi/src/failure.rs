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

const LOCKED: &str = "IO error: lock";

const PATH_NOT_FOUND: &str = "IO error: No such file or directory";

/// Java's subcode for those that it has no name for.
const UNDEFINED: u8 = 0x7F;

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

/// RocksDB's numbers of a status: code and subcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    pub code: u8,
    pub subcode: u8,
}

const CODES: [(&str, Code); 18] = [
    ("NotFound", Code { code: 1, subcode: 0 }),
    ("Corruption", Code { code: 2, subcode: 0 }),
    ("Not implemented", Code { code: 3, subcode: 0 }),
    ("Invalid argument", Code { code: 4, subcode: 0 }),
    ("IO error", Code { code: 5, subcode: 0 }),
    (LOCKED, Code { code: 5, subcode: 0 }),
    ("IO error: No space left on device", Code { code: 5, subcode: 4 }),
    (PATH_NOT_FOUND, Code { code: 5, subcode: UNDEFINED }),
    ("Merge in progress", Code { code: 6, subcode: 0 }),
    (INCOMPLETE, Code { code: 7, subcode: 0 }),
    ("Shutdown in progress", Code { code: 8, subcode: 0 }),
    ("Operation timed out", Code { code: 9, subcode: 0 }),
    ("Operation aborted", Code { code: 10, subcode: 0 }),
    ("Operation aborted: Memory limit reached", Code { code: 10, subcode: 7 }),
    ("Resource busy", Code { code: 11, subcode: 0 }),
    ("Resource busy: Deadlock", Code { code: 11, subcode: 5 }),
    ("Operation expired", Code { code: 12, subcode: 0 }),
    ("Operation failed. Try again.", Code { code: 13, subcode: 0 }),
];

impl Failure {
    /// The numbers of the status.
    pub fn code(&self) -> Code {
        let known = CODES.iter().find(|(status, _)| *status == self.status);
        known.map_or(Code { code: 5, subcode: 0 }, |(_, code)| *code)
    }

    /// The message without the status.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// A different handle or process has the database open.
    pub fn is_lock(&self) -> bool {
        self.status == LOCKED
    }

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

    /// The caller's own limit of memory is reached.
    pub fn memory_limit(message: impl Into<String>) -> Failure {
        Failure::new(status(ErrorKind::MemoryLimit), message)
    }

    /// A different process or handle has the database open.
    pub fn locked(message: impl Into<String>) -> Failure {
        Failure::new(LOCKED, message)
    }

    /// A directory that is not there.
    pub fn path_not_found(message: impl Into<String>) -> Failure {
        Failure::new(PATH_NOT_FOUND, message)
    }

    /// The database, or its background work, was ended.
    pub fn shutdown(message: impl Into<String>) -> Failure {
        Failure::new(status(ErrorKind::Closed), message)
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
