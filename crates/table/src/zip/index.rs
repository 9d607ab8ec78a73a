//! The offset and separator of each group. A separator is a user key at or after the last key of the previous group,
//! and before or at the first key of its own. Read whole on open. Format: docs/format/zip.md, "Index".

use std::ops::Range;

use base::bytes::{leading_u64, shared_prefix};
use base::coding::{Reader, put_varint64};
use base::{Error, Result, UserOrder};

/// Decoded separators take at most this many times the bytes of the index, plus `EXPANDED_FREE`. Without the limit,
/// shared prefixes would let a small index claim any amount of memory (B2).
const EXPANSION_MAX: usize = 256;
const EXPANDED_FREE: usize = 16 << 20;
/// The writer's limit, relative to the encoded bytes so far.
const WRITTEN_EXPANSION_MAX: usize = 128;

/// Writes a separator between `last` and `next`, adjacent user keys, to `out`: as short as the order allows.
pub fn separate(out: &mut Vec<u8>, last: &[u8], next: &[u8], order: &UserOrder) {
    out.clear();
    out.extend_from_slice(last);
    order.shorten_separator(out, next);
    let is_between = order.compare(last, out).is_le() && order.compare(out, next).is_lt();
    if out.len() > last.len() || !is_between {
        out.clear();
        out.extend_from_slice(last);
    }
}

/// The index of a table being written.
#[derive(Default)]
pub struct IndexBuilder {
    /// For each separator: length shared with the previous one, length of the rest, the rest.
    separators: Vec<u8>,
    last: Vec<u8>,
    /// Bytes of the separators so far, without prefix compression.
    expanded_bytes: usize,
    group_bytes: Vec<u64>,
}

impl IndexBuilder {
    /// Adds the next group's separator; empty for the first group.
    pub fn push(&mut self, separator: &[u8]) {
        let shared = self.shared(separator);
        self.expanded_bytes += separator.len();
        put_varint64(&mut self.separators, shared as u64);
        put_varint64(&mut self.separators, (separator.len() - shared) as u64);
        self.separators.extend(separator.iter().skip(shared));
        self.last.clear();
        self.last.extend_from_slice(separator);
    }

    /// Bytes shared with the previous separator; 0 if sharing would exceed the writer's expansion limit.
    fn shared(&self, separator: &[u8]) -> usize {
        if self.expanded_bytes + separator.len() > self.separators.len().saturating_mul(WRITTEN_EXPANSION_MAX) {
            return 0;
        }
        shared_prefix(&self.last, separator)
    }

    /// The separators, from the first one on.
    pub fn separators(&self) -> Separators {
        Separators { bytes: self.separators.clone(), at: 0, separator: Vec::new() }
    }

    /// Sets the bytes of each group; one per separator.
    pub fn set_sizes(&mut self, group_bytes: Vec<u64>) {
        self.group_bytes = group_bytes;
    }

    /// Separators, then sizes: similar data side by side compresses better.
    pub fn finish(self) -> Vec<u8> {
        let mut out = self.separators;
        self.group_bytes.iter().for_each(|bytes| put_varint64(&mut out, *bytes));
        out
    }
}

/// Walks the separators of an index being written.
pub struct Separators {
    bytes: Vec<u8>,
    at: usize,
    separator: Vec<u8>,
}

impl Separators {
    /// Copies the next separator to `out`.
    ///
    /// # Errors
    /// `Corruption`: there are no more.
    pub fn next(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let mut reader = Reader::new(self.bytes.get(self.at..).unwrap_or_default());
        read_separator(&mut reader, &mut self.separator)?;
        self.at = self.bytes.len() - reader.len();
        out.clone_from(&self.separator);
        Ok(())
    }
}

/// Replaces `separator` by its successor.
fn read_separator(reader: &mut Reader<'_>, separator: &mut Vec<u8>) -> Result<()> {
    let shared = reader.varint32("separator")? as usize;
    let rest = reader.prefixed("separator")?;
    if shared > separator.len() {
        return Err(Error::corruption("a separator shares more than there is"));
    }
    separator.truncate(shared);
    separator.extend_from_slice(rest);
    Ok(())
}

