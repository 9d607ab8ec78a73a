//! Point lookups.

use std::cell::Cell;
use std::sync::Arc;

use base::metrics::{Ticker, tick};
use base::{Error, LookupKey, Result, SeqNo, UserOrder, ValueKind, key};

use super::blocks::WantedBlock;
use super::index::Meta;
use super::{BlockBasedTable, Fetch, unknown_kind};
use crate::block::{Block, BlockCursor, BlockView, Place, Scan};
use crate::cached::{BlockRef, CachedBlock};
use crate::handle::BlockHandle;
use crate::index::{Candidate, IndexBlock};
use crate::{ShareBytes, TableReadOptions, TableValue, Visit};

/// Larger key buffers are freed: one huge key must not pin memory.
const KEY_BUFFER_KEPT_MAX: usize = 64 << 10;

thread_local! {
    /// Key buffer of lookups that rebuild keys: one allocation per thread.
    static KEY_BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Result of a walk through one block, or one index block.
enum Walk {
    /// The lookup is answered.
    Done,
    /// The block ended while entries of the key could still follow.
    BlockEnded,
}

/// One lookup in one table.
struct Lookup<'a> {
    key: &'a LookupKey,
    fetch: Fetch,
    /// No entry was passed yet; the first is counted.
    awaits_first: bool,
}

impl<'a> Lookup<'a> {
    fn new(key: &'a LookupKey, fetch: Fetch) -> Self {
        Lookup { key, fetch, awaits_first: true }
    }
}

/// How far an interleaved lookup has come.
pub struct Located<'a>(Step<'a>);

enum Step<'a> {
    /// The table does not hold the key.
    Nowhere,
    /// Rare cases: several blocks, or an order other than by bytes. The last step does all.
    Anywhere,
    /// One block can hold the key.
    Block { wanted: WantedBlock<'a>, place: Option<Place> },
    /// The same, in the mapped file.
    Mapped { handle: BlockHandle, view: BlockView<'a>, place: Option<Place> },
}

/// A data block in hand.
enum DataBlock<'a> {
    Held(BlockRef),
    /// In the mapped file: see [`TableFile::mapped_block`](super::TableFile::mapped_block).
    Mapped(BlockView<'a>),
}

impl DataBlock<'_> {
    #[inline]
    fn view(&self) -> BlockView<'_> {
        match self {
            DataBlock::Held(block) => block.entries.view(),
            DataBlock::Mapped(view) => *view,
        }
    }

    /// Owner of the bytes at `start`; `None` if they must be copied.
    #[inline]
    fn owner(&self, start: usize) -> Option<(&dyn ShareBytes, usize)> {
        match self {
            DataBlock::Held(block) => Some((block, start)),
            DataBlock::Mapped(_) => None,
        }
    }

    /// The block, to walk through. A copy if it is mapped.
    fn to_held(&self) -> Result<BlockRef> {
        match self {
            DataBlock::Held(block) => Ok(block.clone()),
            DataBlock::Mapped(view) => Ok(Arc::new(CachedBlock::entries(Block::parse(view.bytes().to_vec())?))),
        }
    }
}

impl<'a> Located<'a> {
    /// The lookup waits for a block that the cache lacks.
    #[inline]
    pub fn is_missing(&self) -> bool {
        matches!(&self.0, Step::Block { wanted, .. } if wanted.is_missing())
    }

    /// The block that the lookup waits for.
    pub fn wanted(&mut self) -> Option<&mut WantedBlock<'a>> {
        match &mut self.0 {
            Step::Block { wanted, .. } => Some(wanted),
            Step::Nowhere | Step::Anywhere | Step::Mapped { .. } => None,
        }
    }

    /// Third step. Asks for the memory of [`BlockBasedTable::narrow`].
    #[inline]
    pub fn foresee(&self) {
        match &self.0 {
            Step::Block { wanted: WantedBlock { block: Some(Ok(block)), .. }, .. } => {
                block.entries.view().foresee_restarts();
            }
            Step::Mapped { view, .. } => view.foresee_restarts(),
            _ => {}
        }
    }
}

impl BlockBasedTable {
    pub(super) fn get_entries(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        let fetch = Fetch::from(options);
        if !self.filter_allows(key, fetch)? {
            return Ok(());
        }
        self.look_up(&mut Lookup::new(key, fetch), visit)
    }

    fn filter_allows(&self, key: &LookupKey, fetch: Fetch) -> Result<bool> {
        match &self.filter {
            Some(filter) => filter.may_hold_key(key.internal(), &self.order, &self.file, fetch),
            None => Ok(true),
        }
    }

