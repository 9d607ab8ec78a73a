//! Size limits of keys and values. Writes refuse unstorable entries at admission: a flush of one would fail again after
//! every open.

use crate::key::TRAILER_BYTES;
use crate::{Error, Result, ValueKind};

/// A user key and its value or operand together, in bytes; 4032 MiB with the key's trailer. Block offsets have 32 bits,
/// and 64 MiB are reserved for the entries before the last one in a block.
pub const ENTRY_BYTES_MAX: usize = (4032 << 20) - TRAILER_BYTES;

/// A user key or the end of a range deletion, in bytes; 16 MiB with the trailer. Table indexes hold whole keys, and one
/// MANIFEST record holds some hundreds of keys in at most 4 GiB.
pub const KEY_BYTES_MAX: usize = (16 << 20) - TRAILER_BYTES;

/// Bytes of a key shown in an error.
const SHOWN_KEY_BYTES: usize = 64;

/// True if a table can hold the entry.
#[inline]
pub fn is_storable(user_key: &[u8], value: &[u8]) -> bool {
    user_key.len().saturating_add(value.len()) <= ENTRY_BYTES_MAX
}

/// # Errors
/// `InvalidArgument`: no table can hold the entry.
#[inline]
pub fn check_entry(user_key: &[u8], value: &[u8]) -> Result<()> {
    if is_storable(user_key, value) { Ok(()) } else { Err(entry_too_large(user_key, value)) }
}

#[cold]
fn entry_too_large(user_key: &[u8], value: &[u8]) -> Error {
    let (key, bytes) = (shown(user_key), user_key.len().saturating_add(value.len()));
    Error::invalid_argument(format!(
        "key {key} and its value have {bytes} bytes together; a table holds an entry of {ENTRY_BYTES_MAX} at most"
    ))
}

/// # Errors
/// `InvalidArgument`: the key is too long for tables and the MANIFEST.
#[inline]
pub fn check_key(user_key: &[u8]) -> Result<()> {
    if user_key.len() <= KEY_BYTES_MAX { Ok(()) } else { Err(key_too_long(user_key)) }
}

#[cold]
fn key_too_long(user_key: &[u8]) -> Error {
    Error::invalid_argument(format!("key {} is too long: {KEY_BYTES_MAX} bytes at most", shown(user_key)))
}

/// Checks a change at admission. For a range deletion, `value` is the end of the range.
///
/// # Errors
/// `InvalidArgument`: the key or the entry is too large to store.
#[inline]
pub fn check_change(kind: ValueKind, user_key: &[u8], value: &[u8]) -> Result<()> {
    check_key(user_key)?;
    if kind == ValueKind::RangeDeletion { check_key(value) } else { check_entry(user_key, value) }
}

/// A key for error messages: quoted, and cut if long.
pub fn shown(user_key: &[u8]) -> String {
    match user_key.split_at_checked(SHOWN_KEY_BYTES) {
        Some((start, rest)) if !rest.is_empty() => {
            format!("\"{}\"... ({} bytes)", start.escape_ascii(), user_key.len())
        }
        _ => format!("\"{}\"", user_key.escape_ascii()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_entry_passes_and_one_byte_more_does_not() {
        let value = vec![0; ENTRY_BYTES_MAX]; // never touched, so never in memory
        check_entry(b"", &value).expect("the largest");
        check_entry(b"k", &value[1..]).expect("the largest");
        let error = check_entry(b"k\n", &value).expect_err("too large").to_string();
        assert!(error.contains("key \"k\\n\"") && error.contains(&ENTRY_BYTES_MAX.to_string()), "{error}");
        let key = &value[..KEY_BYTES_MAX];
        check_change(ValueKind::RangeDeletion, key, key).expect("the longest");
        for (key, end) in [(&value[..=KEY_BYTES_MAX], &b"z"[..]), (b"a", &value[..=KEY_BYTES_MAX])] {
            let error = check_change(ValueKind::RangeDeletion, key, end).expect_err("too long").to_string();
            assert!(error.contains(&KEY_BYTES_MAX.to_string()) && error.len() < 500, "{error}");
        }
        assert_eq!(shown(&[b'a'; 65]), format!("\"{}\"... (65 bytes)", "a".repeat(64)));
    }
}
