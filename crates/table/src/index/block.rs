//! An index block, decoded at load into whole keys and handles. A search touches only these and meets no malformed
//! entry (B1).

use std::cmp::Ordering;
use std::ops::Range;

use base::bytes::{leading_u64, shared_prefix};
use base::coding::Reader;
use base::key;
use base::{Error, InternalOrder, Result, UserOrder};

use crate::block::{Block, Entry, parse_entry, parse_index_entry};
use crate::handle::BlockHandle;

/// Encoding of a table's index blocks, from the table's properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IndexFormat {
    /// Separators are user keys; else internal keys.
    pub user_keys: bool,
    /// Values have no length. Handles are delta-coded if keys share a prefix.
    pub delta_values: bool,
    /// Every value ends with the first internal key of its block.
    pub first_keys: bool,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    /// Ends of the separator and the first key in `IndexBlock::keys`.
    key_end: u32,
    first_key_end: u32,
    offset: u64,
    size: u32,
}

/// One entry: a block and its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexSlot<'a> {
    /// User key or internal key, by the format.
    pub separator: &'a [u8],
    /// Empty if the index has none.
    pub first_key: &'a [u8],
    pub handle: BlockHandle,
}

/// Result of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub at: usize,
    /// The separator's user key is certainly past the target's: no later block holds the target's.
    pub is_last: bool,
}

#[derive(Debug, Default)]
pub struct IndexBlock {
    user_keys: bool,
    keys: Vec<u8>,
    slots: Vec<Slot>,
    /// Bytes that all separators' user keys begin with.
    shared: usize,
    /// The next eight bytes of each separator's user key, as a number of the same order: a search in byte order compares
    /// these, and whole keys only where they are equal.
    heads: Vec<u64>,
}

impl IndexBlock {
    /// Decodes `block`. Handles must lie below `limit`.
    ///
    /// # Errors
    /// `Corruption`: a malformed entry.
    pub fn parse(block: &Block, format: IndexFormat, limit: u64) -> Result<IndexBlock> {
        let mut index = IndexBlock { user_keys: format.user_keys, ..IndexBlock::default() };
        let mut at = 0;
        let mut before = 0..0;
        let mut handle = BlockHandle::default();
        while at < block.entries_end() {
            let malformed = || Error::corruption(format!("malformed entry at byte {at} of an index block"));
            let entry = if format.delta_values {
                parse_index_entry(block.entries(), at)
            } else {
                parse_entry(block.entries(), at)
            };
            let entry = entry.ok_or_else(malformed)?;
            if entry.shared > before.len() {
                return Err(malformed());
            }
            let start = index.keys.len();
            index.keys.extend_from_within(before.start..before.start + entry.shared);
            index.keys.extend_from_slice(block.bytes().get(entry.key_start..entry.key_end).ok_or_else(malformed)?);
            before = start..index.keys.len();
            if !format.user_keys && before.len() < key::TRAILER_BYTES {
                return Err(malformed());
            }
            if index.keys.len() > block.expanded_keys_max() {
                return Err(Error::corruption("an index block's keys are far larger than the block"));
            }
            at = index.push_value(block, &entry, format, &mut handle)?;
            handle.check_within(limit)?;
        }
        index.keys.shrink_to_fit();
        index.slots.shrink_to_fit();
        index.find_heads();
        Ok(index)
    }

    fn find_heads(&mut self) {
        let separators = (0..self.len()).filter_map(|at| self.get(at)).map(|slot| self.separator_user_key(&slot));
        let first = separators.clone().next().unwrap_or_default();
        let shared = separators.clone().map(|key| shared_prefix(first, key)).min().unwrap_or(0);
        let heads = separators.map(|key| leading_u64(key.get(shared..).unwrap_or_default())).collect();
        (self.shared, self.heads) = (shared, heads);
    }

