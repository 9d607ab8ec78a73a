//! Lack of space. A job that finds the disk full has its output dropped, and is tried again when there is room; the
//! database takes writes meanwhile, as long as there is memory and log space for them. Where the MANIFEST finds none the
//! database is read-only until a new MANIFEST is written.
//!
//! Upkeep looks once a second. It tries again at once where the disk has room by then for what the job needs and had none
//! when it failed, and else after rests that double: a quota does not show in the free space.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base::extend::Event;
use base::metrics::{Ticker, tick};
use base::note;
use base::{Error, ErrorKind, Result};
use parking_lot::Mutex;

use crate::core::Core;

/// From one look at the free space to the next.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The rest after the first failure, and the longest.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(60);

/// What needs space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Needs {
    Flush,
    Compaction,
    Manifest,
}

impl Needs {
    const ALL: [Needs; 3] = [Needs::Flush, Needs::Compaction, Needs::Manifest];

    fn name(self) -> &'static str {
        match self {
            Needs::Flush => "a flush",
            Needs::Compaction => "a compaction",
            Needs::Manifest => "the MANIFEST",
        }
    }
}

/// The disk as a job found it.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    needed_bytes: u64,
    /// Once the job's output was dropped; `None` where the system does not tell.
    free_bytes: Option<u64>,
}

struct Lack {
    error: Error,
    room: Room,
    rest: Duration,
    /// By the vfs's clock.
    next_try: Duration,
    /// Jobs of the kind run again, and it is not known yet how they end.
    is_tried: bool,
}

impl Lack {
    /// Whether the disk has room now that it lacked when the job failed.
    fn has_room(&self, free_bytes: Option<u64>) -> bool {
        let Room { needed_bytes, free_bytes: before } = self.room;
        free_bytes.is_some_and(|free| free >= needed_bytes) && before.is_some_and(|before| before < needed_bytes)
    }
}

/// Who waits for space. Its lock is a leaf.
#[derive(Default)]
pub(crate) struct Space {
    lacks: Mutex<Lacks>,
    /// Something is lacking.
    any: AtomicBool,
    /// Background errors since the database was opened.
    errors: AtomicU64,
}

#[derive(Default)]
struct Lacks {
    of: [Option<Lack>; Needs::ALL.len()],
    next_look: Duration,
}

impl Lacks {
    fn get(&mut self, needs: Needs) -> &mut Option<Lack> {
        match &mut self.of {
            [flush, compaction, manifest] => match needs {
                Needs::Flush => flush,
                Needs::Compaction => compaction,
                Needs::Manifest => manifest,
            },
        }
    }

    fn waiting(&self) -> impl Iterator<Item = &Lack> {
        self.of.iter().flatten().filter(|lack| !lack.is_tried)
    }
}

impl Space {
    /// Whether anything waits for space, or is tried again.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Notes that there was no room. True where that was not known.
    fn note(&self, needs: Needs, error: &Error, room: Room, now: Duration) -> bool {
        let mut lacks = self.lacks.lock();
        if lacks.waiting().next().is_none() {
            lacks.next_look = now + LOOK_EVERY;
        }
        let lack = lacks.get(needs);
        let rest = lack.as_ref().map_or(REST_MIN, |lack| {
            // Jobs that were tried together fail together.
            if lack.is_tried { (lack.rest * 2).min(REST_MAX) } else { lack.rest }
        });
        let is_new = lack.is_none();
        *lack = Some(Lack { error: error.clone(), room, rest, next_try: now + rest, is_tried: false });
        self.any.store(true, Ordering::Release);
        is_new
    }

    /// Whether it waits for space, or is tried again.
    pub fn is_lacking(&self, needs: Needs) -> bool {
        self.any() && self.lacks.lock().get(needs).is_some()
    }

    /// Whether no job of the kind is to begin.
    pub fn holds(&self, needs: Needs) -> bool {
        self.any() && self.lacks.lock().get(needs).as_ref().is_some_and(|lack| !lack.is_tried)
    }

    /// # Errors
    /// `NoSpace`: no job of the kind begins before there is room.
    pub fn check(&self, needs: Needs) -> Result<()> {
        if !self.any() {
            return Ok(());
        }
        let mut lacks = self.lacks.lock();
        match lacks.get(needs) {
            Some(lack) if !lack.is_tried => Err(lack.error.clone()),
            _ => Ok(()),
        }
    }

    /// Lets jobs of the kind begin, whether or not there is room. Their threads are for the caller to wake.
    pub fn try_now(&self, needs: Needs) {
        if self.any()
            && let Some(lack) = self.lacks.lock().get(needs)
        {
            lack.is_tried = true;
        }
    }

    /// Ends a lack that is tried, once a job was done that needed `bytes`: its error. A much smaller one proves nothing.
    pub fn end(&self, needs: Needs, bytes: u64) -> Option<Error> {
        if !self.any() {
            return None;
        }
        let mut lacks = self.lacks.lock();
        let ended = lacks.get(needs).take_if(|lack| lack.is_tried && bytes >= lack.room.needed_bytes / 2)?;
        self.any.store(lacks.of.iter().any(Option::is_some), Ordering::Release);
        Some(ended.error)
    }

    /// How long it is to the next look; `None` where nothing waits.
    pub fn until_next_look(&self, now: Duration) -> Option<Duration> {
        let lacks = if self.any() { self.lacks.lock() } else { return None };
        lacks.waiting().next()?;
        Some(lacks.next_look.saturating_sub(now))
    }

