//! What joins a family's queue as a whole, rather than entry by entry through a memtable: a large batch that was indexed
//! beforehand, tables that are ingested. Numbers, log space and places in all queues are taken in one step under the
//! commit lock, before anything can be published that needs them. Keeps C1, C3, C4, D3, Q1, S1, V1.

use std::sync::Arc;
use std::time::Duration;

use base::{Error, FamilyId, Result, SeqNo};
use crossbeam_utils::Backoff;
use log::Reservation;

use crate::compaction::Span;
use crate::core::{CommitState, Core, FamilyState, OldViews, State};
use crate::family::Family;
use crate::flush::flushable::Flushable;
use crate::flush::held::HeldMemtable;
use crate::flush::job::wants_flush;
use crate::ingest::latch::{Clearance, KeyRange, LatchGuard};
use crate::ingest::overlap::Coverage;
use crate::ingest::waits::{IngestNumbers, Window};
use crate::write::admission::Waiter;
use crate::write::logs::ActiveLog;
use crate::write::pipeline::{KeyBounds, LogPosition, Ticket};
use crate::write::spare::Spare;

/// An entry of a queue that gets its numbers when it joins.
pub(crate) trait Joins: Flushable {
    /// Called once, under the commit lock, before any reader can find the entry.
    fn set_numbers(&self, given: &Given);

    /// Called once, there too, where a memtable that will be written into a table was sealed because the entry overlaps it.
    fn stands_over_memtable(&self) {}
}

/// What a change was given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Given {
    /// The last number before it.
    pub before: SeqNo,
    pub last: SeqNo,
    /// Where its log record ends; 0 where it has none.
    pub log_end: LogPosition,
}

/// What joins one family's queue.
pub(crate) struct Joining {
    pub family: Arc<Family>,
    /// Oldest first.
    pub entries: Vec<Arc<dyn Joins>>,
    /// What they touch beyond what is covered.
    pub touched: Vec<Span>,
    /// Where the entries may go under the mutable memtable: what they must not meet there.
    pub coverage: Option<Coverage>,
    /// The memtable that takes over as mutable where the entries stand above the present one. Made when it is needed.
    pub fresh: Option<HeldMemtable>,
    /// The mutable memtable that was found to hold what the entries must not meet: as long as it is the mutable one,
    /// nobody needs to look again.
    pub met: Option<u64>,
}

impl Joining {
    /// The keys touched, for the range latches.
    pub fn keys(&self) -> impl Iterator<Item = KeyRange<'_>> {
        let (family, order) = (self.family.id(), &self.family.order().user);
        let covered = self.coverage.as_ref().map_or(&[][..], Coverage::spans);
        self.touched.iter().chain(covered).map(move |span| KeyRange::of(family, order, span))
    }
}

/// What a change needs when it is numbered.
pub(crate) struct JoinRequest<'a> {
    pub joining: &'a mut [Joining],
    pub numbers: u64,
    /// Bytes of its log record; `None` for no record.
    pub record_bytes: Option<usize>,
    /// What unfinished writes it is to be taken for by others that look.
    pub bounds: &'a [KeyBounds],
    pub waiter: Waiter,
    /// The latch on all that is touched, of an ingest that has one, with nothing of that in memory; all others wait for such.
    pub latch: Option<&'a LatchGuard<'a>>,
    /// Called with the numbers under the commit lock: O(1), no wait.
    pub noted: &'a dyn Fn(&Given),
}

/// Space for a record.
type InLog = (Arc<ActiveLog>, Reservation);

/// A change that has numbers and stands in the queues.
pub(crate) struct Joined {
    pub ticket: Ticket,
    pub given: Given,
    pub record: Option<InLog>,
    /// Ingests with smaller numbers.
    pub behind: IngestNumbers,
    /// Families in which it went under the mutable memtable.
    pub under: usize,
    /// A family's ingests began to wait for their flush.
    pub begins_wait: bool,
    pub lock: LockTimes,
    /// Of an ingest: what writers wait for. To be dropped once the change is visible.
    pub window: Option<Window>,
}

