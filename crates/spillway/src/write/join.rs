//! What joins a family's queue as a whole, rather than entry by entry through a memtable: a large batch that was indexed
//! beforehand, tables that are ingested. Numbers and log space are taken in one step under the commit lock, and writers turned
//! away from the memtables that end there; places in the queues are shown before anything can be published that needs them.
//! Keeps C1, C3, C4, D3, Q1, S1, V1.

use std::sync::Arc;
use std::time::Duration;

use base::{FamilyId, Result};
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
use crate::write::given::{Given, Joins};
use crate::write::landing::{Landing, Place, Posted, Told, Untold};
use crate::write::numbers::{Full, Taken};
use crate::write::pipeline::KeyBounds;
use crate::write::staged::Staged;

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
    pub noted: Option<&'a dyn Fn(&Given)>,
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

/// What a change has when it lets go of the commit lock.
struct Numbered {
    given: Given,
    /// Ingests with smaller numbers.
    behind: IngestNumbers,
    lock: LockTimes,
}

/// Why a change could not join just now; what it waits for is off the locks.
enum Retry {
    Full(Full),
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
        let posted = Posted::of(self, request.landing);
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
                Retry::Full(Full::Pipeline) => {
                    clearance.give_back_pass();
                    backoff.snooze();
                }
                Retry::Full(Full::Log(log)) => {
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
        let mut untold = Untold::new();
        // One at a time, so that nobody spins for the locks while another looks for overlaps under them. No wait is under it.
        let _alone = self.ingesting.lock();
        self.post_landing(request.landing);
        self.check_writable()?; // the one before may have failed
        let mut state = self.state.lock();
        if let Err(retry) = self.stage(request, &mut state, (&mut replaced, &mut untold))? {
            return Ok(Err((retry, Duration::ZERO)));
        }
        if !request.waiter.is_writer {
            request.landing.open_window(self.ingest_waits.open_window(self.context.vfs.processor()));
        }
        let numbered = self.number_joining(request, clearance, (&replaced.0, untold), &mut state)?;
        let Numbered { given, behind, lock } = match numbered {
            Ok(numbered) => numbered,
            Err(retry) => return Ok(Err(retry)),
        };
        // Before the state lock is let go of: what changes the queues next finds nothing half done.
        request.landing.show();
        let mut begins_wait = false;
        for (joining, staged) in request.joining.iter_mut().zip(&mut replaced.0) {
            let family = of_joining(&mut state, joining);
            follow(joining, staged, family);
            if self.flushes_can_wait() && brings_ingest(joining) {
                begins_wait |= family.note_ingest(lock.joined_at);
            }
        }
        drop::<MutexGuard<'_, State>>(state);
        let under = replaced.0.iter().filter(|staged| staged.keeps_mutable()).count();
        Ok(Ok(Joined { given, behind, under, begins_wait, lock, replaced, clearance: Clearance::default() }))
    }

    /// The whole of the commit lock, for which writers wait: numbers are taken, and writers turned away from memtables that
    /// entries go above. All the rest anybody can do who waits for it. Code that has not run for a while, so what is called here
    /// is inline but for what writes run, too: each page of it costs as much as what is done.
    fn number_joining(
        &self,
        request: &mut JoinRequest<'_>,
        clearance: &Clearance<'_>,
        (staged, untold): (&[Staged], Untold),
        state: &mut State,
    ) -> Result<Result<Numbered, (Retry, Duration)>> {
        let mut commit = self.commit.lock();
        let joined_at = self.context.vfs.now();
        let turn = (!request.waiter.is_writer).then(|| self.ingest_waits.turn());
        let behind = commit.ingests;
        let taken = match self.take_joining(request, clearance, staged, (&mut *state, &mut commit))? {
            Ok(taken) => taken,
            Err(retry) => return Ok(Err((retry, self.end_turn(turn, commit, joined_at)))),
        };
        let given = taken.given;
        if turn.is_some() {
            commit.ingests.note(&given, self.pipeline.visible());
        }
        if let Some(noted) = request.noted {
            noted(&given);
        }
        for (joining, staged) in request.joining.iter().zip(staged) {
            staged.turn_writers_away(&joining.family);
        }
        let logged_through = self.pipeline.entered_log();
        request.landing.tell(untold, Told { taken, joined_at, logged_through });
        let joined_for = self.end_turn(turn, commit, joined_at);
        Ok(Ok(Numbered { given, behind, lock: LockTimes { joined_at, joined_for, in_vain_for: Duration::ZERO } }))
    }

    /// Lets go of the commit lock; returns how long that was held.
    #[inline]
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

    /// Takes numbers, and space in the log, if the entries can go where they were staged. Under both locks.
    #[inline]
    fn take_joining(
        &self,
        request: &mut JoinRequest<'_>,
        clearance: &Clearance<'_>,
        staged: &[Staged],
        (state, commit): (&mut State, &mut CommitState),
    ) -> Result<Result<Taken, Retry>> {
        if request.latch.is_none() && !self.latches.lets_pass(clearance) {
            return Ok(Err(Retry::Latched));
        }
        for (at, (joining, staged)) in request.joining.iter_mut().zip(staged).enumerate() {
            // Nobody needs to look where a latch has kept what overlaps out.
            if staged.keeps_mutable() && request.latch.is_none() {
                let mutable = &of_joining(state, joining).mutable;
                if self.meets(joining, mutable) {
                    joining.met = Some(mutable.id());
                    return Ok(Err(Retry::Fresh(at)));
                }
            }
        }
        let taken = self.take_numbers(commit, request.numbers, request.landing.record_bytes(), request.bounds)?;
        Ok(taken.map_err(Retry::Full))
    }

    /// Makes what can be made before the commit lock is taken. Under the state lock: the queues stand from here on.
    fn stage(
        &self,
        request: &JoinRequest<'_>,
        state: &mut State,
        ((staged, settled), untold): (&mut Replaced, &mut Untold),
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
            let of_family = Staged::new(family, entries, next);
            untold.add(Place { entries: joining.entries.clone(), view: Arc::downgrade(of_family.view()) });
            staged.push(of_family);
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
}

/// Has a family's state follow what readers were shown. Under the state lock.
fn follow(joining: &mut Joining, staged: &mut Staged, family: &mut FamilyState) {
    if !staged.keeps_mutable() {
        joining.fresh = None; // it is the mutable one
        // One that becomes a table as it is leaves its flush to itself.
        if joining.coverage.is_some() && family.mutable.conversion().is_none() {
            joining.entries.iter().for_each(|entry| entry.stands_over_memtable());
        }
    }
    staged.follow(family);
}

/// Of a family that was found when the change was staged, under the same lock.
fn of_joining<'a>(state: &'a mut State, joining: &Joining) -> &'a mut FamilyState {
    state.families.get_mut(&joining.family.id()).expect("families are dropped under the state lock")
}

fn brings_ingest(joining: &Joining) -> bool {
    joining.entries.iter().any(|entry| entry.as_ingest().is_some())
}
