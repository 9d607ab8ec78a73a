//! Sequence numbers, file numbers, and internal keys: a user key followed by eight bytes, `sequence << 8 | kind`,
//! little-endian. Internal keys sort by user key ascending, then by those eight bytes descending: the newest version of
//! a key comes first. The numbers are RocksDB's (`db/dbformat.h`).

use std::fmt;

/// Bytes of an internal key behind the user key.
pub const TRAILER_BYTES: usize = 8;

/// A position in the database's history. 56 bits; grows only (S1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqNo(pub u64);

impl SeqNo {
    /// Before every write.
    pub const ZERO: SeqNo = SeqNo(0);
    /// The largest: 2^56 - 1.
    pub const MAX: SeqNo = SeqNo((1 << 56) - 1);

    /// The number `count` later, or `None` past the end of the 56 bits.
    pub fn checked_add(self, count: u64) -> Option<SeqNo> {
        let sum = self.0.checked_add(count)?;
        (sum <= Self::MAX.0).then_some(SeqNo(sum))
    }
}

impl fmt::Display for SeqNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The number in a file's name. Tables, WALs, MANIFESTs and OPTIONS files share one counter; numbers are never reused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileNumber(pub u64);

impl fmt::Display for FileNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06}", self.0)
    }
}

/// A column family's number. Never used twice within a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FamilyId(pub u32);

impl FamilyId {
    /// The family `default`.
    pub const DEFAULT: FamilyId = FamilyId(0);
}

/// The operation of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ValueKind {
    /// A deletion.
    Deletion = 0x0,
    /// A value.
    Value = 0x1,
    /// An operand of a merge.
    Merge = 0x2,
    /// A single deletion.
    SingleDeletion = 0x7,
    /// The user key is the start of the range, the value its end (exclusive).
    RangeDeletion = 0xF,
}

impl ValueKind {
    /// The kind of a stored byte. `None`: unknown.
    pub fn from_u8(byte: u8) -> Option<ValueKind> {
        Some(match byte {
            0x0 => ValueKind::Deletion,
            0x1 => ValueKind::Value,
            0x2 => ValueKind::Merge,
            0x7 => ValueKind::SingleDeletion,
            0xF => ValueKind::RangeDeletion,
            _ => return None,
        })
    }
}

/// The kind byte of a seek target: no kind is larger, so the target sorts at or before all entries of its user key and
/// sequence number. Never stored.
pub const SEEK_KIND: u8 = 0xFF;

/// Number and kind as the last 8 bytes of an internal key.
#[inline]
pub fn pack_trailer(seq: SeqNo, kind: u8) -> u64 {
    (seq.0 << 8) | u64::from(kind)
}

/// An internal key taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParsedKey<'a> {
    /// The user's key.
    pub user_key: &'a [u8],
    /// The sequence number.
    pub seq: SeqNo,
    /// The kind of entry.
    pub kind: ValueKind,
}

impl<'a> ParsedKey<'a> {
    /// `None` if `key` is shorter than its trailer or has an unknown kind.
    #[inline]
    pub fn parse(key: &'a [u8]) -> Option<ParsedKey<'a>> {
        let (user_key, trailer) = split(key)?;
        Some(ParsedKey { user_key, seq: SeqNo(trailer >> 8), kind: ValueKind::from_u8(trailer as u8)? })
    }
}

/// Splits an internal key into user key and packed trailer.
#[inline]
pub fn split(key: &[u8]) -> Option<(&[u8], u64)> {
    let (user_key, trailer) = key.split_last_chunk::<TRAILER_BYTES>()?;
    Some((user_key, u64::from_le_bytes(*trailer)))
}

/// The user key of an internal key; empty if `key` is too short.
#[inline]
pub fn user_key(key: &[u8]) -> &[u8] {
    split(key).map_or(&[], |(user_key, _)| user_key)
}

/// True for the internal key at the end of a range tombstone: its user key is outside the range.
pub fn is_exclusive_end(internal_key: &[u8]) -> bool {
    split(internal_key).is_some_and(|(_, trailer)| trailer == pack_trailer(SeqNo::MAX, ValueKind::RangeDeletion as u8))
}

/// Appends an internal key.
pub fn append(out: &mut Vec<u8>, user_key: &[u8], seq: SeqNo, kind: u8) {
    out.extend_from_slice(user_key);
    out.extend_from_slice(&pack_trailer(seq, kind).to_le_bytes());
}

/// The internal key `user_key @ seq, kind`, allocated.
pub fn encode(user_key: &[u8], seq: SeqNo, kind: ValueKind) -> Vec<u8> {
    let mut out = Vec::with_capacity(user_key.len() + TRAILER_BYTES);
    append(&mut out, user_key, seq, kind as u8);
    out
}

/// Bytes of an internal key that a lookup holds without an allocation.
const LOOKUP_BYTES_INLINE: usize = 64;

/// Seek target for the newest entry of a user key at or below a sequence number.
#[derive(Clone, Debug)]
pub struct LookupKey {
    inline: [u8; LOOKUP_BYTES_INLINE],
    len: usize,
    /// The internal key if it is longer than `inline`.
    long: Vec<u8>,
}

impl LookupKey {
    /// The key to seek for what is visible at `seq`.
    #[inline]
    pub fn new(user_key: &[u8], seq: SeqNo) -> Self {
        let mut key = LookupKey::default();
        key.set(user_key, seq);
        key
    }

