//! Groups: a few entries with a directory in front. Groups hold all entries of a table, in order.
//! Format: docs/format/fast.md, "Groups".

use std::ops::Range;

use base::coding::{decode_u32, decode_varint32, put_u32, put_varint32};
use base::key::{self, TRAILER_BYTES};

use super::heads::{Heads, StoredHead};

/// Entries of a group, at most: their heads take two cache lines.
const ENTRIES_MAX: usize = 32;

/// A group's header: entries (1 byte), a zero, bytes of the prefix (2), of the group (4), of the previous group (4).
const HEADER_BYTES: usize = 12;

/// An entry's offset in its group has 16 bits.
const STARTS_END: usize = 1 << 16;

/// Bytes of header and directory, at most.
const DIRECTORY_BYTES_MAX: usize = HEADER_BYTES + ENTRIES_MAX * (size_of::<StoredHead>() + size_of::<u16>());

/// A group in a file. Its bounds are checked, its contents are not.
#[derive(Clone, Copy)]
pub(super) struct Group<'a> {
    bytes: &'a [u8],
    heads: &'a [StoredHead],
    starts: &'a [[u8; 2]],
    prefix_bytes: usize,
    previous_bytes: u32,
}

/// An entry, and the place of its value in the group.
#[derive(Clone, Copy)]
pub(super) struct Entry<'a> {
    /// Internal.
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    pub(super) value_range: (usize, usize),
}

impl<'a> Group<'a> {
    /// Bytes of the group with this header.
    #[inline]
    pub(super) fn bytes_of(header: &[u8; HEADER_BYTES]) -> usize {
        header.get(4..).and_then(decode_u32).unwrap_or_default() as usize
    }

    /// `bytes`: the whole group. `None` if it is empty or shorter than its directory.
    #[inline]
    pub(super) fn parse(bytes: &'a [u8], heads: Heads) -> Option<Group<'a>> {
        let (header, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let [count, _, prefix_low, prefix_high, _, _, _, _, previous @ ..] = *header;
        let count = usize::from(count);
        let (head_bytes, rest) = rest.split_at_checked(heads.bytes_of(count))?;
        let (starts, _) = rest.split_at_checked(count * size_of::<u16>())?;
        (count > 0).then_some(Group {
            bytes,
            heads: head_bytes.as_chunks().0,
            starts: starts.as_chunks().0,
            prefix_bytes: usize::from(u16::from_le_bytes([prefix_low, prefix_high])),
            previous_bytes: u32::from_le_bytes(previous),
        })
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of the previous group; 0 for the first.
    pub(super) fn previous_bytes(&self) -> u32 {
        self.previous_bytes
    }

    #[inline]
    pub(super) fn heads(&self) -> &'a [StoredHead] {
        self.heads
    }

    #[inline]
    pub(super) fn prefix_bytes(&self) -> usize {
        self.prefix_bytes
    }

    /// Header, heads and starts.
    pub(super) fn directory_bytes(&self) -> usize {
        HEADER_BYTES + size_of_val(self.heads) + size_of_val(self.starts)
    }

    /// The common prefix of the group's user keys, taken from the first key.
    pub(super) fn prefix(&self) -> Option<&'a [u8]> {
        key::user_key(self.entry(0)?.key).get(..self.prefix_bytes)
    }

    /// Offset of an entry in the group.
    #[inline]
    pub(super) fn start(&self, nth: usize) -> Option<usize> {
        self.starts.get(nth).map(|start| usize::from(u16::from_le_bytes(*start)))
    }

    #[inline]
    pub(super) fn entry(&self, nth: usize) -> Option<Entry<'a>> {
        self.entry_at(self.start(nth)?)
    }

    /// The entry at offset `start`.
    #[inline]
    pub(super) fn entry_at(&self, start: usize) -> Option<Entry<'a>> {
        Entry::parse(self.bytes, start)
    }
}

impl<'a> Entry<'a> {
    /// The entry at `start` of a group's bytes.
    #[inline]
    pub(super) fn parse(group: &'a [u8], start: usize) -> Option<Entry<'a>> {
        let rest = group.get(start..)?;
        let (key_len, key_len_bytes) = decode_varint32(rest)?;
        let rest = rest.get(key_len_bytes..)?;
        let (value_len, value_len_bytes) = decode_varint32(rest)?;
        let rest = rest.get(value_len_bytes..)?;
        let (key, rest) = rest.split_at_checked(key_len as usize)?;
        let value = rest.get(..value_len as usize)?;
        let value_at = start + key_len_bytes + value_len_bytes + key.len();
        (key.len() >= TRAILER_BYTES).then_some(Entry { key, value, value_range: (value_at, value_at + value.len()) })
    }
}

/// Collects one group; reused for the next.
#[derive(Default)]
pub(super) struct GroupBuilder {
    records: Vec<u8>,
    /// Offsets of entries and places of keys in `records`.
    starts: Vec<usize>,
    keys: Vec<Range<usize>>,
    directory: Vec<u8>,
}

impl GroupBuilder {
    pub(super) fn is_empty(&self) -> bool {
        self.starts.is_empty()
    }

    /// Whether one more entry fits.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.starts.len() < ENTRIES_MAX && DIRECTORY_BYTES_MAX + self.records.len() < STARTS_END
    }

    /// Adds an entry; there must be room.
    #[inline]
    pub(super) fn add(&mut self, internal_key: &[u8], value: &[u8]) {
        self.starts.push(self.records.len());
        put_varint32(&mut self.records, internal_key.len() as u32);
        put_varint32(&mut self.records, value.len() as u32);
        let key_at = self.records.len();
        self.keys.push(key_at..key_at + internal_key.len());
        self.records.extend_from_slice(internal_key);
        self.records.extend_from_slice(value);
    }

    /// Internal keys in order.
    fn keys(&self) -> impl DoubleEndedIterator<Item = &[u8]> {
        self.keys.iter().map(|range| self.records.get(range.clone()).unwrap_or_default())
    }

    pub(super) fn first_key(&self) -> &[u8] {
        self.keys().next().unwrap_or_default()
    }

    pub(super) fn last_key(&self) -> &[u8] {
        self.keys().next_back().unwrap_or_default()
    }

    /// Bytes of records so far.
    pub(super) fn bytes(&self) -> usize {
        self.records.len()
    }

    /// Ends the group; returns directory and records. Call [`clear`](Self::clear) before the next group.
    pub(super) fn finish(&mut self, heads: Heads, previous_bytes: u32) -> (&[u8], &[u8]) {
        let prefix = heads.shared(key::user_key(self.first_key()), key::user_key(self.last_key()));
        let count = self.starts.len();
        let directory_bytes = HEADER_BYTES + heads.bytes_of(count) + count * size_of::<u16>();
        let mut directory = std::mem::take(&mut self.directory);
        directory.clear();
        directory.extend_from_slice(&[count as u8, 0]);
        directory.extend_from_slice(&(prefix as u16).to_le_bytes());
        put_u32(&mut directory, (directory_bytes + self.records.len()) as u32);
        put_u32(&mut directory, previous_bytes);
        if heads != Heads::None {
            for key in self.keys() {
                put_u32(&mut directory, heads.head(key::user_key(key).get(prefix..).unwrap_or_default()));
            }
        }
        for start in &self.starts {
            directory.extend_from_slice(&((directory_bytes + start) as u16).to_le_bytes());
        }
        self.directory = directory;
        (&self.directory, &self.records)
    }

    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.starts.clear();
        self.keys.clear();
    }
}
