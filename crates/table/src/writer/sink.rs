//! Buffered output file of a table: blocks with trailers, or plain bytes.

use std::path::PathBuf;

use base::options::{ChecksumKind, CompressionKind};
use base::{Error, Result};
use vfs::{AppendFile, IoClass};

use super::TableBuilderConfig;
use crate::footer::context_modifier;
use crate::handle::BlockHandle;

/// Bytes buffered before a write to the file.
const BUFFER_BYTES: usize = 256 << 10;

pub(crate) struct Sink {
    file: Box<dyn AppendFile>,
    path: PathBuf,
    buffer: Vec<u8>,
    /// Bytes of the table so far, including buffered ones.
    offset: u64,
    checksum: ChecksumKind,
    base_context_checksum: u32,
    class: IoClass,
    bytes_per_sync: u64,
    since_writeback: u64,
}

impl Sink {
    /// # Errors
    /// `InvalidArgument`: the file is not empty.
    pub(crate) fn new(file: Box<dyn AppendFile>, config: &TableBuilderConfig) -> Result<Sink> {
        if !file.is_empty() {
            return Err(Error::invalid_argument("a table must begin at the start of its file").at_path(&config.path));
        }
        Ok(Sink {
            file,
            path: config.path.clone(),
            buffer: Vec::with_capacity(BUFFER_BYTES + (BUFFER_BYTES >> 3)),
            offset: 0,
            checksum: config.options.checksum,
            base_context_checksum: config.base_context_checksum(),
            class: config.class,
            bytes_per_sync: config.bytes_per_sync,
            since_writeback: 0,
        })
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Appends a block, compressed by `kind`, and its trailer.
    pub(crate) fn write_block(&mut self, stored: &[u8], kind: CompressionKind) -> Result<BlockHandle> {
        let handle = BlockHandle { offset: self.offset, size: stored.len() as u64 };
        let context = context_modifier(self.base_context_checksum, self.offset);
        let checksum = self.checksum.of_block(stored, kind.number()).wrapping_add(context);
        self.buffer.extend_from_slice(stored);
        self.buffer.push(kind.number());
        self.buffer.extend_from_slice(&checksum.to_le_bytes());
        self.offset = handle.end();
        self.flush_beyond(BUFFER_BYTES)?;
        Ok(handle)
    }

    /// Appends bytes as they are.
    #[inline]
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.buffer.extend_from_slice(bytes);
        self.offset += bytes.len() as u64;
        self.flush_beyond(BUFFER_BYTES)
    }

    fn flush_beyond(&mut self, limit: usize) -> Result<()> {
        if self.buffer.len() <= limit {
            return Ok(());
        }
        self.file.append(&self.buffer, self.class).map_err(|e| e.at_path(&self.path))?;
        self.since_writeback += self.buffer.len() as u64;
        self.buffer.clear();
        if self.bytes_per_sync > 0 && self.since_writeback >= self.bytes_per_sync {
            self.file.start_writeback(self.class);
            self.since_writeback = 0;
        }
        Ok(())
    }

    /// Appends the footer, syncs, and returns the file's size.
    pub(crate) fn finish(mut self, footer: &[u8]) -> Result<u64> {
        self.buffer.extend_from_slice(footer);
        self.offset += footer.len() as u64;
        self.flush_beyond(0)?;
        self.file.sync(self.class).map_err(|e| e.at_path(&self.path))?;
        Ok(self.offset)
    }
}
