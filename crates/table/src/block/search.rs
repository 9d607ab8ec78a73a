//! Searches a block's entries in byte order without rebuilding their keys.
//!
//! An entry stores the number of bytes its key shares with the key before, and the rest. A scan that knows how many
//! bytes of the target the key before matched can pass most entries by that number alone: a key that shares more bytes
//! differs from the target at the same byte, in the same direction.

use std::cmp::Ordering;

use base::LookupKey;
use base::bytes::shared_prefix;
use base::key::{self, TRAILER_BYTES};

use super::entry::{Entry, parse_entry};
use super::{BlockView, Bucket, GlobalSeq, hash_of};

/// Result of a scan.
pub enum Scan {
    /// The first entry at or after the target.
    Found(Found),
    /// Every entry is before the target.
    Behind,
    /// Whole keys are needed: keys end inside each other, or several versions of the target's key come first.
    NeedsKeys,
}

/// An entry found by a scan. Its key is `target[..entry.shared]` and its stored bytes.
pub struct Found {
    /// Offset of the entry.
    pub at: usize,
    pub entry: Entry,
    /// Its user key is the target's.
    pub is_target: bool,
    /// Its trailer, with the global sequence number. 0 unless its user key is the target's.
    pub trailer: u64,
}

/// Where a lookup goes on in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// From this restart point on.
    Restart(usize),
    /// The block does not hold the key.
    Nowhere,
}

/// Most restart points whose entries are asked for at once. Blocks of 4 KiB have two to eight.
const FORESEEN_RESTARTS_MAX: usize = 8;

impl BlockView<'_> {
    /// Asks for the memory that [`foresee_restarts`](Self::foresee_restarts) reads.
    #[inline]
    pub fn foresee(self) {
        vfs::prefetch(self.bytes, self.layout.entries_end, self.bytes.len());
    }

    /// Asks for the memory that [`place_of`](Self::place_of) reads.
    #[inline]
    pub fn foresee_restarts(self) {
        if self.layout.buckets == 0 {
            for at in (0..self.restarts().min(FORESEEN_RESTARTS_MAX)).filter_map(|index| self.restart(index).ok()) {
                vfs::prefetch(self.bytes, at, at + 1);
            }
        }
    }

    /// The first step of a lookup in byte order: by the hash index if there is one. Asks for the memory of the second.
    /// `None`: the block is malformed.
    #[inline]
    pub fn place_of(self, key: &LookupKey, global: GlobalSeq) -> Option<Place> {
        if self.layout.entries_end == 0 {
            return Some(Place::Nowhere);
        }
        let restart = match self.bucket(|| hash_of(key.user_key())) {
            None | Some(Bucket::Collision) => restart_before(self, key.internal(), global)?,
            Some(Bucket::Empty) => return Some(Place::Nowhere),
            Some(Bucket::Restart(restart)) => restart,
        };
        self.foresee_scan(restart)?;
        Some(Place::Restart(restart))
    }

    /// Asks for the entries up to the next restart point. A scan reads each entry's head to find the next one: without
    /// this, one cache miss after the other. `None`: the block is malformed.
    #[inline]
    pub fn foresee_scan(self, restart: usize) -> Option<()> {
        let start = self.restart(restart).ok()?;
        let end = if restart + 1 < self.restarts() { self.restart(restart + 1).ok()? } else { self.layout.entries_end };
        vfs::prefetch(self.bytes, start, end);
        Some(())
    }

    /// The second step: the newest entry of the key at or below its number, or else the next entry. `None`: the block is
    /// malformed.
    #[inline]
    pub fn find(self, place: Place, key: &LookupKey, global: GlobalSeq) -> Option<Scan> {
        match place {
            Place::Restart(restart) => scan(self, restart, key.internal(), global),
            Place::Nowhere => Some(Scan::Behind),
        }
    }
}

/// The last restart point with a key before `target` in byte order, or the first. `None`: the block is malformed.
#[inline]
pub fn restart_before(block: BlockView<'_>, target: &[u8], global: GlobalSeq) -> Option<usize> {
    let (user, trailer) = key::split(target)?;
    let (mut low, mut high) = (0, block.restarts());
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        let entry = parse_entry(block.entries(), block.restart(middle).ok()?)?;
        let (stored_user, stored_trailer) = key::split(block.bytes().get(entry.key_start..entry.key_end)?)?;
        if entry.shared != 0 {
            return None;
        }
        let is_before = match stored_user.cmp(user) {
            Ordering::Equal => global.trailer(stored_trailer) > trailer,
            unequal => unequal.is_lt(),
        };
        if is_before {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

/// Scans from a restart point for the first entry at or after the internal key `target`, in byte order. `None`: the
/// block is malformed.
#[inline]
pub fn scan(block: BlockView<'_>, restart: usize, target: &[u8], global: GlobalSeq) -> Option<Scan> {
    let (user, trailer) = key::split(target)?;
    let (entries, mut at) = (block.entries(), block.restart(restart).ok()?);
    // Bytes of `user` that the last key matched. It was smaller by the next byte, unless `by_length`.
    let (mut matched, mut by_length) = (0, false);
    let mut entry = parse_entry(entries, at)?;
    if entry.shared != 0 {
        return None;
    }
    loop {
        if entry.shared <= matched {
            let stored = entries.get(entry.key_start..entry.key_end)?;
            let Some(stored_user) = stored.get(..stored.len().wrapping_sub(TRAILER_BYTES)) else {
                return Some(Scan::NeedsKeys); // the trailer is shared in part
            };
            let rest = user.get(entry.shared..)?;
            let common = shared_prefix(stored_user, rest);
            matched = entry.shared + common;
            by_length = common == stored_user.len();
            let (is_found, is_target, stored_trailer) = match (stored_user.get(common), rest.get(common)) {
                (Some(stored), Some(wanted)) => (stored > wanted, false, 0),
                (Some(_), None) => (true, false, 0),
                (None, Some(_)) => (false, false, 0),
                (None, None) => {
                    let stored_trailer = global.trailer(key::split(stored)?.1);
                    (stored_trailer <= trailer, true, stored_trailer)
                }
            };
            if is_found {
                return Some(Scan::Found(Found { at, entry, is_target, trailer: stored_trailer }));
            }
        } else if by_length {
            return Some(Scan::NeedsKeys);
        }
        at = entry.value_end;
        if at >= entries.len() {
            return Some(Scan::Behind);
        }
        entry = parse_entry(entries, at)?;
    }
}