/// The index of an open table.
pub struct GroupIndex {
    /// All separators back to back, and the end of each.
    separators: Vec<u8>,
    ends: Vec<usize>,
    /// Eight bytes of each separator but the first, after their common prefix. Empty unless the order is bytewise.
    heads: Vec<u64>,
    common: usize,
    /// The start of each group, then the end of the last.
    starts: Vec<u64>,
}

impl GroupIndex {
    /// Decodes the index of `groups` groups of `groups_bytes` in total.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn decode(bytes: &[u8], groups: u64, groups_bytes: u64, order: &UserOrder) -> Result<GroupIndex> {
        // Each group takes three bytes at least.
        let most = (bytes.len() / 3) as u64;
        if groups > most {
            return Err(Error::corruption(format!("an index of {} bytes cannot have {groups} groups", bytes.len())));
        }
        let mut index = GroupIndex {
            separators: Vec::new(),
            ends: Vec::with_capacity(groups as usize),
            heads: Vec::new(),
            common: 0,
            starts: Vec::with_capacity(groups as usize + 1),
        };
        let mut reader = Reader::new(bytes);
        index.read_separators(&mut reader, groups, bytes.len())?;
        let mut end = 0u64;
        index.starts.push(0);
        for _ in 0..groups {
            let bytes = reader.varint64("size of a group")?;
            end = end.checked_add(bytes).filter(|end| *end <= groups_bytes).ok_or_else(other_size)?;
            index.starts.push(end);
        }
        if end != groups_bytes || !reader.is_empty() {
            return Err(other_size());
        }
        index.check_order(order)?;
        index.make_heads(order);
        Ok(index)
    }

    fn read_separators(&mut self, reader: &mut Reader<'_>, groups: u64, encoded_bytes: usize) -> Result<()> {
        let most = encoded_bytes.saturating_mul(EXPANSION_MAX).saturating_add(EXPANDED_FREE);
        let mut separator = Vec::new();
        for _ in 0..groups {
            read_separator(reader, &mut separator)?;
            if self.separators.len() + separator.len() > most {
                return Err(Error::corruption("separators are far larger than their index"));
            }
            self.separators.extend_from_slice(&separator);
            self.ends.push(self.separators.len());
        }
        Ok(())
    }

    fn check_order(&self, order: &UserOrder) -> Result<()> {
        let in_order = |nth: usize| order.compare(self.separator(nth - 1), self.separator(nth)).is_le();
        if self.len() > 0 && !self.separator(0).is_empty() || !(2..self.len()).all(in_order) {
            return Err(Error::corruption("separators are not in order"));
        }
        Ok(())
    }

    fn make_heads(&mut self, order: &UserOrder) {
        if !matches!(order, UserOrder::Bytewise) || self.len() < 2 {
            return;
        }
        // Separators ascend: a prefix shared by the first and the last is shared by all.
        let (first, last) = (self.separator(1), self.separator(self.len() - 1));
        self.common = shared_prefix(first, last);
        let heads = (1..self.len()).map(|nth| leading_u64(self.separator(nth).get(self.common..).unwrap_or_default()));
        self.heads = heads.collect();
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The separator between a group and the previous one; empty for the first group.
    #[inline]
    pub fn separator(&self, group: usize) -> &[u8] {
        let end = self.ends.get(group).copied().unwrap_or_default();
        let start = group.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        self.separators.get(start..end).unwrap_or_default()
    }

    /// The place of a group; empty if there is no such group.
    #[inline]
    pub fn place(&self, group: usize) -> Range<u64> {
        match self.starts.get(group..).unwrap_or_default() {
            [start, end, ..] => *start..*end,
            _ => 0..0,
        }
    }

    /// The first group that can hold `user_key`. Later groups can too if their separators equal `user_key`.
    #[inline]
    pub fn find(&self, user_key: &[u8], order: &UserOrder) -> usize {
        let behind_first = self.len().saturating_sub(1);
        if self.heads.is_empty() {
            return partition(0, behind_first, |nth| order.compare(self.separator(nth + 1), user_key).is_lt());
        }
        let common = self.separator(1).get(..self.common).unwrap_or_default();
        let (begin, rest) = user_key.split_at_checked(self.common).unwrap_or((user_key, &[]));
        if begin != common {
            return if begin < common { 0 } else { behind_first };
        }
        let target = leading_u64(rest);
        let before = self.heads.partition_point(|head| *head < target);
        let same = self.heads.get(before..).unwrap_or_default().partition_point(|head| *head == target);
        partition(before, before + same, |nth| self.separator(nth + 1) < user_key)
    }

    pub fn memory_bytes(&self) -> usize {
        let words = self.ends.capacity() + self.heads.capacity() + self.starts.capacity();
        self.separators.capacity() + words * size_of::<u64>()
    }
}

