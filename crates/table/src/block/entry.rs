//! One entry of a block: bytes shared with the previous key, key suffix, value.

use base::coding::decode_varint32;

/// A decoded entry; offsets are relative to the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Bytes shared with the previous key.
    pub shared: usize,
    pub key_start: usize,
    pub key_end: usize,
    /// End of the value and start of the next entry.
    pub value_end: usize,
}

/// Parses the entry of a data or meta block at `at` in `entries`; `None` if it is malformed or truncated.
#[inline]
pub fn parse_entry(entries: &[u8], at: usize) -> Option<Entry> {
    let rest = entries.get(at..)?;
    let (shared, unshared, value, header) = match rest.first_chunk::<3>() {
        Some(&[a, b, c]) if (a | b | c) < 0x80 => (usize::from(a), usize::from(b), usize::from(c), 3),
        _ => wide_header(rest)?,
    };
    let key_start = at + header;
    let key_end = key_start + unshared;
    let value_end = key_end + value;
    (value_end <= entries.len()).then_some(Entry { shared, key_start, key_end, value_end })
}

/// Parses the head of a delta-coded index entry. Its value has no length: `value_end` is the *start* of the value.
#[inline]
pub fn parse_index_entry(entries: &[u8], at: usize) -> Option<Entry> {
    let rest = entries.get(at..)?;
    let (shared, a) = decode_varint32(rest)?;
    let (unshared, b) = decode_varint32(rest.get(a..)?)?;
    let key_start = at + a + b;
    let key_end = key_start + unshared as usize;
    (key_end <= entries.len()).then_some(Entry { shared: shared as usize, key_start, key_end, value_end: key_end })
}

fn wide_header(rest: &[u8]) -> Option<(usize, usize, usize, usize)> {
    let (shared, a) = decode_varint32(rest)?;
    let (unshared, b) = decode_varint32(rest.get(a..)?)?;
    let (value, c) = decode_varint32(rest.get(a + b..)?)?;
    Some((shared as usize, unshared as usize, value as usize, a + b + c))
}
