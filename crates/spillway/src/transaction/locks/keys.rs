//! Locks of keys: a stripe's table, and the queue of each key.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use base::FamilyId;
use hashbrown::HashTable;
use smallvec::{SmallVec, smallvec};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::waiter::{Target, Waiter};
use super::{Granted, HeldLock, LockedKey, LockedRange, Mode, Owner};

pub(super) fn hash(key: LockedKey<'_>) -> u64 {
    xxh3_64_with_seed(key.key, u64::from(key.family.0))
}

/// The locked keys of a stripe.
#[derive(Default)]
pub(super) struct Stripe {
    keys: HashTable<HeldKey>,
}

/// A key with holders. Without any it leaves the stripe.
pub(super) struct HeldKey {
    hash: u64,
    family: FamilyId,
    key: Box<[u8]>,
    /// One if exclusive.
    holders: SmallVec<[Arc<Owner>; 1]>,
    mode: Mode,
    /// In the order of their grants: upgrades, then the others as they came.
    waiters: VecDeque<Arc<Waiter>>,
}

impl Stripe {
    pub fn find(&mut self, hash: u64, key: LockedKey<'_>) -> Option<&mut HeldKey> {
        self.keys.find_mut(hash, |held| held.is(key))
    }

    /// Adds a key's first holder.
    pub fn insert(&mut self, hash: u64, owner: &Arc<Owner>, key: LockedKey<'_>, mode: Mode) {
        let LockedKey { family, key } = key;
        let held = HeldKey {
            hash,
            family,
            key: key.into(),
            holders: smallvec![owner.clone()],
            mode,
            waiters: VecDeque::new(),
        };
        self.keys.insert_unique(hash, held, |held| held.hash);
    }

    /// Ends a holder's lock. True if the key left the stripe.
    pub fn release(&mut self, hash: u64, owner: &Owner, key: LockedKey<'_>) -> bool {
        let Ok(mut found) = self.keys.find_entry(hash, |held| held.is(key)) else { return false };
        let held = found.get_mut();
        held.holders.retain(|holder| holder.id != owner.id);
        held.grant_waiting();
        let is_free = held.is_free();
        if is_free {
            found.remove();
        }
        is_free
    }

    /// Puts a request behind those for its key, which is held. An upgrade goes before all but upgrades.
    pub fn enqueue(&mut self, waiter: &Arc<Waiter>) {
        let Some(held) = self.of(waiter) else { return };
        if held.is_held_by(&waiter.owner) {
            let upgrades = held.waiters.iter().take_while(|waiter| held.is_held_by(&waiter.owner)).count();
            held.waiters.insert(upgrades, waiter.clone());
        } else {
            held.waiters.push_back(waiter.clone());
        }
    }

    /// Takes a request out of its queue, which others may then pass. True if the key left the stripe.
    pub fn leave(&mut self, waiter: &Waiter) -> bool {
        let Target::Key { hash, family, ref key } = waiter.target else { return false };
        let key = LockedKey { family, key };
        let Ok(mut found) = self.keys.find_entry(hash, |held| held.is(key)) else { return false };
        let held = found.get_mut();
        held.waiters.retain(|other| !std::ptr::eq(&raw const **other, waiter));
        held.grant_waiting();
        let is_free = held.is_free();
        if is_free {
            found.remove();
        }
        is_free
    }

    /// The key of a request.
    pub fn of(&mut self, waiter: &Waiter) -> Option<&mut HeldKey> {
        let Target::Key { hash, family, ref key } = waiter.target else { return None };
        self.find(hash, LockedKey { family, key })
    }

    pub fn iter(&self) -> impl Iterator<Item = &HeldKey> {
        self.keys.iter()
    }
}

impl HeldKey {
    fn is(&self, key: LockedKey<'_>) -> bool {
        self.family == key.family && *self.key == *key.key
    }

    fn is_free(&self) -> bool {
        self.holders.is_empty() && self.waiters.is_empty()
    }

    fn is_held_by(&self, owner: &Owner) -> bool {
        self.holders.iter().any(|holder| holder.id == owner.id)
    }

    /// Whether the owner has the lock, or a stronger one.
    pub fn satisfies(&self, owner: &Owner, mode: Mode) -> bool {
        self.is_held_by(owner) && (self.mode == Mode::Exclusive || mode == Mode::Shared)
    }

    /// Grants a request that need not wait.
    pub fn try_grant(&mut self, owner: &Arc<Owner>, mode: Mode) -> Option<Granted> {
        if self.satisfies(owner, mode) {
            return Some(Granted::Before);
        }
        let is_upgrade = self.is_held_by(owner);
        if !self.admits(owner, mode) || (!is_upgrade && !self.waiters.is_empty()) {
            return None;
        }
        Some(self.add(owner, mode))
    }

    /// Whether the holders allow another lock.
    fn admits(&self, owner: &Owner, mode: Mode) -> bool {
        let shares = self.mode == Mode::Shared && mode == Mode::Shared;
        shares || self.holders.iter().all(|holder| holder.id == owner.id)
    }

    fn add(&mut self, owner: &Arc<Owner>, mode: Mode) -> Granted {
        self.mode = mode;
        if self.is_held_by(owner) {
            return Granted::Upgraded;
        }
        self.holders.push(owner.clone());
        Granted::New
    }

    /// Removes holders that have expired, and grants the lock to those next.
    pub fn drop_expired(&mut self, now: impl Fn() -> Duration) {
        let before = self.holders.len();
        self.holders.retain(|holder| !holder.has_lost_locks(&now));
        if self.holders.len() < before {
            self.grant_waiting();
        }
    }

    fn grant_waiting(&mut self) {
        while let Some(next) = self.waiters.front()
            && self.admits(&next.owner, next.mode)
            && let Some(next) = self.waiters.pop_front()
        {
            let granted = self.add(&next.owner, next.mode);
            next.grant(granted);
        }
    }

    /// Owners for which a request in the queue waits: holders, and those before it.
    pub fn blockers(&self, waiter: &Waiter) -> SmallVec<[Arc<Owner>; 4]> {
        let holders = self.holders.iter().filter(|_| self.mode == Mode::Exclusive || waiter.mode == Mode::Exclusive);
        let before = self.waiters.iter().take_while(|other| !std::ptr::eq(&raw const ***other, waiter));
        let owners = holders.chain(before.map(|other| &other.owner));
        owners.filter(|owner| owner.id != waiter.owner.id).cloned().collect()
    }

    /// Holders for which a range waits.
    pub fn holders_against(&self, range: &LockedRange, waiter: &Waiter) -> &[Arc<Owner>] {
        let shares = self.mode == Mode::Shared && waiter.mode == Mode::Shared;
        let covered = !shares && range.covers(LockedKey { family: self.family, key: &self.key });
        if covered { &self.holders } else { &[] }
    }

    pub fn to_report(&self) -> HeldLock {
        HeldLock {
            family: self.family,
            key: self.key.to_vec(),
            mode: self.mode,
            owners: self.holders.iter().map(|holder| holder.id).collect(),
        }
    }
}
