//! Locks that transactions hold from call to call: on keys, and on ranges of keys.
//!
//! A key's locks are in one of several stripes, by the hash of family and key. A stripe's mutex guards each key's
//! holders and the queue behind them. Locks of ranges are rare; all stand in one [`ranges`] queue. While there is any,
//! each request looks there first; without any it pays one load.
//!
//! # Fairness
//! A key's requests are granted in the order of their arrival. Two exceptions: a holder's second request for the same
//! lock is granted at once, and an upgrade from shared to exclusive goes before other requests. A request that meets a
//! waiting range waits behind it, unless the range waits for the requester.
//!
//! # Deadlocks
//! See [`deadlock`].
//!
//! # Locks of this module
//! Outermost first: `RangeQueue`, a stripe, a waiter or an owner's `waits_for`. All are taken before every lock of
//! ARCHITECTURE.md, and none is held over I/O or a wait.

mod deadlock;
mod keys;
mod owner;
mod ranges;
mod waiter;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use base::{Error, ErrorKind, FamilyId, Result, UserOrder};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use vfs::Vfs;

pub use self::deadlock::Cycle;
use self::deadlock::Deadlocks;
use self::keys::{HeldKey, Stripe};
pub use self::owner::Owner;
use self::ranges::RangeQueue;
use self::waiter::{Slept, Target, Waiter};
use crate::database::handle::Database;

/// A key to be locked.
#[derive(Clone, Copy)]
pub struct LockedKey<'a> {
    pub family: FamilyId,
    pub key: &'a [u8],
}

/// A range of keys to be locked, from `start` to before `end`.
#[derive(Clone)]
pub struct LockedRange {
    pub family: FamilyId,
    /// User key order of the family.
    pub order: UserOrder,
    pub start: Box<[u8]>,
    /// `None`: to the end of the family.
    pub end: Option<Box<[u8]>>,
}

/// Whether owners share a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// With other shared ones.
    Shared,
    /// With nobody.
    Exclusive,
}

/// What a grant changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granted {
    New,
    /// A shared lock became exclusive.
    Upgraded,
    /// The owner had the lock.
    Before,
}

/// How long a request waits.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// `None`: without end. Zero: not at all.
    pub wait_max: Option<Duration>,
    /// Looks for deadlocks through this many owners; `None`: does not look.
    pub deadlock_depth: Option<usize>,
}

/// RocksDB's `deadlock_detect_depth`.
pub const DEADLOCK_DEPTH: usize = 50;

/// Limits of a table.
#[derive(Clone, Copy, Debug)]
pub struct LockLimits {
    /// Parts with a mutex each; rounded up to a power of two.
    pub stripes: usize,
    /// Locked keys of all owners together; `None`: no limit.
    pub keys_max: Option<usize>,
    /// Cycles remembered for [`LockTable::deadlocks`].
    pub deadlocks_max: usize,
}

impl Default for LockLimits {
    /// RocksDB's.
    fn default() -> Self {
        LockLimits { stripes: 16, keys_max: None, deadlocks_max: 5 }
    }
}

/// A lock that is held, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldLock {
    pub family: FamilyId,
    pub key: Vec<u8>,
    pub mode: Mode,
    pub owners: Vec<u64>,
}

/// All locks of a database.
pub struct LockTable {
    vfs: Arc<dyn Vfs>,
    /// A power of two.
    stripes: Box<[CachePadded<Mutex<Stripe>>]>,
    ranges: Mutex<RangeQueue>,
    /// Entries of `ranges`. Raised under its mutex before any stripe is looked at, read under a stripe's mutex: a
    /// request that reads 0 holds its key before the range looks at the stripe.
    ranges_count: AtomicUsize,
    last_owner: AtomicU64,
    keys_count: AtomicUsize,
    keys_max: Option<usize>,
    deadlocks: Deadlocks,
}