    /// First step of an interleaved lookup. Asks for the memory of [`locate`](Self::locate).
    #[inline]
    pub(crate) fn foresee(&self, key: &LookupKey) {
        if let Some(filter) = &self.filter {
            filter.foresee(key.user_key());
        }
    }

    /// Second step: filter, index and block cache. Asks for the memory of [`Located::foresee`].
    pub(crate) fn locate(&self, key: &LookupKey, options: &TableReadOptions) -> Result<Located<'_>> {
        let fetch = Fetch::from(options);
        if !matches!(self.order.user, UserOrder::Bytewise) || self.index.partitioned {
            return Ok(Located(Step::Anywhere));
        }
        if !self.filter_allows(key, fetch)? {
            return Ok(Located(Step::Nowhere));
        }
        let loaded;
        let top = match &self.index.top {
            Meta::Held(block) => block,
            Meta::Cached(_) => {
                loaded = self.index.top(&self.file, fetch)?;
                &loaded
            }
        };
        let index = top.as_index();
        let Candidate { at, is_last } = index.seek_first(key.internal(), &self.order);
        let Some(handle) = index.handle(at).filter(|_| index.may_begin_by(at, key.user_key(), &self.order)) else {
            return Ok(Located(Step::Nowhere));
        };
        if !is_last && index.goes_on_behind(at, key.user_key(), &self.order) {
            return Ok(Located(Step::Anywhere));
        }
        if let Some(view) = self.file.mapped_block(handle, fetch)? {
            view.foresee();
            return Ok(Located(Step::Mapped { handle, view, place: None }));
        }
        let wanted = WantedBlock::new(&self.file, handle, fetch);
        if let Some(Ok(block)) = &wanted.block {
            block.entries.view().foresee();
        }
        Ok(Located(Step::Block { wanted, place: None }))
    }

    /// Fourth step: the part of the block. Asks for the memory of [`show_located`](Self::show_located).
    #[inline]
    pub(crate) fn narrow(&self, key: &LookupKey, located: &mut Located<'_>) {
        match &mut located.0 {
            Step::Block { wanted: WantedBlock { block: Some(Ok(block)), .. }, place } => {
                *place = block.entries.view().place_of(key, self.global);
            }
            Step::Mapped { view, place, .. } => *place = view.place_of(key, self.global),
            _ => {}
        }
    }

    /// Last step.
    pub(crate) fn show_located(
        &self,
        key: &LookupKey,
        located: Located<'_>,
        options: &TableReadOptions,
        visit: Visit<'_>,
    ) -> Result<()> {
        match located.0 {
            Step::Nowhere => Ok(()),
            Step::Anywhere => self.get_entries(key, options, visit),
            Step::Block { wanted: WantedBlock { block, handle, .. }, place } => {
                let fetch = Fetch::from(options);
                let block = block.unwrap_or_else(|| self.file.data_block(handle, fetch, None))?;
                let shown = self.show_first(&DataBlock::Held(block), place, &mut Lookup::new(key, fetch), visit);
                shown.map(drop).map_err(|e| self.in_block(e, handle))
            }
            Step::Mapped { handle, view, place } => {
                let lookup = &mut Lookup::new(key, Fetch::from(options));
                let shown = self.show_first(&DataBlock::Mapped(view), place, lookup, visit);
                shown.and_then(|_| self.file.check_intact()).map_err(|e| self.in_block(e, handle))
            }
        }
    }

    #[cold]
    fn in_block(&self, error: Error, handle: BlockHandle) -> Error {
        error.at_path(self.file.path()).at_offset(handle.offset)
    }

    fn look_up(&self, lookup: &mut Lookup<'_>, visit: Visit<'_>) -> Result<()> {
        let loaded;
        let top = match &self.index.top {
            Meta::Held(block) => block,
            Meta::Cached(_) => {
                loaded = self.index.top(&self.file, lookup.fetch)?;
                &loaded
            }
        };
        let top = top.as_index();
        if !self.index.partitioned {
            self.look_up_in(top, lookup, visit)?;
            return Ok(());
        }
        for at in top.seek(lookup.key.internal(), &self.order)..top.len() {
            let Some(handle) = top.handle(at) else { break };
            let part = self.file.index_block(handle, self.file.index_format, lookup.fetch)?;
            if matches!(self.look_up_in(part.as_index(), lookup, visit)?, Walk::Done) {
                break;
            }
        }
        Ok(())
    }

    /// Searches the data blocks of an index block.
    fn look_up_in(&self, index: &IndexBlock, lookup: &mut Lookup<'_>, visit: Visit<'_>) -> Result<Walk> {
        let user_key = lookup.key.user_key();
        let Candidate { mut at, mut is_last } = index.seek_first(lookup.key.internal(), &self.order);
        while let Some(handle) = index.handle(at) {
            if !index.may_begin_by(at, user_key, &self.order) {
                return Ok(Walk::Done);
            }
            is_last = is_last || !index.goes_on_behind(at, user_key, &self.order);
            let walked = self.walk_block(handle, lookup, visit)?;
            if matches!(walked, Walk::Done) || is_last {
                return Ok(Walk::Done);
            }
            at += 1;
        }
        Ok(Walk::BlockEnded)
    }

    /// Passes a block's entries of the key to `visit`.
    fn walk_block(&self, handle: BlockHandle, lookup: &mut Lookup<'_>, visit: Visit<'_>) -> Result<Walk> {
        let block = match self.file.mapped_block(handle, lookup.fetch)? {
            Some(view) => DataBlock::Mapped(view),
            None => DataBlock::Held(self.file.data_block(handle, lookup.fetch, None)?),
        };
        let walked = match self.order.user {
            UserOrder::Bytewise => {
                let place = block.view().place_of(lookup.key, self.global);
                self.show_first(&block, place, lookup, visit)
            }
            _ => self.show_all(&block, lookup, false, visit),
        };
        self.file.check_intact()?;
        walked.map_err(|e| self.in_block(e, handle))
    }

    /// As [`show_all`](Self::show_all) in byte order: the newest entry is found without rebuilding keys, and is most
    /// often all that is asked for. Without a `place` the block is malformed, or read as a whole.
    fn show_first(
        &self,
        block: &DataBlock<'_>,
        place: Option<Place>,
        lookup: &mut Lookup<'_>,
        visit: Visit<'_>,
    ) -> Result<Walk> {
        let view = block.view();
        let found = match place.and_then(|place| view.find(place, lookup.key, self.global)) {
            Some(Scan::Found(found)) => found,
            Some(Scan::Behind) => return Ok(Walk::BlockEnded),
            Some(Scan::NeedsKeys) | None => return self.show_all(block, lookup, false, visit),
        };
        if !found.is_target {
            return Ok(Walk::Done);
        }
        let Some(kind) = ValueKind::from_u8(found.trailer as u8) else {
            return Err(unknown_kind(&found.trailer.to_le_bytes()));
        };
        let (start, end) = (found.entry.key_end, found.entry.value_end);
        let value = TableValue { bytes: view.bytes().get(start..end).unwrap_or_default(), owner: block.owner(start) };
        if self.show(lookup, SeqNo(found.trailer >> 8), kind, value, visit) {
            return self.show_all(block, lookup, true, visit);
        }
        Ok(Walk::Done)
    }

    /// Passes the block's entries of the key to `visit`, without the first if it was `passed` already.
    fn show_all(
        &self,
        block: &DataBlock<'_>,
        lookup: &mut Lookup<'_>,
        mut passed: bool,
        visit: Visit<'_>,
    ) -> Result<Walk> {
        let mut data = BlockCursor::with_buffer(self.global, KEY_BUFFER.take());
        let block = &block.to_held()?;
        data.set_block(block.clone());
        let mut valid = data.seek_for_get(lookup.key.internal(), &self.order) == Some(true);
        let mut walked = Walk::BlockEnded;
        while valid {
            let Some((user_key, trailer)) = key::split(data.key()) else { break };
            if !self.order.user.equal(user_key, lookup.key.user_key()) {
                walked = Walk::Done;
                break;
            }
            let Some(kind) = ValueKind::from_u8(trailer as u8) else {
                return Err(unknown_kind(&trailer.to_le_bytes()));
            };
            let value = TableValue { bytes: data.value(), owner: Some((block, data.value_range().start)) };
            if !std::mem::take(&mut passed) && !self.show(lookup, SeqNo(trailer >> 8), kind, value, visit) {
                walked = Walk::Done;
                break;
            }
            valid = data.next();
        }
        let status = data.status();
        let mut buffer = data.into_buffer();
        buffer.clear();
        buffer.shrink_to(KEY_BUFFER_KEPT_MAX);
        KEY_BUFFER.set(buffer);
        status.map(|()| walked)
    }

    #[inline]
    fn show(
        &self,
        lookup: &mut Lookup<'_>,
        seq: SeqNo,
        kind: ValueKind,
        value: TableValue<'_>,
        visit: Visit<'_>,
    ) -> bool {
        let first = std::mem::take(&mut lookup.awaits_first);
        if first && self.filter.as_ref().is_some_and(|filter| filter.question.by_whole_keys()) {
            tick(self.file.statistics(), Ticker::BloomFilterFullTruePositive, 1);
        }
        visit(seq, kind, value)
    }
}
