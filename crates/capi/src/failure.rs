//! Errors as RocksDB's texts: a status for callers, and a message for people.

use std::error::Error as _;
use std::{fmt, io};

use spillway::internal::backup::NO_BACKUP;
use spillway::internal::{
    Error, ErrorKind, FAMILY_DROPPED, LOCK_LIMIT, NOT_BOTTOMMOST, READING_REFUSAL, SECONDARY_REFUSAL, UNKNOWN_TAG,
};

/// An error as C gets it.
#[derive(Clone)]
pub struct Failure {
    status: &'static str,
    message: String,
}

/// Status of what the caller's own limits stopped.
const INCOMPLETE: &str = "Result incomplete";

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

/// Beginnings of the engine's messages whose status is not that of their kind.
const STATUSES: [(&str, &str); 7] = [
    (FAMILY_DROPPED, "Column family dropped"),
    (LOCK_LIMIT, "Operation aborted"),
    (NO_BACKUP, "NotFound"),
    (NOT_BOTTOMMOST, "Operation failed. Try again."),
    (READING_REFUSAL, "Not implemented"),
    (SECONDARY_REFUSAL, "Not implemented"),
    (UNKNOWN_TAG, "Corruption"),
];

/// What RocksDB says of failed calls of the system, by what the engine says.
const CALLS: [(&str, &str); 6] = [
    ("cannot append", "While appending to file"),
    ("cannot create", "While open a file for appending"),
    ("cannot create directory", "While mkdir if missing"),
    ("cannot examine", "while stat a file for size"),
    ("cannot open", "While open a file for random read"),
    ("cannot open the lock file", "while open a file for lock"),
];

/// RocksDB's numbers of a status: code and subcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    pub code: u8,
    pub subcode: u8,
}

const CODES: [(&str, Code); 20] = [
    ("NotFound", Code { code: 1, subcode: 0 }),
    ("Corruption", Code { code: 2, subcode: 0 }),
    ("Not implemented", Code { code: 3, subcode: 0 }),
    ("Invalid argument", Code { code: 4, subcode: 0 }),
    ("IO error", Code { code: 5, subcode: 0 }),
    ("IO error: No space left on device", Code { code: 5, subcode: 4 }),
    (PATH_NOT_FOUND, Code { code: 5, subcode: UNDEFINED }),
    ("Merge in progress", Code { code: 6, subcode: 0 }),
    (INCOMPLETE, Code { code: 7, subcode: 0 }),
    ("Shutdown in progress", Code { code: 8, subcode: 0 }),
    ("Operation timed out", Code { code: 9, subcode: 0 }),
    ("Operation timed out: Timeout waiting to lock key", Code { code: 9, subcode: 2 }),
    ("Operation aborted", Code { code: 10, subcode: 0 }),
    ("Operation aborted: Failed to acquire lock due to max_num_locks limit", Code { code: 10, subcode: 3 }),
    ("Operation aborted: Memory limit reached", Code { code: 10, subcode: 7 }),
    ("Resource busy", Code { code: 11, subcode: 0 }),
    ("Resource busy: Deadlock", Code { code: 11, subcode: 5 }),
    ("Operation expired", Code { code: 12, subcode: 0 }),
    ("Column family dropped", Code { code: UNDEFINED, subcode: 0 }),
    ("Operation failed. Try again.", Code { code: 13, subcode: 0 }),
];

impl Failure {
    /// The numbers of the status.
    pub fn code(&self) -> Code {
        let text = self.to_string();
        let known = CODES.iter().filter(|(beginning, _)| text.starts_with(beginning));
        let known = known.max_by_key(|(beginning, _)| beginning.len());
        known.map_or(Code { code: 5, subcode: 0 }, |(_, code)| *code)
    }

    /// The message without the status.
    pub fn message(&self) -> &str {
        &self.message
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

    pub fn io(message: impl Into<String>) -> Failure {
        Failure::new("IO error", message)
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
        if let Some((_, status)) = STATUSES.iter().find(|(beginning, _)| error.message().starts_with(beginning)) {
            let message = error.to_string();
            let after = message.strip_prefix(FAMILY_DROPPED); // its status says the same
            return Failure::new(status, after.unwrap_or(&message));
        }
        if let Some(failure) = of_call(&error) {
            return failure;
        }
        let message = match error.kind() {
            ErrorKind::MemoryLimit => format!("Insert failed due to LRU cache being full. Here {error}"),
            ErrorKind::NotLogged => format!("Gap in sequence numbers. Here {error}"),
            _ => error.to_string(),
        };
        Failure::new(status(error.kind()), message)
    }
}

/// RocksDB's text for a failed call of the system; `None` for other errors. Advice of the engine's stays behind it.
fn of_call(error: &Error) -> Option<Failure> {
    let cause = error.source()?.downcast_ref::<io::Error>()?;
    let path = error.path()?;
    let (doing, advice) = error.message().split_once("; ").unwrap_or((error.message(), ""));
    let (_, call) = CALLS.iter().find(|(ours, _)| *ours == doing)?;
    let reason = cause.to_string();
    let reason = reason.split(" (os error").next().unwrap_or_default();
    let shown = path.display();
    let is_list =
        path.file_name().is_some_and(|name| name == "CURRENT" || name.as_encoded_bytes().starts_with(b"MANIFEST-"));
    let mut text = match *call {
        "While mkdir if missing" if cause.kind() == io::ErrorKind::AlreadyExists => {
            format!("`{shown}' exists but is not a directory")
        }
        "While open a file for random read" if is_list => {
            format!("While opening a file for sequentially reading: {shown}: {reason}")
        }
        call if path.as_os_str().is_empty() => format!("{call}: {reason}"),
        call => format!("{call}: {shown}: {reason}"),
    };
    if !advice.is_empty() {
        text = format!("{text}; {advice}");
    }
    let status = if error.is_not_found() { PATH_NOT_FOUND } else { status(error.kind()) };
    Some(Failure::new(status, text))
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.message)
    }
}
