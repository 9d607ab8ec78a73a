//! Walks and searches one block of entries.

use std::cmp::Ordering;
use std::ops::Range;

use base::key::{self, TRAILER_BYTES};
use base::{Error, InternalOrder, Result, SeqNo, UserOrder};

use super::entry::{Entry, parse_entry};
use super::search::{self, Found, Scan};
use super::{Block, Bucket, hash_of};
use crate::cached::BlockRef;

/// The sequence number of every key of an ingested table, in place of the stored ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GlobalSeq(pub Option<SeqNo>);

impl GlobalSeq {
    /// The trailer of a key whose stored trailer is `stored`.
    #[inline]
    pub fn trailer(self, stored: u64) -> u64 {
        match self.0 {
            None => stored,
            Some(seq) => key::pack_trailer(seq, stored as u8),
        }
    }

    /// As [`InternalOrder::compare`]; `stored` is a key of the block.
    #[inline]
    pub fn compare(self, order: &InternalOrder, stored: &[u8], target: &[u8]) -> Ordering {
        let (Some((stored_user, stored_trailer)), Some((user, trailer))) = (key::split(stored), key::split(target))
        else {
            return stored.cmp(target);
        };
        order.user.compare(stored_user, user).then_with(|| trailer.cmp(&self.trailer(stored_trailer)))
    }
}

/// Bound on key bytes kept for a backward walk: shared prefixes let a small block claim any size (B2).
pub(super) const PASSED_KEYS_MAX: usize = 1 << 20;

/// An entry passed on a backward walk, so `prev` need not parse its restart interval again.
#[derive(Clone, Copy, Debug)]
struct Passed {
    at: usize,
    key_end: usize,
    entry: Entry,
}

/// A cursor's block.
#[derive(Debug, Default)]
enum Held {
    #[default]
    Nothing,
    Shared(BlockRef),
    /// A copy of the cursor's own.
    Own(Block),
}

impl Held {
    #[inline]
    fn entries(&self) -> &Block {
        static NONE: Block = Block::EMPTY;
        match self {
            Held::Nothing => &NONE,
            Held::Shared(block) => &block.entries,
            Held::Own(block) => block,
        }
    }
}

/// A position in a block. Its buffers are reused from block to block.
#[derive(Debug, Default)]
pub struct BlockCursor {
    block: Held,
    global: GlobalSeq,
    valid: bool,
    damaged: bool,
    /// Offset of the current entry, and its decoded header.
    at: usize,
    entry: Entry,
    /// True if the key is stored whole; otherwise the key is in `key`.
    key_in_block: bool,
    key: Vec<u8>,
    /// The current key with the global sequence number in it.
    patched: Vec<u8>,
    /// The entries of one restart interval up to the current one, and their concatenated keys.
    passed: Vec<Passed>,
    passed_keys: Vec<u8>,
}

impl BlockCursor {
    pub fn new(global: GlobalSeq) -> Self {
        BlockCursor { global, ..Self::default() }
    }

    /// Rebuilds keys in `buffer`, so repeated lookups allocate nothing.
    pub fn with_buffer(global: GlobalSeq, buffer: Vec<u8>) -> Self {
        BlockCursor { global, key: buffer, ..Self::default() }
    }

    pub fn into_buffer(self) -> Vec<u8> {
        self.key
    }

    /// Moves to a block, on no entry.
    pub fn set_block(&mut self, block: BlockRef) {
        self.leave_block();
        self.block = Held::Shared(block);
    }

    /// Moves to a copy of a block with these contents, on no entry. Memory of an earlier copy is reused.
    ///
    /// # Errors
    /// As [`Block::parse`].
    pub fn set_copy(&mut self, contents: &[u8]) -> Result<()> {
        let mut bytes = match std::mem::take(&mut self.block) {
            Held::Own(block) => block.into_bytes(),
            Held::Nothing | Held::Shared(_) => Vec::new(),
        };
        self.leave_block();
        bytes.clear();
        bytes.extend_from_slice(contents);
        self.block = Held::Own(Block::parse(bytes)?);
        Ok(())
    }

    /// Releases the block. The cursor is then on no entry.
    pub fn leave_block(&mut self) {
        self.block = Held::Nothing;
        self.invalidate();
        self.damaged = false;
    }

    #[inline]
    fn entries(&self) -> &Block {
        self.block.entries()
    }

    #[inline]
    pub fn valid(&self) -> bool {
        self.valid
    }

    /// # Errors
    /// `Corruption`: the walk met a malformed entry.
    pub fn status(&self) -> Result<()> {
        if self.damaged {
            return Err(Error::corruption("malformed entry in a block"));
        }
        Ok(())
    }

    /// The key as stored.
    #[inline]
    fn stored_key(&self) -> &[u8] {
        if self.key_in_block {
            self.entries().bytes().get(self.entry.key_start..self.entry.key_end).unwrap_or_default()
        } else {
            &self.key
        }
    }

