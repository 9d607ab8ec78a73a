//! Memory for a writer's reservation. The memtable's charge is raised; at the limit on all memtables, the writer waits
//! at admission (C4) until flushes have freed enough.
//!
//! The wait ends. Spares are dropped first; then sealed memtables are flushed, or the largest mutable one is sealed. If
//! nothing is left to flush, the batch is larger than the limit by itself and proceeds alone. Writers wait one at a
//! time, so that many small writes do not starve a large one.

use std::sync::Arc;

use base::Result;
use parking_lot::MutexGuard;

use crate::commit::admission::stalled;
use crate::commit::options::WriteOptions;
use crate::commit::stall::StallCause;
use crate::core::FamilyState;
use crate::core::family::Family;
use crate::core::space::Needs;
use crate::queue::Memtables;
use crate::queue::flushable::QueuedMemtable;
use crate::queue::memory::Charge;

/// A writer's turn to wait for memory, kept until its batch is admitted.
pub(crate) type Turn<'a> = Option<MutexGuard<'a, ()>>;

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
        if memory.charged_bytes() > self.memtable_bytes_wanted() {
            self.core.upkeep.raise(); // to seal memtables before the limit is reached
        }
        let MemoryWanted { charge, bytes, .. } = MemoryWanted::of(queued, more_bytes);
        let claim = Claim { charge, bytes, stands: &|| Ok(true) };
        if (has_turn || !memory.turn.is_locked()) && claim.charge.try_raise_a_step(claim.bytes) {
            return true;
        }
        // On a full disk only deletions come here, and no flush may free memory before them.
        let may_exceed = !self.core.context.options.allow_stall || self.core.reserve.is_spent();
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
        let start = self.core.context.vfs.now();
        let met = if turn.is_none() && !self.core.context.vfs.runs_inline() {
            *turn = Some(self.core.context.memtables.memory.turn.lock());
            false
        } else {
            let is_mutable = || family.check_live().map(|()| family.mutable_id() == wanted.memtable);
            self.wait_for_room(&Claim { charge: wanted.charge, bytes: wanted.bytes, stands: &is_mutable })?
        };
        self.core.stall.count_since(StallCause::Memory, start);
        Ok(met)
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
        if !self.core.context.options.allow_stall {
            ahead.raise(bytes);
            return Ok(ahead);
        }
        if options.no_slowdown {
            return Err(stalled());
        }
        let start = self.core.context.vfs.now();
        let _turn = (!self.core.context.vfs.runs_inline()).then(|| memory.turn.lock());
        self.wait_for_room(&claim)?;
        self.core.stall.count_since(StallCause::Memory, start);
        Ok(ahead)
    }

    /// Waits until the claim is met; false if it no longer stands. The caller has the turn.
    fn wait_for_room(&self, claim: &Claim<'_>) -> Result<bool> {
        let memory = &self.core.context.memtables.memory;
        let inline = self.core.context.vfs.runs_inline();
        let _awaited = self.core.context.throttle.await_flushes();
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
            if !flushes && (inline || self.nothing_else_holds_memory(&claim.charge)) && !memory.release_lingering() {
                claim.charge.raise(claim.bytes); // alone
                return Ok(true);
            }
            if inline {
                self.core.drive();
                self.core.space.check(Needs::Flush)?; // no other thread makes room
            } else if !memory.wait_for_return(seen) && !flushes {
                memory.release_lingering();
            }
        }
        Ok(false)
    }

    /// Whether all charged memory but `own` is of empty memtables. Flushing them would free nothing.
    fn nothing_else_holds_memory(&self, own: &Arc<Charge>) -> bool {
        let state = self.core.state.lock();
        let empty = state.families.values().filter(|family| family.mutable.memtable().entries() == 0);
        let charges = empty.map(|family| family.mutable.memtable_charge()).filter(|charge| !Arc::ptr_eq(charge, own));
        let needed: usize = charges.map(|charge| charge.bytes()).sum();
        self.core.context.memtables.memory.charged_bytes() <= needed + own.bytes()
    }

    /// Has sealed entries flushed, or else the largest mutable memtable. False if nothing can be flushed.
    fn flush_something(&self) -> Result<bool> {
        if self.flush_sealed_or_largest()? {
            return Ok(true);
        }
        // Numbered writes may still be inserting into memtables that look empty.
        let last_seq = self.core.commit.lock().last_seq;
        self.core.pipeline.wait_visible(last_seq)?;
        self.flush_sealed_or_largest()
    }

    fn flush_sealed_or_largest(&self) -> Result<bool> {
        let mut state = self.core.state.lock();
        let mut sealed = false;
        for family in state.families.values_mut().filter(|family| !family.queue.is_empty()) {
            family.flush_wanted_through = family.flush_wanted_through.max(family.newest_sealed());
            sealed = true;
        }
        let largest = if sealed { None } else { state.largest_memtable() };
        drop(state);
        if let Some(family) = &largest {
            self.seal_unless_dropped(family)?;
        }
        self.core.state_changed.notify_all();
        Ok(sealed || largest.is_some())
    }

    /// Bytes that mutable memtables may hold together. If writers wait at the limit, half: one half fills while the
    /// other is flushed. Otherwise 7/8, as in RocksDB.
    fn memtable_bytes_wanted(&self) -> usize {
        let limit = self.core.context.memtables.memory.limit_bytes();
        if self.core.context.options.allow_stall { limit / 2 } else { limit - limit / 8 }
    }

    /// Seals the largest memtables while all mutable ones together exceed `memtable_bytes_wanted`. A background job.
    pub(crate) fn keep_memtables_within_limit(&self) -> Result<()> {
        if !self.core.context.memtables.memory.is_limited() {
            return Ok(());
        }
        loop {
            let state = self.core.state.lock();
            let total: usize = state.families.values().map(FamilyState::reserved_bytes).sum();
            let largest = state.largest_memtable().filter(|_| total > self.memtable_bytes_wanted());
            drop(state);
            let Some(family) = largest else { return Ok(()) };
            self.seal_unless_dropped(&family)?;
        }
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
