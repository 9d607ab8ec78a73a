//! Locks of ranges, and the keys that wait for them, in the order of their requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::Result;
use smallvec::SmallVec;

use super::waiter::{Target, Waiter};
use super::{Granted, LockTable, LockedKey, Owner};

pub(super) type Owners = SmallVec<[Arc<Owner>; 4]>;

/// Ranges, granted and waiting, and waiting keys.
#[derive(Default)]
pub(super) struct RangeQueue {
    entries: Vec<Entry>,
}

struct Entry {
    waiter: Arc<Waiter>,
    granted: bool,
    /// For which owners it waits, as of the last look. They pass it: waiting for it, they would wait for themselves.
    blocked_by: Owners,
}

impl RangeQueue {
    fn push(&mut self, waiter: &Arc<Waiter>, blocked_by: Owners) {
        let granted = blocked_by.is_empty();
        self.entries.push(Entry { waiter: waiter.clone(), granted, blocked_by });
    }

    fn position(&self, waiter: &Waiter) -> Option<usize> {
        self.entries.iter().position(|entry| std::ptr::eq(&raw const *entry.waiter, waiter))
    }

    /// Owners of entries that a request at the place waits for: of granted ones, wherever they stand, and of those
    /// before it. It passes entries that wait for it, if only through others.
    fn blockers_of(&self, place: usize, waiter: &Waiter) -> Owners {
        let (mut owners, mut passed) = (Owners::new(), Owners::from_elem(waiter.owner.clone(), 1));
        for (at, entry) in self.entries.iter().enumerate().filter(|(at, entry)| *at < place || entry.granted) {
            let owner = &entry.waiter.owner;
            if !entry.granted && entry.blocked_by.iter().any(|owner| has(&passed, owner)) {
                passed.push(owner.clone());
            } else if at != place && entry.waiter.conflicts_with(waiter) {
                owners.push(owner.clone());
            }
        }
        owners
    }

    fn waits_for(&self, owner: &Owner) -> bool {
        self.entries.iter().any(|entry| !entry.granted && has(&entry.blocked_by, owner))
    }
}

fn has(owners: &Owners, owner: &Owner) -> bool {
    owners.iter().any(|other| other.id == owner.id)
}

impl LockTable {
    /// Queues a range, and grants it if nothing is in the way.
    pub(super) fn enqueue_range(&self, waiter: &Arc<Waiter>) -> Option<Granted> {
        let mut ranges = self.ranges.lock();
        self.ranges_count.fetch_add(1, Ordering::Release); // before any stripe is looked at
        let blocked_by = self.blockers_at(&ranges, ranges.entries.len(), waiter);
        ranges.push(waiter, blocked_by.clone());
        blocked_by.is_empty().then_some(Granted::New)
    }

    /// [`lock`](Self::lock) while there are ranges: `None` if the request waits in a queue.
    #[cold]
    pub(super) fn lock_beside_ranges(&self, waiter: &Arc<Waiter>) -> Result<Option<Granted>> {
        let mut ranges = self.ranges.lock();
        if self.holds(waiter) {
            return Ok(Some(Granted::Before));
        }
        let blocked_by = ranges.blockers_of(ranges.entries.len(), waiter);
        if blocked_by.is_empty() {
            return self.lock_key(waiter);
        }
        self.ranges_count.fetch_add(1, Ordering::Release);
        ranges.push(waiter, blocked_by);
        Ok(None)
    }

    fn holds(&self, waiter: &Waiter) -> bool {
        let Target::Key { hash, family, ref key } = waiter.target else { return false };
        let key = LockedKey { family, key };
        self.stripe(hash).lock().find(hash, key).is_some_and(|held| held.satisfies(&waiter.owner, waiter.mode))
    }

    /// Grants the key of a request, or queues it behind the key's holders.
    fn lock_key(&self, waiter: &Arc<Waiter>) -> Result<Option<Granted>> {
        let Target::Key { hash, family, ref key } = waiter.target else { return Ok(None) };
        let key = LockedKey { family, key };
        let mut stripe = self.stripe(hash).lock();
        let granted = self.try_key(&mut stripe, hash, &waiter.owner, key, waiter.mode)?;
        if granted.is_none() {
            stripe.enqueue(waiter);
        }
        Ok(granted)
    }