    #[inline]
    pub fn key(&self) -> &[u8] {
        match (self.valid, self.global.0) {
            (false, _) => &[],
            (true, None) => self.stored_key(),
            (true, Some(_)) => &self.patched,
        }
    }

    #[inline]
    pub fn value(&self) -> &[u8] {
        self.entries().bytes().get(self.value_range()).unwrap_or_default()
    }

    /// Range of the value in the block's bytes.
    #[inline]
    pub fn value_range(&self) -> Range<usize> {
        if self.valid { self.entry.key_end..self.entry.value_end } else { 0..0 }
    }

    pub fn seek_to_first(&mut self) -> bool {
        self.passed.clear();
        if self.entries().entries_end() == 0 {
            return self.invalidate();
        }
        self.stand_on_restart(0) && self.finish_move()
    }

    pub fn seek_to_last(&mut self) -> bool {
        self.passed.clear();
        let Some(last) = self.entries().restarts().checked_sub(1).filter(|_| self.entries().entries_end() > 0) else {
            return self.invalidate();
        };
        if !self.stand_on_restart(last) {
            return false;
        }
        while self.entry.value_end < self.entries().entries_end() {
            if !self.step() {
                return false;
            }
        }
        self.finish_move()
    }

    /// Moves to the first entry at or after `target` in `order`.
    pub fn seek(&mut self, target: &[u8], order: &InternalOrder) -> bool {
        self.passed.clear();
        if self.entries().entries_end() == 0 {
            return self.invalidate();
        }
        match self.search_restarts(target, order) {
            Some(restart) => self.scan_from(restart, target, order),
            None => self.fail(),
        }
    }

    /// As [`seek`](Self::seek) through the hash index, if any. Only for lookups of the target's exact user key. `None`:
    /// the hash index rules out the user key.
    pub fn seek_for_get(&mut self, target: &[u8], order: &InternalOrder) -> Option<bool> {
        if order.user.equal_keys_can_differ() || order.user.timestamp_bytes() > 0 {
            return Some(self.seek(target, order)); // the hash goes by bytes
        }
        match self.entries().view().bucket(|| hash_of(key::user_key(target))) {
            None | Some(Bucket::Collision) => Some(self.seek(target, order)),
            Some(Bucket::Empty) => {
                self.invalidate();
                None
            }
            Some(Bucket::Restart(restart)) => {
                self.passed.clear();
                Some(self.scan_from(restart, target, order))
            }
        }
    }

    #[inline]
    pub fn next(&mut self) -> bool {
        if !self.passed.is_empty() {
            self.passed.clear();
        }
        if self.entry.value_end >= self.entries().entries_end() {
            return self.invalidate();
        }
        self.step() && self.finish_move()
    }

    pub fn prev(&mut self) -> bool {
        if self.passed.len() < 2 && !self.pass_interval_before() {
            return self.invalidate();
        }
        self.passed.pop();
        let (Some(&here), before) = (self.passed.last(), self.passed.iter().rev().nth(1)) else {
            return self.invalidate();
        };
        let key_start = before.map_or(0, |p| p.key_end);
        self.key.clear();
        self.key.extend_from_slice(self.passed_keys.get(key_start..here.key_end).unwrap_or_default());
        self.key_in_block = false;
        self.at = here.at;
        self.entry = here.entry;
        self.finish_move()
    }

    /// Fills `passed` with the entries from the restart point before the current entry up to it. False if there is no
    /// earlier entry.
    fn pass_interval_before(&mut self) -> bool {
        let end = self.at;
        let Some(restart) = self.last_restart_below(end) else {
            return false;
        };
        self.passed.clear();
        self.passed_keys.clear();
        if !self.stand_on_restart(restart) {
            return false;
        }
        loop {
            if self.passed_keys.len() > PASSED_KEYS_MAX {
                self.keep_last_passed();
            }
            let mut keys = std::mem::take(&mut self.passed_keys);
            keys.extend_from_slice(self.stored_key());
            self.passed_keys = keys;
            self.passed.push(Passed { at: self.at, key_end: self.passed_keys.len(), entry: self.entry });
            if self.at >= end {
                return self.at == end || self.fail();
            }
            if self.entry.value_end >= self.entries().entries_end() || !self.step() {
                return self.fail();
            }
        }
    }

    /// Memory held for backward walks.
    #[cfg(test)]
    pub(super) fn passed_bytes(&self) -> usize {
        self.passed_keys.capacity()
    }

    /// Forgets all passed entries but the last. Another pass finds the earlier ones.
    fn keep_last_passed(&mut self) {
        let start = self.passed.iter().rev().nth(1).map_or(0, |before| before.key_end);
        if let Some(mut last) = self.passed.pop() {
            last.key_end -= start;
            self.passed.clear();
            self.passed.push(last);
            self.passed_keys.drain(..start);
        }
    }

