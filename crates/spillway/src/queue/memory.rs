//! How much memory all memtables of a database hold together, and the limit on it (`db_write_buffer_size`).
//!
//! Each memtable that the engine holds is *charged*: mutable, queued, being flushed, made ahead as a spare, or filled by
//! a large batch. A charge covers at least what is reserved in the memtable, so writers, who reserve before they take
//! a number (C4), are where the limit is kept. A charge grows in steps: most writes find theirs covered, and touch
//! nothing that other memtables share. It is given back when the memtable is gone. One that left its queue and is kept
//! by readers *lingers*: its charge stands until a writer would have to wait for it, because an iterator that is held for
//! ever must not hold writers up for ever.
//!
//! # How far the limit can be passed
//! All charges together stay within the limit but for: empty memtables, which a switch needs before anything is in them,
//! at most two a family; a batch that is larger than the limit by itself, which goes alone. What the memtables hold stays
//! within their charges but for what a representation keeps beside its reservations for less than a step
//! ([`slack_bytes`]).

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// A charge grows by this part of the limit, within bounds.
const STEPS_PER_LIMIT: usize = 64;
const STEP_MIN_BYTES: usize = 8 << 10;
const STEP_MAX_BYTES: usize = 1 << 20;

/// A writer that waits for memory looks again after this long at the latest: what frees it may be a reader's last
/// handle, of which nobody is told.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Bytes by which what memtables hold can exceed `limit_bytes` (`db_write_buffer_size`), empty memtables and batches
/// larger than the limit aside: an eighth of the limit for lists that double when they grow (`vector`), and 1 MiB.
pub const fn slack_bytes(limit_bytes: usize) -> usize {
    limit_bytes / 8 + (1 << 20)
}

/// The memory of all memtables of a database. Its locks, `turn` aside, are leaves.
pub struct MemoryBudget {
    /// `usize::MAX` where there is none.
    limit_bytes: usize,
    charged_bytes: AtomicUsize,
    /// Counts the times that something was given back, so that a waiter misses none.
    returns: Mutex<u64>,
    returned: Condvar,
    /// Charges of memtables that left their queues and were not gone then.
    lingering: Mutex<Vec<Weak<Charge>>>,
    /// Held by the one writer that waits for memory; all others that need some come after it.
    pub(crate) turn: Mutex<()>,
}

impl MemoryBudget {
    /// 0 for no limit.
    pub fn new(limit_bytes: usize) -> Arc<Self> {
        Arc::new(MemoryBudget {
            limit_bytes: if limit_bytes == 0 { usize::MAX } else { limit_bytes },
            charged_bytes: AtomicUsize::new(0),
            returns: Mutex::default(),
            returned: Condvar::new(),
            lingering: Mutex::default(),
            turn: Mutex::new(()),
        })
    }

    pub fn is_limited(&self) -> bool {
        self.limit_bytes != usize::MAX
    }

    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes
    }

    /// Bytes charged now.
    pub fn charged_bytes(&self) -> usize {
        self.charged_bytes.load(Ordering::Acquire)
    }

    /// Where returns stand; to be read before one looks whether there is enough.
    pub(crate) fn returns(&self) -> u64 {
        *self.returns.lock()
    }

    /// Waits until something was given back since `seen`, or for a moment; false where nothing was.
    pub(crate) fn wait_for_return(&self, seen: u64) -> bool {
        let mut returns = self.returns.lock();
        if *returns == seen {
            self.returned.wait_for(&mut returns, LOOK_AGAIN);
        }
        *returns != seen
    }

    /// Gives back the charges of memtables that only readers keep; false where there were none.
    pub(crate) fn release_lingering(&self) -> bool {
        let lingering = std::mem::take(&mut *self.lingering.lock());
        let charges = lingering.iter().filter_map(Weak::upgrade);
        charges.map(|charge| charge.release()).fold(false, |any, released| any | released)
    }

    fn give_back(&self, bytes: usize) {
        self.charged_bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.wake();
    }

    /// Has those who wait look again.
    pub(crate) fn wake(&self) {
        *self.returns.lock() += 1;
        self.returned.notify_all();
    }
}

/// What one memtable is charged.
pub struct Charge {
    memory: Arc<MemoryBudget>,
    /// `usize::MAX` where there is no limit: everything is covered.
    bytes: AtomicUsize,
    /// The memtable's owner is gone: its memory is being given back, and this charge with it.
    owner_gone: AtomicBool,
}

impl Charge {
    /// Charges what a memtable holds at its making, whatever the limit.
    pub fn new(memory: &Arc<MemoryBudget>, bytes: usize) -> Arc<Self> {
        let unlimited = !memory.is_limited();
        if !unlimited {
            memory.charged_bytes.fetch_add(bytes, Ordering::AcqRel);
        }
        let bytes = AtomicUsize::new(if unlimited { usize::MAX } else { bytes });
        Arc::new(Charge { memory: memory.clone(), bytes, owner_gone: AtomicBool::new(false) })
    }

    /// Bytes charged; 0 where there is no limit, or no charge any more.
    pub(crate) fn bytes(&self) -> usize {
        match self.bytes.load(Ordering::Acquire) {
            usize::MAX => 0,
            bytes => bytes,
        }
    }

    /// Whether so many reserved bytes are paid for.
    #[inline]
    pub fn covers(&self, reserved_bytes: usize) -> bool {
        self.bytes.load(Ordering::Acquire) >= reserved_bytes
    }

    /// Raises the charge to `bytes` where the limit lets it: by a step beyond, for what is to come, if that fits too.
    pub(crate) fn try_raise_a_step(&self, bytes: usize) -> bool {
        let limit_bytes = self.memory.limit_bytes;
        self.try_raise(bytes.saturating_add(self.step_bytes()), limit_bytes) || self.try_raise(bytes, limit_bytes)
    }

