//! Failures of a command, with messages for the user.

use std::collections::BTreeSet;
use std::error::Error as _;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use spillway::internal::ttl::WITHOUT_TIME;
use spillway::internal::version::file_name;
use spillway::internal::vfs::RealVfs;
use spillway::internal::{Database, Error, ErrorKind, shell};

use crate::interrupt::INTERRUPTED_STATUS;
use crate::json;
use crate::terminal::printable;

pub type Outcome<T = ()> = Result<T, Failure>;

pub enum Failure {
    Engine(Error),
    /// Standard output could not be written.
    Output(io::Error),
    /// The request is impossible; the text gives a remedy.
    Refused(String),
    /// A record of the input is malformed; the text says where and why.
    Malformed(String),
    /// Ctrl-C; the text describes the state of the work.
    Interrupted(String),
    /// Everything was printed already.
    Told,
}

/// Whether failures are printed as JSON (`--json`). Global, since a different thread reports Ctrl-C.
static AS_JSON: AtomicBool = AtomicBool::new(false);

/// Switches to JSON for failures.
pub fn tell_as_json() {
    AS_JSON.store(true, Ordering::Relaxed);
}

impl Failure {
    /// Prints the failure on standard error, as text or as a line of JSON. Prints nothing if it has no message.
    pub fn tell(&self) {
        let Some(message) = self.message() else { return };
        let line = match AS_JSON.load(Ordering::Relaxed) {
            true => json::line(&serde_json::json!({ "error": message, "status": self.status() })),
            false => format!("error: {}", printable(&message)),
        };
        // Fails on a closed terminal.
        let _ = writeln!(io::stderr(), "{line}");
    }

    pub fn refused(message: impl Into<String>) -> Failure {
        Failure::Refused(message.into())
    }

    pub fn message(&self) -> Option<String> {
        match self {
            Failure::Engine(error) => Some(explain(error)),
            Failure::Output(error) => Some(format!("cannot write to standard output: {error}")),
            Failure::Refused(message) | Failure::Malformed(message) => Some(message.clone()),
            Failure::Interrupted(so) => Some(format!("interrupted: {so}")),
            Failure::Told => None,
        }
    }

    /// Adds the state of the work to the failure.
    pub fn with(self, so: &str) -> Failure {
        match self {
            Failure::Malformed(what) => {
                Failure::Refused(format!("{what}; {so}\nhint: --skip-bad passes over such records and counts them"))
            }
            Failure::Interrupted(_) | Failure::Told => self,
            _ => Failure::Refused(format!("{}\n{so}", self.message().unwrap_or_default())),
        }
    }

    /// Exit status of the command.
    pub fn status(&self) -> u8 {
        if matches!(self, Failure::Interrupted(_)) { INTERRUPTED_STATUS } else { 1 }
    }
}

/// The error, its cause, and advice for its kind.
fn explain(error: &Error) -> String {
    let mut text = error.to_string();
    if let Some(source) = error.source() {
        let source = source.to_string();
        if !text.contains(&source) {
            let _ = write!(text, ": {source}");
        }
    }
    text.push_str(flags(&text));
    let in_database = error.path().is_none_or(is_in_database);
    let of_it = error.path().map(database_words).unwrap_or_default();
    let hint = match error.kind() {
        ErrorKind::Corruption if text.contains(WITHOUT_TIME) => {
            "`spillway scan --from KEY --limit 1` shows it as it is; `spillway put` writes it again, with a time"
                .to_owned()
        }
        ErrorKind::Corruption if in_database && text.contains("spillway repair") => {
            format!("`spillway check{of_it}` lists everything that is damaged")
        }
        ErrorKind::Corruption if in_database => format!(
            "`spillway check{of_it}` lists everything that is damaged; restore what it names from a copy, or keep what can be \
             read with `spillway repair{of_it}`"
        ),
        ErrorKind::NoSpace if in_database && !text.contains("is unfinished") => {
            "free space on that disk and try again; nothing that was acknowledged is lost".to_owned()
        }
        ErrorKind::NoSpace => "free space on that disk and try again".to_owned(),
        _ => return text,
    };
    let _ = write!(text, "\nhint: {hint}");
    text
}

/// The flag for the option that a message advises, or what helps against a lack.
fn flags(message: &str) -> &'static str {
    match message {
        _ if message.contains("ignore_unsupported_options") => {
            "\nhint: on the command line that is --ignore-unsupported-options"
        }
        _ if message.contains("adopt_rocksdb") => "\nhint: on the command line that is --adopt",
        _ if message.contains("cannot start the thread") && !message.contains("ulimit") => {
            "\nhint: raise the limit of threads (`ulimit -u`, LimitNPROC= of systemd, a container's pids limit)"
        }
        _ => "",
    }
}

/// Whether the file is a database's: CURRENT is beside it, or it is named like a WAL. WALs can have their own
/// directory. A backup's own files lie in `private/NUMBER`: no repair mends those.
fn is_in_database(path: &Path) -> bool {
    if path.parent().and_then(Path::parent).is_some_and(|dir| dir.ends_with("private")) {
        return false;
    }
    let is_log = || {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(file_name::parse).is_some_and(|(kind, _)| kind.is_log())
    };
    let beside = path.with_file_name("CURRENT");
    RealVfs::new().exists(&beside).unwrap_or(false) || is_log()
}

/// The words of a command that name the database of a file, if CURRENT is beside it: a command without them might work on
/// another one.
fn database_words(path: &Path) -> String {
    let dir = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
    let is_its = RealVfs::new().exists(&dir.join("CURRENT")).unwrap_or(false);
    if is_its { format!(" --db {}", shell::word(dir)) } else { String::new() }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Engine(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Output(error)
    }
}

/// Whether the command found damage, or opened a database that its recovery left in doubt.
static IN_DOUBT: AtomicBool = AtomicBool::new(false);

/// Has the command end with status 1, also if nobody reads its report to the end.
pub fn found_damage() {
    IN_DOUBT.store(true, Ordering::Relaxed);
}

/// Whether [`warn_of_doubts`] printed any, or [`found_damage`] was called.
pub fn is_in_doubt() -> bool {
    IN_DOUBT.load(Ordering::Relaxed)
}

/// Prints what the recovery of an opened database left in doubt. The command then ends with status 1.
pub fn warn_of_doubts(db: Database) -> Database {
    for doubt in db.recovery_doubts() {
        found_damage();
        warn(&format!("recovery left in doubt: {doubt}"));
    }
    db
}

/// Prints a warning, once.
pub fn warn(text: &str) {
    tell_once(&format!("warning: {}", printable(text)));
}

/// Prints a note on behaviour that the user may not expect, once.
pub fn note(text: &str) {
    tell_once(&format!("note: {}", printable(text)));
}

fn tell_once(line: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.insert(line.to_owned()) {
        let _ = writeln!(io::stderr(), "{line}"); // fails on a closed terminal
    }
}
