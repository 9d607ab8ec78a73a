//! Walks a small block of plain keys from front to back: metaindex, properties, range tombstones.

use std::ops::Range;

use base::{Error, Result};

use super::{Block, parse_entry};

/// Receives a key and the range of its value.
pub type Visit<'a> = dyn FnMut(&[u8], Range<usize>) -> Result<()> + 'a;

/// Passes every key and the range of its value in the block's bytes to `visit`.
///
/// # Errors
/// `Corruption`: a malformed entry. Errors of `visit`.
pub fn walk(block: &Block, visit: &mut Visit<'_>) -> Result<()> {
    let mut key = Vec::new();
    let mut at = 0;
    let mut expanded = 0;
    while at < block.entries_end() {
        let malformed = || Error::corruption(format!("malformed entry at byte {at} of a block"));
        let entry = parse_entry(block.entries(), at).ok_or_else(malformed)?;
        if entry.shared > key.len() {
            return Err(malformed());
        }
        key.truncate(entry.shared);
        key.extend_from_slice(block.bytes().get(entry.key_start..entry.key_end).ok_or_else(malformed)?);
        expanded += key.len();
        if expanded > block.expanded_keys_max() {
            return Err(Error::corruption("a block's keys are far larger than the block"));
        }
        visit(&key, entry.key_end..entry.value_end)?;
        at = entry.value_end;
    }
    Ok(())
}
