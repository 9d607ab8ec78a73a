//! The keys that a transaction depends on, each with the number since which it must not have changed.
//!
//! Keys stand in one buffer, in the order of their coming: a rollback to a savepoint cuts the end off.

use std::sync::Arc;

use base::{FamilyId, SeqNo};
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64;

use crate::core::family::Family;

/// Up to so many keys are searched one by one.
const LISTED_MAX: usize = 8;

/// An empty place of the table.
const NONE: u32 = u32::MAX;

/// Keys by family and bytes.
#[derive(Default)]
pub(super) struct Tracked {
    families: SmallVec<[Arc<Family>; 2]>,
    keys: Vec<Key>,
    bytes: Vec<u8>,
    /// Numbers of keys by hash, open addressing, at most half full; empty up to `LISTED_MAX` keys.
    table: Vec<u32>,
}

struct Key {
    hash: u64,
    at: usize,
    len: usize,
    /// The family's place in [`Tracked::families`].
    slot: usize,
    since: SeqNo,
    /// Reads for an update that were not undone.
    reads: u32,
    is_written: bool,
}

impl Key {
    /// False once every read for an update was undone.
    fn counts(&self) -> bool {
        self.is_written || self.reads > 0
    }
}

/// Why a key is tracked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
    Read,
    Write,
}

/// A tracked key.
pub(super) struct TrackedKey<'a> {
    pub family: &'a Arc<Family>,
    pub user_key: &'a [u8],
    pub since: SeqNo,
}

impl Tracked {
    pub fn clear(&mut self) {
        self.families.clear();
        self.keys.clear();
        self.bytes.clear();
        self.table.clear();
    }

    pub fn len(&self) -> usize {
        self.keys.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = TrackedKey<'_>> {
        self.keys.iter().filter(|key| key.counts()).filter_map(|key| {
            let user_key = self.bytes.get(key.at..key.at + key.len)?;
            Some(TrackedKey { family: self.families.get(key.slot)?, user_key, since: key.since })
        })
    }

    /// The key's number, if it is tracked.
    pub fn since(&self, family: FamilyId, user_key: &[u8]) -> Option<SeqNo> {
        let slot = self.slot_of(family)?;
        let number = self.find(slot, user_key, hash(user_key))?;
        self.keys.get(number).filter(|key| key.counts()).map(|key| key.since)
    }

    /// Tracks a key. Of two numbers the older stands.
    pub fn add(&mut self, family: &Arc<Family>, user_key: &[u8], since: SeqNo, to: Use) {
        let slot = self.slot_of(family.id()).unwrap_or_else(|| {
            self.families.push(family.clone());
            self.families.len() - 1
        });
        let hash = hash(user_key);
        if let Some(key) = self.find(slot, user_key, hash).and_then(|number| self.keys.get_mut(number)) {
            key.since = if key.counts() { key.since.min(since) } else { since };
            key.reads += u32::from(to == Use::Read);
            key.is_written |= to == Use::Write;
            return;
        }
        let (at, len) = (self.bytes.len(), user_key.len());
        self.bytes.extend_from_slice(user_key);
        let (reads, is_written) = (u32::from(to == Use::Read), to == Use::Write);
        self.keys.push(Key { hash, at, len, slot, since, reads, is_written });
        if self.keys.len() > LISTED_MAX {
            self.put_in_table(self.keys.len() - 1);
        }
    }

    /// Takes one read for an update back, of a key that is not among the first `kept`. A key without any other use is
    /// not tracked then.
    pub fn undo_read(&mut self, family: FamilyId, user_key: &[u8], kept: usize) {
        let Some(slot) = self.slot_of(family) else { return };
        let number = self.find(slot, user_key, hash(user_key)).filter(|&number| number >= kept);
        if let Some(key) = number.and_then(|number| self.keys.get_mut(number)) {
            key.reads = key.reads.saturating_sub(1);
        }
    }

    /// Forgets all but the first `len` keys.
    pub fn truncate(&mut self, len: usize) {
        let Some(first) = self.keys.get(len) else { return };
        self.bytes.truncate(first.at);
        self.keys.truncate(len);
        self.table.clear();
        if len > LISTED_MAX {
            self.rebuild();
        }
    }

    fn slot_of(&self, family: FamilyId) -> Option<usize> {
        self.families.iter().position(|known| known.id() == family)
    }

