//! Writes one index block.

use base::bytes::shared_prefix;
use base::coding::{put_prefixed, put_u32, put_varint64, zigzag};
use base::key;

use super::IndexFormat;
use crate::handle::BlockHandle;

/// Bound on expanded keys as a multiple of the block's size: half of the readers' bound.
const EXPANSION_MAX: usize = 32;

/// An entry to write. The separator is an internal key; user-key formats cut off its trailer.
#[derive(Clone, Copy, Debug)]
pub struct IndexEntry<'a> {
    pub separator: &'a [u8],
    pub handle: BlockHandle,
    /// Written if the format has first keys.
    pub first_key: &'a [u8],
}

#[derive(Debug)]
pub struct IndexBlockBuilder {
    format: IndexFormat,
    restart_interval: usize,
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    since_restart: usize,
    /// Size of the expanded keys so far, in bytes.
    expanded_bytes: usize,
    last_key: Vec<u8>,
    last_handle: BlockHandle,
    value: Vec<u8>,
}

impl IndexBlockBuilder {
    pub fn new(restart_interval: usize, format: IndexFormat) -> Self {
        IndexBlockBuilder {
            format,
            restart_interval: restart_interval.max(1),
            bytes: Vec::new(),
            restarts: vec![0],
            since_restart: 0,
            expanded_bytes: 0,
            last_key: Vec::new(),
            last_handle: BlockHandle::default(),
            value: Vec::new(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn add(&mut self, entry: IndexEntry<'_>) {
        let key = if self.format.user_keys { key::user_key(entry.separator) } else { entry.separator };
        if self.since_restart == self.restart_interval || self.expands_too_far(key) {
            self.restarts.push(self.bytes.len() as u32);
            self.since_restart = 0;
        }
        self.expanded_bytes += key.len();
        let shared = if self.since_restart == 0 { 0 } else { shared_prefix(&self.last_key, key) };
        let suffix = key.get(shared..).unwrap_or_default();
        self.value.clear();
        if self.format.delta_values && shared != 0 {
            let change = entry.handle.size.wrapping_sub(self.last_handle.size) as i64;
            put_varint64(&mut self.value, zigzag(change));
        } else {
            entry.handle.encode_to(&mut self.value);
        }
        if self.format.first_keys {
            put_prefixed(&mut self.value, entry.first_key);
            self.expanded_bytes += entry.first_key.len();
        }
        put_varint64(&mut self.bytes, shared as u64);
        put_varint64(&mut self.bytes, suffix.len() as u64);
        if !self.format.delta_values {
            put_varint64(&mut self.bytes, self.value.len() as u64);
        }
        self.bytes.extend_from_slice(suffix);
        self.bytes.extend_from_slice(&self.value);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(suffix);
        self.last_handle = entry.handle;
        self.since_restart += 1;
    }

    /// Whether the expanded keys, with `key`, would exceed the bound of readers (B2). A key at a restart point is
    /// stored whole, so it keeps to the bound.
    fn expands_too_far(&self, key: &[u8]) -> bool {
        self.since_restart > 0 && self.expanded_bytes + key.len() > self.bytes.len().saturating_mul(EXPANSION_MAX)
    }

    /// Size of the block if it ended now, in bytes.
    pub fn estimated_bytes(&self) -> usize {
        self.bytes.len() + self.restarts.len() * 4 + 4
    }

    /// Ends the block and returns its bytes.
    pub fn finish(&mut self) -> &[u8] {
        for &restart in &self.restarts {
            put_u32(&mut self.bytes, restart);
        }
        put_u32(&mut self.bytes, self.restarts.len() as u32);
        &self.bytes
    }

    pub fn reset(&mut self) {
        self.bytes.clear();
        self.restarts.clear();
        self.restarts.push(0);
        self.since_restart = 0;
        self.expanded_bytes = 0;
        self.last_key.clear();
        self.last_handle = BlockHandle::default();
    }
}
