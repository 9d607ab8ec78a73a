//! The latest events of a database: a bounded ring, told by number.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use base::extend::Event;
use parking_lot::Mutex;

use super::observation::{plain, plain_choice};

/// Most events kept.
pub const EVENTS_MAX: usize = 1024;

plain_choice! {
    /// A kind of event.
    pub enum ObservedEventKind {
        /// A flush made a table.
        #[default]
        Flush,
        /// A compaction has ended.
        Compaction,
        /// Tables were ingested.
        Ingest,
        /// An ingested table was given a level.
        Placed,
        /// Writers of a family are slowed down or stopped.
        StallBegun,
        /// They go freely again.
        StallEnded,
        /// A write took longer than `slow_operation_micros`.
        SlowWrite,
        /// A job failed.
        BackgroundError,
        /// Work waits for disk space.
        RecoveryBegun,
        /// There is space again.
        RecoveryEnded,
    }
}

plain! {
    /// An event.
    pub struct ObservedEvent {
        /// Its number, from 1 on.
        pub number: u64,
        /// When it was told, in microseconds since 1970.
        pub unix_time_us: u64,
        /// Its kind.
        pub kind: ObservedEventKind,
        /// The family, if it is of one.
        pub family: Option<String>,
        /// How long it took, if it took time.
        pub duration_us: Option<u64>,
        /// Bytes of new tables, or of the write.
        pub bytes: Option<u64>,
        /// Tables made or brought.
        pub tables: Option<u64>,
        /// Level of the new tables.
        pub level: Option<u32>,
        /// A stall's cause, an error's text, the way of a flush.
        pub detail: Option<String>,
        /// Where the time of a slow write went.
        pub parts: Vec<ObservedPart>,
        /// The trace that a slow write's thread worked for ([`in_trace`](super::in_trace)).
        pub trace_id: Option<String>,
    }

    /// A part of a slow write.
    pub struct ObservedPart {
        /// `lock`, `log`, `insert`, `publish`, `sync`; before these `own-log` and `index` of a large batch; or a stall's
        /// cause for a wait.
        pub name: String,
        /// Its time in microseconds.
        pub micros: u64,
    }

    /// Events after a number.
    pub struct ObservedEvents {
        /// The events, oldest first.
        pub events: Vec<ObservedEvent>,
        /// Ask for those after this number next.
        pub last: u64,
        /// Events after the number asked for that the ring no longer has.
        pub missed: u64,
    }
}

/// The ring. Its lock is a leaf.
#[derive(Default)]
pub(crate) struct EventRing {
    ring: Mutex<VecDeque<ObservedEvent>>,
    told: AtomicU64,
}

impl EventRing {
    /// Keeps an event, numbered here. The oldest one goes if the ring is full.
    pub fn keep(&self, event: ObservedEvent) {
        let mut ring = self.ring.lock();
        if ring.len() == EVENTS_MAX {
            ring.pop_front();
        }
        let number = 1 + self.told.fetch_add(1, Ordering::Relaxed);
        ring.push_back(ObservedEvent { number, ..event });
    }

    /// The events after the number `since`.
    pub fn since(&self, since: u64) -> ObservedEvents {
        let ring = self.ring.lock();
        let events: Vec<_> = ring.iter().filter(|event| event.number > since).cloned().collect();
        let last = self.told.load(Ordering::Relaxed);
        let missed = last.saturating_sub(since).saturating_sub(events.len() as u64);
        ObservedEvents { events, last, missed }
    }
}

