//! Opens the tables of a family.

use std::path::Path;
use std::sync::Arc;

use base::extend::PrefixExtractor;
use base::metrics::{Histogram, Ticker};
use base::options::{FamilyOptions, TableOptions};
use base::value_source::ValueSource;
use base::{Error, ErrorKind, InternalOrder, Result, UserOrder};
use table::{AnyTable, BlockCache, BoundedTable, Table, TableContext, open_any};
use vfs::{IoClass, Vfs};

use crate::core::context::Context;
use crate::version::log_life::LogSet;
use crate::version::recover::table_path;
use crate::version::table_file::FileMeta;
use crate::version::table_store::TableOpener;

pub(crate) struct Opener {
    context: Arc<Context>,
    cache: Option<Arc<BlockCache>>,
    order: InternalOrder,
    options: TableOptions,
    prefix_extractor: Option<Arc<dyn PrefixExtractor>>,
}

impl Opener {
    pub fn new(context: Arc<Context>, cache: Arc<BlockCache>, options: &FamilyOptions) -> Self {
        Opener {
            context,
            cache: (!options.table.no_block_cache).then_some(cache),
            order: InternalOrder::new(options.order.clone()),
            options: options.table.clone(),
            prefix_extractor: options.prefix_extractor(),
        }
    }
}

impl TableOpener for Opener {
    fn open(&self, meta: &FileMeta) -> Result<Arc<dyn Table>> {
        let path = table_path(&self.context.dir, meta.path_id, meta.physical_number())?;
        let Some(meter) = self.context.meter() else { return self.open_at(&path, meta) };
        let start = meter.now();
        let opened = self.open_at(&path, meta);
        meter.record_since(Histogram::TableOpenIo, start);
        let ticker = if opened.is_ok() { Ticker::FileOpens } else { Ticker::FileErrors };
        meter.statistics.add(ticker, 1);
        opened
    }
}

impl Opener {
    /// The WAL files holding values of the table. Shares their lives with the pins of the table's handle.
    fn values_of(&self, meta: &FileMeta) -> Option<Arc<dyn ValueSource>> {
        if meta.value_logs.is_empty() {
            return None;
        }
        let lives = meta.value_logs.iter().map(|share| self.context.logs.of_log(share.log));
        Some(Arc::new(LogSet::new(lives.collect())))
    }

    fn open_at(&self, path: &Path, meta: &FileMeta) -> Result<Arc<dyn Table>> {
        let file = self.context.open_metered(path)?;
        // Walks read ahead by themselves; the system's own readahead, of up to megabytes, would follow two blocks in a row.
        file.expect_random();
        let context = TableContext {
            order: self.order.clone(),
            cache: self.cache.clone(),
            cache_index_and_filter: self.options.cache_index_and_filter_blocks,
            pin_index_and_filter: self.options.pin_l0_filter_and_index_blocks_in_cache,
            prefix_extractor: self.prefix_extractor.clone(),
            largest_seq: Some(meta.largest_seq),
            values: self.values_of(meta),
            class: IoClass::Foreground,
            keep_tail: false,
            maps_reads: self.context.options.allow_mmap_reads,
            mapping: None,
            stands_in: None,
            statistics: self.context.statistics.clone(),
        };
        let whole = open_any(&*self.context.vfs, file, path, meta.physical_bytes(), &context)?;
        identified(meta, &self.order, whole.into_table())
    }
}

/// Reads every block of a table, and compares the size and the id that `meta` has. Skips a table if its order is neither built in nor in
/// `orders`, or if it has values in WAL files.
///
/// # Errors
/// `Corruption`: the table is damaged, or another one.
pub(crate) fn verify_alone(vfs: &dyn Vfs, path: &Path, meta: &FileMeta, orders: &[UserOrder]) -> Result<()> {
    let orders = [UserOrder::Bytewise, UserOrder::ReverseBytewise].iter().chain(orders);
    let opened = open_in_any(vfs, path, meta.file_bytes, &TableContext::default(), orders);
    let verify = |table: &dyn Table| meta.check_identity(table.properties()).and_then(|()| table.verify());
    match opened.and_then(|(any, _)| verify(any.table())) {
        // Another order, or a table that the check cannot open alone.
        Err(error) if matches!(error.kind(), ErrorKind::InvalidArgument | ErrorKind::Unsupported) => Ok(()),
        verified => verified,
    }
}

/// Opens a table in the first of `orders` that is its own.
///
/// # Errors
/// `InvalidArgument`: in none of them.
pub(crate) fn open_in_any<'a>(
    vfs: &dyn Vfs,
    path: &Path,
    bytes: u64,
    context: &TableContext,
    orders: impl IntoIterator<Item = &'a UserOrder>,
) -> Result<(AnyTable, InternalOrder)> {
    let mut refused = Error::invalid_argument("no order of keys is known");
    for order in orders {
        let order = InternalOrder::new(order.clone());
        let context = TableContext { order: order.clone(), ..context.clone() };
        match open_any(vfs, vfs.open(path)?, path, bytes, &context) {
            Err(error) if error.kind() == ErrorKind::InvalidArgument => refused = error, // another key order
            opened => return Ok((opened?, order)),
        }
    }
    Err(refused)
}

/// The table that `meta` names, of an open file.
///
/// # Errors
/// `Corruption`: the file is another table. Errors of reading the table's index.
pub(crate) fn identified(meta: &FileMeta, order: &InternalOrder, file: Arc<dyn Table>) -> Result<Arc<dyn Table>> {
    meta.check_identity(file.properties())?;
    within(meta, order, file)
}

/// The table within an open file: the whole file, or the part of a virtual table.
///
/// # Errors
/// Errors of reading the table's index.
pub(crate) fn within(meta: &FileMeta, order: &InternalOrder, file: Arc<dyn Table>) -> Result<Arc<dyn Table>> {
    match meta.part() {
        Some(part) => Ok(BoundedTable::new(file, order.clone(), part)?),
        None => Ok(file),
    }
}
