//! Memory limit on all memtables of a database together (`db_write_buffer_size`), or of all databases that share a
//! budget (RocksDB: a write buffer manager).
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
//!
//! # Sharing
//! A database takes part from its open to its close, when its charges are released. The budget keeps no database alive,
//! and flushes nothing itself: [`super::sharers`]. A shared budget without a limit counts too: one may be set later.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::queue::cache_charge::CacheCharge;
use crate::queue::sharers::Sharers;

/// A charge grows by the limit divided by this, within bounds.
const STEPS_PER_LIMIT: usize = 64;
/// Headroom of all charges together is at most the limit divided by this, however many memtables there are.
const HEADROOM_PART: usize = 8;
const STEP_MIN_BYTES: usize = 8 << 10;
const STEP_MAX_BYTES: usize = 1 << 20;

/// A writer waiting for memory looks again after this long at the latest. If nothing was freed or flushed by then, it
/// releases lingering charges.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The memory of all memtables of a database, or of several. Its locks, `turn` aside, are leaves.
pub struct MemoryBudget {
    /// `usize::MAX` if unlimited.
    limit_bytes: AtomicUsize,
    /// Writers wait at the limit; else they pass it until flushes have ended.
    allow_stall: AtomicBool,
    /// The oldest memtable is flushed first, not the largest.
    oldest_first: AtomicBool,
    /// False for one database without a limit: its charges are counted nowhere.
    counts: bool,
    is_shared: bool,
    charged_bytes: AtomicUsize,
    /// Charges that are counted.
    charges: AtomicUsize,
    births: AtomicU64,
    /// Counts returns of memory, so that a waiter misses none.
    returns: Mutex<u64>,
    returned: Condvar,
    /// Charges of memtables still alive when they left their queues.
    lingering: Mutex<Vec<Weak<Charge>>>,
    pub(crate) sharers: Sharers,
    /// The block cache that makes room for the charges.
    cache: Option<CacheCharge>,
    /// Held by the one writer waiting for memory, of any database; later writers wait behind it.
    pub(crate) turn: Mutex<()>,
}

impl MemoryBudget {
    /// The budget of one database; 0 for no limit.
    pub fn new(limit_bytes: usize) -> Arc<Self> {
        MemoryBudget::of_database(limit_bytes, true)
    }

    /// The budget of one database; 0 for no limit.
    pub fn of_database(limit_bytes: usize, allow_stall: bool) -> Arc<Self> {
        Arc::new(MemoryBudget::with(limit_bytes, allow_stall, limit_bytes > 0))
    }

    /// A budget to share; 0 for no limit. All charges are also taken from the capacity of `cache`.
    pub fn shared(limit_bytes: usize, allow_stall: bool, cache: Option<Arc<table::BlockCache>>) -> Arc<Self> {
        let budget = MemoryBudget::with(limit_bytes, allow_stall, true);
        Arc::new(MemoryBudget { is_shared: true, cache: cache.map(CacheCharge::new), ..budget })
    }

    fn with(limit_bytes: usize, allow_stall: bool, counts: bool) -> Self {
        MemoryBudget {
            limit_bytes: AtomicUsize::new(limit_or_max(limit_bytes)),
            allow_stall: AtomicBool::new(allow_stall),
            oldest_first: AtomicBool::new(false),
            counts,
            is_shared: false,
            charged_bytes: AtomicUsize::new(0),
            charges: AtomicUsize::new(0),
            births: AtomicU64::new(0),
            returns: Mutex::default(),
            returned: Condvar::new(),
            lingering: Mutex::default(),
            sharers: Sharers::default(),
            cache: None,
            turn: Mutex::new(()),
        }
    }

    /// Whether there is a limit.
    pub fn is_limited(&self) -> bool {
        self.limit_bytes() != usize::MAX
    }

    /// `usize::MAX` without a limit.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Changes the limit of a shared budget; 0 for none. Databases above it begin to flush; waiting writers look again.
    pub fn set_limit(&self, limit_bytes: usize) {
        self.limit_bytes.store(limit_or_max(limit_bytes), Ordering::Relaxed);
        self.sharers.call_all();
        self.wake();
    }

    /// Whether writers wait at the limit.
    pub fn allows_stall(&self) -> bool {
        self.allow_stall.load(Ordering::Relaxed)
    }

    /// If false, writers that wait now go on.
    pub fn set_allow_stall(&self, allow: bool) {
        self.allow_stall.store(allow, Ordering::Relaxed);
        self.wake();
    }

    /// Whether the oldest memtable is flushed first, not the largest.
    pub fn flushes_oldest_first(&self) -> bool {
        self.oldest_first.load(Ordering::Relaxed)
    }