impl LockTable {
    /// A table without locks.
    pub fn new(vfs: Arc<dyn Vfs>, limits: LockLimits) -> Self {
        let stripes = limits.stripes.clamp(1, STRIPES_MAX).next_power_of_two();
        LockTable {
            vfs,
            stripes: (0..stripes).map(|_| CachePadded::default()).collect(),
            ranges: Mutex::default(),
            ranges_count: AtomicUsize::new(0),
            last_owner: AtomicU64::new(0),
            keys_count: AtomicUsize::new(0),
            keys_max: limits.keys_max,
            deadlocks: Deadlocks::new(limits.deadlocks_max),
        }
    }

    /// A table for transactions of a database.
    pub fn of(db: &Database, limits: LockLimits) -> Self {
        LockTable::new(db.vfs().clone(), limits)
    }

    /// An owner, with locks until `expires_after` from now at the least.
    pub fn new_owner(&self, expires_after: Option<Duration>) -> Arc<Owner> {
        let id = self.last_owner.fetch_add(1, Ordering::Relaxed) + 1;
        Owner::new(id, expires_after.map(|after| self.vfs.now().saturating_add(after)))
    }

    /// Keeps an owner's locks to the end. False if it has expired.
    pub fn begin_commit(&self, owner: &Owner) -> bool {
        owner.begin_commit(|| self.vfs.now())
    }

    /// Locks a key.
    ///
    /// # Errors
    /// `TimedOut`: the wait took `wait_max`. `Deadlock`: the wait would never end. `Busy`: too many locked keys. The
    /// owner holds what it held before.
    pub fn lock(&self, owner: &Arc<Owner>, key: LockedKey<'_>, mode: Mode, patience: &Patience) -> Result<Granted> {
        let hash = keys::hash(key);
        let mut stripe = self.stripe(hash).lock();
        let waiter = if self.ranges_count.load(Ordering::Acquire) == 0 {
            if let Some(granted) = self.try_key(&mut stripe, hash, owner, key, mode)? {
                return Ok(granted);
            }
            let waiter = Waiter::new(owner, Target::key(hash, key), mode);
            stripe.enqueue(&waiter);
            drop(stripe);
            waiter
        } else {
            drop(stripe);
            let waiter = Waiter::new(owner, Target::key(hash, key), mode);
            if let Some(granted) = self.lock_beside_ranges(&waiter)? {
                return Ok(granted);
            }
            waiter
        };
        self.wait(&waiter, patience)
    }

    /// Locks a range. Takes a look at every locked key.
    ///
    /// # Errors
    /// As of [`lock`](Self::lock).
    pub fn lock_range(&self, owner: &Arc<Owner>, range: LockedRange, mode: Mode, patience: &Patience) -> Result<()> {
        let waiter = Waiter::new(owner, Target::Range(range), mode);
        match self.enqueue_range(&waiter) {
            Some(_) => Ok(()),
            None => self.wait(&waiter, patience).map(drop),
        }
    }