    /// Decodes an entry's value, appends the slot, and returns the offset of the next entry.
    fn push_value(
        &mut self,
        block: &Block,
        entry: &Entry,
        format: IndexFormat,
        handle: &mut BlockHandle,
    ) -> Result<usize> {
        let end = if format.delta_values { block.entries_end() } else { entry.value_end };
        let value = block.bytes().get(entry.key_end..end).unwrap_or_default();
        let mut reader = Reader::new(value);
        *handle = if format.delta_values && entry.shared != 0 {
            let change = base::coding::unzigzag(reader.varint64("block size")?);
            BlockHandle { offset: handle.end(), size: handle.size.wrapping_add_signed(change) }
        } else {
            BlockHandle::decode(&mut reader)?
        };
        let too_large = |_| Error::corruption("a block of more than 4 GiB");
        let size = u32::try_from(handle.size).map_err(too_large)?;
        let key_end = u32::try_from(self.keys.len()).map_err(too_large)?;
        if format.first_keys {
            let first_key = reader.prefixed("first key")?;
            if first_key.len() < key::TRAILER_BYTES {
                return Err(Error::corruption("a first key without its trailer"));
            }
            self.keys.extend_from_slice(first_key);
        }
        let first_key_end = u32::try_from(self.keys.len()).map_err(too_large)?;
        self.slots.push(Slot { key_end, first_key_end, offset: handle.offset, size });
        Ok(if format.delta_values { end - reader.len() } else { end })
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Separators are user keys; else internal keys.
    pub fn has_user_keys(&self) -> bool {
        self.user_keys
    }

    #[inline]
    pub fn get(&self, at: usize) -> Option<IndexSlot<'_>> {
        let slot = self.slots.get(at)?;
        let start = match at.checked_sub(1) {
            None => 0,
            Some(before) => self.slots.get(before)?.first_key_end as usize,
        };
        let (key_end, first_key_end) = (slot.key_end as usize, slot.first_key_end as usize);
        Some(IndexSlot {
            separator: self.keys.get(start..key_end)?,
            first_key: self.keys.get(key_end..first_key_end)?,
            handle: BlockHandle { offset: slot.offset, size: u64::from(slot.size) },
        })
    }

    /// The first entry with a separator at or after the internal key `target`: the first candidate block. `len()` if
    /// there is none.
    pub fn seek(&self, target: &[u8], order: &InternalOrder) -> usize {
        self.seek_first(target, order).at
    }

    /// As [`seek`](Self::seek), and what is known of the separator found.
    #[inline]
    pub fn seek_first(&self, target: &[u8], order: &InternalOrder) -> Candidate {
        let among = match order.user {
            UserOrder::Bytewise => self.around(key::user_key(target)),
            _ => 0..self.len(),
        };
        if among.is_empty() {
            return Candidate { at: among.start, is_last: true };
        }
        Candidate { at: self.seek_among(among, target, order), is_last: false }
    }

    /// The handle of entry `at`.
    #[inline]
    pub fn handle(&self, at: usize) -> Option<BlockHandle> {
        self.slots.get(at).map(|slot| BlockHandle { offset: slot.offset, size: u64::from(slot.size) })
    }

    /// False if the block of entry `at` holds no entry of `user_key` by its first key; true if the index has none.
    #[inline]
    pub fn may_begin_by(&self, at: usize, user_key: &[u8], order: &InternalOrder) -> bool {
        self.slots.get(at).is_some_and(|slot| slot.key_end == slot.first_key_end)
            || self.get(at).is_some_and(|slot| order.user.compare(key::user_key(slot.first_key), user_key).is_le())
    }

    /// Whether the block behind entry `at` can hold `user_key` too: only if the separator is a version of the key.
    #[inline]
    pub fn goes_on_behind(&self, at: usize, user_key: &[u8], order: &InternalOrder) -> bool {
        self.get(at).is_some_and(|slot| order.user.compare(self.separator_user_key(&slot), user_key).is_le())
    }

    /// The entries whose place beside a target with this user key, in byte order, only whole keys tell.
    #[inline]
    fn around(&self, user_key: &[u8]) -> Range<usize> {
        let prefix = self.keys.get(..self.shared).unwrap_or_default();
        let Some(rest) = user_key.strip_prefix(prefix) else {
            let at = if user_key < prefix { 0 } else { self.len() };
            return at..at;
        };
        let head = leading_u64(rest);
        let start = self.heads.partition_point(|&other| other < head);
        match self.heads.get(start..) {
            Some(rest) if rest.first() == Some(&head) => start..start + rest.partition_point(|&other| other == head),
            _ => start..start, // most often
        }
    }

