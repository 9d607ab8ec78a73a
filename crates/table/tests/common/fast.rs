//! Fast tables in memory.

use std::path::Path;
use std::sync::Arc;

use base::tombstone::RangeTombstone;
use base::{InternalOrder, Result};
use table::{FastTable, FastTableBuilder, TableBuilder, TableBuilderConfig, TableContext};
use vfs::ReadMapping;

use super::{Entry, Shared, Written};

/// Bytes that stand for a mapped file.
pub struct Mapped(pub Vec<u8>);

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl ReadMapping for Mapped {}

pub fn fast_config(order: &InternalOrder) -> TableBuilderConfig {
    let converted = super::converted::config(order);
    TableBuilderConfig {
        order: order.clone(),
        origin: converted.origin,
        merge_operator: converted.merge_operator,
        ..TableBuilderConfig::new("t.sst")
    }
}

pub fn write_fast(config: TableBuilderConfig, entries: &[Entry], tombstones: &[RangeTombstone]) -> Result<Written> {
    let file = Shared::default();
    let mut builder = Box::new(FastTableBuilder::new(Box::new(file.clone()), config)?);
    entries.iter().try_for_each(|(key, value)| builder.add(key, value))?;
    tombstones.iter().try_for_each(|tombstone| builder.add_tombstone(tombstone))?;
    let summary = builder.finish()?;
    let bytes = std::mem::take(&mut *file.0.lock().expect("unpoisoned"));
    Ok(Written { bytes, summary })
}

pub fn open_fast(bytes: &[u8], context: &TableContext) -> Result<Arc<FastTable>> {
    FastTable::open(Arc::new(Mapped(bytes.to_vec())), Path::new("t.sst"), bytes.len() as u64, context)
}

/// Writes and opens.
pub fn fast_table(order: &InternalOrder, entries: &[Entry], tombstones: &[RangeTombstone]) -> Arc<FastTable> {
    let written = write_fast(fast_config(order), entries, tombstones).expect("written");
    open_fast(&written.bytes, &super::converted::context(order)).expect("opens")
}
