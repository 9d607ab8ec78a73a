//! Index entries of a table being written, kept until its end. Only then is it known if user keys tell the blocks
//! apart, or the separators need their sequence numbers.

use base::coding::{Reader, put_prefixed};
use base::key;
use base::{InternalOrder, Result, SeqNo, ValueKind};

use super::IndexEntry;
use crate::handle::BlockHandle;

/// Entries back to back in one buffer. Handles are kept elsewhere: blocks may be written later than logged.
#[derive(Debug, Default)]
pub struct IndexLog {
    bytes: Vec<u8>,
    entries: usize,
    /// True once two neighbouring blocks share a user key.
    needs_trailers: bool,
    separator: Vec<u8>,
}

impl IndexLog {
    /// Logs a block by its first and last key, and chooses its separator: short, at or after `last`, before `next`
    /// (the next block's first key; `None` for the last block).
    pub fn push(&mut self, first: &[u8], last: &[u8], next: Option<&[u8]>, order: &InternalOrder) {
        self.separator.clear();
        self.separator.extend_from_slice(last);
        if let Some(next) = next {
            let shortened = shorten(&mut self.separator, next, order);
            if !shortened && order.compare_user_keys(last, next).is_eq() {
                self.needs_trailers = true;
            }
        }
        put_prefixed(&mut self.bytes, &self.separator);
        put_prefixed(&mut self.bytes, first);
        self.entries += 1;
    }

    /// The separator chosen last.
    pub fn last_separator(&self) -> &[u8] {
        &self.separator
    }

    pub fn needs_trailers(&self) -> bool {
        self.needs_trailers
    }

    /// Approximate size of the index, in bytes.
    pub fn estimated_bytes(&self) -> usize {
        const HANDLE_AND_RESTART_BYTES: usize = 8;
        self.bytes.len() + HANDLE_AND_RESTART_BYTES * self.entries
    }

    /// Passes the entries in order to `visit`, with `handles` in the order logged.
    ///
    /// # Errors
    /// Errors of `visit`.
    pub fn for_each(&self, handles: &[BlockHandle], mut visit: impl FnMut(IndexEntry<'_>) -> Result<()>) -> Result<()> {
        assert_eq!(handles.len(), self.entries, "every block logged is written");
        let mut reader = Reader::new(&self.bytes);
        for &handle in handles {
            let separator = reader.prefixed("separator")?;
            let first_key = reader.prefixed("first key")?;
            visit(IndexEntry { separator, handle, first_key })?;
        }
        Ok(())
    }
}

/// Shortens the internal key `separator` to one before the internal key `next`; returns whether it did.
fn shorten(separator: &mut Vec<u8>, next: &[u8], order: &InternalOrder) -> bool {
    let user_len = separator.len().saturating_sub(key::TRAILER_BYTES);
    let trailer = separator.split_off(user_len);
    let original = separator.clone();
    order.user.shorten_separator(separator, key::user_key(next));
    if separator.len() <= original.len() && order.user.compare(&original, separator).is_lt() {
        // Any trailer will do: no entry has this user key. RocksDB's tools expect a known kind.
        let first = key::pack_trailer(SeqNo::MAX, ValueKind::Value as u8);
        separator.extend_from_slice(&first.to_le_bytes());
        return true;
    }
    *separator = original;
    separator.extend_from_slice(&trailer);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn separator(last: (&str, u64), next: Option<(&str, u64)>) -> (Vec<u8>, bool) {
        let mut log = IndexLog::default();
        let key = |(user, seq): (&str, u64)| base::key::encode(user.as_bytes(), SeqNo(seq), ValueKind::Value);
        log.push(b"", &key(last), next.map(key).as_deref(), &InternalOrder::default());
        (base::key::user_key(log.last_separator()).to_vec(), log.needs_trailers())
    }

    #[test]
    fn separators_are_short_and_need_trailers_only_between_versions_of_a_key() {
        assert_eq!(separator(("apple", 5), Some(("banana", 9))), (b"apple".to_vec(), false));
        assert_eq!(separator(("apple", 5), Some(("cherry", 9))), (b"b".to_vec(), false));
        assert_eq!(separator(("apple", 5), Some(("apple", 3))), (b"apple".to_vec(), true));
        assert_eq!(separator(("apple", 5), Some(("applepie", 3))), (b"apple".to_vec(), false));
        assert_eq!(separator(("apple", 5), None), (b"apple".to_vec(), false));
    }
}