    /// Whether the oldest memtable is flushed first from now on, not the largest.
    pub fn set_flush_oldest_first(&self, oldest_first: bool) {
        self.oldest_first.store(oldest_first, Ordering::Relaxed);
    }

    /// Bytes charged now.
    pub fn charged_bytes(&self) -> usize {
        self.charged_bytes.load(Ordering::Acquire)
    }

    /// Bytes of the mutable memtables that have entries. Asks every database.
    pub fn mutable_bytes(&self) -> usize {
        self.sharers.survey(None, self.flushes_oldest_first()).mutable_bytes
    }

    /// Whether charges are taken from a block cache.
    pub fn costs_to_cache(&self) -> bool {
        self.cache.is_some()
    }

    /// Bytes taken from the block cache's capacity.
    pub fn bytes_in_cache(&self) -> usize {
        self.cache.as_ref().map_or(0, CacheCharge::bytes)
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.is_shared
    }

    /// Bytes that mutable memtables may hold together. If writers wait at the limit, half: one half fills while the
    /// other is flushed. Otherwise 7/8, as in RocksDB; half, if all memory together is at the limit.
    pub(crate) fn mutable_bytes_wanted(&self) -> usize {
        let limit = self.limit_bytes();
        if self.allows_stall() || self.charged_bytes() >= limit { limit / 2 } else { limit - limit / 8 }
    }

    /// Most bytes to prefault in one memtable: with many memtables the rest is for their entries.
    pub(crate) fn ahead_bytes_max(&self) -> usize {
        if self.is_shared { self.limit_bytes() / (HEADROOM_PART * self.charges()) } else { usize::MAX }
    }

    fn charges(&self) -> usize {
        self.charges.load(Ordering::Relaxed).max(1)
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
        self.follow_in_cache();
        self.wake();
    }

    fn follow_in_cache(&self) {
        if let Some(cache) = &self.cache {
            cache.follow(&self.charged_bytes);
        }
    }

    /// Wakes all waiters to look again.
    pub(crate) fn wake(&self) {
        *self.returns.lock() += 1;
        self.returned.notify_all();
    }
}

fn limit_or_max(limit_bytes: usize) -> usize {
    if limit_bytes == 0 { usize::MAX } else { limit_bytes }
}

/// The charge of one memtable.
pub struct Charge {
    memory: Arc<MemoryBudget>,
    /// `usize::MAX` if not counted or released: everything is covered.
    bytes: AtomicUsize,
    /// Later charges of the budget have larger numbers.
    birth: u64,
    /// The memtable's owner is gone: its memory and this charge are being freed.
    owner_gone: AtomicBool,
}

impl Charge {
    /// Charges a memtable's initial memory, whatever the limit.
    pub fn new(memory: &Arc<MemoryBudget>, bytes: usize) -> Arc<Self> {
        if memory.counts {
            memory.charges.fetch_add(1, Ordering::Relaxed);
            memory.charged_bytes.fetch_add(bytes, Ordering::AcqRel);
            memory.follow_in_cache();
        }
        let bytes = AtomicUsize::new(if memory.counts { bytes } else { usize::MAX });
        let birth = memory.births.fetch_add(1, Ordering::Relaxed);
        Arc::new(Charge { memory: memory.clone(), bytes, birth, owner_gone: AtomicBool::new(false) })
    }

    /// Orders the charges of a budget by age.
    pub(crate) fn birth(&self) -> u64 {
        self.birth
    }

    /// Bytes charged; 0 if not counted or released.
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
        let limit_bytes = self.memory.limit_bytes();
        self.try_raise(bytes.saturating_add(self.step_bytes()), limit_bytes) || self.try_raise(bytes, limit_bytes)
    }

    /// Headroom added when a charge is raised.
    fn step_bytes(&self) -> usize {
        let steps = STEPS_PER_LIMIT.max(HEADROOM_PART * self.memory.charges());
        (self.memory.limit_bytes() / steps).clamp(STEP_MIN_BYTES, STEP_MAX_BYTES)
    }

    /// Raises the charge to `bytes`, if all charges together stay within `limit_bytes`.
    pub(crate) fn try_raise(&self, bytes: usize, limit_bytes: usize) -> bool {
        let before = self.bytes.load(Ordering::Acquire);
        let Some(more) = bytes.checked_sub(before).filter(|more| *more > 0) else { return true };
        let fits = |charged: usize| charged.checked_add(more).filter(|sum| *sum <= limit_bytes);
        if self.memory.charged_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, fits).is_err() {
            return false;
        }
        self.memory.follow_in_cache();
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
        if self.memory.counts {
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
        self.memory.charges.fetch_sub(1, Ordering::Relaxed);
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