    /// By how much a charge grows beyond what is needed.
    fn step_bytes(&self) -> usize {
        (self.memory.limit_bytes / STEPS_PER_LIMIT).clamp(STEP_MIN_BYTES, STEP_MAX_BYTES)
    }

    /// Raises the charge to `bytes` where all charges together stay within `limit_bytes` then.
    pub(crate) fn try_raise(&self, bytes: usize, limit_bytes: usize) -> bool {
        let before = self.bytes.load(Ordering::Acquire);
        let Some(more) = bytes.checked_sub(before).filter(|more| *more > 0) else { return true };
        let fits = |charged: usize| charged.checked_add(more).filter(|sum| *sum <= limit_bytes);
        if self.memory.charged_bytes.try_update(Ordering::AcqRel, Ordering::Acquire, fits).is_err() {
            return false;
        }
        self.settle(before, bytes, more);
        true
    }

    /// Raises the charge to `bytes`, whatever the limit.
    pub(crate) fn raise(&self, bytes: usize) {
        self.try_raise(bytes, usize::MAX);
    }

    /// Takes over `more` bytes, already counted in the sum, that lead from `before` to `bytes`; returns them where another
    /// thread was faster.
    fn settle(&self, before: usize, bytes: usize, more: usize) {
        if self.bytes.compare_exchange(before, bytes, Ordering::AcqRel, Ordering::Acquire).is_err() {
            self.memory.give_back(more);
            self.raise(bytes);
        }
    }

    /// Raises the charge of a memtable that no other thread knows to `bytes`, out of this one as far as it goes.
    pub(crate) fn hand_over(&self, to: &Charge, bytes: usize) {
        let moved = bytes.saturating_sub(to.bytes()).min(self.bytes());
        if self.memory.is_limited() {
            self.bytes.fetch_sub(moved, Ordering::AcqRel);
            to.bytes.fetch_add(moved, Ordering::AcqRel);
        }
        to.raise(bytes);
    }

    /// Says that the memtable is about to be freed by a thread that drops this charge after it.
    pub(crate) fn owner_goes(&self) {
        self.owner_gone.store(true, Ordering::Release);
    }

    /// Says that the memtable left its queue; if readers keep it, it lingers.
    pub(crate) fn left_queue(self: &Arc<Self>) {
        if !self.owner_gone.load(Ordering::Acquire) {
            let mut lingering = self.memory.lingering.lock();
            lingering.retain(|charge| charge.strong_count() > 0);
            lingering.push(Arc::downgrade(self));
        }
    }

    /// Gives the charge back, once; from then on everything is covered. False where there was none.
    pub(crate) fn release(&self) -> bool {
        let bytes = self.bytes.swap(usize::MAX, Ordering::AcqRel);
        if bytes == usize::MAX {
            return false;
        }
        self.memory.give_back(bytes);
        true
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn charges_stay_within_the_limit_and_are_given_back_once() {
        let memory = MemoryBudget::new(100);
        let (a, b) = (Charge::new(&memory, 10), Charge::new(&memory, 10));
        assert!(a.try_raise(80, 100));
        assert!(!b.try_raise(30, 100), "110 together");
        assert!(b.try_raise(20, 100) && b.covers(20) && !b.covers(21));
        assert!(b.try_raise(5, 100), "a charge does not shrink");
        assert_eq!(memory.charged_bytes(), 100);
        b.raise(50);
        assert_eq!(memory.charged_bytes(), 130);
        let seen = memory.returns();
        a.left_queue();
        assert_eq!((memory.charged_bytes(), memory.returns()), (130, seen), "until a writer would wait for it");
        assert!(memory.release_lingering() && !memory.release_lingering());
        assert_ne!(memory.returns(), seen);
        assert_eq!(memory.charged_bytes(), 50);
        drop(a);
        b.owner_goes();
        b.left_queue();
        assert!(!memory.release_lingering(), "it is about to go by itself");
        assert_eq!(memory.charged_bytes(), 50);
        drop(b);
        assert_eq!(memory.charged_bytes(), 0);
    }

    #[test]
    fn a_charge_made_ahead_is_handed_over() {
        let memory = MemoryBudget::new(100);
        let (ahead, a, b) = (Charge::new(&memory, 50), Charge::new(&memory, 5), Charge::new(&memory, 5));
        ahead.hand_over(&a, 40);
        assert_eq!((ahead.bytes(), a.bytes(), memory.charged_bytes()), (15, 40, 60));
        ahead.hand_over(&b, 30);
        assert_eq!((ahead.bytes(), b.bytes(), memory.charged_bytes()), (0, 30, 70), "ten more than was there");
        drop((ahead, a, b));
        assert_eq!(memory.charged_bytes(), 0);
    }

    #[test]
    fn without_a_limit_everything_is_covered_and_nothing_counted() {
        let memory = MemoryBudget::new(0);
        let charge = Charge::new(&memory, 10);
        assert!(charge.covers(usize::MAX) && charge.try_raise(1 << 40, 0));
        charge.hand_over(&Charge::new(&memory, 1), 10);
        drop(charge);
        assert_eq!(memory.charged_bytes(), 0);
    }

    #[test]
    fn racing_raises_leave_the_sum_exact() {
        let memory = MemoryBudget::new(1 << 40);
        let charge = Charge::new(&memory, 1);
        std::thread::scope(|scope| {
            for part in 0..4 {
                let charge = &charge;
                scope.spawn(move || (0..10_000).for_each(|i| assert!(charge.try_raise(4 * i + part, 1 << 40))));
            }
        });
        assert_eq!(memory.charged_bytes(), 4 * 9_999 + 3);
    }
}