/// How long a change had the commit lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockTimes {
    /// When it took the lock under which it joined.
    pub joined_at: Duration,
    pub joined_for: Duration,
    /// In all attempts before.
    pub in_vain_for: Duration,
}

/// What a family's queue is to be, made before the commit lock is taken: copying a long queue touches a cold line for each
/// entry, and writers wait for that lock.
struct Staged {
    goes_under: bool,
    /// The queue of the view, with room for what joins.
    queue: Vec<Arc<dyn Flushable>>,
}

/// Why a change could not join just now; what it waits for is off the locks.
enum Retry {
    PipelineFull,
    LogFull(Arc<ActiveLog>),
    /// There are range latches of which the change is not known to be clear.
    Latched,
    /// The family at this place needs a fresh memtable.
    Fresh(usize),
}

impl Core {
    /// Numbers a change and puts its entries into their queues: under the mutable memtable where nothing of theirs is in
    /// it, above it with a fresh one on top otherwise.
    ///
    /// What it has no use for it leaves in `request`, to be [given back](Self::give_back_fresh), and in what it returns.
    ///
    /// # Errors
    /// `Closed`: the database, or a family. `ReadOnly`. Nothing was done then.
    pub(crate) fn join_queues(&self, mut request: JoinRequest<'_>) -> Result<Joined> {
        let backoff = Backoff::new();
        for joining in request.joining.iter_mut() {
            let mutable = joining.family.view().mutable.clone();
            // Entries never leave a memtable: what meets it now will do so under the lock.
            let is_clear = request.latch.is_some();
            let meets = |coverage: &Coverage| !is_clear && coverage.meets_memtable_once_ready(mutable.memtable());
            if joining.coverage.as_ref().is_none_or(meets) {
                joining.met = Some(mutable.id());
                self.make_fresh(joining)?;
            }
        }
        let mut clearance = Clearance::default();
        let mut in_vain_for = Duration::ZERO;
        loop {
            self.check_writable()?;
            let (retry, locked_for) = match self.try_join(&mut request, &clearance)? {
                Ok(mut joined) => {
                    joined.lock.in_vain_for = in_vain_for;
                    return Ok(joined);
                }
                Err(retry) => retry,
            };
            in_vain_for += locked_for;
            if !request.waiter.is_writer {
                self.ingest_waits.bound(in_vain_for);
            }
            match retry {
                Retry::Latched => {
                    self.give_back_fresh(request.joining); // for others, as long as this waits
                    let keys: Vec<KeyRange<'_>> = request.joining.iter().flat_map(Joining::keys).collect();
                    clearance = self.clear_of_latches(&keys, request.waiter)?;
                }
                Retry::PipelineFull => {
                    clearance.give_back_pass();
                    backoff.snooze();
                }
                Retry::LogFull(log) => {
                    clearance.give_back_pass();
                    self.roll_log(&log, request.record_bytes.unwrap_or(0) as u64)?;
                }
                Retry::Fresh(at) => request.joining.get_mut(at).map_or(Ok(()), |j| self.make_fresh(j))?,
            }
        }
    }

    /// Makes the memtable that may take over, unless there is one already. Off every lock.
    pub(crate) fn make_fresh(&self, joining: &mut Joining) -> Result<()> {
        if joining.fresh.is_none() {
            joining.fresh = Some(match self.take_spare(joining.family.id(), 0) {
                Some(spare) => spare,
                None => joining.family.create_memtable(0)?,
            });
        }
        Ok(())
    }

    /// Memtables that were not needed are spares again. Takes the state lock: for whoever has no unfinished number.
    pub(crate) fn give_back_fresh(&self, joining: &mut [Joining]) {
        let mut unused = Vec::new();
        for joining in joining.iter_mut() {
            let Some(fresh) = joining.fresh.take() else { continue };
            let mut state = self.state.lock();
            match state.families.get_mut(&joining.family.id()) {
                Some(family) if family.spare.is_none() => family.spare = Some(Spare::new(fresh)),
                _ => unused.push(fresh), // dropped off the lock
            }
        }
    }

