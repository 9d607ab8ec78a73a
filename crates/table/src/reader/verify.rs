//! Verifies a whole table: block checksums, key order, index bounds, every key's filter match, and counts against the
//! properties.

use base::{Error, InternalOrder, LookupKey, ParsedKey, Result, key};
use vfs::IoClass;

use super::readahead::Readahead;
use super::{BlockBasedTable, Fetch};
use crate::block::{Block, BlockCursor};
use crate::cached::CachedBlock;
use crate::handle::BlockHandle;
use crate::verify::{EntryCheck, filter_denies};

/// Observer of a verification. Its error ends the verification.
pub trait VerifyWatch {
    /// Called after each data block; `stored_bytes` excludes the trailer.
    fn block(&mut self, stored_bytes: u64) -> Result<()>;

    /// Takes the next entry, in order.
    fn entry(&mut self, key: &ParsedKey<'_>) -> Result<()>;
}

/// Observes nothing.
pub(super) struct Unwatched;

impl VerifyWatch for Unwatched {
    fn block(&mut self, _stored_bytes: u64) -> Result<()> {
        Ok(())
    }

    fn entry(&mut self, _key: &ParsedKey<'_>) -> Result<()> {
        Ok(())
    }
}

/// The separator of a data block in the index.
struct Separator<'a> {
    key: &'a [u8],
    is_user_key: bool,
}

impl Separator<'_> {
    /// Whether `key` (internal) is past the separator.
    fn is_before(&self, key: &[u8], order: &InternalOrder) -> bool {
        if self.is_user_key {
            order.user.compare(key::user_key(key), self.key).is_gt()
        } else {
            order.compare(key, self.key).is_gt()
        }
    }
}

/// Bytes per read, while the system prefetches the next.
const READAHEAD_BYTES: usize = 256 << 10;

/// One pass over the data blocks.
struct Pass<'a, W: VerifyWatch> {
    table: &'a BlockBasedTable,
    watch: &'a mut W,
    fetch: Fetch,
    readahead: Readahead,
    entries: EntryCheck<'a>,
    lookup: LookupKey,
}

impl BlockBasedTable {
    /// As [`Table::verify`](crate::Table::verify); `watch` can end it at any block or entry.
    ///
    /// # Errors
    /// `Corruption`: the file is damaged. Errors of `watch`.
    pub fn verify_watched<W: VerifyWatch>(&self, class: IoClass, watch: &mut W) -> Result<()> {
        // Bypasses the cache: verifies the file's bytes.
        let fetch = Fetch { verify_checksums: true, ask_cache: false, fill_cache: false, memory_only: false, class };
        self.verify_meta_blocks(fetch)?;
        let (entries, lookup) = (EntryCheck::new(&self.order, None), LookupKey::default());
        let readahead = Readahead::new(READAHEAD_BYTES);
        let mut pass = Pass { table: self, watch, fetch, readahead, entries, lookup };
        let passed = pass.run().and_then(|()| pass.entries.end(&self.properties, self.file.dictionary.is_some()));
        passed.map_err(|e| e.at_path(self.file.path()))
    }

    /// Rereads the meta blocks, which were parsed at open.
    fn verify_meta_blocks(&self, fetch: Fetch) -> Result<()> {
        for (name, handle) in self.metaindex.iter() {
            // Its checksum can predate the patched number; open has checked it.
            if name != crate::properties::BLOCK_NAME {
                self.file.contents(handle, fetch, None).map_err(|e| e.context(format!("meta block {name}")))?;
            }
        }
        if let Some(handle) = self.file.footer().index {
            self.file.contents(handle, fetch, None)?;
        }
        if let Some(filter) = &self.filter {
            for handle in filter.partitions(&self.file, fetch)? {
                self.file.contents(handle, fetch, None).map_err(|e| e.context("filter partition"))?;
            }
        }
        Ok(())
    }
}

impl<W: VerifyWatch> Pass<'_, W> {
    fn run(&mut self) -> Result<()> {
        let file = &self.table.file;
        let mut index = self.table.index.cursor(file, self.fetch)?;
        let mut found = index.seek_to_first(file, self.fetch)?;
        let mut last_end = 0;
        while found {
            let (Some(slot), Some(block)) = (index.slot(), index.block()) else { break };
            if slot.handle.offset < last_end {
                return Err(Error::corruption("data blocks overlap").at_offset(slot.handle.offset));
            }
            last_end = slot.handle.end();
            let separator = Separator { key: slot.separator, is_user_key: block.has_user_keys() };
            self.check_block(slot.handle, &separator, slot.first_key).map_err(|e| e.at_offset(slot.handle.offset))?;
            found = index.next(file, self.fetch)?;
        }
        Ok(())
    }

    fn check_block(&mut self, handle: BlockHandle, separator: &Separator<'_>, first_key: &[u8]) -> Result<()> {
        let file = &self.table.file;
        let block = Block::parse(file.data_contents(handle, self.fetch, Some(&mut self.readahead))?)?;
        let mut cursor = BlockCursor::new(self.table.global);
        cursor.set_block(std::sync::Arc::new(CachedBlock::entries(block)));
        let mut valid = cursor.seek_to_first();
        // The index's first key carries no global sequence number, so user keys are compared.
        if valid && !first_key.is_empty() && key::user_key(first_key) != key::user_key(cursor.key()) {
            return Err(Error::corruption("the index has another first key for this block"));
        }
        while valid {
            self.check_entry(cursor.key())?;
            valid = cursor.next();
        }
        cursor.status()?;
        let last_key = self.entries.last_key();
        if !last_key.is_empty() && separator.is_before(last_key, &self.table.order) {
            return Err(Error::corruption("a block's last key is past its separator in the index"));
        }
        self.entries.end_block();
        self.watch.block(handle.size)
    }

    fn check_entry(&mut self, key: &[u8]) -> Result<()> {
        let entry = self.entries.add(key)?;
        self.watch.entry(&entry)?;
        if let Some(filter) = &self.table.filter {
            self.lookup.set(entry.user_key, entry.seq);
            // The partitions' file bytes were checked; key queries may use the cache.
            let fetch = Fetch { ask_cache: true, ..self.fetch };
            if !filter.may_hold_key(self.lookup.internal(), &self.table.order, &self.table.file, fetch)? {
                return Err(filter_denies());
            }
        }
        Ok(())
    }
}