    /// Lets those be tried again that are due, or that there is room for now. Which they are.
    pub fn try_what_is_due(&self, now: Duration, free_bytes: Option<u64>) -> Vec<Needs> {
        let mut lacks = self.lacks.lock();
        lacks.next_look = now + LOOK_EVERY;
        let mut due = Vec::new();
        for needs in Needs::ALL {
            let waiting = lacks.get(needs).as_mut().filter(|lack| !lack.is_tried);
            if let Some(lack) = waiting.filter(|lack| now >= lack.next_try || lack.has_room(free_bytes)) {
                lack.is_tried = true;
                due.push(needs);
            }
        }
        due
    }

    /// Counts a background error.
    pub fn count_error(&self) {
        self.errors.fetch_add(1, Ordering::Relaxed);
    }

    /// Background errors since the database was opened.
    pub fn errors(&self) -> u64 {
        self.errors.load(Ordering::Relaxed)
    }
}

impl Core {
    /// What follows a job that failed: it waits for room, where that was all it lacked and nothing is unknown for it; else
    /// the database is read-only. `needed_bytes` is what the job might write.
    pub(crate) fn job_failed(&self, needs: Needs, error: &Error, needed_bytes: u64) {
        if !self.may_be_tried_again(error) {
            return self.fail(&error.clone().context("a background job failed"));
        }
        let free_bytes = self.free_bytes();
        let told = error.clone().context(lacked(needs, needed_bytes, free_bytes));
        self.note_lack(needs, &told, Room { needed_bytes, free_bytes });
        self.wake_all();
    }

    /// Whether an error cost no more than a job's output: nothing that was synced is in doubt (D4).
    pub(crate) fn may_be_tried_again(&self, error: &Error) -> bool {
        error.kind() == ErrorKind::NoSpace
            && self.background_error().is_none()
            && self.logs.check().is_ok()
            && !self.context.has_failed_to_sync_dir()
    }

    pub(crate) fn note_lack(&self, needs: Needs, error: &Error, room: Room) {
        let is_new = self.space.note(needs, error, room, self.context.vfs.now());
        if needs != Needs::Manifest {
            self.space.count_error();
        }
        if is_new {
            if needs != Needs::Manifest {
                tick(&self.context.statistics, Ticker::BackgroundErrors, 1);
                note::warn!(%error, "the database takes writes as long as there is memory for them");
                self.tell_later(Event::BackgroundError { error: error.clone() });
            }
            self.tell_later(Event::RecoveryBegin { error: error.clone() });
        }
        self.upkeep.raise();
    }

    /// What follows a job that did not fail, and might have written `needed_bytes`.
    pub(crate) fn job_succeeded(&self, needs: Needs, needed_bytes: u64) {
        if let Some(error) = self.space.end(needs, needed_bytes) {
            note::info!(%error, "there is space again");
            self.tell_later(Event::RecoveryEnd { error });
            self.upkeep.raise();
        }
    }

    /// Turns the database read-only after a failure of the MANIFEST, and notes where a new one can mend that. The caller
    /// holds the manifest lock.
    pub(crate) fn fail_manifest(&self, error: &Error) {
        // Not where the database was read-only before: then that is to be mended, by whoever knows.
        let is_cause = self.background_error().is_none_or(|first| first.kind() == ErrorKind::NoSpace);
        let is_mendable = is_cause && error.kind() == ErrorKind::NoSpace && !self.context.has_failed_to_sync_dir();
        // Before the failure shows: whoever is refused is told what for.
        let room = self.room_for_manifest();
        let is_new = is_mendable && self.space.note(Needs::Manifest, error, room, self.context.vfs.now());
        self.fail(error);
        if is_new {
            self.tell_later(Event::RecoveryBegin { error: error.clone() });
        }
        self.upkeep.raise();
    }

    /// As [`check_writable`](Self::check_writable), for a write: where no thread does, it looks itself whether there is room.
    pub(crate) fn check_takes_writes(&self) -> Result<()> {
        let refused = match self.check_writable() {
            Ok(()) => return Ok(()),
            Err(refused) => refused,
        };
        if !self.context.vfs.runs_inline() {
            return Err(refused);
        }
        self.drive(); // which looks
        self.check_writable()
    }

    pub(crate) fn room_for_manifest(&self) -> Room {
        Room { needed_bytes: MANIFEST_BYTES, free_bytes: self.free_bytes() }
    }

    pub(crate) fn free_bytes(&self) -> Option<u64> {
        self.context.vfs.free_bytes(&self.context.dir)
    }

    /// For whoever waits for a flush: no use where none begins.
    pub(crate) fn is_done_or_lacks_space(&self, is_done: bool) -> Result<bool> {
        if !is_done {
            self.space.check(Needs::Flush)?;
        }
        Ok(is_done)
    }

    /// What follows a job, whoever ran it, that might have written `needed_bytes`.
    pub(crate) fn end_job(&self, needs: Needs, needed_bytes: u64, result: &Result<()>) {
        match result {
            Ok(()) => self.job_succeeded(needs, needed_bytes),
            Err(error) => self.job_failed(needs, error, needed_bytes),
        }
        self.state_changed.notify_all();
        self.upkeep.raise(); // what waited for tables that the job had
    }
}

/// About what a new MANIFEST takes.
const MANIFEST_BYTES: u64 = 64 << 10;

/// What an error begins with.
fn lacked(needs: Needs, needed_bytes: u64, free_bytes: Option<u64>) -> String {
    let free = free_bytes.map_or_else(String::new, |free| format!(", {free} bytes are free"));
    let needs = needs.name();
    format!("{needs} of up to {needed_bytes} bytes waits for disk space{free}; free some, and it goes on")
}
