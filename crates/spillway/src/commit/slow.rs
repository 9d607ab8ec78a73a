//! Slow writes: where their time went. Off by default; then a write pays one load beside the one of the statistics.
//!
//! A watched write reads the processor's counter between its steps, an instruction each, and no clock. Only a write over
//! the limit is translated to microseconds. Waits by cause are noted by the thread that waits, where it waits.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base::extend::Event;
use base::metrics::Distribution;
use base::note;
use parking_lot::Mutex;
use vfs::ticks;

use crate::core::context::Context;
use crate::observe::{ObservedTrace, trace};
use crate::order::stall::waits_since;

/// The slowest rate of a processor's counter: ticks each microsecond.
const TICKS_MIN: u64 = if cfg!(target_arch = "x86_64") { 400 } else { 1000 };

/// Slow writes told in a second, at most.
const TOLD_MAX: u64 = 10;

/// A step of a write, by its end.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// A large batch is in the log of its own.
    InOwnLog,
    /// A large batch is in memtables.
    Indexed,
    /// Admitted and numbered.
    Numbered,
    Logged,
    Inserted,
    Published,
    Synced,
}

const STEPS: [&str; 7] = ["own-log", "index", "lock", "log", "insert", "publish", "sync"];

/// Ends of a write's steps, in ticks; 0 for steps that were not taken.
pub(crate) struct StepTimes {
    begun: u64,
    ends: [Cell<u64>; STEPS.len()],
}

impl StepTimes {
    fn begin() -> Self {
        StepTimes { begun: ticks(), ends: Default::default() }
    }

    #[inline]
    pub fn mark(&self, step: Step) {
        if let Some(end) = self.ends.get(step as usize) {
            end.set(ticks());
        }
    }
}

/// The watch over slow writes of a database.
#[derive(Default)]
pub(crate) struct SlowWrites {
    /// A write of fewer ticks is not slow; 0 while nothing is watched.
    limit_ticks: AtomicU64,
    limit_us: AtomicU64,
    /// Ticks and the vfs's clock at one instant. A leaf lock.
    anchor: Mutex<(u64, Duration)>,
    told: Mutex<Told>,
    /// Of each bucket of a histogram, by its limit, the latest slow write with a trace. A leaf lock.
    traces: Mutex<BTreeMap<u64, ObservedTrace>>,
}

/// Slow writes of the present second.
#[derive(Default)]
struct Told {
    second: u64,
    told: u64,
    left_out: u64,
}

