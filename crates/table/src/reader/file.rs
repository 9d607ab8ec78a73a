//! Reads blocks of one table's file: bounds, checksum, decompression, and the block cache in front of them.

use std::path::PathBuf;
use std::sync::Arc;

use base::metrics::{Statistics, Ticker, tick};
use base::options::{ChecksumKind, CompressionKind};
use base::{Error, ErrorKind, Result};
use vfs::perf::{self, Metric, Timing};
use vfs::{IoClass, RandomFile};

use super::mapped::MappedFile;
use super::readahead::Readahead;
use super::{TableContext, counts, not_in_memory};
use crate::TableReadOptions;
use crate::block::{Block, BlockView};
use crate::cache::{BlockKey, Priority};
use crate::cached::{BlockCache, BlockRef, BlockRole, CachedBlock};
use crate::codec::Dictionary;
use crate::decompress::decompress;
use crate::footer::{FOOTER_BYTES, Footer};
use crate::handle::{BLOCK_TRAILER_BYTES, BlockHandle};
use crate::index::{IndexBlock, IndexFormat};

pub(super) const TRAILER: usize = BLOCK_TRAILER_BYTES as usize;

/// How one block is to be fetched.
#[derive(Clone, Copy, Debug)]
pub struct Fetch {
    pub verify_checksums: bool,
    /// If false, reads the file even if the cache has the block.
    pub ask_cache: bool,
    pub fill_cache: bool,
    /// As [`TableReadOptions::memory_only`].
    pub memory_only: bool,
    pub class: IoClass,
}

impl From<&TableReadOptions> for Fetch {
    fn from(options: &TableReadOptions) -> Self {
        Fetch {
            verify_checksums: options.verify_checksums,
            ask_cache: true,
            fill_cache: options.fill_cache,
            memory_only: options.memory_only,
            class: options.class,
        }
    }
}

/// `len` bytes of `file` at `at`.
///
/// # Errors
/// `Corruption`: the file ends before. Errors of reading.
pub(crate) fn read_exactly(file: &dyn RandomFile, at: u64, len: usize, class: IoClass) -> Result<Vec<u8>> {
    let mut bytes = vec![0; len];
    check_whole(file.read_at(at, &mut bytes, class)?, len, at)?;
    Ok(bytes)
}

/// Runs a read of blocks from files, `bytes` long together.
#[inline]
pub(super) fn read_measured<R>(blocks: usize, bytes: usize, read: impl FnOnce() -> R) -> R {
    perf::count([(Metric::BlockReadCount, blocks as u64), (Metric::BlockReadByte, bytes as u64)]);
    let timing = Timing::of_thread();
    timing.time(Metric::BlockReadTime, || timing.processor_time(Metric::BlockReadCpuTime, read))
}

/// Checks that a read at `at` got all of its `len` bytes.
pub(super) fn check_whole(read: usize, len: usize, at: u64) -> Result<()> {
    if read < len {
        return Err(Error::corruption(format!("the file ends {} bytes early", len - read)).at_offset(at));
    }
    Ok(())
}

/// An open file and the context to decode its blocks.
pub struct TableFile {
    file: Arc<dyn RandomFile>,
    path: PathBuf,
    bytes: u64,
    footer: Footer,
    /// For data blocks.
    pub dictionary: Option<Dictionary>,
    cache: Option<Arc<BlockCache>>,
    /// This table's number in the cache.
    id: u64,
    pub index_format: IndexFormat,
    statistics: Option<Arc<Statistics>>,
    /// `None`: blocks are read by calls.
    pub(super) mapped: Option<MappedFile>,
}

impl TableFile {
    pub fn new(file: Arc<dyn RandomFile>, path: PathBuf, bytes: u64, footer: Footer, context: &TableContext) -> Self {
        let (cache, statistics) = (context.cache.clone(), context.statistics.clone());
        let id = cache.as_ref().map_or(0, |cache| cache.new_id());
        let index_format = IndexFormat::default();
        let mapped = context.mapping.clone().map(MappedFile::new);
        TableFile { file, path, bytes, footer, dictionary: None, cache, id, index_format, statistics, mapped }
    }

