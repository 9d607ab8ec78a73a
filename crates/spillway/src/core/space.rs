//! Handling of a full disk, and of a lack of descriptors or memory. If a job finds no space, its output is dropped and the job is retried when there is room.
//! The database takes writes meanwhile, as long as memory and log space last. If the MANIFEST finds no space, the
//! database is read-only until a new MANIFEST is written.
//!
//! Upkeep checks once a second. It retries at once if the disk now has the room the job lacked. Otherwise it retries
//! after delays that double: a quota does not show in the free space.
//!
//! Work that frees space needs some first: a deletion for its WAL record, a flush or a compaction for its output. When
//! it finds none, a database of some size gives up its [reserve](super::reserve). Until the reserve is made anew, only
//! deletions are written; jobs run one at a time; and a flush takes all memtables or none, so that the logs go after it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use base::extend::Event;
use base::metrics::{Ticker, tick};
use base::note;
use base::{Error, ErrorKind, Result};
use parking_lot::Mutex;

use crate::core::Core;
use crate::core::reserve::{LARGEST_BYTES_MAX, wanted_bytes};
use crate::version::edit::VersionEdit;
use crate::version::manifest::ManifestWriter;

/// Interval between checks of the free space.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Delay before the first retry, and the longest delay.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(60);

/// Consumers of disk space.
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

/// Disk space as found by a failed job.
#[derive(Clone, Copy)]
pub(crate) struct Room {
    needed_bytes: u64,
    /// Measured after the job's output was dropped; `None` if the system does not tell.
    free_bytes: Option<u64>,
}

struct Lack {
    error: Error,
    room: Room,
    rest: Duration,
    /// By the vfs's clock.
    next_try: Duration,
    /// Jobs of the kind run again; their outcome is not known yet.
    is_tried: bool,
}

impl Lack {
    /// Whether the disk now has the room it lacked when the job failed.
    fn has_room(&self, free_bytes: Option<u64>) -> bool {
        let Room { needed_bytes, free_bytes: before } = self.room;
        free_bytes.is_some_and(|free| free >= needed_bytes) && before.is_some_and(|before| before < needed_bytes)
    }
}

/// Consumers waiting for space. Its lock is a leaf.
#[derive(Default)]
pub(crate) struct Space {
    lacks: Mutex<Lacks>,
    /// At least one consumer lacks space.
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
    /// Whether any consumer waits for space or is being retried.
    pub fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// Notes a lack of space. Returns true if it is new.
    fn note(&self, needs: Needs, error: &Error, room: Room, now: Duration) -> bool {
        let mut lacks = self.lacks.lock();
        if lacks.waiting().next().is_none() {
            lacks.next_look = now + LOOK_EVERY;
        }
        let lack = lacks.get(needs);
        let rest = lack.as_ref().map_or(REST_MIN, |lack| {
            // Jobs retried together fail together.
            if lack.is_tried { (lack.rest * 2).min(REST_MAX) } else { lack.rest }
        });
        let is_new = lack.is_none();
        *lack = Some(Lack { error: error.clone(), room, rest, next_try: now + rest, is_tried: false });
        self.any.store(true, Ordering::Release);
        is_new
    }

    /// Whether `needs` waits for space or is being retried.
    pub fn is_lacking(&self, needs: Needs) -> bool {
        self.any() && self.lacks.lock().get(needs).is_some()
    }

    /// Whether jobs of the kind must not begin.
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

    /// Permits jobs of the kind, whether or not there is room. The caller wakes their threads.
    pub fn try_now(&self, needs: Needs) {
        if self.any()
            && let Some(lack) = self.lacks.lock().get(needs)
        {
            lack.is_tried = true;
        }
    }

    /// Ends a retried lack after a job needing `bytes` succeeded; returns the lack's error. A much smaller job proves
    /// nothing.
    pub fn end(&self, needs: Needs, bytes: u64) -> Option<Error> {
        if !self.any() {
            return None;
        }
        let mut lacks = self.lacks.lock();
        let ended = lacks.get(needs).take_if(|lack| lack.is_tried && bytes >= lack.room.needed_bytes / 2)?;
        self.any.store(lacks.of.iter().any(Option::is_some), Ordering::Release);
        Some(ended.error)
    }

    /// Time until the next check; `None` if nothing waits.
    pub fn until_next_look(&self, now: Duration) -> Option<Duration> {
        let lacks = if self.any() { self.lacks.lock() } else { return None };
        lacks.waiting().next()?;
        Some(lacks.next_look.saturating_sub(now))
    }