    fn seek_among(&self, among: Range<usize>, target: &[u8], order: &InternalOrder) -> usize {
        let target_user = key::user_key(target);
        let (mut low, mut high) = (among.start, among.end);
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(slot) = self.get(middle) else { break };
            let ordering = if self.user_keys {
                order.user.compare(slot.separator, target_user)
            } else {
                order.compare(slot.separator, target)
            };
            if ordering == Ordering::Less {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The user key of a separator of this block.
    #[inline]
    pub fn separator_user_key<'a>(&self, slot: &IndexSlot<'a>) -> &'a [u8] {
        if self.user_keys { slot.separator } else { key::user_key(slot.separator) }
    }

    pub fn memory_bytes(&self) -> usize {
        self.keys.capacity() + self.slots.capacity() * size_of::<Slot>() + self.heads.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::{IndexBlockBuilder, IndexEntry};

    #[test]
    fn every_format_round_trips_at_every_restart_interval() {
        let entries: Vec<(Vec<u8>, BlockHandle, Vec<u8>)> = (0..50u64)
            .scan(0u64, |offset, i| {
                let handle = BlockHandle { offset: *offset, size: 100 + i * 37 % 90 };
                *offset = handle.end();
                let separator =
                    base::key::encode(format!("k{i:04}").as_bytes(), base::SeqNo(i), base::ValueKind::Value);
                Some((separator, handle, b"first---".to_vec()))
            })
            .collect();
        for interval in [1, 3, 16] {
            for bits in 0..8 {
                let format =
                    IndexFormat { user_keys: bits & 1 != 0, delta_values: bits & 2 != 0, first_keys: bits & 4 != 0 };
                let mut builder = IndexBlockBuilder::new(interval, format);
                for (separator, handle, first_key) in &entries {
                    builder.add(IndexEntry { separator, handle: *handle, first_key });
                }
                let block = Block::parse(builder.finish().to_vec()).expect("well formed");
                let index = IndexBlock::parse(&block, format, 1 << 30).expect("well formed");
                assert_eq!(index.len(), entries.len());
                for (i, (separator, handle, first_key)) in entries.iter().enumerate() {
                    let slot = index.get(i).expect("there");
                    assert_eq!(slot.handle, *handle, "{format:?} {interval}");
                    let stored = if format.user_keys { base::key::user_key(separator) } else { separator };
                    assert_eq!(slot.separator, stored);
                    assert_eq!(slot.first_key, if format.first_keys { &first_key[..] } else { b"" });
                    assert_eq!(index.seek(separator, &InternalOrder::default()), i);
                }
                assert!(IndexBlock::parse(&block, format, 100).is_err(), "handles past the limit");
            }
        }
    }

    /// Readers bound what the keys of a block have together: no interval and no prefix may lead a writer past that.
    #[test]
    fn keys_that_share_much_at_long_intervals_are_read_again() {
        let prefix = [b'p'; 4000];
        let keys: Vec<Vec<u8>> = (0..10_000u32).map(|i| [&prefix[..], &i.to_be_bytes(), &[0; 8]].concat()).collect();
        for bits in 0..8 {
            let format =
                IndexFormat { user_keys: bits & 1 != 0, delta_values: bits & 2 != 0, first_keys: bits & 4 != 0 };
            let mut builder = IndexBlockBuilder::new(65_535, format);
            for (i, separator) in keys.iter().enumerate() {
                let handle = BlockHandle { offset: i as u64 * 105, size: 100 };
                builder.add(IndexEntry { separator, handle, first_key: b"first---" });
            }
            let block = Block::parse(builder.finish().to_vec()).expect("well formed");
            assert!(block.bytes().len() < 3 << 20, "most of the prefixes are shared: {}", block.bytes().len());
            let index = IndexBlock::parse(&block, format, 1 << 30).expect("within the bound");
            for at in [0, 1, 5000, 9999] {
                assert_eq!(index.seek(&keys[at], &InternalOrder::default()), at, "{format:?}");
                assert_eq!(index.get(at).expect("there").handle.offset, at as u64 * 105);
            }
        }
    }
}