    /// The same table read through `file` from now on.
    pub fn with_file(self, file: Arc<dyn RandomFile>, dictionary: Option<Dictionary>) -> Self {
        TableFile { file, dictionary, ..self }
    }

    pub fn footer(&self) -> &Footer {
        &self.footer
    }

    pub fn statistics(&self) -> &Option<Arc<Statistics>> {
        &self.statistics
    }

    pub fn path(&self) -> &PathBuf {
        &self.path
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn random_file(&self) -> &Arc<dyn RandomFile> {
        &self.file
    }

    /// Upper bound of block ends: the footer's offset.
    pub fn blocks_end(&self) -> u64 {
        self.bytes.saturating_sub(FOOTER_BYTES as u64)
    }

    pub(super) fn locate(&self, error: Error, handle: BlockHandle) -> Error {
        error.at_path(&self.path).at_offset(handle.offset)
    }

    /// A block's contents, decompressed; `dictionary` for data blocks.
    pub fn contents(&self, handle: BlockHandle, fetch: Fetch, dictionary: Option<&Dictionary>) -> Result<Vec<u8>> {
        self.read(handle, fetch)
            .and_then(|raw| self.open(handle, raw, fetch, dictionary))
            .map_err(|e| self.locate(e, handle))
    }

    /// A block's stored bytes with their trailer.
    fn read(&self, handle: BlockHandle, fetch: Fetch) -> Result<Vec<u8>> {
        let len = self.stored_len(handle)?;
        let read = || read_exactly(&*self.file, handle.offset, len, fetch.class);
        read_measured(1, len, read)
    }

    /// Bytes of a block and its trailer in the file.
    pub(super) fn stored_len(&self, handle: BlockHandle) -> Result<usize> {
        handle.check_within(self.blocks_end())?;
        let len = usize::try_from(handle.size).map_err(|_| Error::corruption("a block larger than memory"))?;
        Ok(len + TRAILER)
    }

    /// Checks a block's stored bytes and decompresses them if needed.
    pub(super) fn open(
        &self,
        handle: BlockHandle,
        mut raw: Vec<u8>,
        fetch: Fetch,
        dictionary: Option<&Dictionary>,
    ) -> Result<Vec<u8>> {
        match self.open_slice(handle, &raw, fetch, dictionary)? {
            Some(contents) => Ok(contents),
            None => {
                raw.truncate(raw.len() - TRAILER);
                Ok(raw)
            }
        }
    }

    /// The same for borrowed bytes; `None` if they are stored raw.
    fn open_slice(
        &self,
        handle: BlockHandle,
        raw: &[u8],
        fetch: Fetch,
        dictionary: Option<&Dictionary>,
    ) -> Result<Option<Vec<u8>>> {
        let Some((stored, &[kind, a, b, c, d])) = raw.split_last_chunk::<TRAILER>() else {
            return Err(Error::corruption("a block without its trailer"));
        };
        let timing = Timing::of_thread();
        if fetch.verify_checksums {
            let check = || self.check(handle, stored, kind, u32::from_le_bytes([a, b, c, d]));
            timing.time(Metric::BlockChecksumTime, check)?;
        }
        if kind == CompressionKind::None.number() {
            return Ok(None);
        }
        let contents = timing.time(Metric::BlockDecompressTime, || decompress(kind, stored, dictionary))?;
        if contents.is_some() {
            tick(&self.statistics, Ticker::NumberBlockDecompressed, 1);
        }
        Ok(contents)
    }

    fn check(&self, handle: BlockHandle, stored: &[u8], kind: u8, expected: u32) -> Result<()> {
        let computed = self.checksum_at(handle.offset, stored, kind);
        tick(&self.statistics, Ticker::BlockChecksumComputed, 1);
        if self.footer.checksum != ChecksumKind::None && computed != expected {
            tick(&self.statistics, Ticker::BlockChecksumMismatch, 1);
            // RocksDB's words: the checksums are those of the bytes alone.
            let (context, kind) = (self.footer.context_modifier(handle.offset), self.footer.checksum.number());
            let [expected, computed] = [expected, computed].map(|sum| sum.wrapping_sub(context));
            let removed = if context == 0 { "" } else { "(context removed)" };
            return Err(Error::corruption(format!(
                "block checksum mismatch: stored{removed} = {expected}, computed = {computed}, type = {kind}  in {} \
                 offset {} size {}",
                self.path.display(),
                handle.offset,
                stored.len()
            )));
        }
        Ok(())
    }

    fn checksum_at(&self, offset: u64, stored: &[u8], kind: u8) -> u32 {
        self.footer.checksum.of_block(stored, kind).wrapping_add(self.footer.context_modifier(offset))
    }

    /// A block's stored bytes without their trailer, and its compression. Decompresses and checks nothing. For the
    /// properties block: RocksDB patches it in place.
    pub fn stored(&self, handle: BlockHandle, fetch: Fetch) -> Result<(Vec<u8>, u8)> {
        let mut raw = self.read(handle, fetch).map_err(|e| self.locate(e, handle))?;
        let trailer = raw.split_off(raw.len() - TRAILER);
        Ok((raw, trailer.first().copied().unwrap_or_default()))
    }

    /// Whether `stored`, changed by the caller, matches the checksum in the block's trailer.
    pub fn matches_trailer(&self, handle: BlockHandle, stored: &[u8], fetch: Fetch) -> Result<bool> {
        let raw = self.read(handle, fetch).map_err(|e| self.locate(e, handle))?;
        let Some((_, &[kind, a, b, c, d])) = raw.split_last_chunk::<TRAILER>() else {
            return Ok(false);
        };
        Ok(self.check(handle, stored, kind, u32::from_le_bytes([a, b, c, d])).is_ok())
    }

    /// A data block, from the cache if present. `readahead` is the cursor's; `None` outside cursors.
    pub fn data_block(&self, handle: BlockHandle, fetch: Fetch, readahead: Option<&mut Readahead>) -> Result<BlockRef> {
        self.cached(handle, BlockRole::Entries, fetch, || {
            Ok(CachedBlock::entries(Block::parse(self.data_contents(handle, fetch, readahead)?)?))
        })
    }

    /// A data block's contents, decompressed.
    pub fn data_contents(
        &self,
        handle: BlockHandle,
        fetch: Fetch,
        readahead: Option<&mut Readahead>,
    ) -> Result<Vec<u8>> {
        let dictionary = self.dictionary.as_ref();
        let ahead = match readahead {
            Some(readahead) => readahead.block(self, handle, fetch.class)?,
            None => None,
        };
        let Some(raw) = ahead else { return self.contents(handle, fetch, dictionary) };
        match self.open_slice(handle, raw, fetch, dictionary)? {
            Some(contents) => Ok(contents),
            None => Ok(raw.get(..raw.len() - TRAILER).unwrap_or_default().to_vec()),
        }
    }

    /// A data block in the mapped file, its checksum compared once. `None`: the file is not mapped, or the block is
    /// compressed. Entries read from it count only once [`check_intact`](Self::check_intact) passes after the read.
    ///
    /// # Errors
    /// `Corruption`. `Incomplete`: a mapping is a file, and the read is limited to memory.
    #[inline]
    pub fn mapped_block(&self, handle: BlockHandle, fetch: Fetch) -> Result<Option<BlockView<'_>>> {
        let Some(mapped) = &self.mapped else { return Ok(None) };
        self.block_of(mapped, handle, fetch).map_err(|e| self.locate(e, handle))
    }

