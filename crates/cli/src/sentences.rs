//! The engine's messages on standard error: one sentence each, in the form of the command's own warnings.

use std::fmt;

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use crate::terminal::printable;

/// Fields whose values end the sentence. All others are named behind it.
const TAILS: [&str; 4] = ["error", "warning", "text", "line"];

/// Writes `warning: MESSAGE: ERROR (FIELD VALUE, ...)`.
pub struct Sentences;

impl<S, N> FormatEvent<S, N> for Sentences
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let label = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "info",
            Level::DEBUG => "debug",
            Level::TRACE => "trace",
        };
        let mut sentence = Sentence::default();
        event.record(&mut sentence);
        writeln!(writer, "{label}: {}", printable(&sentence.text()))
    }
}

/// The parts of an event.
#[derive(Default)]
struct Sentence {
    message: String,
    tail: String,
    named: String,
}

impl Sentence {
    fn text(&self) -> String {
        let named = match self.named.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.named),
        };
        format!("{}{}{named}", self.message, self.tail)
    }

    fn take(&mut self, name: &str, value: &str) {
        if name == "message" {
            self.message.push_str(value);
        } else if TAILS.contains(&name) {
            self.tail.push_str(": ");
            self.tail.push_str(value);
        } else {
            let comma = if self.named.is_empty() { "" } else { ", " };
            self.named.push_str(&format!("{comma}{} {value}", name.replace('_', " ")));
        }
    }
}

impl Visit for Sentence {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field.name(), &format!("{value:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_a_sentence_with_its_cause_and_its_places() {
        let mut sentence = Sentence::default();
        sentence.take("message", "left alone: a log of another database");
        sentence.take("file_name", "000004.splog");
        sentence.take("dir", "/db");
        assert_eq!(sentence.text(), "left alone: a log of another database (file name 000004.splog, dir /db)");
        let mut sentence = Sentence::default();
        sentence.take("error", "CURRENT is missing");
        sentence.take("message", "the logs are salvaged");
        assert_eq!(sentence.text(), "the logs are salvaged: CURRENT is missing");
    }
}