impl Told {
    /// How many were left out before this one; `None` if it is left out.
    fn admit(&mut self, second: u64) -> Option<u64> {
        if self.second != second {
            (self.second, self.told) = (second, 0);
        }
        if self.told >= TOLD_MAX {
            self.left_out += 1;
            return None;
        }
        self.told += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

impl SlowWrites {
    /// Watches writes of `limit_us` and more; 0 for none.
    pub fn watch(&self, limit_us: u64, now: Duration) {
        *self.anchor.lock() = (ticks(), now);
        self.limit_us.store(limit_us, Ordering::Relaxed);
        self.limit_ticks.store(limit_us.saturating_mul(TICKS_MIN), Ordering::Relaxed);
    }

    #[inline]
    pub fn begin(&self) -> Option<StepTimes> {
        (self.limit_ticks.load(Ordering::Relaxed) != 0).then(StepTimes::begin)
    }

    /// Ends a watched write of `bytes`. `family`: the first that it wrote to.
    #[inline]
    pub fn end(&self, times: &StepTimes, context: &Context, bytes: usize, family: impl FnOnce() -> Option<String>) {
        if ticks().saturating_sub(times.begun) >= self.limit_ticks.load(Ordering::Relaxed) {
            self.tell(times, context, bytes, family());
        }
    }

    #[cold]
    fn tell(&self, times: &StepTimes, context: &Context, bytes: usize, family: Option<String>) {
        let (ended, now) = (ticks(), context.vfs.now());
        let (first, first_now) = *self.anchor.lock();
        // Ticks since the watch began, and the clock's time since: the longer, the more exact.
        let clock_us = now.saturating_sub(first_now).as_micros() as f64;
        let each_us = (ended.saturating_sub(first) as f64 / clock_us.max(1.0)).max(1.0);
        let micros = |ticks: u64| (ticks as f64 / each_us) as u64;
        let took_us = micros(ended.saturating_sub(times.begun));
        if took_us < self.limit_us.load(Ordering::Relaxed) {
            return;
        }
        let unix_time_us = context.vfs.unix_time_us();
        let Some(left_out) = self.told.lock().admit(unix_time_us / 1_000_000) else { return };
        let (family, trace_id, told_parts) = (family.unwrap_or_default(), trace::current(), parts(times, micros));
        let _scope = context.note_scope();
        let shown: Vec<_> = told_parts.iter().map(|(name, micros)| format!("{name} {micros}")).collect();
        let (parts, trace) = (shown.join(", "), trace_id.as_deref().unwrap_or_default());
        note::warn!(family, took_us, bytes, left_out, parts, trace_id = trace, "a slow write");
        if let Some(trace_id) = &trace_id {
            self.keep(ObservedTrace { trace_id: trace_id.clone(), micros: took_us, unix_time_us });
        }
        let (bytes, duration_us) = (bytes as u64, took_us);
        context.notify(&Event::SlowWrite { family, bytes, duration_us, parts: told_parts, left_out, trace_id });
    }

    fn keep(&self, trace: ObservedTrace) {
        let mut limits = Distribution::default().buckets().map(|(limit, _)| limit).collect::<Vec<_>>().into_iter();
        let limit = limits.find(|limit| trace.micros <= *limit).unwrap_or(u64::MAX);
        self.traces.lock().insert(limit, trace);
    }

    /// The latest slow write with a trace of each bucket of a histogram, fastest first.
    pub fn traces(&self) -> Vec<ObservedTrace> {
        self.traces.lock().values().cloned().collect()
    }
}

/// The parts with time in them: waits by cause, then the steps without the waits in them.
fn parts(times: &StepTimes, micros: impl Fn(u64) -> u64) -> Vec<(&'static str, u64)> {
    let mut parts: Vec<(&str, u64)> = Vec::new();
    let waits = waits_since(times.begun);
    for (cause, waited_us, _) in &waits {
        match parts.iter_mut().find(|(name, _)| *name == cause.name()) {
            Some((_, sum)) => *sum += waited_us,
            None => parts.push((cause.name(), *waited_us)),
        }
    }
    let mut before = times.begun;
    for (name, end) in STEPS.iter().zip(&times.ends).filter(|(_, end)| end.get() != 0) {
        let in_step = waits.iter().filter(|(_, _, ended)| (before..end.get()).contains(ended));
        let waited_us: u64 = in_step.map(|(_, micros, _)| micros).sum();
        parts.push((name, micros(end.get().saturating_sub(before)).saturating_sub(waited_us)));
        before = end.get();
    }
    parts.retain(|(_, micros)| *micros > 0);
    parts
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use vfs::{Fault, FaultVfs, Operation, Rule};

    use super::*;
    use crate::order::stall::{StallCause, count_wait};
    use base::extend::EventListener;

    use crate::commit::two_phase::{PreparedBatch, TwoPhase};
    use crate::internal::{Database, OpenOptions, WriteBatch, WriteOptions};
    use crate::observe::{ObservedEventKind, in_trace};

    #[derive(Default)]
    struct Listener(Mutex<Vec<Event>>);

    impl EventListener for Listener {
        fn on_event(&self, event: &Event) {
            if matches!(event, Event::SlowWrite { .. }) {
                self.0.lock().push(event.clone());
            }
        }
    }

    #[test]
    fn only_so_many_are_told_in_a_second() {
        let mut told = Told::default();
        let admitted = (0..100).filter(|_| told.admit(7).is_some()).count();
        assert_eq!((admitted as u64, told.left_out), (TOLD_MAX, 100 - TOLD_MAX));
        assert_eq!((told.admit(8), told.admit(8)), (Some(100 - TOLD_MAX), Some(0)));
    }

    #[test]
    fn a_slow_sync_is_told_with_its_part() {
        let faults = FaultVfs::new(vfs::RealVfs::new());
        let dir = tempfile::tempdir().expect("made");
        let mut options = OpenOptions { vfs: faults.clone(), ..OpenOptions::create_if_missing() };
        options.db.slow_operation_micros = 20_000;
        let listener = Arc::new(Listener::default());
        options.db.listeners.push(listener.clone());
        let db = Database::open(dir.path(), &options).expect("opened");
        let (family, sync) = (db.default_family(), WriteOptions { sync: true, ..WriteOptions::default() });
        db.put(&family, b"warm", b"value", &sync).expect("put");
        let before = db.events(0).last;
        faults.inject(Rule::new(Fault::Latency(Duration::from_millis(60))).on(Operation::Sync).path("splog"));
        let trace = in_trace("4bf92f3577b34da6a3ce929d0e0e4736").expect("an id");
        db.put(&family, b"key", b"value", &sync).expect("put");
        drop(trace);
        let events = db.events(before).events;
        let [event] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!((event.kind, event.family.as_deref()), (ObservedEventKind::SlowWrite, Some("default")));
        let took = event.duration_us.expect("it took time");
        let synced = event.parts.iter().find(|part| part.name == "sync").expect("that was it").micros;
        assert!((50_000..10_000_000).contains(&synced) && took >= synced, "{event:?}");
        assert_eq!(event.trace_id.as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        let traces = db.observe().writes.expect("of a writer").traces;
        assert_eq!(traces.iter().map(|trace| trace.micros).collect::<Vec<_>>(), [took]);
        let told = std::mem::take(&mut *listener.0.lock());
        let [Event::SlowWrite { family: name, duration_us, trace_id: Some(_), .. }] = told.as_slice() else {
            panic!("{told:?}")
        };
        assert_eq!((name.as_str(), *duration_us), ("default", took));
        db.set_db_options(&[("slow_operation_micros", "0")]).expect("changed");
        db.put(&family, b"key", b"value", &sync).expect("put");
        assert_eq!(db.events(0).last, event.number);
    }

    #[test]
    fn a_slow_large_batch_is_told_with_its_parts() {
        let faults = FaultVfs::new(vfs::RealVfs::new());
        let dir = tempfile::tempdir().expect("made");
        let mut options = OpenOptions { vfs: faults.clone(), ..OpenOptions::create_if_missing() };
        (options.db.slow_operation_micros, options.db.large_batch_bytes) = (20_000, 4_096);
        let db = Database::open(dir.path(), &options).expect("opened");
        let mut batch = WriteBatch::new();
        (0..100u8).for_each(|key| batch.put(db.default_family().id(), &[key], &[7; 100]));
        faults.inject(Rule::new(Fault::Latency(Duration::from_millis(60))).on(Operation::Sync).path("spbatch"));
        db.write(&batch, &WriteOptions::default()).expect("written");
        let events = db.events(0).events;
        let event = events.iter().find(|event| event.kind == ObservedEventKind::SlowWrite).expect("told");
        let part = |name: &str| event.parts.iter().find(|part| part.name == name).map_or(0, |part| part.micros);
        assert!(part("own-log") >= 50_000 && part("index") < part("own-log"), "{event:?}");
    }

    #[test]
    fn slow_steps_of_a_prepared_transaction_are_told() {
        let faults = FaultVfs::new(vfs::RealVfs::new());
        let dir = tempfile::tempdir().expect("made");
        let mut options = OpenOptions { vfs: faults.clone(), ..OpenOptions::create_if_missing() };
        options.db.slow_operation_micros = 20_000;
        let db = Database::open(dir.path(), &options).expect("opened");
        let mut batch = WriteBatch::new();
        batch.put(db.default_family().id(), b"key", b"value");
        let (steps, sync) = (TwoPhase(&db.engine().committer), WriteOptions { sync: true, ..WriteOptions::default() });
        faults.inject(Rule::new(Fault::Latency(Duration::from_millis(60))).on(Operation::Sync).path("splog"));
        let at = steps.prepare(b"name", &batch, &sync).expect("prepared");
        steps.commit(&PreparedBatch { name: b"name", batch: &batch, at }, &sync).expect("committed");
        let events = db.events(0).events;
        let slow = events.iter().filter(|event| event.kind == ObservedEventKind::SlowWrite);
        let synced: Vec<_> = slow.map(|event| event.parts.iter().any(|part| part.name == "sync")).collect();
        assert_eq!(synced, [true], "the prepare, whose sync is the first: {events:?}");
        faults.clear();
        faults.inject(Rule::new(Fault::Latency(Duration::from_millis(60))).on(Operation::Sync).path("splog"));
        let at = steps.prepare(b"name", &batch, &WriteOptions::default()).expect("prepared");
        steps.commit(&PreparedBatch { name: b"name", batch: &batch, at }, &sync).expect("committed");
        let events = db.events(0).events;
        assert_eq!(events.iter().filter(|event| event.kind == ObservedEventKind::SlowWrite).count(), 2, "{events:?}");
    }

    #[test]
    fn waits_of_earlier_writes_do_not_count() {
        count_wait(StallCause::Memory, 5);
        let times = StepTimes::begin();
        count_wait(StallCause::Level0, 7);
        count_wait(StallCause::Level0, 3);
        times.mark(Step::Numbered);
        let parts = parts(&times, |_| 12);
        assert_eq!(parts, [("l0-file-count", 10), ("lock", 2)]);
    }
}
