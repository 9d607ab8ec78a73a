//! Data blocks of a batch of lookups, in any tables: cached ones at once, missing ones read together.

use base::Result;
use vfs::{ReadRequest, read_many};

use super::file::{Fetch, TableFile, check_whole, read_measured};
use super::not_in_memory;
use crate::block::Block;
use crate::cached::{BlockRef, BlockRole, CachedBlock};
use crate::handle::BlockHandle;

/// Bytes read together: a few hundred blocks, and a bound on what a wrong index can ask for (B2).
const TOGETHER_BYTES_MAX: u64 = 1 << 20;

/// A data block that lookups need.
pub struct WantedBlock<'a> {
    file: &'a TableFile,
    pub handle: BlockHandle,
    /// The block, or why it cannot be read; `None` until [`read_missing`] if the cache lacks it.
    pub block: Option<Result<BlockRef>>,
}

impl<'a> WantedBlock<'a> {
    /// Asks the cache.
    pub fn new(file: &'a TableFile, handle: BlockHandle, fetch: Fetch) -> Self {
        WantedBlock { file, handle, block: file.in_cache(handle, BlockRole::Entries, fetch) }
    }

    pub fn is_missing(&self) -> bool {
        self.block.is_none()
    }

    fn is_of(&self, file: &TableFile, handle: BlockHandle) -> bool {
        std::ptr::eq(self.file, file) && self.handle == handle
    }

    /// Checks, decompresses and shares the block with these stored bytes.
    fn open(&mut self, stored: Result<Vec<u8>>, fetch: Fetch) {
        let (file, handle) = (self.file, self.handle);
        let open = |stored| {
            let contents = file.open(handle, stored, fetch, file.dictionary.as_ref())?;
            let block = CachedBlock::entries(Block::parse(contents)?);
            file.keep(handle, BlockRole::Entries, fetch, block)
        };
        self.block = Some(stored.and_then(open).map_err(|e| file.locate(e, handle)));
    }
}

/// Reads the blocks that the cache lacked, each with its own error. Blocks of one file are best given by ascending
/// offset. A block wanted twice in a row is read once.
pub fn read_missing<'a, 'f: 'a>(wanted: impl Iterator<Item = &'a mut WantedBlock<'f>>, fetch: Fetch) {
    if fetch.memory_only {
        wanted.filter(|wanted| wanted.is_missing()).for_each(|wanted| wanted.block = Some(Err(not_in_memory())));
        return;
    }
    let mut unread: Vec<&mut WantedBlock<'_>> = Vec::new();
    let mut repeats = Vec::new();
    for wanted in wanted.filter(|wanted| wanted.is_missing()) {
        match unread.last() {
            Some(last) if last.is_of(wanted.file, wanted.handle) => repeats.push((unread.len() - 1, wanted)),
            _ => unread.push(wanted),
        }
    }
    let mut rest = &mut unread[..];
    while !rest.is_empty() {
        let mut bytes = 0;
        let fits = |wanted: &&&mut WantedBlock<'_>| {
            bytes += wanted.handle.end().saturating_sub(wanted.handle.offset);
            bytes <= TOGETHER_BYTES_MAX
        };
        let count = rest.iter().take_while(fits).count().max(1);
        let (now, later) = rest.split_at_mut(count);
        read_together(now, fetch);
        rest = later;
    }
    for (first, repeat) in repeats {
        repeat.block = unread.get(first).and_then(|first| first.block.clone());
    }
}

fn read_together(wanted: &mut [&mut WantedBlock<'_>], fetch: Fetch) {
    let room = |wanted: &&mut WantedBlock<'_>| Ok(vec![0; wanted.file.stored_len(wanted.handle)?]);
    let mut stored: Vec<Result<Vec<u8>>> = wanted.iter().map(room).collect();
    let mut reads = Vec::with_capacity(wanted.len());
    let mut bytes = 0;
    for (wanted, room) in wanted.iter().zip(&mut stored) {
        if let Ok(room) = room {
            bytes += room.len();
            reads.push(ReadRequest::new(&**wanted.file.random_file(), wanted.handle.offset, room));
        }
    }
    read_measured(reads.len(), bytes, || read_many(&mut reads, fetch.class));
    let read: Vec<Result<usize>> = reads.into_iter().map(|read| read.read).collect();
    let mut read = read.into_iter();
    for (wanted, stored) in wanted.iter_mut().zip(stored) {
        let whole = stored.and_then(|bytes| {
            let read = read.next().unwrap_or(Ok(0))?;
            check_whole(read, bytes.len(), wanted.handle.offset)?;
            Ok(bytes)
        });
        wanted.open(whole, fetch);
    }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