    /// Releases locks of keys; each goes to those next in its queue.
    pub fn unlock<'k>(&self, owner: &Owner, keys: impl IntoIterator<Item = LockedKey<'k>>) {
        let mut freed = 0;
        for key in keys {
            let hash = keys::hash(key);
            freed += usize::from(self.stripe(hash).lock().release(hash, owner, key));
        }
        self.keys_count.fetch_sub(freed, Ordering::Relaxed);
        self.look_at_waiting_ranges(owner);
    }

    /// Locked keys, in no order. Takes every stripe in turn.
    pub fn held(&self) -> Vec<HeldLock> {
        self.stripes
            .iter()
            .flat_map(|stripe| stripe.lock().iter().map(HeldKey::to_report).collect::<Vec<_>>())
            .collect()
    }

    /// The last cycles found, oldest first.
    pub fn deadlocks(&self) -> Vec<Cycle> {
        self.deadlocks.all()
    }

    /// Cycles remembered from now on.
    pub fn set_deadlocks_max(&self, most: usize) {
        self.deadlocks.set_max(most);
    }

    fn stripe(&self, hash: u64) -> &Mutex<Stripe> {
        let at = hash as usize & (self.stripes.len() - 1);
        #[expect(clippy::indexing_slicing, reason = "masked by the length, a power of two")]
        &self.stripes[at]
    }

    /// Grants the key if nothing is in the way; expired holders are not.
    fn try_key(
        &self,
        stripe: &mut Stripe,
        hash: u64,
        owner: &Arc<Owner>,
        key: LockedKey<'_>,
        mode: Mode,
    ) -> Result<Option<Granted>> {
        if let Some(held) = stripe.find(hash, key) {
            return Ok(held.try_grant(owner, mode).or_else(|| {
                held.drop_expired(|| self.vfs.now());
                held.try_grant(owner, mode)
            }));
        }
        self.count_key()?;
        stripe.insert(hash, owner, key, mode);
        Ok(Some(Granted::New))
    }

    fn count_key(&self) -> Result<()> {
        let before = self.keys_count.fetch_add(1, Ordering::Relaxed);
        if self.keys_max.is_some_and(|most| before >= most) {
            self.keys_count.fetch_sub(1, Ordering::Relaxed);
            return Err(Error::busy(format!("{LOCK_LIMIT}: {before} keys are locked, as many as it allows")));
        }
        Ok(())
    }

    /// Waits for the grant of a queued request.
    #[cold]
    fn wait(&self, waiter: &Arc<Waiter>, patience: &Patience) -> Result<Granted> {
        *waiter.owner.waits_for.lock() = Some(waiter.clone());
        let granted = self.wait_patiently(waiter, patience);
        *waiter.owner.waits_for.lock() = None;
        granted.or_else(|error| self.leave(waiter).ok_or(error))
    }

    fn wait_patiently(&self, waiter: &Arc<Waiter>, patience: &Patience) -> Result<Granted> {
        if patience.wait_max == Some(Duration::ZERO) {
            return Err(timed_out_for(waiter));
        }
        let ends_at = patience.wait_max.map(|most| self.vfs.now().saturating_add(most));
        loop {
            if let Some(error) = patience.deadlock_depth.and_then(|depth| self.deadlock(waiter, depth)) {
                return Err(error);
            }
            let expires_at = self.blockers(waiter).iter().filter_map(|owner| owner.expires_at()).min();
            let until = ends_at.into_iter().chain(expires_at).min();
            let most = until.map(|until| until.saturating_sub(self.vfs.now()));
            let timed_out = match waiter.sleep(most) {
                Slept::Granted(granted) => return Ok(granted),
                Slept::Woken { timed_out } => timed_out && until == ends_at,
            };
            if let Some(granted) = self.look_again(waiter)? {
                return Ok(granted);
            }
            if timed_out || ends_at.is_some_and(|end| self.vfs.now() >= end) {
                return Err(timed_out_for(waiter));
            }
        }
    }

    /// Takes a request out of its queue. The grant, if there was one meanwhile.
    fn leave(&self, waiter: &Waiter) -> Option<Granted> {
        if let Some(granted) = self.leave_ranges(waiter) {
            return Some(granted);
        }
        let Target::Key { hash, .. } = waiter.target else { return None };
        let mut stripe = self.stripe(hash).lock();
        if let Some(granted) = waiter.granted() {
            return Some(granted);
        }
        let freed = stripe.leave(waiter);
        self.keys_count.fetch_sub(usize::from(freed), Ordering::Relaxed);
        None
    }
}

/// A stripe takes a cache line and a half.
const STRIPES_MAX: usize = 1 << 16;

/// The beginning of the error of one lock too many, as RocksDB's.
pub const LOCK_LIMIT: &str = "Failed to acquire lock due to max_num_locks limit";

fn timed_out_for(waiter: &Waiter) -> Error {
    Error::new(ErrorKind::TimedOut, format!("Timeout waiting to lock key: {}", waiter.target))
}

#[cfg(test)]
mod tests;