    /// The last restart point before offset `end`.
    fn last_restart_below(&self, end: usize) -> Option<usize> {
        let (mut low, mut high) = (0, self.entries().restarts());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entries().restart(middle).ok()? < end {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low.checked_sub(1)
    }

    /// The last restart point whose key is before `target`, or the first; `None` if the block is malformed.
    fn search_restarts(&self, target: &[u8], order: &InternalOrder) -> Option<usize> {
        if matches!(order.user, UserOrder::Bytewise) {
            return search::restart_before(self.entries().view(), target, self.global);
        }
        let (mut low, mut high) = (0, self.entries().restarts());
        while high - low > 1 {
            let middle = low + (high - low) / 2;
            let entry = parse_entry(self.entries().entries(), self.entries().restart(middle).ok()?)?;
            let key = self.entries().bytes().get(entry.key_start..entry.key_end)?;
            if entry.shared != 0 {
                return None;
            }
            if self.global.compare(order, key, target).is_lt() {
                low = middle;
            } else {
                high = middle;
            }
        }
        Some(low)
    }

    fn scan_from(&mut self, restart: usize, target: &[u8], order: &InternalOrder) -> bool {
        if matches!(order.user, UserOrder::Bytewise) {
            let view = self.entries().view();
            match view.foresee_scan(restart).and_then(|()| search::scan(view, restart, target, self.global)) {
                Some(Scan::Found(found)) => return self.stand_on(&found, target),
                Some(Scan::Behind) => return self.invalidate(),
                Some(Scan::NeedsKeys) => {}
                None => return self.fail(),
            }
        }
        if !self.stand_on_restart(restart) {
            return false;
        }
        while self.global.compare(order, self.stored_key(), target).is_lt() {
            if self.entry.value_end >= self.entries().entries_end() {
                return self.invalidate();
            }
            if !self.step() {
                return false;
            }
        }
        self.finish_move()
    }

    /// Moves to an entry found for `target`.
    fn stand_on(&mut self, found: &Found, target: &[u8]) -> bool {
        let entry = found.entry;
        self.key_in_block = entry.shared == 0;
        if !self.key_in_block {
            let rest = self.block.entries().bytes().get(entry.key_start..entry.key_end).unwrap_or_default();
            self.key.clear();
            self.key.reserve(entry.shared + rest.len());
            self.key.extend_from_slice(target.get(..entry.shared).unwrap_or_default());
            self.key.extend_from_slice(rest);
        }
        self.at = found.at;
        self.entry = entry;
        self.finish_move()
    }

    fn stand_on_restart(&mut self, restart: usize) -> bool {
        let Ok(at) = self.entries().restart(restart) else {
            return self.fail();
        };
        match parse_entry(self.entries().entries(), at) {
            Some(entry) if entry.shared == 0 => {
                self.at = at;
                self.entry = entry;
                self.key_in_block = true;
                true
            }
            _ => self.fail(),
        }
    }

    /// Parses the entry after the current one. The current entry must not be the last.
    #[inline]
    fn step(&mut self) -> bool {
        let at = self.entry.value_end;
        let Some(entry) = parse_entry(self.entries().entries(), at) else {
            return self.fail();
        };
        let bytes = self.block.entries().bytes();
        if entry.shared == 0 {
            self.key_in_block = true;
        } else {
            if self.key_in_block {
                let whole = self.entry.key_start..self.entry.key_end;
                self.key.clear();
                self.key.extend_from_slice(bytes.get(whole).unwrap_or_default());
                self.key_in_block = false;
            }
            if entry.shared > self.key.len() {
                return self.fail();
            }
            self.key.truncate(entry.shared);
            self.key.extend_from_slice(bytes.get(entry.key_start..entry.key_end).unwrap_or_default());
        }
        self.at = at;
        self.entry = entry;
        true
    }

    /// Checks the key after a move and puts the global sequence number into it.
    #[inline]
    fn finish_move(&mut self) -> bool {
        let len = if self.key_in_block { self.entry.key_end - self.entry.key_start } else { self.key.len() };
        if len < TRAILER_BYTES {
            return self.fail();
        }
        self.valid = true;
        if self.global.0.is_some() {
            self.patch();
        }
        true
    }

    fn patch(&mut self) {
        let mut patched = std::mem::take(&mut self.patched);
        patched.clear();
        if let Some((user_key, trailer)) = key::split(self.stored_key()) {
            patched.extend_from_slice(user_key);
            patched.extend_from_slice(&self.global.trailer(trailer).to_le_bytes());
        }
        self.patched = patched;
    }

    fn invalidate(&mut self) -> bool {
        self.valid = false;
        self.passed.clear();
        false
    }

    #[cold]
    fn fail(&mut self) -> bool {
        self.damaged = true;
        self.invalidate()
    }
}
