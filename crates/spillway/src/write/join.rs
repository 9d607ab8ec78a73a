//! What joins a family's queue as a whole, rather than entry by entry through a memtable: a large batch that was indexed
//! beforehand, tables that are ingested. Under the commit lock numbers, log space and a place in the pipeline are taken, and
//! the queues' views installed: before the record is appended, so before anything is published that needs them.
//! Keeps C1, C3, C4, D3, Q1, S1, V1.

use std::sync::Arc;
use std::time::Duration;

use base::{FamilyId, Result};
use crossbeam_utils::Backoff;

use crate::compaction::Span;
use crate::core::{CommitState, Core, FamilyState, OldViews, State};
use crate::family::Family;
use crate::flush::flushable::{Flushable, QueuedMemtable};
use crate::flush::job::wants_flush;
use crate::ingest::latch::{Clearance, KeyRange, LatchGuard};
use crate::ingest::overlap::Coverage;
use crate::write::admission::Waiter;
use crate::write::commit::Unfinished;
use crate::write::given::{Given, Joins};
use crate::write::numbers::{Full, InLog, Taken};
use crate::write::pipeline::KeyBounds;
use crate::write::record::Record;
use crate::write::staged::{Seam, Staged};

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
    /// `None` where nothing is logged.
    pub record: Option<&'a Record>,
    /// Key bounds for others that look for unfinished writes that they overlap.
    pub bounds: &'a [KeyBounds],
    pub waiter: Waiter,
    /// Latch over everything touched, with nothing of it in memory. All others wait for such latches.
    pub latch: Option<&'a LatchGuard<'a>>,
    /// Called with the numbers under the commit lock: O(1), no wait.
    pub noted: Option<&'a dyn Fn(&Given)>,
}

/// A change that has numbers and stands in the queues. Its record is yet to be [logged](Core::log_joined).
pub(crate) struct Joined<'a> {
    pub given: Given,
    space: Option<InLog>,
    unfinished: Unfinished<'a>,
    /// Families in which it went under the mutable memtable.
    pub under: usize,
    /// A family's ingests began to wait for their flush.
    pub begins_wait: bool,
    pub lock: LockTimes,
    /// Freed when dropped: off the locks, after the record was logged.
    _replaced: Replaced,
    _clearance: Clearance<'a>,
}

/// What a change replaced. Dropping it may free memory.
type Replaced = (Vec<Staged>, Vec<OldViews>);

/// How long a change had the commit lock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LockTimes {
    /// When it took the lock under which it joined.
    pub joined_at: Duration,
    /// Under the lock, in all attempts.
    pub locked_for: Duration,
}

/// Why a change could not join just now. Each is provided off the locks.
enum Missing {
    Full(Full),
    /// There are range latches, and the change is not known to be clear of them.
    Latch,
    /// The family at this place needs a memtable to follow the present one.
    Successor(usize),
}

impl Core {
    /// Numbers a change and puts its entries into their queues: under the mutable memtable where it holds nothing of what the
    /// entries cover, above it with a fresh one on top otherwise.
    ///
    /// Unused memtables stay in `request`; the caller [gives them back](Self::give_back_fresh).
    ///
    /// # Errors
    /// `Closed`: the database, or a family. `ReadOnly`. Nothing was done then.
    pub(crate) fn join_queues<'a>(&'a self, mut request: JoinRequest<'_>) -> Result<Joined<'a>> {
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
        let mut lock = LockTimes::default();
        loop {
            self.check_writable()?;
            match self.try_join(&mut request, &clearance, &mut lock)? {
                Ok(joined) => return Ok(Joined { _clearance: clearance, ..joined }),
                Err(Missing::Latch) => {
                    self.give_back_fresh(request.joining); // for others, as long as this waits
                    let keys: Vec<KeyRange<'_>> = request.joining.iter().flat_map(Joining::keys).collect();
                    clearance = self.clear_of_latches(&keys, request.waiter)?;
                }
                Err(Missing::Full(Full::Pipeline)) => {
                    clearance.give_back_pass();
                    backoff.snooze();
                }
                Err(Missing::Full(Full::Log(log))) => {
                    clearance.give_back_pass();
                    self.roll_log(&log, request.record.map_or(0, Record::len) as u64)?;
                }
                Err(Missing::Successor(at)) => {
                    request.joining.get_mut(at).map_or(Ok(()), |joining| self.make_fresh(joining))?;
                }
            }
        }
    }

    /// Appends the record of a change that joined, and publishes it.
    ///
    /// # Errors
    /// `Io`, sticky: the database takes no more writes.
    pub(crate) fn log_joined(&self, joined: &mut Joined<'_>, record: Option<&Record>) -> Result<()> {
        if let (Some((log, reservation)), Some(record)) = (&joined.space, record) {
            log.note_published(self.pipeline.published_log());
            let numbers = record.numbers(&joined.given);
            let logged = self.logs.append(log, reservation, record.kind, &record.with(&numbers));
            logged.inspect_err(|error| self.fail(error))?;
        }
        joined.unfinished.finish();
        Ok(())
    }

