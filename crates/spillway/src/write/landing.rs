//! What is left of a change that joins the queues once it has numbers: its entries are shown to readers and the memtable above
//! them to writers, its record is written, and it is published. Later writes need that memtable, and become visible behind the
//! record, and the thread whose change it is may have lost its processor. So a writer behind an ingest does it instead, the
//! record where that is short, and so does whoever joins the queues next: each step comes to the same however many take it, and
//! whenever. Keeps C2, C4, D1, S1, V1.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use base::{Error, Result};
use log::{Frame, RecordKind};
use once_cell::race::OnceBox;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::core::Core;
use crate::ingest::waits::Window;
use crate::read::view::NextView;
use crate::write::given::{Given, Joins};
use crate::write::numbers::Taken;
use crate::write::pipeline::LogPosition;
use crate::write::staged::{self, Seam};

/// A longer record others leave to its own thread: they would be busy for long, with what that may be doing.
const SHORT_BYTES: usize = 16 << 10;

const NUMBER_BYTES: usize = 8;

/// A record whose numbers are not known yet.
pub(crate) struct UnnumberedRecord {
    pub kind: RecordKind,
    pub payload: Vec<u8>,
    /// Where in it numbers are to be put, in order, and how far each is above the last number before the change.
    pub numbers: SmallVec<[(usize, u64); 2]>,
}

impl UnnumberedRecord {
    fn numbers(&self, given: &Given) -> SmallVec<[[u8; NUMBER_BYTES]; 2]> {
        self.numbers.iter().map(|&(_, above)| (given.before.0 + above).to_le_bytes()).collect()
    }

    /// Its bytes, piece by piece: the payload is not copied, for which writers would wait.
    fn with<'a>(&'a self, numbers: &'a [[u8; NUMBER_BYTES]]) -> SmallVec<[&'a [u8]; 5]> {
        let mut parts = SmallVec::new();
        let mut from = 0;
        for (&(at, _), number) in self.numbers.iter().zip(numbers) {
            parts.push(self.payload.get(from..at).expect("places in the payload, in order"));
            parts.push(&number[..]);
            from = at + NUMBER_BYTES;
        }
        parts.push(self.payload.get(from..).expect("a place in the payload"));
        parts
    }
}

/// What a change was told under the commit lock.
pub(crate) struct Told {
    pub taken: Taken,
    /// When it took the lock.
    pub joined_at: Duration,
    /// Where the logs ended behind its record.
    pub logged_through: LogPosition,
}

/// Where entries stand in a family.
pub(crate) struct Place {
    pub entries: Vec<Arc<dyn Joins>>,
    /// The family with them; gone some time after it was shown, with the memory that it keeps.
    pub view: Weak<NextView>,
}

impl Place {
    /// False where the view is gone: it was shown, unless the thread whose change it is has panicked.
    fn show(&self, told: &Told) -> bool {
        let Some(view) = self.view.upgrade() else { return false };
        if view.keeps_mutable() {
            // Before the record is written: whoever finds the memtable alone would miss what joins.
            view.present().mutable.memtable().mark_foreign();
        }
        let given = &told.taken.given;
        self.entries.iter().for_each(|entry| entry.set_numbers(given));
        // No number above those before the change goes to the memtable under it.
        let Given { before, last, .. } = *given;
        staged::show(&view, &Seam { before, last, logged_through: told.logged_through, log: None });
        true
    }
}

/// A change that is about to take numbers.
#[derive(Default)]
struct Placed {
    places: Vec<Place>,
    told: Option<Told>,
}

/// To be told under the commit lock, where nothing is to be asked for: memory included.
pub(crate) struct Untold(Box<Placed>);

impl Untold {
    pub fn new() -> Self {
        Untold(Box::default())
    }

    pub fn add(&mut self, place: Place) {
        self.0.places.push(place);
    }
}