    /// Permits the retries that are due or have room now. Returns their kinds.
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
    /// Handles a failed job. The job waits if it lacked only space, descriptors or memory, and nothing synced is in doubt; otherwise
    /// the database turns read-only. `needed_bytes` is the job's largest possible output.
    fn job_failed(&self, needs: Needs, error: &Error, needed_bytes: u64) {
        if !self.may_be_tried_again(error) {
            return self.fail(&error.clone().context("a background job failed"));
        }
        let free_bytes = self.free_bytes();
        let told = match error.kind() {
            ErrorKind::NoSpace => error.clone().context(lacked(needs, needed_bytes, free_bytes)),
            _ => error.clone().context(format!("{} waits, and is tried again", needs.name())),
        };
        self.record_lack(needs, &told, Room { needed_bytes, free_bytes });
        self.wake_all();
    }

    /// Whether an error cost only a job's output: nothing synced is in doubt (D4).
    pub(crate) fn may_be_tried_again(&self, error: &Error) -> bool {
        error.is_lack()
            && self.background_error().is_none()
            && self.logs.check().is_ok()
            && !self.context.has_failed_to_sync_dir()
    }

    pub(crate) fn record_lack(&self, needs: Needs, error: &Error, room: Room) {
        let is_new = self.space.note(needs, error, room, self.context.vfs.now());
        if needs != Needs::Manifest {
            self.space.count_error();
        }
        if is_new {
            if needs != Needs::Manifest {
                tick(&self.context.statistics, Ticker::BackgroundErrors, 1);
                note::warn!(%error, "background work waits");
                self.tell_later(Event::BackgroundError { error: error.clone() });
            }
            self.tell_later(Event::RecoveryBegin { error: error.clone() });
        }
        self.upkeep.raise();
    }

    /// Handles a successful job with an output of up to `needed_bytes`.
    pub(crate) fn job_succeeded(&self, needs: Needs, needed_bytes: u64) {
        if let Some(error) = self.space.end(needs, needed_bytes) {
            note::info!(%error, "background work goes on");
            self.tell_later(Event::RecoveryEnd { error });
            self.upkeep.raise();
        }
    }

    /// Appends edits to the MANIFEST, and with them how far the logs had come (R1). The caller holds the manifest lock.
    ///
    /// # Errors
    /// A failure of the MANIFEST; the database is read-only then (D4).
    pub(crate) fn append_edits(&self, writer: &mut ManifestWriter, mut edits: Vec<VersionEdit>) -> Result<()> {
        if let Some(edit) = edits.first_mut() {
            edit.log_frontiers = Some(self.logs.known_frontiers());
        }
        if self.free_bytes().is_some_and(|free| free < MANIFEST_BYTES) {
            self.give_up_reserve(); // a failed append could not be repeated
        }
        writer.commit(&edits).inspect_err(|error| self.fail_manifest(error))?;
        self.logs.record_manifest(writer.noted());
        Ok(())
    }

    /// Turns the database read-only after a failure of the MANIFEST, and notes a lack of space if a new MANIFEST can
    /// repair the failure. The caller holds the manifest lock.
    pub(crate) fn fail_manifest(&self, error: &Error) {
        // Not if an error other than `NoSpace` came first: a new MANIFEST does not repair it.
        let is_cause = self.background_error().is_none_or(|first| first.kind() == ErrorKind::NoSpace);
        let is_mendable = is_cause && error.kind() == ErrorKind::NoSpace && !self.context.has_failed_to_sync_dir();
        // Before `fail`, so that refused writers get the reason.
        let room = self.room_for_manifest();
        let is_new = is_mendable && self.space.note(Needs::Manifest, error, room, self.context.vfs.now());
        self.fail(error);
        if is_mendable {
            self.give_up_reserve();
        }
        if is_new {
            self.tell_later(Event::RecoveryBegin { error: error.clone() });
        }
        self.upkeep.raise();
    }

    /// Checks again after [`check_writable`](Self::check_writable) refused a write. If the vfs runs inline, the write
    /// checks for space itself.
    #[cold]
    pub(crate) fn check_after_refusal(&self, refused: Error) -> Result<()> {
        if !self.context.vfs.runs_inline() {
            return Err(refused);
        }
        self.drive(); // includes the check for space
        self.check_writable()
    }

    pub(crate) fn room_for_manifest(&self) -> Room {
        Room { needed_bytes: MANIFEST_BYTES, free_bytes: self.free_bytes() }
    }

    pub(crate) fn free_bytes(&self) -> Option<u64> {
        self.context.vfs.free_bytes(&self.context.dir)
    }

    /// For waits on a flush: `NoSpace` if the flush is not done and none can begin.
    pub(crate) fn is_done_or_lacks_space(&self, is_done: bool) -> Result<bool> {
        if !is_done {
            self.space.check(Needs::Flush)?;
        }
        Ok(is_done)
    }

    /// Handles the end of any job with an output of up to `needed_bytes`. `Ok` after a failure: the reserve was given
    /// up, and the job runs again.
    ///
    /// # Errors
    /// The job's failure.
    pub(crate) fn end_job(&self, needs: Needs, needed_bytes: u64, result: Result<()>) -> Result<()> {
        let runs_again = result.as_ref().is_err_and(|error| self.gives_reserve_for(needs, error));
        match &result {
            Ok(()) => {
                self.job_succeeded(needs, needed_bytes);
                if self.reserve.is_spent() {
                    self.try_jobs_now(); // the job may have made room for them
                }
            }
            Err(_) if runs_again => {}
            Err(error) => self.job_failed(needs, error, needed_bytes),
        }
        self.state_changed.notify_all();
        self.upkeep.raise(); // for jobs waiting for tables of this one
        if runs_again { Ok(()) } else { result }
    }