impl ObservedEvent {
    /// `None` for events of no interest here: beginnings, and single files.
    pub(crate) fn of(event: &Event, unix_time_us: u64) -> Option<ObservedEvent> {
        let mut seen = ObservedEvent { unix_time_us, ..ObservedEvent::default() };
        match event {
            Event::FlushEnd { family, bytes, duration_us, way, .. } => {
                seen.is(ObservedEventKind::Flush, family).made(1, *bytes, 0);
                (seen.duration_us, seen.detail) = (Some(*duration_us), Some(way.name().to_owned()));
            }
            Event::CompactionEnd { family, output_level, outputs, bytes, duration_us, .. } => {
                seen.is(ObservedEventKind::Compaction, family).made(*outputs as u64, *bytes, *output_level);
                seen.duration_us = Some(*duration_us);
            }
            Event::Ingested { family, tables, bytes, duration_us, .. } => {
                seen.is(ObservedEventKind::Ingest, family);
                (seen.tables, seen.bytes, seen.duration_us) = (Some(*tables as u64), Some(*bytes), Some(*duration_us));
            }
            Event::TablePlaced { family, level, bytes, .. } => {
                seen.is(ObservedEventKind::Placed, family).made(1, *bytes, *level);
            }
            Event::StallChanged { family, cause, delayed, stopped, .. } => {
                let begun = *delayed || *stopped;
                let kind = if begun { ObservedEventKind::StallBegun } else { ObservedEventKind::StallEnded };
                let how = if *stopped {
                    "stopped: "
                } else if *delayed {
                    "slowed down: "
                } else {
                    ""
                };
                seen.is(kind, family).detail = Some(format!("{how}{cause}"));
            }
            Event::SlowWrite { family, bytes, duration_us, parts, left_out, trace_id } => {
                seen.is(ObservedEventKind::SlowWrite, family);
                (seen.bytes, seen.duration_us) = (Some(*bytes), Some(*duration_us));
                seen.detail = (*left_out > 0).then(|| format!("{left_out} others were left out"));
                let part = |&(name, micros): &(&str, u64)| ObservedPart { name: name.to_owned(), micros };
                seen.parts = parts.iter().map(part).collect();
                seen.trace_id.clone_from(trace_id);
            }
            Event::BackgroundError { error } => seen.is_of(ObservedEventKind::BackgroundError, error),
            Event::RecoveryBegin { error } => seen.is_of(ObservedEventKind::RecoveryBegun, error),
            Event::RecoveryEnd { error } => seen.is_of(ObservedEventKind::RecoveryEnded, error),
            _ => return None,
        }
        Some(seen)
    }

    fn is(&mut self, kind: ObservedEventKind, family: &str) -> &mut Self {
        (self.kind, self.family) = (kind, Some(family.to_owned()));
        self
    }

    fn made(&mut self, tables: u64, bytes: u64, level: usize) {
        (self.tables, self.bytes, self.level) = (Some(tables), Some(bytes), Some(level as u32));
    }

    fn is_of(&mut self, kind: ObservedEventKind, error: &base::Error) {
        (self.kind, self.detail) = (kind, Some(error.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ingest_says_how_long_it_took() {
        let (files, first_seq) = (Vec::new(), base::SeqNo(0));
        let event = Event::Ingested { family: "f".to_owned(), tables: 2, bytes: 9, duration_us: 7, files, first_seq };
        let seen = ObservedEvent::of(&event, 1).expect("of interest");
        assert_eq!((seen.tables, seen.bytes, seen.duration_us), (Some(2), Some(9), Some(7)));
    }

    #[test]
    fn the_ring_is_bounded_and_says_what_it_lost() {
        let ring = EventRing::default();
        assert_eq!(ring.since(0), ObservedEvents::default());
        for _ in 0..EVENTS_MAX + 10 {
            ring.keep(ObservedEvent::default());
        }
        let all = ring.since(0);
        assert_eq!((all.events.len(), all.last, all.missed), (EVENTS_MAX, EVENTS_MAX as u64 + 10, 10));
        assert_eq!((all.events[0].number, all.events[EVENTS_MAX - 1].number), (11, all.last));
        let newest = ring.since(all.last - 1);
        assert_eq!((newest.events.len(), newest.missed), (1, 0));
        assert!(ring.since(all.last).events.is_empty());
    }
}