    /// The whole of the locks. The state lock is held so that the queues stand, the commit lock so that the order of
    /// numbers is the order in the queues (Q1).
    fn try_join(
        &self,
        request: &mut JoinRequest<'_>,
        clearance: &Clearance<'_>,
    ) -> Result<Result<Joined, (Retry, Duration)>> {
        // One at a time, so that nobody spins for the locks while another looks for overlaps under them. No wait is under it.
        let _alone = self.ingesting.lock();
        let mut settled = Vec::new(); // dropped behind the locks
        let mut state = self.state.lock();
        let mut staged = self.stage(request.joining, &mut state, &mut settled)?;
        let window = (!request.waiter.is_writer).then(|| self.ingest_waits.open_window(self.context.vfs.processor()));
        let mut commit = self.commit.lock();
        let turn = (!request.waiter.is_writer).then(|| self.ingest_waits.turn());
        let joined_at = self.context.vfs.now();
        let (given, record) = match self.give(request, clearance, &mut staged, (&mut state, &commit))? {
            Ok(given) => given,
            Err(retry) => {
                drop((turn, commit));
                return Ok(Err((retry, self.context.vfs.now().saturating_sub(joined_at))));
            }
        };
        commit.last_seq = given.last;
        let behind = commit.ingests;
        if turn.is_some() {
            commit.ingests.note(&given, self.pipeline.visible());
        }
        (request.noted)(&given);
        for (joining, _) in request.joining.iter().zip(&staged).filter(|(_, staged)| staged.goes_under) {
            // Before its record is written: whoever finds the memtable alone would miss what joins.
            self.family_state(&mut state, joining.family.id())?.mutable.memtable().mark_foreign();
        }
        let ticket = self.pipeline.enter(given.last, given.log_end, request.bounds);
        let under = staged.iter().filter(|staged| staged.goes_under).count();
        let mut begins_wait = false;
        for (joining, staged) in request.joining.iter_mut().zip(staged) {
            let family = self.family_state(&mut state, joining.family.id())?;
            begins_wait |= self.flushes_can_wait() && brings_ingest(joining) && family.note_ingest(joined_at);
            self.place(joining, staged, &given, family);
        }
        let joined_for = self.context.vfs.now().saturating_sub(joined_at);
        drop::<(_, parking_lot::MutexGuard<'_, CommitState>)>((turn, commit));
        drop::<parking_lot::MutexGuard<'_, State>>(state);
        let lock = LockTimes { joined_at, joined_for, in_vain_for: Duration::ZERO };
        Ok(Ok(Joined { ticket, given, record, behind, under, begins_wait, lock, window }))
    }

    /// Has the views be exchanged that were announced when a change joined. For whoever has no unfinished number any more:
    /// writers would wait behind it for this.
    pub(crate) fn settle_views(&self, families: impl Iterator<Item = FamilyId>) {
        let mut old = Vec::new();
        let mut state = self.state.lock();
        old.extend(families.filter_map(|id| state.families.get_mut(&id)?.settle_view()));
        drop(state);
        drop(old); // off the lock
    }

    /// Whether somebody is to flush what joined the queues of these families; has the pace know, too, where they fall behind.
    /// For whoever has no unfinished number any more: writers would wait behind it for this.
    pub(crate) fn joined_wants_flush(&self, families: impl Iterator<Item = FamilyId>) -> bool {
        let state = self.state.lock();
        let mut wants = false;
        for id in families {
            let Some(family) = state.families.get(&id) else { continue };
            wants |= !family.flushing && wants_flush(family);
            if family.waits_for_compactions() {
                self.context.pace.set_behind(true); // until a version says otherwise
            }
        }
        wants
    }

    /// Decides where the entries go, and what numbers and which space of the log they are given. Under both locks.
    fn give(
        &self,
        request: &JoinRequest<'_>,
        clearance: &Clearance<'_>,
        staged: &mut [Staged],
        (state, commit): (&mut State, &CommitState),
    ) -> Result<Result<(Given, Option<InLog>), Retry>> {
        let log = commit.log.clone().ok_or_else(|| Error::closed("the database has no log: it is closed"))?;
        if request.latch.is_none() && !self.latches.lets_pass(clearance) {
            return Ok(Err(Retry::Latched));
        }
        if !self.pipeline.has_room() {
            return Ok(Err(Retry::PipelineFull));
        }
        for (at, (joining, staged)) in request.joining.iter().zip(staged).enumerate() {
            staged.goes_under = self.goes_under(joining, request.latch.is_some(), state)?;
            if !staged.goes_under && joining.fresh.is_none() {
                return Ok(Err(Retry::Fresh(at)));
            }
        }
        let exhausted = || Error::read_only("the database has used up its 2^56 sequence numbers");
        let before = commit.last_seq;
        let last = before.checked_add(request.numbers).ok_or_else(exhausted)?;
        // The last step that can fail: space that is reserved is filled.
        let record = match request.record_bytes.map(|bytes| log.file.try_reserve(bytes)) {
            None => None,
            Some(Some(reservation)) => Some((log, reservation)),
            Some(None) => return Ok(Err(Retry::LogFull(log))),
        };
        assert!(last > before, "sequence numbers only grow (S1, S3)");
        let log_end = record.as_ref().map_or(0, |(log, reservation)| log.position(reservation));
        Ok(Ok((Given { before, last, log_end }, record)))
    }

    /// Makes what can be made before the commit lock is taken. Under the state lock: the queues stand from here on.
    fn stage(&self, joining: &[Joining], state: &mut State, settled: &mut Vec<OldViews>) -> Result<Vec<Staged>> {
        let stage = |joining: &Joining| {
            let family = self.family_state(state, joining.family.id())?;
            settled.extend(family.settle_view());
            let more = joining.entries.len() + 1;
            family.queue.reserve(more);
            let mut queue = Vec::with_capacity(family.queue.len() + more);
            queue.extend(family.queue.iter().cloned());
            Ok(Staged { goes_under: false, queue })
        };
        joining.iter().map(stage).collect()
    }

    /// Unfinished writers first, then the memtable: a writer that finishes in between is in the memtable. Nobody needs to
    /// look where a latch has kept what overlaps out.
    fn goes_under(&self, joining: &Joining, is_latched: bool, state: &mut State) -> Result<bool> {
        let Some(coverage) = &joining.coverage else { return Ok(false) };
        if is_latched {
            return Ok(true);
        }
        let family = self.family_state(state, joining.family.id())?;
        // Entries never leave a memtable.
        let met = joining.met == Some(family.mutable.id())
            || coverage.meets_in_flight(joining.family.id(), &self.pipeline)
            || coverage.meets_memtable(family.mutable.memtable());
        Ok(!met)
    }

    /// Puts the entries into the family's queue and the view of it. Under both locks.
    fn place(&self, joining: &mut Joining, staged: Staged, given: &Given, family: &mut FamilyState) {
        let mut queue = staged.queue;
        if !staged.goes_under {
            let made = joining.fresh.take().expect("made before the locks were taken");
            let sealed = self.seal_mutable(family, made, given);
            // One that becomes a table as it is leaves its flush to itself.
            if joining.coverage.is_some() && sealed.conversion().is_none() {
                joining.entries.iter().for_each(|entry| entry.stands_over_memtable());
            }
            family.queue.insert(0, sealed.clone());
            queue.insert(0, sealed);
        }
        for entry in &joining.entries {
            entry.set_numbers(given);
            family.queue.insert(0, entry.clone());
            queue.insert(0, entry.clone());
        }
        family.family.set_mutable(&family.mutable);
        family.announce_view(queue);
    }

    /// Seals the mutable memtable, which no number above those before the change goes to. Returns it, to be queued.
    fn seal_mutable(&self, family: &mut FamilyState, made: HeldMemtable, given: &Given) -> Arc<dyn Flushable> {
        let next = self.context.queue_memtable(made, given.last);
        let old = std::mem::replace(&mut family.mutable, next);
        old.seal_at(given.before, self.pipeline.entered_log(), None);
        old
    }
}

fn brings_ingest(joining: &Joining) -> bool {
    joining.entries.iter().any(|entry| entry.as_ingest().is_some())
}
