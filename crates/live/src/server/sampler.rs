//! Readings, taken once for all viewers.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use spillway::observe::{Advice, Observation, ObservedEvents, ObservedOption};
use tokio::sync::{Notify, oneshot, watch};

use super::Shared;
use crate::history::{History, Minutes, Point};
use crate::options::{self, Named};
use crate::source::Source;
use crate::told::Told;
use crate::verdict::{Judge, Verdict};

/// Interval of readings with viewers.
const INTERVAL: Duration = Duration::from_secs(1);
/// Interval without viewers: the first one finds a history.
const IDLE_INTERVAL: Duration = Duration::from_secs(10);
/// Most families whose tables are drawn: the largest.
const DRAWN_FAMILIES_MAX: usize = 8;
/// Events that the page lists.
const EVENTS_SHOWN: usize = 1000;
/// Most viewers of the stream at once.
pub(super) const VIEWERS_MAX: usize = 64;

pub(super) struct Sampler {
    source: Box<dyn Source>,
    state: Mutex<State>,
    viewers: AtomicUsize,
    /// A viewer has come.
    wake: Notify,
    frame: watch::Sender<Arc<str>>,
    calls: Sender<Call>,
}

/// A call of the source, which may wait for a lock: not on the thread that serves.
type Call = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct State {
    last: Option<Observation>,
    minutes: Minutes,
    history: History,
    judge: Judge,
    /// Of the first reading.
    first_options: Option<Vec<ObservedOption>>,
    events: VecDeque<Told>,
    /// Number of the newest event seen.
    last_event: u64,
}

impl Sampler {
    /// Starts the thread of the calls, which ends with the sampler. Tokio would start it when it is needed, and panic where no
    /// thread can be had.
    pub(super) fn new(source: impl Source) -> io::Result<Arc<Self>> {
        let (frame, _) = watch::channel(Arc::from(""));
        let (calls, called) = mpsc::channel::<Call>();
        let work = move || called.into_iter().for_each(|call| call());
        std::thread::Builder::new().name("spillway-live-calls".into()).spawn(work)?;
        Ok(Arc::new(Sampler {
            source: Box::new(source),
            state: Mutex::default(),
            viewers: AtomicUsize::new(0),
            wake: Notify::new(),
            frame,
            calls,
        }))
    }

    /// Calls the source. `None`: a call has panicked.
    pub(super) async fn call<T: Send + 'static>(
        self: &Arc<Self>,
        call: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let sampler = self.clone();
        // Nobody waits for it if the connection has ended.
        let call = move || drop(answer.send(call(&sampler)));
        self.calls.send(Box::new(call)).ok()?;
        answered.await.ok()
    }

    pub(super) fn source(&self) -> &dyn Source {
        &*self.source
    }

    /// `None`: there are too many viewers.
    pub(super) fn viewer(self: &Arc<Self>) -> Option<Viewer> {
        let one_more = |count| (count < VIEWERS_MAX).then_some(count + 1);
        self.viewers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        self.wake.notify_one();
        Some(Viewer { frames: self.frame.subscribe(), sampler: self.clone() })
    }

    /// All points, as JSON.
    pub(super) fn history(&self) -> Value {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        json!(state.history.points().collect::<Vec<_>>())
    }

    /// Takes a reading and makes a frame of it.
    fn sample(&self) {
        let since = self.state.lock().unwrap_or_else(PoisonError::into_inner).last_event;
        let frame = match self.source.observe().and_then(|now| Ok((now, self.source.events(since)?))) {
            Ok((now, events)) => self.frame_of(now, &events),
            Err(error) => json!({ "gone": error.to_string() }).to_string(),
        };
        self.frame.send_replace(frame.into());
    }

    fn frame_of(&self, now: Observation, events: &ObservedEvents) -> String {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let point = state.last.as_ref().and_then(|before| Point::between(before, &now));
        if state.last.as_ref().is_some_and(|before| before.process.pid != now.process.pid) {
            // Another process has it open now: a new story.
            *state = State::default();
        } else {
            state.last_event = events.last;
            state.events.extend(events.events.iter().map(Told::of));
            let old = state.events.len().saturating_sub(EVENTS_SHOWN);
            state.events.drain(..old);
        }
        if let Some(point) = &point {
            state.history.push(point.clone());
        }
        let advice = now.advice(state.minutes.earlier());
        let State { judge, history, first_options, minutes, .. } = &mut *state;
        let verdict = judge.judge(&now, history, &advice);
        let default_family = now.families.first().map_or("default", |family| &family.name);
        let first_options = first_options.get_or_insert_with(|| now.options.clone());
        let options = options::shown(&now.options, first_options, &named(&verdict, &advice), default_family);
        minutes.note(&now);
        let frame = json!({ "point": point, "verdict": verdict, "advice": advice.into_iter().map(in_units).collect::<Vec<_>>(), "options": options, "events": state.events, "observation": drawn(&now) });
        state.last = Some(now);
        frame.to_string()
    }
}

/// The options that the verdict and advice name.
fn named(verdict: &Verdict, advice: &[Advice]) -> Vec<Named> {
    let told = verdict.sentences.iter();
    let told = told.flat_map(|sentence| Named::in_text(sentence.family.as_deref(), &sentence.remedy));
    let in_text = |advice: &Advice| Named::in_text(advice.family.as_deref(), &advice.advice).collect::<Vec<_>>();
    let option = |advice: &Advice| {
        let name = advice.option.clone()?;
        Some(Named { family: advice.family.clone(), name, to: advice.to.clone() })
    };
    told.chain(advice.iter().flat_map(in_text)).chain(advice.iter().filter_map(option)).collect()
}

/// Advice with the values of its option in units.
fn in_units(mut advice: Advice) -> Advice {
    if let Some(name) = &advice.option {
        advice.from = advice.from.map(|value| options::text(name, &value));
        advice.to = advice.to.map(|value| options::text(name, &value));
    }
    advice
}

/// The drawn part of a reading: no counters by name, no options, tables of the largest families only.
fn drawn(now: &Observation) -> Value {
    let mut shown = now.clone();
    shown.statistics = None;
    shown.options.clear();
    let mut sizes: Vec<_> = shown.families.iter().map(|family| (family.table_bytes, family.id)).collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    let large: BTreeSet<u32> = sizes.iter().take(DRAWN_FAMILIES_MAX).map(|(_, id)| *id).collect();
    for family in shown.families.iter_mut().filter(|family| !large.contains(&family.id)) {
        family.levels.iter_mut().for_each(|level| level.spans.clear());
    }
    json!(shown)
}

/// A viewer of the stream.
pub(super) struct Viewer {
    frames: watch::Receiver<Arc<str>>,
    sampler: Arc<Sampler>,
}

impl Viewer {
    /// The next frame. A slow viewer misses those between. `None`: the server ends.
    pub(super) async fn next(&mut self) -> Option<Arc<str>> {
        self.frames.changed().await.ok()?;
        Some(self.frames.borrow_and_update().clone())
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.sampler.viewers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Takes readings for ever.
pub(super) async fn run(shared: Arc<Shared>) {
    let sampler = shared.sampler.clone();
    loop {
        if sampler.call(Sampler::sample).await.is_none() {
            return;
        }
        let is_watched = sampler.viewers.load(Ordering::Relaxed) > 0;
        let interval = if is_watched { INTERVAL } else { IDLE_INTERVAL };
        tokio::select! {
            () = tokio::time::sleep(interval) => {}
            () = sampler.wake.notified() => {}
        }
    }
}
