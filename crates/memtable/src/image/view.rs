//! Reading an image's bytes within bounds.

use base::key::{self, TRAILER_BYTES};
use base::{Error, Result, SeqNo, UserOrder, ValueKind};

/// An error at an offset of the image.
#[cold]
pub(super) fn wrong(at: u64, what: impl Into<String>) -> Error {
    Error::corruption(what).at_offset(at)
}

/// The bytes of an image, or its allocated part.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        View { bytes }
    }

    #[inline]
    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// # Errors
    /// `Corruption`: `what` does not lie in the image.
    #[inline]
    pub(super) fn bytes(&self, at: u64, len: u64, what: &str) -> Result<&'a [u8]> {
        let range = usize::try_from(at).ok().zip(at.checked_add(len).and_then(|end| usize::try_from(end).ok()));
        range.and_then(|(start, end)| self.bytes.get(start..end)).ok_or_else(|| self.beyond(at, len, what))
    }

    #[cold]
    fn beyond(&self, at: u64, len: u64, what: &str) -> Error {
        wrong(at, format!("{what}, {len} bytes, would end beyond the {} bytes of the image", self.len()))
    }

    /// The words from `at` on, the beginning of `what`.
    #[inline]
    pub(super) fn words<const WORDS: usize>(&self, at: u64, what: &str) -> Result<[u32; WORDS]> {
        let (chunks, _) = self.bytes(at, 4 * WORDS as u64, what)?.as_chunks::<4>();
        let words = chunks.first_chunk::<WORDS>().ok_or_else(|| self.beyond(at, 4 * WORDS as u64, what))?;
        Ok(words.map(u32::from_le_bytes))
    }

    #[inline]
    pub(super) fn u32(&self, at: u64) -> Result<u32> {
        let bytes = self.bytes(at, 4, "a word")?;
        Ok(bytes.first_chunk().map_or(0, |chunk| u32::from_le_bytes(*chunk)))
    }

    #[inline]
    pub(super) fn u64(&self, at: u64) -> Result<u64> {
        let bytes = self.bytes(at, 8, "a word")?;
        Ok(bytes.first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk)))
    }

    /// The entry whose key, trailer and value lie at `key_at`, in this order.
    #[inline]
    pub(super) fn entry(&self, key_at: u64, key_len: u32, value_len: u32) -> Result<EntryView<'a>> {
        let key_bytes = u64::from(key_len) + TRAILER_BYTES as u64;
        let internal_key = self.bytes(key_at, key_bytes, "an entry's key")?;
        let value = self.bytes(key_at + key_bytes, value_len.into(), "an entry's value")?;
        Ok(EntryView { internal_key, value, end: key_at + key_bytes + u64::from(value_len) })
    }

    /// The record at `at` (see [`crate::record`]).
    #[inline]
    pub(super) fn record(&self, at: u64) -> Result<EntryView<'a>> {
        let [key_len, value_len] = self.words(at, "a record")?;
        self.entry(at + 8, key_len, value_len)
    }
}

/// Checks that `order` can compare `key`, found at `at`.
#[inline]
pub(super) fn check_key(at: u64, order: &UserOrder, key: &[u8]) -> Result<()> {
    if key.len() < order.timestamp_bytes() {
        return Err(wrong(at, format!("a key of {} bytes is shorter than its timestamp", key.len())));
    }
    Ok(())
}

/// An entry of an image.
#[derive(Clone, Copy)]
pub(super) struct EntryView<'a> {
    pub(super) internal_key: &'a [u8],
    pub(super) value: &'a [u8],
    /// Its end in the image, not rounded.
    pub(super) end: u64,
}

impl<'a> EntryView<'a> {
    #[inline]
    pub(super) fn user_key(&self) -> &'a [u8] {
        key::user_key(self.internal_key)
    }

    #[inline]
    pub(super) fn trailer(&self) -> u64 {
        key::split(self.internal_key).map_or(0, |(_, trailer)| trailer)
    }

    #[inline]
    pub(super) fn seq(&self) -> SeqNo {
        SeqNo(self.trailer() >> 8)
    }

    #[inline]
    pub(super) fn kind(&self) -> Option<ValueKind> {
        ValueKind::from_u8(self.trailer() as u8)
    }

    /// The kind of the point entry at `at`.
    ///
    /// # Errors
    /// `Corruption`: it is no point entry.
    #[inline]
    pub(super) fn point_kind(&self, at: u64) -> Result<ValueKind> {
        let kind = self.kind().filter(|kind| *kind != ValueKind::RangeDeletion);
        kind.ok_or_else(|| wrong(at, format!("an entry of kind {:#x}", self.trailer() as u8)))
    }
}
