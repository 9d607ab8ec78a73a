//! Memory for a writer's reservation. The memtable's charge is raised; at the limit on all memtables, the writer waits
//! at admission (C4) until flushes have freed enough.
//!
//! The wait ends. Spares are dropped first; then sealed memtables are flushed, or one of the mutable ones is sealed: the
//! largest of all databases that share the limit, whoever writes. If nothing is left to flush, the batch is larger than
//! the limit by itself, or memory is held by databases that cannot flush, and the writer proceeds alone. Writers wait
//! one at a time, across databases, so that many small writes do not starve a large one. A writer whose own database
//! lacks disk space gives its turn up: writers of others need not wait for that.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::Result;
use parking_lot::MutexGuard;

use crate::batch::options::WriteOptions;
use crate::core::family::Family;
use crate::core::space::Needs;
use crate::memtables::Memtables;
use crate::order::stall::StallCause;
use crate::order::stall::stalled;
use crate::queue::flushable::QueuedMemtable;
use crate::queue::memory::Charge;
use crate::queue::sharers::{Sharer, Survey};

/// A writer's turn to wait for memory, kept until its batch is admitted.
pub(crate) type Turn<'a> = Option<MutexGuard<'a, ()>>;

/// Looks in a row without a return of memory before a writer proceeds alone, if nothing can be flushed: memory is held by
/// a database that is being opened, or by a large batch of another writer.
const IDLE_LOOKS_MAX: u32 = 50;

/// As `IDLE_LOOKS_MAX`, after other databases were asked. A listener of theirs may wait for this write.
const ASKED_LOOKS_MAX: u32 = 500;

/// Who flushes for a waiting writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flushes {
    Nobody,
    /// Other databases only.
    Others,
    /// This database, and maybe others.
    Own,
}

/// Memory wanted for one part of a write.
pub(crate) struct MemoryWanted {
    /// Memtable id.
    memtable: u64,
    charge: Arc<Charge>,
    bytes: usize,
}

impl MemoryWanted {
    pub fn memtable(&self) -> u64 {
        self.memtable
    }

    /// For the memtable's reserved or held bytes, whichever is more, and `more_bytes`.
    pub fn of(queued: &QueuedMemtable, more_bytes: usize) -> Self {
        let (charge, bytes) = (queued.memtable_charge().clone(), wanted_bytes(queued).saturating_add(more_bytes));
        MemoryWanted { memtable: queued.id(), charge, bytes }
    }
}

/// A charge wanted by a writer. Holds no memtable: a waiting writer would keep its memory from being freed.
struct Claim<'a> {
    charge: Arc<Charge>,
    /// Bytes the charge must cover.
    bytes: usize,
    /// False once the writer has nothing left to wait for.
    stands: &'a dyn Fn() -> Result<bool>,
}

impl Memtables {
    /// Raises a memtable's charge to cover its reserved bytes and `more_bytes`, about to be reserved. False if this needs
    /// a wait: the caller then drops its handles and calls [`wait_for_memory`](Self::wait_for_memory).
    #[cold]
    pub(crate) fn raise_charge(&self, queued: &QueuedMemtable, more_bytes: usize, has_turn: bool) -> bool {
        let memory = &self.core.context.memtables.memory;
        if memory.charged_bytes() > memory.mutable_bytes_wanted() {
            self.core.upkeep.raise(); // to seal memtables before the limit is reached
        }
        let MemoryWanted { charge, bytes, .. } = MemoryWanted::of(queued, more_bytes);
        let claim = Claim { charge, bytes, stands: &|| Ok(true) };
        if (has_turn || !memory.turn.is_locked()) && claim.charge.try_raise_a_step(claim.bytes) {
            return true;
        }
        // On a full disk only deletions come here, and no flush may free memory before them.
        let may_exceed = !memory.allows_stall() || self.core.reserve.is_spent();
        if may_exceed {
            claim.charge.raise(bytes);
        }
        may_exceed
    }

