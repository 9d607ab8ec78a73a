//! Events in words.

use serde::Serialize;
use spillway::observe::{ObservedEvent, ObservedEventKind};

use crate::units::{Bytes, Micros};

/// An event as it is shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Told {
    /// Its number.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// How long it took, in milliseconds: it began so much earlier.
    pub duration_ms: u64,
    /// Its kind, such as `flush`.
    pub kind: &'static str,
    /// The rest.
    pub text: String,
}

impl Told {
    /// Tells an event.
    pub fn of(event: &ObservedEvent) -> Told {
        Told {
            number: event.number,
            unix_ms: event.unix_time_us / 1000,
            duration_ms: event.duration_us.unwrap_or(0) / 1000,
            kind: kind(event.kind),
            text: text(event),
        }
    }
}

fn kind(kind: ObservedEventKind) -> &'static str {
    match kind {
        ObservedEventKind::Flush => "flush",
        ObservedEventKind::Compaction => "compaction",
        ObservedEventKind::Ingest => "ingest",
        ObservedEventKind::Placed => "placed",
        ObservedEventKind::StallBegun => "stall begins",
        ObservedEventKind::StallEnded => "stall ends",
        ObservedEventKind::SlowWrite => "slow write",
        ObservedEventKind::BackgroundError => "error",
        ObservedEventKind::RecoveryBegun => "disk is full",
        ObservedEventKind::RecoveryEnded => "space again",
        _ => "event",
    }
}

fn text(event: &ObservedEvent) -> String {
    let mut parts = Vec::new();
    parts.extend(event.family.as_ref().map(|family| format!("family {family}")));
    parts.extend(
        event.tables.map(|tables| if tables == 1 { "1 table".to_string() } else { format!("{tables} tables") }),
    );
    parts.extend(event.bytes.map(|bytes| Bytes(bytes).to_string()));
    parts.extend(event.level.map(|level| format!("level {level}")));
    parts.extend(event.duration_us.map(|us| format!("took {}", Micros(us))));
    parts.extend(event.detail.as_deref().map(|detail| match event.kind {
        ObservedEventKind::Flush => way(detail).to_owned(),
        _ => detail.to_owned(),
    }));
    let mut slow: Vec<_> = event.parts.iter().filter(|part| part.micros > 0).collect();
    slow.sort_by_key(|part| std::cmp::Reverse(part.micros));
    parts.extend(slow.iter().map(|part| format!("{} {}", part.name, Micros(part.micros))));
    parts.join(", ")
}

/// What a flush did with its memtables, by its name of [`FlushWay`](spillway::extend::FlushWay).
fn way(name: &str) -> &str {
    match name {
        "rewrite" => "entries written to a new table",
        "convert" => "the memtable's memory became the table",
        "link" => "ingested tables got their levels",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use spillway::extend::FlushWay;
    use spillway::observe::ObservedPart;

    use super::*;

    #[test]
    fn a_slow_write_says_where_its_time_went() {
        let part = |name: &str, micros| {
            let mut part = ObservedPart::default();
            (part.name, part.micros) = (name.into(), micros);
            part
        };
        let mut event = ObservedEvent::default();
        (event.number, event.unix_time_us, event.kind) = (3, 5_000_000, ObservedEventKind::SlowWrite);
        (event.bytes, event.duration_us) = (Some(2048), Some(12_000));
        event.parts = vec![part("log", 2_000), part("insert", 0), part("l0-file-count", 10_000)];
        let told = Told::of(&event);
        assert_eq!((told.kind, told.unix_ms, told.duration_ms), ("slow write", 5_000, 12));
        assert_eq!(told.text, "2.0 KiB, took 12.0 ms, l0-file-count 10.0 ms, log 2.0 ms");
    }

    #[test]
    fn a_flush_says_what_it_did_and_how_long_it_took() {
        let mut event = ObservedEvent::default();
        (event.kind, event.tables, event.bytes) = (ObservedEventKind::Flush, Some(1), Some(1 << 20));
        event.duration_us = Some(3_000);
        for way in [FlushWay::Rewrite, FlushWay::Convert, FlushWay::Link] {
            event.detail = Some(way.name().to_owned());
            let text = Told::of(&event).text;
            assert!(text.starts_with("1 table, 1.0 MiB, took 3.0 ms, ") && !text.ends_with(way.name()), "{text}");
        }
    }
}
