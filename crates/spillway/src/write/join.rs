//! What joins a family's queue as a whole, rather than entry by entry through a memtable: a large batch that was indexed
//! beforehand, tables that are ingested. Numbers, log space and places in all queues are taken in one step under the
//! commit lock, before anything can be published that needs them. Keeps C1, C3, C4, D3, Q1, S1, V1.

use std::sync::Arc;
use std::time::Duration;

use base::{Error, FamilyId, Result};
use crossbeam_utils::Backoff;
use parking_lot::MutexGuard;

use crate::compaction::Span;
use crate::core::{CommitState, Core, FamilyState, OldViews, State};
use crate::family::Family;
use crate::flush::flushable::{Flushable, QueuedMemtable};
use crate::flush::job::wants_flush;
use crate::ingest::latch::{Clearance, KeyRange, LatchGuard};
use crate::ingest::overlap::Coverage;
use crate::ingest::waits::{IngestNumbers, LockTurn};
use crate::write::admission::Waiter;
use crate::write::given::Given;
use crate::write::landing::{InLog, Landing, Posted, Told, Untold};
use crate::write::logs::ActiveLog;
use crate::write::pipeline::KeyBounds;
use crate::write::staged::{Seam, Staged};

/// An entry of a queue that gets its numbers when it joins.
pub(crate) trait Joins: Flushable {
    /// Called once, under the commit lock, before any reader can find the entry.
    fn set_numbers(&self, given: &Given);

    /// Called once, there too, where a memtable that will be written into a table was sealed because the entry overlaps it.
    fn stands_over_memtable(&self) {}
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
    pub fresh: Option<Arc<QueuedMemtable>>,
    /// The mutable memtable that was found to hold what the entries must not meet, or to be about to: as long as it is the
    /// mutable one, nobody needs to look again.
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
    /// What is left of it then.
    pub landing: &'a Arc<Landing>,
    /// What unfinished writes it is to be taken for by others that look.
    pub bounds: &'a [KeyBounds],
    pub waiter: Waiter,
    /// The latch on all that is touched, of an ingest that has one, with nothing of that in memory; all others wait for such.
    pub latch: Option<&'a LatchGuard<'a>>,
    /// Called with the numbers under the commit lock: O(1), no wait.
    pub noted: &'a dyn Fn(&Given),
}

/// A change that has numbers and stands in the queues. It is to be [landed](Core::land_own).
pub(crate) struct Joined<'a> {
    pub given: Given,
    /// Ingests with smaller numbers.
    pub behind: IngestNumbers,
    /// Families in which it went under the mutable memtable.
    pub under: usize,
    /// A family's ingests began to wait for their flush.
    pub begins_wait: bool,
    pub lock: LockTimes,
    /// What it took the place of. To be dropped once the change is in the log.
    pub replaced: Replaced,
    /// Of range latches: to be dropped then, too.
    pub clearance: Clearance<'a>,
}

/// Whose drop may free memory.
type Replaced = (Vec<Staged>, Vec<OldViews>);

