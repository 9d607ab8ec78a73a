//! The socket of a live database, `OBSERVE.sock` in its directory: a line of text asks, a line of JSON answers.
//!
//! | request | answer |
//! |---|---|
//! | `observation` | `{"observation": ...}`, an [`Observation`] |
//! | `metrics` | `{"metrics": "..."}`, OpenMetrics text |
//! | `events N` | `{"events": ...}`, [`ObservedEvents`] after number N |
//! | `set NAME VALUE`, `set {"family": F, "name": N, "value": V}` | `"done"`; refused without `observe_changes` |
//! | any other, or a failure | `{"error": "..."}` |
//!
//! Names of options are first the database's, then those of the family, the default one if none is named. Nothing here can
//! make an open or a close fail or wait.

mod client;
mod server;
#[cfg(test)]
mod tests;

use std::time::Duration;

use base::{Error, Result};

pub use self::client::Attached;
pub(crate) use self::server::{Served, Server};
use super::events::ObservedEvents;
use super::observation::Observation;

/// The socket's name in the database's directory.
pub const SOCKET_NAME: &str = "OBSERVE.sock";

/// Clients at a time; one more is refused.
pub const CLIENTS_MAX: usize = 16;

/// Longest request.
const REQUEST_BYTES_MAX: usize = 4 << 10;

/// Longest answer that a client takes.
const ANSWER_BYTES_MAX: usize = 256 << 20;

/// A client without a request for so long is let go.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// A client that does not read its answer within this time is let go.
const WRITE_TIME_MAX: Duration = Duration::from_secs(5);

/// A client waits so long for an answer.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);

/// A change of an option.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct OptionChange {
    #[serde(default)]
    pub family: Option<String>,
    pub name: String,
    pub value: String,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Request {
    Observation,
    Metrics,
    Events(u64),
    Set(OptionChange),
}

/// An answer.
#[derive(serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Observation(Box<Observation>),
    Metrics(String),
    Events(ObservedEvents),
    Done,
    Error(String),
}

impl Request {
    fn parse(line: &str) -> Result<Request> {
        let (word, rest) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        match (word, rest.trim()) {
            ("observation", "") => Ok(Request::Observation),
            ("metrics", "") => Ok(Request::Metrics),
            ("events", since) => {
                let not_one = || Error::invalid_argument(format!("events: {since:?} is no number of an event"));
                since.parse().map(Request::Events).map_err(|_| not_one())
            }
            ("set", change) => OptionChange::parse(change).map(Request::Set),
            _ => Err(Error::invalid_argument(format!(
                "{word:?} is no request: there are observation, metrics, events NUMBER, set NAME VALUE"
            ))),
        }
    }

    fn line(&self) -> String {
        match self {
            Request::Observation => "observation".to_owned(),
            Request::Metrics => "metrics".to_owned(),
            Request::Events(since) => format!("events {since}"),
            Request::Set(change) => format!("set {}", serde_json::to_string(change).unwrap_or_default()),
        }
    }
}

impl OptionChange {
    fn parse(text: &str) -> Result<OptionChange> {
        if text.starts_with('{') {
            return serde_json::from_str(text).map_err(|error| Error::invalid_argument(format!("set: {error}")));
        }
        let (name, value) =
            text.split_once(' ').ok_or_else(|| Error::invalid_argument("set: NAME VALUE is missing"))?;
        Ok(OptionChange { family: None, name: name.to_owned(), value: value.trim().to_owned() })
    }
}