/// The rest of a change.
pub(crate) struct Landing {
    record: Option<UnnumberedRecord>,
    placed: OnceBox<Placed>,
    /// One showed all its entries.
    is_shown: AtomicBool,
    /// Of the record: as the first made it who wrote that.
    frame: OnceBox<Frame>,
    /// What writers wait for, of an ingest; until it ends.
    window: Mutex<Option<Window>>,
    /// One wrote the record.
    is_written: AtomicBool,
    /// When the first was done with it, in nanoseconds; 0 until then.
    done_nanos: AtomicU64,
    /// Why its record is not in the log.
    failed: OnceLock<Error>,
}

impl Landing {
    pub fn new(record: Option<UnnumberedRecord>) -> Arc<Self> {
        Arc::new(Landing {
            record,
            placed: OnceBox::new(),
            is_shown: AtomicBool::new(false),
            frame: OnceBox::new(),
            window: Mutex::new(None),
            is_written: AtomicBool::new(false),
            done_nanos: AtomicU64::new(0),
            failed: OnceLock::new(),
        })
    }

    /// Of its record; `None` where it has none.
    pub fn record_bytes(&self) -> Option<usize> {
        self.record.as_ref().map(|record| record.payload.len())
    }

    /// What writers wait for begins.
    pub fn open_window(&self, window: Window) {
        let before = self.window.lock().replace(window);
        drop(before); // off the lock
    }

    /// It ended: with the change done, or with nothing done.
    pub fn end_window(&self) {
        let window = self.window.lock().take();
        match (window, self.done_at(), self.told()) {
            (Some(window), Some(done_at), Some((told, _))) => window.close(done_at.saturating_sub(told.joined_at)),
            (window, ..) => drop(window),
        }
    }

    /// From here on anybody may do what is left. Under the commit lock.
    #[inline]
    pub fn tell(&self, mut untold: Untold, told: Told) {
        untold.0.told = Some(told);
        assert!(self.placed.set(untold.0).is_ok(), "a change is numbered once");
    }

    fn told(&self) -> Option<(&Told, &[Place])> {
        let placed = self.placed.get()?;
        Some((placed.told.as_ref()?, &placed.places))
    }

    /// Has readers find its entries and writers the memtables above them, once it has numbers. Whether that is done: a view
    /// that is gone was shown, if at all, before `is_shown` was set by who had it.
    pub fn show(&self) -> bool {
        if self.is_shown.load(Ordering::Acquire) {
            return true;
        }
        let shown = self.told().is_some_and(|(told, places)| places.iter().all(|place| place.show(told)));
        if shown {
            self.is_shown.store(true, Ordering::Release);
        }
        shown || self.is_shown.load(Ordering::Acquire)
    }

    /// When it was done.
    pub fn done_at(&self) -> Option<Duration> {
        let nanos = self.done_nanos.load(Ordering::Acquire);
        (nanos > 0).then(|| Duration::from_nanos(nanos))
    }

    /// Its record is in the log, all of it, whoever else fails to write the same.
    pub fn note_written(&self) {
        self.is_written.store(true, Ordering::Release);
    }

    fn note_done(&self, now: Duration) {
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).max(1);
        let _ = self.done_nanos.compare_exchange(0, nanos, Ordering::AcqRel, Ordering::Relaxed); // another was first
    }

    fn is_short(&self) -> bool {
        self.record_bytes().is_none_or(|bytes| bytes <= SHORT_BYTES)
    }
}

impl Core {
    /// Has others find what is left of a change, from before it is numbered. Under `ingesting`. What is left of the one before
    /// is done first, or left to its own thread.
    pub(crate) fn post_landing(&self, landing: &Arc<Landing>) {
        let before = self.landing.lock().replace(landing.clone());
        if let Some(before) = before.filter(|before| before.is_short()) {
            let _ = self.land(&before); // its own thread tells of an error
        }
    }

    /// Has nobody find it any more: it holds a log.
    fn take_landing_down(&self, landing: &Arc<Landing>) {
        let posted = self.landing.lock().take_if(|posted| Arc::ptr_eq(posted, landing));
        drop(posted); // off the lock
    }