    /// Exchanges the views that were installed when a change joined, and frees what it replaced. The change is published:
    /// writers would wait behind it otherwise.
    pub(crate) fn end_join(&self, joined: Joined<'_>, families: impl Iterator<Item = FamilyId>) {
        let mut old = Vec::new();
        let mut state = self.state.lock();
        old.extend(families.filter_map(|id| state.families.get_mut(&id)?.settle_view()));
        drop(state);
        drop((old, joined)); // off the lock
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

    /// Returns unused memtables to the spares. Takes the state lock: not for a caller with an unfinished number.
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

    /// Whether a flush of these families is due; tells the pace where they fall behind. Takes the state lock: not for a caller
    /// with an unfinished number.
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

    /// Both locks. The state lock keeps the queues as they were staged, the commit lock makes the order of numbers the order in
    /// the queues (Q1). No wait for another thread under either (C3).
    fn try_join<'a>(
        &'a self,
        request: &mut JoinRequest<'_>,
        clearance: &Clearance<'_>,
        lock: &mut LockTimes,
    ) -> Result<Result<Joined<'a>, Missing>> {
        let mut replaced = (Vec::with_capacity(request.joining.len()), Vec::new()); // dropped behind the locks
        let mut unfinished = Unfinished::new(self); // likewise: a failure takes the state lock
        let mut state = self.state.lock();
        if let Err(missing) = self.stage(request, &mut state, &mut replaced)? {
            return Ok(Err(missing));
        }
        let mut commit = self.commit.lock();
        let held = (!request.waiter.is_writer).then(|| self.ingest_waits.hold_lock());
        lock.joined_at = self.context.vfs.now();
        let taken = self.take_joining(request, clearance, &replaced.0, (&mut state, &mut commit))?;
        if let Ok(taken) = &taken {
            unfinished.hold(taken.ticket);
            self.install_joined(request, &mut replaced.0, &taken.given);
        }
        let locked_for = self.context.vfs.now().saturating_sub(lock.joined_at);
        lock.locked_for += locked_for;
        held.into_iter().for_each(|held| held.end(locked_for));
        drop(commit);
        let Taken { given, space, .. } = match taken {
            Ok(taken) => taken,
            Err(missing) => return Ok(Err(missing)),
        };
        let mut begins_wait = false;
        for (joining, staged) in request.joining.iter_mut().zip(&mut replaced.0) {
            let family = of_joining(&mut state, joining);
            follow(joining, staged, family);
            if self.flushes_can_wait() && brings_ingest(joining) {
                begins_wait |= family.note_ingest(lock.joined_at);
            }
        }
        drop(state);
        let under = replaced.0.iter().filter(|staged| staged.keeps_mutable()).count();
        let (lock, _replaced, _clearance) = (*lock, replaced, Clearance::default());
        Ok(Ok(Joined { given, space, unfinished, under, begins_wait, lock, _replaced, _clearance }))
    }

    /// Gives the entries their numbers, and installs the views that were staged: writers that take numbers from now on go to
    /// the memtables above the entries, readers find the entries before any number is published that needs them (V1). Under
    /// the commit lock: O(1) for each family (C3).
    fn install_joined(&self, request: &JoinRequest<'_>, staged: &mut [Staged], given: &Given) {
        if let Some(noted) = request.noted {
            noted(given);
        }
        let logged_through = self.pipeline.entered_log();
        for (joining, staged) in request.joining.iter().zip(staged) {
            if staged.keeps_mutable() {
                // Before the record is appended: a recovery that finds the memtable's image alone would miss the entries.
                staged.mutable().memtable().mark_foreign();
            }
            joining.entries.iter().for_each(|entry| entry.set_numbers(given));
            // No number above those before the change goes to the memtable under it.
            let Given { before, last, .. } = *given;
            staged.install(&joining.family, &Seam { before, last, logged_through, log: None });
        }
    }

    /// Takes numbers, and space in the log, if the entries can go where they were staged. Under both locks.
    fn take_joining(
        &self,
        request: &mut JoinRequest<'_>,
        clearance: &Clearance<'_>,
        staged: &[Staged],
        (state, commit): (&mut State, &mut CommitState),
    ) -> Result<Result<Taken, Missing>> {
        if request.latch.is_none() && !self.latches.lets_pass(clearance) {
            return Ok(Err(Missing::Latch));
        }
        for (at, (joining, staged)) in request.joining.iter_mut().zip(staged).enumerate() {
            // A latch keeps out whatever overlaps.
            if staged.keeps_mutable() && request.latch.is_none() {
                let mutable = &of_joining(state, joining).mutable;
                if self.meets(joining, mutable) {
                    joining.met = Some(mutable.id());
                    return Ok(Err(Missing::Successor(at)));
                }
            }
        }
        let taken = self.take_numbers(commit, request.numbers, request.record.map(Record::len), request.bounds)?;
        Ok(taken.map_err(Missing::Full))
    }

    /// Makes what can be made before the commit lock is taken. Under the state lock: the queues stand from here on.
    fn stage(
        &self,
        request: &JoinRequest<'_>,
        state: &mut State,
        (staged, settled): &mut Replaced,
    ) -> Result<Result<(), Missing>> {
        for (at, joining) in request.joining.iter().enumerate() {
            let family = self.family_state(state, joining.family.id())?;
            settled.extend(family.settle_view());
            // Entries never leave a memtable: what met it is not looked at again.
            let may_go_under = joining.coverage.is_some() && joining.met != Some(family.mutable.id());
            let next = if may_go_under { None } else { joining.fresh.as_ref() };
            if next.is_none() && !may_go_under {
                return Ok(Err(Missing::Successor(at)));
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
