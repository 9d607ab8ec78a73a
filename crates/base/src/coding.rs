//! Little-endian and varint coding, as LevelDB and RocksDB write them. A [`Reader`] never reads past its end and never
//! panics (B1).

use crate::error::{Error, Result};

/// Longest varint encodings, in bytes.
pub const VARINT32_BYTES_MAX: usize = 5;
/// Longest encoding of a 64-bit varint, in bytes.
pub const VARINT64_BYTES_MAX: usize = 10;

/// Appends 2 bytes, little-endian.
pub fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends 4 bytes, little-endian.
pub fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends 8 bytes, little-endian.
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a varint: 1 to 5 bytes.
#[inline]
pub fn put_varint32(out: &mut Vec<u8>, value: u32) {
    put_varint64(out, u64::from(value));
}

/// Appends a varint: 1 to 10 bytes.
#[inline]
pub fn put_varint64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `bytes` behind its length as varint32.
pub fn put_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint64(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Maps signed to unsigned; small magnitudes stay small.
pub fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// Undoes [`zigzag`].
pub fn unzigzag(value: u64) -> i64 {
    ((value >> 1) as i64) ^ -((value & 1) as i64)
}

/// Bytes of a number's varint.
pub fn varint_len(mut value: u64) -> usize {
    let mut len = 1;
    while value >= 0x80 {
        value >>= 7;
        len += 1;
    }
    len
}

/// Decodes a varint64 at the start of `bytes`; returns the value and its encoded length.
#[inline]
pub fn decode_varint64(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (i, &byte) in bytes.iter().take(VARINT64_BYTES_MAX).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(7 * i as u32)?;
        if byte < 0x80 {
            return Some((value, i + 1));
        }
    }
    None
}

/// Decodes a varint32 at the start of `bytes`; values above `u32::MAX` are refused.
#[inline]
pub fn decode_varint32(bytes: &[u8]) -> Option<(u32, usize)> {
    if let Some(&first) = bytes.first()
        && first < 0x80
    {
        return Some((u32::from(first), 1));
    }
    let (value, len) = decode_varint64(bytes)?;
    if len > VARINT32_BYTES_MAX {
        return None;
    }
    Some((u32::try_from(value).ok()?, len))
}

/// The number in the first 4 bytes, little-endian. `None`: there are fewer.
pub fn decode_u32(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.first_chunk()?))
}

/// The number in the first 8 bytes, little-endian. `None`: there are fewer.
pub fn decode_u64(bytes: &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.first_chunk()?))
}

/// Reads a byte string from the front. Every failure is a `Corruption` with the item's name; the caller adds file and
/// offset.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// A decoder at the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Reader { rest: bytes }
    }

    /// The bytes left.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// True if no bytes are left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Number of bytes left.
    pub fn len(&self) -> usize {
        self.rest.len()
    }

    /// The next `len` bytes. `Corruption` names `what` if there are fewer.
    pub fn bytes(&mut self, len: usize, what: &str) -> Result<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(len) else {
            return Err(truncated(what));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// The next byte. Errors as of [`bytes`](Self::bytes).
    pub fn u8(&mut self, what: &str) -> Result<u8> {
        Ok(self.bytes(1, what)?.first().copied().unwrap_or_default())
    }

    /// The next 4 bytes, little-endian. Errors as of [`bytes`](Self::bytes).
    pub fn u32(&mut self, what: &str) -> Result<u32> {
        decode_u32(self.bytes(4, what)?).ok_or_else(|| truncated(what))
    }

    /// The next 8 bytes, little-endian. Errors as of [`bytes`](Self::bytes).
    pub fn u64(&mut self, what: &str) -> Result<u64> {
        decode_u64(self.bytes(8, what)?).ok_or_else(|| truncated(what))
    }

    /// The next varint. `Corruption` names `what` if it is cut off or too large.
    pub fn varint32(&mut self, what: &str) -> Result<u32> {
        let (value, len) = decode_varint32(self.rest).ok_or_else(|| truncated(what))?;
        self.bytes(len, what)?;
        Ok(value)
    }

    /// The next varint. `Corruption` names `what` if it is cut off or too large.
    pub fn varint64(&mut self, what: &str) -> Result<u64> {
        let (value, len) = decode_varint64(self.rest).ok_or_else(|| truncated(what))?;
        self.bytes(len, what)?;
        Ok(value)
    }

    /// A byte string behind its varint32 length.
    pub fn prefixed(&mut self, what: &str) -> Result<&'a [u8]> {
        let len = self.varint32(what)?;
        self.bytes(len as usize, what)
    }
}

fn truncated(what: &str) -> Error {
    Error::corruption(format!("{what} is truncated or malformed"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_at_every_width() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) - 1, (1u64 << shift) | 1] {
                let mut out = Vec::new();
                put_varint64(&mut out, value);
                assert_eq!(out.len(), varint_len(value));
                assert_eq!(decode_varint64(&out), Some((value, out.len())));
                assert_eq!(decode_varint32(&out).map(|d| u64::from(d.0)), u32::try_from(value).ok().map(u64::from));
                assert_eq!(unzigzag(zigzag(value as i64)), value as i64);
            }
        }
    }

    #[test]
    fn a_reader_stops_at_the_end() {
        let mut reader = Reader::new(&[5, b'a', b'b']);
        let error = reader.prefixed("name").expect_err("shorter than its length");
        assert_eq!(error.to_string(), "name is truncated or malformed");
        assert!(decode_varint64(&[0xff; 11]).is_none());
        assert!(decode_varint32(&[0xff, 0xff, 0xff, 0xff, 0x7f]).is_none());
    }
}
