//! Why a command failed, as its user is told.

use std::error::Error as _;
use std::fmt::Write;
use std::io;

use spillway::{Error, ErrorKind};

pub type Outcome<T = ()> = Result<T, Failure>;

pub enum Failure {
    Engine(Error),
    /// Standard output could not be written.
    Output(io::Error),
    /// What was asked for cannot be done; the text says what to do.
    Refused(String),
    /// Everything there is to say was printed already.
    Told,
}

impl Failure {
    pub fn refused(message: impl Into<String>) -> Failure {
        Failure::Refused(message.into())
    }

    pub fn message(&self) -> Option<String> {
        match self {
            Failure::Engine(error) => Some(explain(error)),
            Failure::Output(error) => Some(format!("cannot write to standard output: {error}")),
            Failure::Refused(message) => Some(message.clone()),
            Failure::Told => None,
        }
    }
}

/// The error, its cause, and what to do about errors of its kind.
fn explain(error: &Error) -> String {
    let mut text = error.to_string();
    if let Some(source) = error.source() {
        let source = source.to_string();
        if !text.contains(&source) {
            let _ = write!(text, ": {source}");
        }
    }
    let hint = match error.kind() {
        ErrorKind::Corruption => "`spillway check` lists everything that is damaged; restore what it names from a copy",
        ErrorKind::NoSpace => "free space on that disk and try again; nothing that was acknowledged is lost",
        _ => return text,
    };
    let _ = write!(text, "\nhint: {hint}");
    text
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