    fn blockers_at(&self, ranges: &RangeQueue, place: usize, waiter: &Waiter) -> Owners {
        let mut owners = ranges.blockers_of(place, waiter);
        owners.retain(|owner| !owner.has_lost_locks(|| self.vfs.now()));
        let Target::Range(range) = &waiter.target else { return owners };
        for stripe in &self.stripes {
            let stripe = stripe.lock();
            for holder in stripe.iter().flat_map(|held| held.holders_against(range, waiter)) {
                let is_new = holder.id != waiter.owner.id && !has(&owners, holder);
                if is_new && !holder.has_lost_locks(|| self.vfs.now()) {
                    owners.push(holder.clone());
                }
            }
        }
        owners
    }

    /// The owners for which a request waits here now; `None` if it does not wait here. What the last look stored is too
    /// old for a search for deadlocks: a holder may have changed since.
    pub(super) fn blockers_in_ranges(&self, waiter: &Waiter) -> Option<Owners> {
        if self.ranges_count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let ranges = self.ranges.lock();
        ranges.position(waiter).map(|place| self.blockers_at(&ranges, place, waiter))
    }

    /// After a release: grants waiting ranges if the owner was in the way, and wakes keys.
    pub(super) fn look_at_waiting_ranges(&self, owner: &Owner) {
        if self.ranges_count.load(Ordering::Acquire) > 0 {
            let mut ranges = self.ranges.lock();
            if ranges.waits_for(owner) {
                self.grant_waiting(&mut ranges);
            }
        }
    }

    fn grant_waiting(&self, ranges: &mut RangeQueue) {
        for place in 0..ranges.entries.len() {
            let Some(waiter) = ranges.entries.get(place).filter(|entry| !entry.granted).map(|e| e.waiter.clone())
            else {
                continue;
            };
            let blocked_by = self.blockers_at(ranges, place, &waiter);
            let is_free = blocked_by.is_empty();
            let is_range = matches!(waiter.target, Target::Range(_));
            if let Some(entry) = ranges.entries.get_mut(place) {
                entry.blocked_by = blocked_by;
                entry.granted = is_free && is_range;
            }
            match (is_free, is_range) {
                (true, true) => waiter.grant(Granted::New),
                (true, false) => waiter.wake(), // its own thread goes on to the key's holders
                (false, _) => {}
            }
        }
    }

    /// The place of a waiting request, looked at anew: the grant, if it no longer waits.
    pub(super) fn look_again(&self, waiter: &Arc<Waiter>) -> Result<Option<Granted>> {
        if self.ranges_count.load(Ordering::Acquire) > 0 {
            let mut ranges = self.ranges.lock();
            if let Some(place) = ranges.position(waiter) {
                self.grant_waiting(&mut ranges);
                let is_free = ranges.entries.get(place).is_some_and(|entry| entry.blocked_by.is_empty());
                if !is_free || matches!(waiter.target, Target::Range(_)) {
                    return Ok(waiter.granted());
                }
                // Still under the queue's mutex: no range comes between the two places.
                let granted = self.lock_key(waiter);
                self.remove(&mut ranges, place);
                return granted;
            }
        }
        if let Target::Key { hash, .. } = waiter.target
            && let Some(held) = self.stripe(hash).lock().of(waiter)
        {
            held.drop_expired(|| self.vfs.now());
        }
        Ok(waiter.granted())
    }

    fn remove(&self, ranges: &mut RangeQueue, place: usize) {
        ranges.entries.remove(place);
        self.ranges_count.fetch_sub(1, Ordering::Release);
        self.grant_waiting(ranges);
    }

    /// Takes a request out of the queue. The grant, if there was one meanwhile.
    pub(super) fn leave_ranges(&self, waiter: &Waiter) -> Option<Granted> {
        if self.ranges_count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut ranges = self.ranges.lock();
        let place = ranges.position(waiter)?;
        if ranges.entries.get(place).is_some_and(|entry| entry.granted) {
            return Some(Granted::New);
        }
        self.remove(&mut ranges, place);
        None
    }

    /// Releases every lock of ranges of the owner.
    pub fn unlock_ranges(&self, owner: &Owner) {
        if self.ranges_count.load(Ordering::Acquire) == 0 {
            return;
        }
        let mut ranges = self.ranges.lock();
        let before = ranges.entries.len();
        ranges.entries.retain(|entry| entry.waiter.owner.id != owner.id);
        let removed = before - ranges.entries.len();
        if removed > 0 {
            self.ranges_count.fetch_sub(removed, Ordering::Release);
            self.grant_waiting(&mut ranges);
        }
    }
}
