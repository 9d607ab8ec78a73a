//! Writes a block of entries: data blocks, and meta blocks of the same layout.

use base::bytes::shared_prefix;
use base::coding::{put_u32, put_varint64, varint_len};
use base::key;

use super::HASH_INDEX;
use super::hash_index::HashIndexBuilder;

/// Collects one block; reused for the next after [`finish`](BlockBuilder::finish).
#[derive(Debug)]
pub struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    restart_interval: usize,
    /// Entries since the last restart point.
    since_restart: usize,
    entries: usize,
    last_key: Vec<u8>,
    hash_index: Option<HashIndexBuilder>,
}

impl BlockBuilder {
    /// A restart point every `restart_interval` entries (at least 1).
    pub fn new(restart_interval: usize) -> Self {
        BlockBuilder {
            bytes: Vec::new(),
            restarts: vec![0],
            restart_interval: restart_interval.max(1),
            since_restart: 0,
            entries: 0,
            last_key: Vec::new(),
            hash_index: None,
        }
    }

    /// Adds a hash index over the user keys of the internal keys.
    #[must_use]
    pub fn with_hash_index(mut self, utilization: f64) -> Self {
        self.hash_index = Some(HashIndexBuilder::new(utilization));
        self
    }

    pub fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The last key added, to this block or the previous one.
    pub fn last_key(&self) -> &[u8] {
        &self.last_key
    }

    /// Appends an entry. The caller has checked the order of keys.
    #[inline]
    pub fn add(&mut self, key: &[u8], value: &[u8]) {
        let shared = if self.since_restart == self.restart_interval {
            self.restarts.push(self.bytes.len() as u32);
            self.since_restart = 0;
            0
        } else if self.since_restart == 0 {
            0
        } else {
            shared_prefix(&self.last_key, key)
        };
        let suffix = key.get(shared..).unwrap_or_default();
        if (shared | suffix.len() | value.len()) < 0x80 {
            self.bytes.extend_from_slice(&[shared as u8, suffix.len() as u8, value.len() as u8]);
        } else {
            put_varint64(&mut self.bytes, shared as u64);
            put_varint64(&mut self.bytes, suffix.len() as u64);
            put_varint64(&mut self.bytes, value.len() as u64);
        }
        self.bytes.extend_from_slice(suffix);
        self.bytes.extend_from_slice(value);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(suffix);
        self.since_restart += 1;
        self.entries += 1;
        if let Some(hash_index) = &mut self.hash_index {
            hash_index.add(key::user_key(key), self.restarts.len() - 1);
        }
    }

    /// Size of the block if it ended now, in bytes.
    #[inline]
    pub fn estimated_bytes(&self) -> usize {
        let hash = self.hash_index.as_ref().map_or(0, HashIndexBuilder::estimated_bytes);
        self.bytes.len() + self.restarts.len() * 4 + 4 + hash
    }

    /// The same with one more entry, by RocksDB's estimate: no shared prefix, four bytes for its length.
    #[inline]
    pub fn estimated_bytes_with(&self, key: &[u8], value: &[u8]) -> usize {
        let restart = if self.since_restart == self.restart_interval { 4 } else { 0 };
        let lengths = 4 + varint_len(key.len() as u64) + varint_len(value.len() as u64);
        self.estimated_bytes() + restart + lengths + key.len() + value.len()
    }

    /// Ends the block and returns its bytes. Call [`reset`](BlockBuilder::reset) before the next block.
    pub fn finish(&mut self) -> &[u8] {
        for &restart in &self.restarts {
            put_u32(&mut self.bytes, restart);
        }
        let mut footer = self.restarts.len() as u32;
        if let Some(hash_index) = &mut self.hash_index
            && hash_index.finish(&mut self.bytes)
        {
            footer |= HASH_INDEX;
        }
        put_u32(&mut self.bytes, footer);
        &self.bytes
    }

    pub fn reset(&mut self) {
        self.bytes.clear();
        self.restarts.clear();
        self.restarts.push(0);
        self.since_restart = 0;
        self.entries = 0;
    }
}
