//! Searches a block's entries in byte order without rebuilding their keys.
//!
//! An entry stores the number of bytes its key shares with the key before, and the rest. A scan that knows how many
//! bytes of the target the key before matched can pass most entries by that number alone: a key that shares more bytes
//! differs from the target at the same byte, in the same direction.

use std::cmp::Ordering;

use base::bytes::shared_prefix;
use base::key::{self, TRAILER_BYTES};

use super::entry::{Entry, parse_entry};
use super::{Block, GlobalSeq};

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

/// The last restart point with a key before `target` in byte order, or the first. `None`: the block is malformed.
#[inline]
pub fn restart_before(block: &Block, target: &[u8], global: GlobalSeq) -> Option<usize> {
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
pub fn scan(block: &Block, restart: usize, target: &[u8], global: GlobalSeq) -> Option<Scan> {
    let (user, trailer) = key::split(target)?;
    let (entries, mut at) = (block.entries(), block.restart(restart).ok()?);
    // A scan reads each entry's head to find the next: one cache miss after the other, without this.
    let end = if restart + 1 < block.restarts() { block.restart(restart + 1).ok()? } else { entries.len() };
    vfs::prefetch(entries, at, end);
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