/// The first of `start..end` for which `is_before` is false.
#[inline]
fn partition(mut start: usize, mut end: usize, is_before: impl Fn(usize) -> bool) -> usize {
    while start < end {
        let middle = start.midpoint(end);
        if is_before(middle) {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    start
}

fn other_size() -> Error {
    Error::corruption("the index is of groups of another size")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_found_in_the_first_group_that_can_hold_it() {
        let keys: Vec<String> = (0..300).map(|i| format!("key{:04}{}", i / 3 * 7, "x".repeat(i % 3))).collect();
        for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise] {
            let mut sorted: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
            sorted.sort_by(|a, b| order.compare(a, b));
            let (mut builder, mut separator) = (IndexBuilder::default(), Vec::new());
            builder.push(&[]);
            for pair in sorted.windows(2) {
                separate(&mut separator, pair[0], pair[1], &order);
                builder.push(&separator);
            }
            builder.set_sizes(vec![10; 300]);
            let bytes = builder.finish();
            let index = GroupIndex::decode(&bytes, 300, 3000, &order).expect("whole");
            for (nth, key) in sorted.iter().enumerate() {
                assert_eq!((index.find(key, &order), index.place(nth)), (nth, nth as u64 * 10..nth as u64 * 10 + 10));
            }
            let ends = [index.find(b"", &order), index.find(b"zzz", &order)];
            assert_eq!(ends, if order.compare(b"a", b"b").is_lt() { [0, 299] } else { [299, 0] });
            for (groups, groups_bytes) in [(299, 2990), (300, 2999), (301, 3000), (u64::MAX, 3000)] {
                assert!(GroupIndex::decode(&bytes, groups, groups_bytes, &order).is_err());
            }
            for len in 0..bytes.len() {
                assert!(GroupIndex::decode(&bytes[..len], 300, 3000, &order).is_err());
            }
        }
    }

    #[test]
    fn separators_that_claim_too_much_or_are_in_no_order_are_refused() {
        let mut builder = IndexBuilder::default();
        builder.push(&[]);
        builder.push(b"b");
        builder.push(b"a");
        let unordered = builder.finish();
        assert!(GroupIndex::decode(&unordered, 3, 0, &UserOrder::Bytewise).is_err());
        let mut claiming = vec![0, 0, 0];
        base::coding::put_prefixed(&mut claiming, &[7; 1 << 16]);
        for _ in 2..2000 {
            put_varint64(&mut claiming, 1 << 16);
            claiming.push(0);
        }
        claiming.resize(claiming.len() + 2000, 0);
        let error = GroupIndex::decode(&claiming, 2000, 0, &UserOrder::Bytewise).err().expect("128 MiB of 72 KiB");
        assert!(error.message().contains("far larger"), "{error}");
    }

    #[test]
    fn separators_that_share_much_are_read_again() {
        let separators: Vec<Vec<u8>> = (0..10_000u32).map(|i| [&[b'p'; 4000][..], &i.to_be_bytes()].concat()).collect();
        let mut builder = IndexBuilder::default();
        builder.push(&[]);
        separators.iter().for_each(|separator| builder.push(separator));
        let mut walk = builder.separators();
        builder.set_sizes(vec![1; 10_001]);
        let bytes = builder.finish();
        assert!(bytes.len() < 1 << 20, "most of the prefixes are shared: {}", bytes.len());
        let index = GroupIndex::decode(&bytes, 10_001, 10_001, &UserOrder::Bytewise).expect("within the bound");
        let mut written = Vec::new();
        walk.next(&mut written).expect("the first one");
        for (nth, separator) in separators.iter().enumerate() {
            walk.next(&mut written).expect("as many as were written");
            assert!(index.separator(nth + 1) == separator && written == *separator, "{nth}");
        }
    }
}