    /// Does what is left of a change that was numbered, for the thread whose change it is.
    ///
    /// # Errors
    /// `Io`, sticky: the database takes no more writes.
    pub(crate) fn land_own(&self, landing: &Arc<Landing>) -> Result<()> {
        assert!(landing.told().is_some(), "a change has numbers before it lands");
        let _posted = Posted { core: self, landing, in_queues: true };
        self.land(landing)
    }

    /// Does what is left of the change that was posted last, for whoever is behind it.
    pub(crate) fn land_for_others(&self) {
        if let Some(landing) = self.posted_landing().filter(|landing| landing.is_short()) {
            let _ = self.land(&landing); // its own thread tells of an error
        }
    }

    /// Shows what the change brings that was posted last, for whoever needs that. Whether that was left to do.
    pub(crate) fn show_for_others(&self) -> bool {
        self.posted_landing().is_some_and(|landing| !landing.is_shown.load(Ordering::Acquire) && landing.show())
    }

    /// `None` also while another looks.
    fn posted_landing(&self) -> Option<Arc<Landing>> {
        self.landing.try_lock()?.clone()
    }

    /// Does what is left of a change, unless it has no numbers yet.
    ///
    /// # Errors
    /// `Io`, sticky: the database takes no more writes.
    fn land(&self, landing: &Landing) -> Result<()> {
        let Some((told, _)) = landing.told().filter(|_| landing.done_at().is_none()) else { return Ok(()) };
        if !landing.show() {
            return Ok(()); // its own thread is on its way out, and fails it
        }
        if let Some(error) = landing.failed.get() {
            return Err(error.clone());
        }
        match self.write_record(landing, told) {
            Ok(()) => landing.note_written(),
            // Another wrote the same, all of it, and is about to publish it.
            Err(_) if landing.is_written.load(Ordering::Acquire) => {}
            Err(error) => {
                let _ = landing.failed.set(error.clone()); // another's is as good
                self.logs.fail(&error);
                self.fail_numbered(&error);
                landing.end_window();
                return Err(error);
            }
        }
        self.pipeline.finish_among_others(told.taken.ticket);
        landing.note_done(self.context.vfs.now());
        landing.end_window();
        Ok(())
    }

    fn write_record(&self, landing: &Landing, told: &Told) -> Result<()> {
        let Taken { given, space, .. } = &told.taken;
        let (Some(record), Some((log, reservation))) = (&landing.record, space) else { return Ok(()) };
        log.note_published(self.pipeline.published_log());
        let frame = landing.frame.get_or_init(|| Box::new(log.file.frame(reservation, record.kind)));
        log.file.append_framed(reservation, frame, &record.with(&record.numbers(given)))
    }
}

/// While others may find a landing. Whatever becomes of it, by a panic too, nobody finds it after that, nor waits for it.
pub(crate) struct Posted<'a> {
    core: &'a Core,
    landing: &'a Arc<Landing>,
    /// The families' state has what it brings: whoever has done the rest has done all. Until then readers lose it again with the
    /// thread.
    in_queues: bool,
}

impl<'a> Posted<'a> {
    /// Of a change that is yet to join the queues.
    pub fn of(core: &'a Core, landing: &'a Arc<Landing>) -> Self {
        Posted { core, landing, in_queues: false }
    }

    /// It is in the queues: others may find it until it has [landed](Core::land_own).
    pub fn stays(self) {
        std::mem::forget(self);
    }
}

impl Drop for Posted<'_> {
    fn drop(&mut self) {
        self.core.take_landing_down(self.landing);
        let is_whole = self.in_queues && self.landing.done_at().is_some();
        if self.landing.told().is_some() && !is_whole && self.landing.failed.get().is_none() {
            self.core.fail_numbered(&Error::read_only("a change failed after it was numbered"));
        }
        self.landing.end_window();
    }
}

#[cfg(test)]
mod tests;