    /// Gives the reserve up to a failed job if the job may run again. To a compaction only if the reserve is more than
    /// the free space: a compaction may need far more.
    pub(crate) fn gives_reserve_for(&self, needs: Needs, error: &Error) -> bool {
        let is_worth_it = || needs == Needs::Flush || self.free_bytes().is_none_or(|free| free < self.reserve.bytes());
        self.may_be_tried_again(error) && is_worth_it() && self.give_up_reserve()
    }

    /// Gives the reserve up and retries all jobs lacking space. False if there is no reserve.
    fn give_up_reserve(&self) -> bool {
        let is_given = self.reserve.give_up(|is_spent| self.stall.set_scarce(is_spent));
        if is_given {
            self.try_jobs_now();
            self.upkeep.raise(); // to seal memtables
        }
        is_given
    }

    fn try_jobs_now(&self) {
        [Needs::Flush, Needs::Compaction].iter().for_each(|needs| self.space.try_now(*needs));
        self.state_changed.notify_all();
    }

    /// Calls `make`. If it finds no space and `frees_space`, gives the reserve up and retries; then waits for running
    /// jobs, which may hold all space for a moment, and retries once more.
    ///
    /// # Errors
    /// Errors of `make`.
    pub(crate) fn with_reserve<T>(&self, frees_space: impl Fn() -> bool, make: impl Fn() -> Result<T>) -> Result<T> {
        let lacks_space = |made: &Result<T>| made.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace);
        let mut made = make();
        if !lacks_space(&made) || !frees_space() {
            return made;
        }
        let claim = self.reserve.claim();
        for waits in [false, true] {
            if !lacks_space(&made) || !(self.give_up_reserve() || self.reserve.is_spent()) {
                break;
            }
            if waits {
                self.wait_for_job_outputs();
            }
            made = make();
        }
        drop(claim);
        self.state_changed.notify_all(); // for jobs
        made
    }

    /// Waits until no job runs, but not for long: the caller may be a listener, inside a job itself.
    fn wait_for_job_outputs(&self) {
        let mut state = self.state.lock();
        for _ in 0..JOB_WAITS_MAX {
            if state.flushes_running + state.compactions_running == 0 {
                return;
            }
            self.state_changed.wait_for(&mut state, JOB_WAIT);
        }
    }

    /// For writes and ingests that take space and free none.
    ///
    /// # Errors
    /// `NoSpace`: the reserve is given up, and there is no room yet to make it anew.
    pub(crate) fn check_room(&self) -> Result<()> {
        if self.reserve.is_spent() {
            self.keep_reserve();
        }
        if !self.reserve.is_spent() {
            return Ok(());
        }
        let what = "the disk is full: only deletions are written until there is room; free some, or delete and compact";
        Err(Error::new(ErrorKind::NoSpace, what).at_path(&self.context.dir))
    }

    /// Makes the reserve as long as it should be, if the disk has room and no flush lacks space. Part of upkeep.
    pub(crate) fn keep_reserve(&self) {
        let (held_bytes, mut memtable_bytes) = (self.logs.total().0 + self.state.lock().table_bytes, 0u64);
        for family in self.families.load().iter() {
            if memtable_bytes >= LARGEST_BYTES_MAX {
                break; // more changes nothing
            }
            let options = family.options();
            let memtables = options.max_write_buffer_number.saturating_add(1);
            memtable_bytes = memtable_bytes.saturating_add(options.write_buffer_size.saturating_mul(memtables) as u64);
        }
        let wanted_bytes = wanted_bytes(held_bytes, memtable_bytes);
        self.reserve.keep(wanted_bytes, !self.space.is_lacking(Needs::Flush), |is_spent| {
            self.stall.set_scarce(is_spent);
            self.state_changed.notify_all(); // for jobs
            self.upkeep.raise(); // to seal memtables
        });
    }
}

/// Waits of a deletion for jobs that hold all space for a moment.
const JOB_WAITS_MAX: u32 = 100;
const JOB_WAIT: Duration = Duration::from_millis(100);

/// Approximate size of a new MANIFEST and its copy.
const MANIFEST_BYTES: u64 = 128 << 10;

/// Prefix of the error message.
fn lacked(needs: Needs, needed_bytes: u64, free_bytes: Option<u64>) -> String {
    let free = free_bytes.map_or_else(String::new, |free| format!(", {free} bytes are free"));
    let needs = needs.name();
    format!("{needs} of up to {needed_bytes} bytes waits for disk space{free}; free some, and it goes on")
}