    /// Resets the target to another key and reuses the memory.
    #[inline]
    pub fn set(&mut self, user_key: &[u8], seq: SeqNo) {
        self.len = user_key.len() + TRAILER_BYTES;
        let Some(room) = self.inline.get_mut(..self.len) else { return self.set_long(user_key, seq) };
        let (front, trailer) = room.split_at_mut(user_key.len());
        front.copy_from_slice(user_key);
        trailer.copy_from_slice(&pack_trailer(seq, SEEK_KIND).to_le_bytes());
    }

    #[cold]
    fn set_long(&mut self, user_key: &[u8], seq: SeqNo) {
        self.long.clear();
        append(&mut self.long, user_key, seq, SEEK_KIND);
    }

    /// The internal key.
    #[inline]
    pub fn internal(&self) -> &[u8] {
        self.inline.get(..self.len).unwrap_or(&self.long)
    }

    /// The user's key.
    #[inline]
    pub fn user_key(&self) -> &[u8] {
        user_key(self.internal())
    }

    /// The number at which it looks.
    pub fn seq(&self) -> SeqNo {
        split(self.internal()).map_or(SeqNo::ZERO, |(_, trailer)| SeqNo(trailer >> 8))
    }
}

impl Default for LookupKey {
    fn default() -> Self {
        LookupKey { inline: [0; LOOKUP_BYTES_INLINE], len: 0, long: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup_keys_of_every_length_are_the_internal_keys() {
        let mut reused = LookupKey::default();
        assert_eq!(reused.internal(), b"");
        for len in [3, 56, 57, 200, 0, 55] {
            let user_key = vec![b'k'; len];
            let expected = {
                let mut key = user_key.clone();
                key.extend_from_slice(&pack_trailer(SeqNo(5), SEEK_KIND).to_le_bytes());
                key
            };
            reused.set(&user_key, SeqNo(5));
            assert_eq!(reused.internal(), expected);
            assert_eq!(LookupKey::new(&user_key, SeqNo(5)).internal(), expected);
            assert_eq!((reused.user_key(), reused.seq()), (&user_key[..], SeqNo(5)));
        }
    }

    #[test]
    fn an_internal_key_round_trips() {
        let key = encode(b"apple", SeqNo(77), ValueKind::Merge);
        assert_eq!(key.len(), 5 + TRAILER_BYTES);
        let parsed = ParsedKey::parse(&key).expect("well formed");
        assert_eq!(parsed, ParsedKey { user_key: b"apple", seq: SeqNo(77), kind: ValueKind::Merge });
        assert!(ParsedKey::parse(b"short").is_none());
        assert!(ParsedKey::parse(&[0x55; 8]).is_none(), "0x55 is no kind");
    }

    #[test]
    fn sequence_numbers_end_at_56_bits() {
        assert_eq!(SeqNo::MAX.checked_add(1), None);
        assert_eq!(SeqNo(1).checked_add(u64::MAX), None);
        assert_eq!(SeqNo(1).checked_add(2), Some(SeqNo(3)));
    }
}
