//! Memory limit on all memtables of a database together (`db_write_buffer_size`).
//!
//! Each memtable is *charged* until it is freed: mutable, queued, flushing, spare, or filled by a large batch. A charge
//! covers at least the memtable's reserved bytes. Writers reserve before a number is allocated (C4), so they enforce
//! the limit. Charges grow in steps: most writes find theirs covered and touch no shared counter. A memtable kept by
//! readers after it left its queue *lingers*: its charge stands until a writer would have to wait for it. A long-lived
//! iterator must not stall writers for ever.
//!
//! # How far the limit can be passed
//! All charges together stay within the limit, with two exceptions: empty memtables needed for a switch, at most two a
//! family; and a batch larger than the limit, which proceeds alone. Memory held beside the reservations is charged only
//! when a charge is raised; until then it can exceed the charge: by an eighth of the limit, for lists that double when
//! they grow (`vector`), and 1 MiB.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// A charge grows by the limit divided by this, within bounds.
const STEPS_PER_LIMIT: usize = 64;
const STEP_MIN_BYTES: usize = 8 << 10;
const STEP_MAX_BYTES: usize = 1 << 20;

/// A writer waiting for memory looks again after this long at the latest. If nothing was freed or flushed by then, it
/// releases lingering charges.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The memory of all memtables of a database. Its locks, `turn` aside, are leaves.
pub struct MemoryBudget {
    /// `usize::MAX` if unlimited.
    limit_bytes: usize,
    charged_bytes: AtomicUsize,
    /// Counts returns of memory, so that a waiter misses none.
    returns: Mutex<u64>,
    returned: Condvar,
    /// Charges of memtables still alive when they left their queues.
    lingering: Mutex<Vec<Weak<Charge>>>,
    /// Held by the one writer waiting for memory; later writers wait behind it.
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

    /// Count of returns. Read before checking for room.
    pub(crate) fn returns(&self) -> u64 {
        *self.returns.lock()
    }

    /// Waits for a return of memory since `seen`, at most `LOOK_AGAIN`; false if there was none.
    pub(crate) fn wait_for_return(&self, seen: u64) -> bool {
        let mut returns = self.returns.lock();
        if *returns == seen {
            self.returned.wait_for(&mut returns, LOOK_AGAIN);
        }
        *returns != seen
    }

    /// Releases the charges of memtables kept only by readers; false if there were none.
    pub(crate) fn release_lingering(&self) -> bool {
        let lingering = std::mem::take(&mut *self.lingering.lock());
        let charges = lingering.iter().filter_map(Weak::upgrade);
        charges.map(|charge| charge.release()).fold(false, |any, released| any | released)
    }

    fn give_back(&self, bytes: usize) {
        self.charged_bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.wake();
    }

    /// Wakes all waiters to look again.
    pub(crate) fn wake(&self) {
        *self.returns.lock() += 1;
        self.returned.notify_all();
    }
}

/// The charge of one memtable.
pub struct Charge {
    memory: Arc<MemoryBudget>,
    /// `usize::MAX` if unlimited or released: everything is covered.
    bytes: AtomicUsize,
    /// The memtable's owner is gone: its memory and this charge are being freed.
    owner_gone: AtomicBool,
}

impl Charge {
    /// Charges a memtable's initial memory, whatever the limit.
    pub fn new(memory: &Arc<MemoryBudget>, bytes: usize) -> Arc<Self> {
        let unlimited = !memory.is_limited();
        if !unlimited {
            memory.charged_bytes.fetch_add(bytes, Ordering::AcqRel);
        }
        let bytes = AtomicUsize::new(if unlimited { usize::MAX } else { bytes });
        Arc::new(Charge { memory: memory.clone(), bytes, owner_gone: AtomicBool::new(false) })
    }

    /// Bytes charged; 0 if unlimited or released.
    pub(crate) fn bytes(&self) -> usize {
        match self.bytes.load(Ordering::Acquire) {
            usize::MAX => 0,
            bytes => bytes,
        }
    }

    /// Whether the charge covers `reserved_bytes`.
    #[inline]
    pub fn covers(&self, reserved_bytes: usize) -> bool {
        self.bytes.load(Ordering::Acquire) >= reserved_bytes
    }

    /// Raises the charge to a step beyond `bytes`, else to `bytes`; false if the limit forbids both.
    pub(crate) fn try_raise_a_step(&self, bytes: usize) -> bool {
        let limit_bytes = self.memory.limit_bytes;
        self.try_raise(bytes.saturating_add(self.step_bytes()), limit_bytes) || self.try_raise(bytes, limit_bytes)
    }

    /// Headroom added when a charge is raised.
    fn step_bytes(&self) -> usize {
        (self.memory.limit_bytes / STEPS_PER_LIMIT).clamp(STEP_MIN_BYTES, STEP_MAX_BYTES)
    }

    /// Raises the charge to `bytes`, if all charges together stay within `limit_bytes`.
    pub(crate) fn try_raise(&self, bytes: usize, limit_bytes: usize) -> bool {
        let before = self.bytes.load(Ordering::Acquire);
        let Some(more) = bytes.checked_sub(before).filter(|more| *more > 0) else { return true };
        let fits = |charged: usize| charged.checked_add(more).filter(|sum| *sum <= limit_bytes);
        if self.memory.charged_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).is_err() {
            return false;
        }
        self.settle(before, bytes, more);
        true
    }

    /// Raises the charge to `bytes`, whatever the limit.
    pub(crate) fn raise(&self, bytes: usize) {
        self.try_raise(bytes, usize::MAX);
    }

    /// Moves the charge from `before` to `bytes`; `more` is already in the sum. If another thread was faster, returns
    /// `more` and raises the charge anew.
    fn settle(&self, before: usize, bytes: usize, more: usize) {
        if self.bytes.compare_exchange(before, bytes, Ordering::AcqRel, Ordering::Acquire).is_err() {
            self.memory.give_back(more);
            self.raise(bytes);
        }
    }

    /// Raises the charge `to`, not yet shared with other threads, to `bytes`. Uses up this charge first.
    pub(crate) fn hand_over(&self, to: &Charge, bytes: usize) {
        let moved = bytes.saturating_sub(to.bytes()).min(self.bytes());
        if self.memory.is_limited() {
            self.bytes.fetch_sub(moved, Ordering::AcqRel);
            to.bytes.fetch_add(moved, Ordering::AcqRel);
        }
        to.raise(bytes);
    }

    /// Called when the owner is dropped: another thread frees the memtable and then drops this charge.
    pub(crate) fn owner_goes(&self) {
        self.owner_gone.store(true, Ordering::Release);
    }

    /// Called when the memtable leaves its queue. If readers keep it, it lingers.
    pub(crate) fn left_queue(self: &Arc<Self>) {
        if !self.owner_gone.load(Ordering::Acquire) {
            let mut lingering = self.memory.lingering.lock();
            lingering.retain(|charge| charge.strong_count() > 0);
            lingering.push(Arc::downgrade(self));
        }
    }

    /// Releases the charge, once; from then on everything is covered. False if there was none.
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
