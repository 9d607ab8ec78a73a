//! Makes builders of tables of every kind. Which kind a level gets, the family's `table_factory` says.

use std::path::Path;
use std::sync::Arc;

use base::Result;
use base::options::{AutoSortOptions, TableKind};
use vfs::{AppendFile, Vfs};

use crate::{
    AutoSortSettings, AutoSortTableBuilder, BlockBasedTableBuilder, FastTableBuilder, SpillPlace, TableBuilder,
    TableBuilderConfig, ZipOptions, ZipTableBuilder,
};

/// How temporary files end, which are deleted where they are found when a database is opened.
const TEMPORARY: &str = "dbtmp";

/// A builder of a table of that kind in `file`. Entries come in order: of a kind that sorts, what it sorts for is made.
/// `vfs` is for temporary files beside the table.
///
/// # Errors
/// As of the kind's builder.
pub fn new_builder(
    kind: &TableKind,
    vfs: &Arc<dyn Vfs>,
    file: Box<dyn AppendFile>,
    config: TableBuilderConfig,
) -> Result<Box<dyn TableBuilder>> {
    Ok(match kind {
        TableKind::BlockBased | TableKind::AutoSort(_) => Box::new(BlockBasedTableBuilder::new(file, config)?),
        TableKind::SingleFast => Box::new(FastTableBuilder::new(file, config)?),
        TableKind::Zip(options) => {
            let spill = SpillPlace { vfs: vfs.clone(), path: config.path.with_extension(TEMPORARY) };
            let options = ZipOptions { memory_bytes: options.memory_bytes, spill: Some(spill) };
            Box::new(ZipTableBuilder::new(file, config, options)?)
        }
    })
}

/// A builder of a block-based table in `file` whose entries come in any order.
///
/// # Errors
/// As [`BlockBasedTableBuilder::new`].
pub fn new_sorting_builder(
    options: &AutoSortOptions,
    vfs: &Arc<dyn Vfs>,
    file: Box<dyn AppendFile>,
    config: TableBuilderConfig,
) -> Result<Box<dyn TableBuilder>> {
    let into = Box::new(BlockBasedTableBuilder::new(file, config.clone())?);
    let spill_dir = config.path.parent().unwrap_or(Path::new("")).to_owned();
    let settings = AutoSortSettings { vfs: vfs.clone(), spill_dir, memory_bytes: options.memory_bytes };
    Ok(Box::new(AutoSortTableBuilder::new(into, config, settings)))
}
