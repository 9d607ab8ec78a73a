//! A group: the keys of a few entries, then the records of their values. Format: docs/format/zip.md, "Groups".

use base::coding::{decode_varint32, put_varint32};
use base::{Error, Result};

use super::bits::{BitReader, BitWriter};
use super::keys::{KeyDecoder, KeyEncoder, RecordSize};

/// Entries of a group; the last group of a table can have fewer.
pub const GROUP_ENTRIES: u64 = 16;

/// Collects one group; reused for the next.
#[derive(Default)]
pub struct GroupBuilder {
    keys: BitWriter,
    records: Vec<u8>,
    head: Vec<u8>,
}

impl GroupBuilder {
    pub fn add(&mut self, keys: &KeyEncoder, previous: &[u8], internal_key: &[u8], record: &[u8], is_plain: bool) {
        keys.put(&mut self.keys, previous, internal_key, RecordSize { bytes: record.len() as u32, is_plain });
        self.records.extend_from_slice(record);
    }

    /// Passes the group's parts to `write` in order, and starts the next group. Returns the bytes of this one.
    ///
    /// # Errors
    /// Errors of `write`.
    pub fn finish(&mut self, mut write: impl FnMut(&[u8]) -> Result<()>) -> Result<u64> {
        let keys = self.keys.padded();
        self.head.clear();
        put_varint32(&mut self.head, keys.len() as u32);
        let parts = [&self.head, keys, &self.records];
        let bytes = parts.iter().map(|part| part.len() as u64).sum();
        parts.into_iter().try_for_each(&mut write)?;
        self.keys.clear();
        self.records.clear();
        Ok(bytes)
    }
}

/// The record of an entry's value: the first `len` bytes of `rest`, which goes on to the group's end.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    pub rest: &'a [u8],
    pub len: usize,
    pub is_plain: bool,
}

/// Reads a group's entries from front to back.
pub struct GroupReader<'a> {
    keys: &'a KeyDecoder,
    bits: BitReader<'a>,
    /// Bits of the keys.
    bits_end: usize,
    /// From the next record on.
    records: &'a [u8],
    entries_left: u64,
}

impl<'a> GroupReader<'a> {
    /// Reads the group in `bytes`, of `entries` entries.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn new(keys: &'a KeyDecoder, bytes: &'a [u8], entries: u64) -> Result<GroupReader<'a>> {
        let (key_bytes, head) = decode_varint32(bytes).ok_or_else(damaged)?;
        let rest = bytes.get(head..).ok_or_else(damaged)?;
        let records = rest.get(key_bytes as usize..).ok_or_else(damaged)?;
        let bits_end = key_bytes as usize * 8;
        Ok(GroupReader { keys, bits: BitReader::new(rest), bits_end, records, entries_left: entries })
    }

    /// The next entry's trailer and record. Replaces `key`, the previous user key or the group's separator, by the
    /// entry's user key.
    ///
    /// # Errors
    /// `Corruption`.
    #[inline]
    pub fn next(&mut self, key: &mut Vec<u8>) -> Result<Option<(u64, Record<'a>)>> {
        let Some(left) = self.entries_left.checked_sub(1) else { return Ok(None) };
        self.entries_left = left;
        let (trailer, RecordSize { bytes, is_plain }) = self.keys.take(&mut self.bits, key)?;
        let (rest, len) = (self.records, bytes as usize);
        self.records = rest.get(len..).filter(|_| self.bits.position() <= self.bits_end).ok_or_else(damaged)?;
        Ok(Some((trailer, Record { rest, len, is_plain })))
    }

    /// # Errors
    /// `Corruption`: unread entries, or bytes after the last one.
    pub fn check_end(&self) -> Result<()> {
        let spare_bits = self.bits_end.saturating_sub(self.bits.position());
        if self.entries_left > 0 || spare_bits >= 8 || !self.records.is_empty() {
            return Err(Error::corruption("a group is longer than its entries"));
        }
        Ok(())
    }
}

#[cold]
fn damaged() -> Error {
    Error::corruption("a group ends within its entries")
}
