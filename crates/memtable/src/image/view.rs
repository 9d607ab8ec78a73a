//! Reading an image's bytes within bounds.

use base::key::{self, TRAILER_BYTES};
use base::{Error, Result, SeqNo, ValueKind};

/// An error at an offset of the image.
pub(super) fn wrong(at: u64, what: impl Into<String>) -> Error {
    Error::corruption(what).at_offset(at)
}

/// The bytes of an image, or its beginning up to what was handed out.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    bytes: &'a [u8],
}

impl<'a> View<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        View { bytes }
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// # Errors
    /// `Corruption`: `what` does not lie in the image.
    pub(super) fn bytes(&self, at: u64, len: u64, what: &str) -> Result<&'a [u8]> {
        let range = usize::try_from(at).ok().zip(at.checked_add(len).and_then(|end| usize::try_from(end).ok()));
        range.and_then(|(start, end)| self.bytes.get(start..end)).ok_or_else(|| {
            wrong(at, format!("{what}, {len} bytes, would end beyond the {} bytes of the image", self.len()))
        })
    }

    pub(super) fn u32(&self, at: u64) -> Result<u32> {
        let bytes = self.bytes(at, 4, "a word")?;
        Ok(bytes.first_chunk().map_or(0, |chunk| u32::from_le_bytes(*chunk)))
    }

    pub(super) fn u64(&self, at: u64) -> Result<u64> {
        let bytes = self.bytes(at, 8, "a word")?;
        Ok(bytes.first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk)))
    }

    /// The entry whose key lies at `key_at` and is followed by its trailer and its value.
    pub(super) fn entry(&self, key_at: u64, key_len: u32, value_len: u32) -> Result<EntryView<'a>> {
        let key_bytes = u64::from(key_len) + TRAILER_BYTES as u64;
        let internal_key = self.bytes(key_at, key_bytes, "an entry's key")?;
        let value = self.bytes(key_at + key_bytes, value_len.into(), "an entry's value")?;
        Ok(EntryView { internal_key, value, end: key_at + key_bytes + u64::from(value_len) })
    }

    /// The record at `at` (see [`crate::record`]).
    pub(super) fn record(&self, at: u64) -> Result<EntryView<'a>> {
        self.entry(at.saturating_add(8), self.u32(at)?, self.u32(at.saturating_add(4))?)
    }
}

/// An entry, wherever it lies.
#[derive(Clone, Copy)]
pub(super) struct EntryView<'a> {
    pub(super) internal_key: &'a [u8],
    pub(super) value: &'a [u8],
    /// Where it ends in the image, not rounded.
    pub(super) end: u64,
}

impl<'a> EntryView<'a> {
    pub(super) fn user_key(&self) -> &'a [u8] {
        key::user_key(self.internal_key)
    }

    pub(super) fn trailer(&self) -> u64 {
        key::split(self.internal_key).map_or(0, |(_, trailer)| trailer)
    }

    pub(super) fn seq(&self) -> SeqNo {
        SeqNo(self.trailer() >> 8)
    }

    pub(super) fn kind(&self) -> Option<ValueKind> {
        ValueKind::from_u8(self.trailer() as u8)
    }
}