/// How long a change had the commit lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LockTimes {
    /// When it took the lock under which it joined.
    pub joined_at: Duration,
    pub joined_for: Duration,
    /// In all attempts before.
    pub in_vain_for: Duration,
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
    pub(crate) fn join_queues(&self, request: JoinRequest<'_>) -> Result<Joined<'_>> {
        let posted = Posted { core: self, landing: request.landing };
        let joined = self.join_until_numbered(request)?;
        posted.stays();
        Ok(joined)
    }

    fn join_until_numbered(&self, mut request: JoinRequest<'_>) -> Result<Joined<'_>> {
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
        if !request.waiter.is_writer {
            self.get_ready(&request);
        }
        let mut clearance = Clearance::default();
        let mut in_vain_for = Duration::ZERO;
        loop {
            self.check_writable()?;
            let (retry, locked_for) = match self.try_join(&mut request, &clearance)? {
                Ok(mut joined) => {
                    (joined.lock.in_vain_for, joined.clearance) = (in_vain_for, clearance);
                    return Ok(joined);
                }
                Err(retry) => retry,
            };
            request.landing.end_window();
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
                    self.roll_log(&log, request.landing.record_bytes().unwrap_or(0) as u64)?;
                }
                Retry::Fresh(at) => request.joining.get_mut(at).map_or(Ok(()), |j| self.make_fresh(j))?,
            }
        }
    }

    /// So that nothing keeps an ingest that has the commit lock, for which writers wait. Right before that is first tried for.
    fn get_ready(&self, request: &JoinRequest<'_>) {
        let record_bytes = request.landing.record_bytes().unwrap_or(0);
        self.logs.make_end_present(record_bytes);
        // Who has a latch stops the writers that overlap: not for longer than need be.
        if request.latch.is_none() && self.context.pace.rest_beside_writers() {
            self.logs.make_end_present(record_bytes); // a sync may have made it read-only again
        }
    }

    /// Makes the memtable that may take over, unless there is one already. Off every lock.
    pub(crate) fn make_fresh(&self, joining: &mut Joining) -> Result<()> {
        if joining.fresh.is_none() {
            joining.fresh = Some(match self.take_spare(joining.family.id(), 0) {
                Some(spare) => spare,
                None => self.make_memtable(&joining.family, 0)?,
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
                Some(family) if family.spare.is_none() => family.spare = Some(fresh),
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
    ) -> Result<Result<Joined<'_>, (Retry, Duration)>> {
        let mut replaced = (Vec::with_capacity(request.joining.len()), Vec::new()); // dropped behind the locks
        let untold = Untold::new();
        // One at a time, so that nobody spins for the locks while another looks for overlaps under them. No wait is under it.
        let _alone = self.ingesting.lock();
        self.post_landing(request.landing);
        self.check_writable()?; // the one before may have failed
        let mut state = self.state.lock();
        if let Err(retry) = self.stage(request, &mut state, &mut replaced)? {
            return Ok(Err((retry, Duration::ZERO)));
        }
        if !request.waiter.is_writer {
            request.landing.open_window(self.ingest_waits.open_window(self.context.vfs.processor()));
        }
        let mut commit = self.commit.lock();
        let joined_at = self.context.vfs.now();
        let turn = (!request.waiter.is_writer).then(|| self.ingest_waits.turn());
        let (given, space) = match self.give(request, clearance, &replaced.0, (&mut state, &commit))? {
            Ok(given) => given,
            Err(retry) => {
                return Ok(Err((retry, self.end_turn(turn, commit, joined_at))));
            }
        };
        commit.last_seq = given.last;
        let behind = commit.ingests;
        if turn.is_some() {
            commit.ingests.note(&given, self.pipeline.visible());
        }
        (request.noted)(&given);
        let ticket = self.pipeline.enter(given.last, given.log_end, request.bounds);
        for (joining, staged) in request.joining.iter().zip(&mut replaced.0) {
            self.place(joining, staged, &given, &mut state);
        }
        request.landing.tell(untold, Told { given, ticket, space, joined_at });
        let joined_for = self.end_turn(turn, commit, joined_at);
        let mut begins_wait = false;
        for joining in request.joining.iter().filter(|joining| self.flushes_can_wait() && brings_ingest(joining)) {
            begins_wait |= of_joining(&mut state, joining).note_ingest(joined_at);
        }
        drop::<MutexGuard<'_, State>>(state);
        let lock = LockTimes { joined_at, joined_for, in_vain_for: Duration::ZERO };
        let under = replaced.0.iter().filter(|staged| staged.keeps_mutable()).count();
        for (joining, _) in request.joining.iter_mut().zip(&replaced.0).filter(|(_, staged)| !staged.keeps_mutable()) {
            joining.fresh = None; // it is the mutable one
        }
        Ok(Ok(Joined { given, behind, under, begins_wait, lock, replaced, clearance: Clearance::default() }))
    }

    /// Lets go of the commit lock; returns how long that was held.
    fn end_turn(
        &self,
        turn: Option<LockTurn<'_>>,
        commit: MutexGuard<'_, CommitState>,
        locked_at: Duration,
    ) -> Duration {
        let held_for = self.context.vfs.now().saturating_sub(locked_at);
        turn.into_iter().for_each(|turn| turn.end(held_for));
        drop(commit);
        held_for
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

    /// Sees whether the entries can go where they were staged, and which numbers and space of the log they are given. Under
    /// both locks.
    fn give(
        &self,
        request: &mut JoinRequest<'_>,
        clearance: &Clearance<'_>,
        staged: &[Staged],
        (state, commit): (&mut State, &CommitState),
    ) -> Result<Result<(Given, Option<InLog>), Retry>> {
        let log = commit.log.clone().ok_or_else(|| Error::closed("the database has no log: it is closed"))?;
        if request.latch.is_none() && !self.latches.lets_pass(clearance) {
            return Ok(Err(Retry::Latched));
        }
        if !self.pipeline.has_room() {
            return Ok(Err(Retry::PipelineFull));
        }
        for (at, (joining, staged)) in request.joining.iter_mut().zip(staged).enumerate() {
            let mutable = &of_joining(state, joining).mutable;
            // Nobody needs to look where a latch has kept what overlaps out.
            if staged.keeps_mutable() && request.latch.is_none() && self.meets(joining, mutable) {
                joining.met = Some(mutable.id());
                return Ok(Err(Retry::Fresh(at)));
            }
        }
        let exhausted = || Error::read_only("the database has used up its 2^56 sequence numbers");
        let before = commit.last_seq;
        let last = before.checked_add(request.numbers).ok_or_else(exhausted)?;
        // The last step that can fail: space that is reserved is filled.
        let space = match request.landing.record_bytes().map(|bytes| log.file.try_reserve(bytes)) {
            None => None,
            Some(Some(reservation)) => Some((log, reservation)),
            Some(None) => return Ok(Err(Retry::LogFull(log))),
        };
        assert!(last > before, "sequence numbers only grow (S1, S3)");
        let log_end = space.as_ref().map_or(0, |(log, reservation)| log.position(reservation));
        Ok(Ok((Given { before, last, log_end }, space)))
    }

    /// Makes what can be made before the commit lock is taken. Under the state lock: the queues stand from here on.
    fn stage(
        &self,
        request: &JoinRequest<'_>,
        state: &mut State,
        (staged, settled): &mut Replaced,
    ) -> Result<Result<(), Retry>> {
        for (at, joining) in request.joining.iter().enumerate() {
            let family = self.family_state(state, joining.family.id())?;
            settled.extend(family.settle_view());
            // Entries never leave a memtable: what met it is not looked at again.
            let may_go_under = joining.coverage.is_some() && joining.met != Some(family.mutable.id());
            let next = if may_go_under { None } else { joining.fresh.as_ref() };
            if next.is_none() && !may_go_under {
                return Ok(Err(Retry::Fresh(at)));
            }
            let entries = joining.entries.iter().rev().map(|entry| entry.clone() as Arc<dyn Flushable>);
            staged.push(Staged::new(family, entries, next));
        }
        Ok(Ok(()))
    }

    /// Unfinished writers first, then the memtable: a writer that finishes in between is in the memtable.
    fn meets(&self, joining: &Joining, mutable: &QueuedMemtable) -> bool {
        let meets = |coverage: &Coverage| {
            coverage.meets_in_flight(joining.family.id(), &self.pipeline) || coverage.meets_memtable(mutable.memtable())
        };
        joining.coverage.as_ref().is_some_and(meets)
    }

    /// Numbers the entries and puts them into the family's queue and the view of it. Under both locks.
    fn place(&self, joining: &Joining, staged: &mut Staged, given: &Given, state: &mut State) {
        let family = of_joining(state, joining);
        if staged.keeps_mutable() {
            // Before its record is written: whoever finds the memtable alone would miss what joins.
            family.mutable.memtable().mark_foreign();
        } else if joining.coverage.is_some() && family.mutable.conversion().is_none() {
            // One that becomes a table as it is leaves its flush to itself.
            joining.entries.iter().for_each(|entry| entry.stands_over_memtable());
        }
        joining.entries.iter().for_each(|entry| entry.set_numbers(given));
        // No number above those before the change goes to the memtable under it.
        let Given { before, last, .. } = *given;
        staged.put_in_place(family, &Seam { before, last, logged_through: self.pipeline.entered_log(), log: None });
    }
}

/// Of a family that was found when the change was staged, under the same lock.
fn of_joining<'a>(state: &'a mut State, joining: &Joining) -> &'a mut FamilyState {
    state.families.get_mut(&joining.family.id()).expect("families are dropped under the state lock")
}

fn brings_ingest(joining: &Joining) -> bool {
    joining.entries.iter().any(|entry| entry.as_ingest().is_some())
}
