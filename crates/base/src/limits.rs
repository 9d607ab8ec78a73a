//! How large a key and its value may be. Writes refuse at admission what no table could hold later: a flush that cannot
//! write an entry would fail again after every open.

use crate::key::TRAILER_BYTES;
use crate::{Error, Result};

/// A user key and its value or operand together, in bytes; or both ends of a range deletion. With the key's trailer that
/// is 4032 MiB: offsets in a block have 32 bits, and 64 MiB are for what a block may hold before its last entry.
pub const ENTRY_BYTES_MAX: usize = (4032 << 20) - TRAILER_BYTES;

/// A user key in a fast or a zip table, in bytes: their indexes hold some keys whole. With its trailer 16 MiB.
pub const SHORT_KEY_BYTES_MAX: usize = (16 << 20) - TRAILER_BYTES;

/// Bytes of a key that an error shows.
const SHOWN_KEY_BYTES: usize = 64;

/// Whether a table can hold the entry.
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

/// A key as errors show it: quoted, and only its beginning where it is long.
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
        assert_eq!(shown(&[b'a'; 65]), format!("\"{}\"... (65 bytes)", "a".repeat(64)));
    }
}