    fn find(&self, slot: usize, user_key: &[u8], hash: u64) -> Option<usize> {
        let is_it = |key: &Key| {
            key.hash == hash && key.slot == slot && self.bytes.get(key.at..key.at + key.len) == Some(user_key)
        };
        if self.table.is_empty() {
            return self.keys.iter().position(is_it);
        }
        let mut place = hash as usize & (self.table.len() - 1);
        loop {
            let number = *self.table.get(place).filter(|&&number| number != NONE)? as usize;
            if self.keys.get(number).is_some_and(is_it) {
                return Some(number);
            }
            place = (place + 1) & (self.table.len() - 1);
        }
    }

    fn put_in_table(&mut self, number: usize) {
        if self.keys.len() * 2 > self.table.len() {
            return self.rebuild();
        }
        let Some(key) = self.keys.get(number) else { return };
        let mut place = key.hash as usize & (self.table.len() - 1);
        while let Some(entry) = self.table.get_mut(place) {
            if *entry == NONE {
                *entry = number as u32;
                return;
            }
            place = (place + 1) & (self.table.len() - 1);
        }
    }

    fn rebuild(&mut self) {
        self.table.clear();
        self.table.resize((self.keys.len() * 4).next_power_of_two(), NONE);
        (0..self.keys.len()).for_each(|number| self.put_in_table(number));
    }
}

#[inline]
fn hash(user_key: &[u8]) -> u64 {
    xxh3_64(user_key)
}

#[cfg(test)]
mod tests {
    use vfs::MemoryVfs;

    use super::*;
    use crate::internal::{Database, FamilyOptions, OpenOptions};

    #[test]
    fn the_first_number_stands_and_a_rollback_forgets() {
        let options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).expect("opened");
        let other = db.create_family("other", FamilyOptions::default()).expect("made");
        let default = db.default_family();
        let mut tracked = Tracked::default();
        let mut kept = 0;
        for n in 0..500u64 {
            let key = n.to_le_bytes();
            tracked.add(&default, &key, SeqNo(n + 10), Use::Write);
            tracked.add(&default, &key, SeqNo(n + 11), Use::Read);
            if n % 2 == 0 {
                tracked.add(&other, &key, SeqNo(n), Use::Read);
            }
            if n == 200 {
                kept = tracked.len();
            }
        }
        assert_eq!(tracked.len(), 750);
        let check = |tracked: &Tracked, through: u64| {
            for n in 0..500u64 {
                let (key, is_there) = (n.to_le_bytes(), n <= through);
                assert_eq!(tracked.since(default.id(), &key), is_there.then_some(SeqNo(n + 10)));
                assert_eq!(tracked.since(other.id(), &key), (is_there && n % 2 == 0).then_some(SeqNo(n)));
            }
        };
        check(&tracked, 499);
        tracked.truncate(kept);
        check(&tracked, 200);
        tracked.truncate(6);
        check(&tracked, 3);
        assert_eq!(tracked.iter().map(|key| key.since.0).collect::<Vec<_>>(), [10, 0, 11, 12, 2, 13]);
    }

    #[test]
    fn a_read_that_was_undone_does_not_count() {
        let options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).expect("opened");
        let family = db.default_family();
        let mut tracked = Tracked::default();
        let since = |tracked: &Tracked, key: &[u8]| tracked.since(family.id(), key).map(|seq| seq.0);
        for key in [b"read", b"both"] {
            tracked.add(&family, key, SeqNo(1), Use::Read);
        }
        tracked.add(&family, b"both", SeqNo(2), Use::Write);
        tracked.add(&family, b"read", SeqNo(2), Use::Read);
        tracked.undo_read(family.id(), b"read", 0);
        assert_eq!(since(&tracked, b"read"), Some(1), "it was read twice");
        for key in [b"read", b"both"] {
            tracked.undo_read(family.id(), key, 0);
        }
        assert_eq!((since(&tracked, b"read"), since(&tracked, b"both")), (None, Some(1)), "a write stays");
        assert_eq!(tracked.iter().count(), 1);
        tracked.add(&family, b"read", SeqNo(7), Use::Read);
        assert_eq!(since(&tracked, b"read"), Some(7), "as if new");
        tracked.undo_read(family.id(), b"read", 1);
        assert_eq!(since(&tracked, b"read"), Some(7), "of before the savepoint");
    }
}
