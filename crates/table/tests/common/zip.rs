//! Zip tables in memory.

use std::path::Path;
use std::sync::Arc;

use base::tombstone::RangeTombstone;
use base::{InternalOrder, Result};
use table::ZipTableBuilder;
use table::{TableBuilder, TableBuilderConfig, TableContext, ZipSettings, ZipTable};
use vfs::{MemoryVfs, Vfs};

use super::fast::{Mapped, fast_config};
use super::{Entry, Shared, Written};

/// What is compressed is read again as it is written.
pub fn zip_config(order: &InternalOrder) -> TableBuilderConfig {
    let mut config = fast_config(order);
    config.options.verify_compression = true;
    config
}

pub fn zip_settings(vfs: Arc<dyn Vfs>) -> ZipSettings {
    ZipSettings { vfs, spill_dir: "/".into(), memory_bytes: 64 << 20 }
}

pub fn write_zip(config: TableBuilderConfig, entries: &[Entry], tombstones: &[RangeTombstone]) -> Result<Written> {
    let file = Shared::default();
    let builder = ZipTableBuilder::new(Box::new(file.clone()), config, zip_settings(MemoryVfs::new(1)))?;
    let mut builder = Box::new(builder);
    entries.iter().try_for_each(|(key, value)| builder.add(key, value))?;
    tombstones.iter().try_for_each(|tombstone| builder.add_tombstone(tombstone))?;
    let summary = builder.finish()?;
    let bytes = std::mem::take(&mut *file.0.lock().expect("unpoisoned"));
    Ok(Written { bytes, summary })
}

pub fn open_zip(bytes: &[u8], context: &TableContext) -> Result<Arc<ZipTable>> {
    ZipTable::open(Arc::new(Mapped(bytes.to_vec())), Path::new("t.sst"), bytes.len() as u64, context)
}

/// Writes and opens.
pub fn zip_table(order: &InternalOrder, entries: &[Entry], tombstones: &[RangeTombstone]) -> Arc<ZipTable> {
    let written = write_zip(zip_config(order), entries, tombstones).expect("written");
    open_zip(&written.bytes, &super::converted::context(order)).expect("opens")
}