    /// Waits until a family's mutable memtable has the wanted charge. False if the memtable was replaced meanwhile.
    /// Also false if the writer had no turn: it has one now, and must check its reservations again.
    pub(crate) fn wait_for_memory<'a>(
        &'a self,
        family: &Arc<Family>,
        wanted: MemoryWanted,
        options: &WriteOptions,
        turn: &mut Turn<'a>,
    ) -> Result<bool> {
        if options.no_slowdown {
            return Err(stalled());
        }
        let _wait = self.core.stall.wait(StallCause::Memory);
        if turn.is_none() && !self.core.context.vfs.runs_inline() {
            *turn = Some(self.core.context.memtables.memory.turn.lock());
            return Ok(false);
        }
        let is_mutable = || family.check_live().map(|()| family.mutable_id() == wanted.memtable);
        self.wait_for_room(&Claim { charge: wanted.charge, bytes: wanted.bytes, stands: &is_mutable }, turn)
    }

    /// Charges the memory of a large batch, for all families at once and before any of it is used: two such batches
    /// never wait for each other.
    pub(crate) fn charge_ahead(&self, bytes: usize, options: &WriteOptions) -> Result<Arc<Charge>> {
        let memory = &self.core.context.memtables.memory;
        let ahead = Charge::new(memory, 0);
        let claim = Claim { charge: ahead.clone(), bytes, stands: &|| Ok(true) };
        if ahead.covers(bytes) || (!memory.turn.is_locked() && claim.charge.try_raise_a_step(claim.bytes)) {
            return Ok(ahead);
        }
        if !memory.allows_stall() {
            ahead.raise(bytes);
            return Ok(ahead);
        }
        if options.no_slowdown {
            return Err(stalled());
        }
        let _wait = self.core.stall.wait(StallCause::Memory);
        let mut turn = (!self.core.context.vfs.runs_inline()).then(|| memory.turn.lock());
        self.wait_for_room(&claim, &mut turn)?;
        Ok(ahead)
    }

    /// Waits until the claim is met; false if it no longer stands. The caller has the turn.
    fn wait_for_room<'a>(&'a self, claim: &Claim<'_>, turn: &mut Turn<'a>) -> Result<bool> {
        let memory = &self.core.context.memtables.memory;
        let inline = self.core.context.vfs.runs_inline();
        let _awaited = self.core.context.throttle.await_flushes();
        let mut idle_looks = 0;
        while (claim.stands)()? {
            self.core.check_writable()?;
            let seen = memory.returns();
            if claim.charge.try_raise_a_step(claim.bytes) {
                return Ok(true);
            }
            if self.give_up_spares() {
                continue;
            }
            let flushes = self.flush_something()?;
            let gives_up = match flushes {
                Flushes::Own => false,
                Flushes::Others => idle_looks >= ASKED_LOOKS_MAX,
                Flushes::Nobody if memory.is_shared() && idle_looks >= IDLE_LOOKS_MAX => true,
                Flushes::Nobody => inline || self.nothing_else_holds_memory(&claim.charge),
            };
            if !memory.allows_stall() || (gives_up && !memory.release_lingering()) {
                claim.charge.raise(claim.bytes); // alone
                return Ok(true);
            }
            if inline {
                self.core.drive();
                self.core.space.check(Needs::Flush)?; // no other thread makes room
            } else if self.wait_for_return(seen, turn) {
                idle_looks = 0;
            } else {
                idle_looks += 1;
                if flushes == Flushes::Nobody {
                    memory.release_lingering();
                }
            }
        }
        Ok(false)
    }

    /// Waits for a return of memory, without the turn if this database's flushes wait for disk space.
    fn wait_for_return<'a>(&'a self, seen: u64, turn: &mut Turn<'a>) -> bool {
        let memory = &self.core.context.memtables.memory;
        if !memory.is_shared() || turn.is_none() || !self.core.space.is_lacking(Needs::Flush) {
            return memory.wait_for_return(seen);
        }
        *turn = None;
        let is_returned = memory.wait_for_return(seen);
        *turn = Some(memory.turn.lock());
        is_returned
    }

    /// What all databases hold. This one can flush, or waits until it can.
    fn survey(&self) -> Survey {
        let memory = &self.core.context.memtables.memory;
        memory.sharers.survey(Some((self, self.held_if(true))), memory.flushes_oldest_first())
    }

    fn is_own(&self, sharer: &Arc<dyn Sharer>) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(sharer), self)
    }

    /// Whether all charged memory but `own` is memory that no flush would free.
    fn nothing_else_holds_memory(&self, own: &Arc<Charge>) -> bool {
        let kept_bytes = self.survey().kept_bytes;
        let state = self.core.state.lock();
        let mut empty = state.families.values().filter(|family| family.mutable.memtable().entries() == 0);
        // An own memtable without entries is among the kept ones.
        let own_bytes =
            if empty.any(|family| Arc::ptr_eq(family.mutable.memtable_charge(), own)) { 0 } else { own.bytes() };
        self.core.context.memtables.memory.charged_bytes() <= kept_bytes + own_bytes
    }

    /// Has sealed entries flushed, or else the first mutable memtable.
    fn flush_something(&self) -> Result<Flushes> {
        let flushes = self.flush_sealed_or_first()?;
        if flushes != Flushes::Nobody {
            return Ok(flushes);
        }
        // Numbered writes may still be inserting into memtables that look empty.
        let last_seq = self.core.commit.lock().last_seq;
        self.core.pipeline.wait_visible(last_seq)?;
        self.flush_sealed_or_first()
    }

    fn flush_sealed_or_first(&self) -> Result<Flushes> {
        let Survey { sealed, first, .. } = self.survey();
        let first = if sealed.is_empty() { first } else { None };
        let mut flushes = Flushes::Nobody;
        for sharer in sealed.iter().chain(&first) {
            if self.is_own(sharer) {
                self.flush_own()?;
                flushes = Flushes::Own;
            } else {
                sharer.ask_for_memory();
                flushes = if flushes == Flushes::Own { flushes } else { Flushes::Others };
            }
        }
        Ok(flushes)
    }

    /// Has sealed entries of this database flushed, or else its first mutable memtable.
    fn flush_own(&self) -> Result<()> {
        let oldest_first = self.core.context.memtables.memory.flushes_oldest_first();
        let mut state = self.core.state.lock();
        let mut sealed = false;
        for family in state.families.values_mut().filter(|family| !family.queue.is_empty()) {
            family.flush_wanted_through = family.flush_wanted_through.max(family.newest_sealed());
            sealed = true;
        }
        let first = if sealed { None } else { state.first_memtable(oldest_first) };
        drop(state);
        if let Some(family) = &first {
            self.seal_unless_dropped(family)?;
        }
        self.core.state_changed.notify_all();
        Ok(())
    }

    /// Seals memtables while all mutable ones together exceed what they may hold, the largest first. Has another database
    /// do so if it has the largest. A background job.
    pub(crate) fn keep_memtables_within_limit(&self) -> Result<()> {
        if self.is_asked.swap(false, Ordering::AcqRel) {
            self.give_up_spares();
            self.flush_own()?;
        }
        let memory = &self.core.context.memtables.memory;
        // Charges cover what memtables hold. So few need no look at each.
        while memory.is_limited() && memory.charged_bytes() > memory.mutable_bytes_wanted() {
            let survey = self.survey();
            let Some(first) = survey.first.filter(|_| survey.mutable_bytes > memory.mutable_bytes_wanted()) else {
                break;
            };
            if !self.is_own(&first) {
                first.call();
                break;
            }
            let family = self.core.state.lock().first_memtable(memory.flushes_oldest_first());
            let Some(family) = family else { break };
            self.seal_unless_dropped(&family)?;
        }
        Ok(())
    }

    /// Seals a family to free its memory. It may be dropped meanwhile, which also frees the memory: no error.
    fn seal_unless_dropped(&self, family: &Arc<Family>) -> Result<()> {
        match self.seal_for_flush(family) {
            Err(_) if family.is_dropped() => Ok(()),
            sealed => sealed.map(drop),
        }
    }
}

/// Bytes to charge: reserved, or held if more.
fn wanted_bytes(queued: &QueuedMemtable) -> usize {
    let memtable = queued.memtable();
    memtable.reserved_bytes().max(memtable.memory_bytes())
}

#[cfg(test)]
mod tests {
    use vfs::MemoryVfs;

    use crate::internal::{Database, FamilyOptions, OpenOptions, WriteOptions};

    /// A writer of another family chose it as the largest.
    #[test]
    fn a_family_that_is_dropped_before_it_is_sealed_is_no_writers_error() {
        let options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).expect("a new database");
        let family = db.create_family("passing", FamilyOptions::default()).expect("made");
        db.put(&family, b"key", b"value", &WriteOptions::default()).expect("written");
        db.drop_family(&family).expect("dropped");
        db.engine().flusher.memtables.seal_for_flush(&family).expect_err("it is gone");
        db.engine().flusher.memtables.seal_unless_dropped(&family).expect("nothing is left to be sealed");
    }
}