    #[inline]
    pub fn is_mapped(&self) -> bool {
        self.mapped.is_some()
    }

    #[inline]
    fn block_of<'a>(&self, mapped: &'a MappedFile, handle: BlockHandle, fetch: Fetch) -> Result<Option<BlockView<'a>>> {
        if fetch.memory_only {
            return Err(not_in_memory());
        }
        handle.check_within(self.blocks_end())?;
        let stored = mapped.stored(handle).ok_or_else(|| Error::corruption("the file ends before a block"))?;
        let Some((contents, &[kind, a, b, c, d])) = stored.split_last_chunk::<TRAILER>() else { return Ok(None) };
        if kind != 0 {
            return Ok(None);
        }
        if fetch.verify_checksums && !mapped.is_checked(handle) {
            let compared = self.check(handle, contents, kind, u32::from_le_bytes([a, b, c, d]));
            mapped.check_intact()?; // a page that failed explains a wrong checksum better
            compared?;
            mapped.set_checked(handle);
        }
        BlockView::parse(contents).map(Some)
    }

    /// Whether all bytes read from the mapping so far were the file's; true if the file is not mapped.
    ///
    /// # Errors
    /// `Io`.
    #[inline]
    pub fn check_intact(&self) -> Result<()> {
        self.mapped.as_ref().map_or(Ok(()), MappedFile::check_intact)
    }

    /// An index block, from the cache if present. `format` is the data index's or the filter index's.
    pub fn index_block(&self, handle: BlockHandle, format: IndexFormat, fetch: Fetch) -> Result<BlockRef> {
        self.cached(handle, BlockRole::Index, fetch, || {
            let block = Block::parse(self.contents(handle, fetch, None)?)?;
            Ok(CachedBlock::index(IndexBlock::parse(&block, format, self.blocks_end())?))
        })
    }

    pub fn filter_block(&self, handle: BlockHandle, fetch: Fetch) -> Result<BlockRef> {
        self.cached(handle, BlockRole::Filter, fetch, || Ok(CachedBlock::filter(self.contents(handle, fetch, None)?)))
    }

    #[inline]
    fn cached(
        &self,
        handle: BlockHandle,
        role: BlockRole,
        fetch: Fetch,
        load: impl FnOnce() -> Result<CachedBlock>,
    ) -> Result<BlockRef> {
        match self.in_cache(handle, role, fetch) {
            Some(found) => found,
            None if fetch.memory_only => Err(not_in_memory()),
            None => self.keep(handle, role, fetch, load().map_err(|e| self.locate(e, handle))?),
        }
    }

    /// The block if the cache has it and may be asked.
    #[inline]
    pub(super) fn in_cache(&self, handle: BlockHandle, role: BlockRole, fetch: Fetch) -> Option<Result<BlockRef>> {
        let key = BlockKey { id: self.id, offset: handle.offset };
        let found = self.cache.as_ref().filter(|_| fetch.ask_cache)?.get(key)?;
        if let Err(error) = found.check(role) {
            return Some(Err(self.locate(error, handle)));
        }
        counts::hit_of_thread(role);
        if let Some(statistics) = &self.statistics {
            counts::hit(statistics, role, &found);
        }
        Some(Ok(found))
    }

    /// Shares a block read from the file, through the cache if that is wanted.
    ///
    /// # Errors
    /// `MemoryLimit`: the cache has a strict limit and no room.
    pub(super) fn keep(
        &self,
        handle: BlockHandle,
        role: BlockRole,
        fetch: Fetch,
        block: CachedBlock,
    ) -> Result<BlockRef> {
        let key = BlockKey { id: self.id, offset: handle.offset };
        let block = Arc::new(block);
        let mut kept = None;
        if let Some(cache) = self.cache.as_ref().filter(|_| fetch.fill_cache) {
            let priority = if role == BlockRole::Entries { Priority::Low } else { Priority::High };
            let is_kept = cache.insert(key, block.clone(), block.memory_bytes(), priority);
            if !is_kept && cache.is_strict() && !is_of_job(fetch.class) {
                return Err(self.locate(cache_full(cache), handle));
            }
            kept = Some(is_kept);
        }
        if let Some(statistics) = self.statistics.as_ref().filter(|_| self.cache.is_some() && fetch.ask_cache) {
            counts::miss(statistics, role, &block, kept);
        }
        Ok(block)
    }
}

/// A flush or compaction goes on without the cache: its failure would end writes.
fn is_of_job(class: IoClass) -> bool {
    matches!(class, IoClass::Flush | IoClass::Compaction | IoClass::Ingest)
}

#[cold]
fn cache_full(cache: &BlockCache) -> Error {
    let (usage, capacity) = (cache.usage(), cache.capacity());
    let what = format!(
        "the block cache has a strict limit and no room: {usage} of {capacity} bytes are in use; release iterators and \
         values, raise its capacity, or read without fill_cache"
    );
    Error::new(ErrorKind::MemoryLimit, what)
}
