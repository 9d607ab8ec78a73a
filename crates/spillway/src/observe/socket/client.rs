//! The asking side.

use std::path::{Path, PathBuf};

use base::{Error, ErrorKind, Result};
use vfs::LocalStream;

use super::{ANSWER_BYTES_MAX, ANSWER_TIME_MAX, Answer, OptionChange, Request, SOCKET_NAME};
use crate::observe::events::ObservedEvents;
use crate::observe::observation::Observation;

/// A client of a live database's socket, in this process or another of the same user.
#[derive(Debug)]
pub struct Attached {
    stream: LocalStream,
    dir: PathBuf,
}

impl Attached {
    /// Connects to the process that has the database in `dir` open.
    ///
    /// # Errors
    /// `Unsupported`: there is no socket, and the message says how to have one. `Busy`: the process that made the socket
    /// has died. `Io`, such as a lack of permission.
    pub fn connect(dir: impl AsRef<Path>) -> Result<Attached> {
        let dir = dir.as_ref();
        match LocalStream::connect(&dir.join(SOCKET_NAME)) {
            Ok(stream) => Ok(Attached { stream, dir: dir.to_owned() }),
            Err(error) if error.is_not_found() => Err(Error::unsupported(
                "no process serves observations of this database: a program that opens it with the option \
                 observe_socket=true does",
            )
            .at_path(dir)),
            Err(error) if error.kind() == ErrorKind::Busy => {
                Err(error
                    .context("the process that had the database open has died; its next open makes the socket anew"))
            }
            Err(error) => Err(error),
        }
    }

    /// A reading.
    ///
    /// # Errors
    /// `Closed`: the database is closed, or its process has gone. `Io`: no answer in time. `Busy`: too many clients.
    pub fn observe(&mut self) -> Result<Observation> {
        match self.ask(&Request::Observation)? {
            Answer::Observation(observation) => Ok(*observation),
            _ => Err(self.other_answer()),
        }
    }

    /// The OpenMetrics text of a reading.
    ///
    /// # Errors
    /// As of [`observe`](Self::observe).
    pub fn metrics(&mut self) -> Result<String> {
        match self.ask(&Request::Metrics)? {
            Answer::Metrics(text) => Ok(text),
            _ => Err(self.other_answer()),
        }
    }

    /// The events after a number: 0 at first, then [`ObservedEvents::last`].
    ///
    /// # Errors
    /// As of [`observe`](Self::observe).
    pub fn events(&mut self, since: u64) -> Result<ObservedEvents> {
        match self.ask(&Request::Events(since))? {
            Answer::Events(events) => Ok(events),
            _ => Err(self.other_answer()),
        }
    }

    /// Changes an option: the database's of this name, else the family's, the default one if `None`.
    ///
    /// # Errors
    /// `InvalidArgument`: refused, with the reason: the database was opened without `observe_changes`, or the option cannot
    /// change, or not to this value.
    pub fn set(&mut self, family: Option<&str>, name: &str, value: &str) -> Result<()> {
        let change = OptionChange { family: family.map(str::to_owned), name: name.to_owned(), value: value.to_owned() };
        match self.ask(&Request::Set(change))? {
            Answer::Done => Ok(()),
            _ => Err(self.other_answer()),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<Answer> {
        let sent = self.stream.write_line(&request.line(), ANSWER_TIME_MAX);
        // A refused client may find its answer before it has asked.
        let line = match (self.stream.read_line(ANSWER_BYTES_MAX, ANSWER_TIME_MAX), sent) {
            (Ok(Some(line)), _) => line,
            (Ok(None), _) | (_, Err(_)) => return Err(self.gone()),
            (Err(error), Ok(())) => return Err(error),
        };
        match serde_json::from_str(&line) {
            Ok(Answer::Error(text)) => Err(Error::invalid_argument(text).at_path(&self.dir)),
            Ok(answer) => Ok(answer),
            Err(_) => Err(self.other_answer()),
        }
    }

    fn gone(&self) -> Error {
        Error::closed("the database was closed, or its process has gone").at_path(&self.dir)
    }

    fn other_answer(&self) -> Error {
        Error::unsupported("the socket's process is of another version, and its answer is not understood")
            .at_path(&self.dir)
    }
}
