//! Makes builders of every kind of table. The family's `table_factory` selects the kind of each level.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::Result;
use base::options::{AutoSortOptions, TableKind};
use vfs::{AppendFile, Vfs};

use crate::{
    AutoSortSettings, AutoSortTableBuilder, BlockBasedTableBuilder, FastTableBuilder, TableBuilder, TableBuilderConfig,
    ZipSettings, ZipTableBuilder,
};

/// A builder of a `kind` table in `file`. Entries must come in order: a sorting kind yields the builder of its final
/// table. `vfs` is for temporary files.
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
            let spill_dir = match options.local_temp_dir.as_str() {
                "" => beside(&config.path),
                dir => PathBuf::from(dir),
            };
            let settings = ZipSettings { vfs: vfs.clone(), spill_dir, memory_bytes: options.memory_bytes };
            Box::new(ZipTableBuilder::new(file, config, settings)?)
        }
    })
}

/// A builder of a block-based table in `file`, for entries in any order.
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
    let spill_dir = beside(&config.path);
    let settings = AutoSortSettings { vfs: vfs.clone(), spill_dir, memory_bytes: options.memory_bytes };
    Ok(Box::new(AutoSortTableBuilder::new(into, config, settings)))
}

/// The directory of a table.
fn beside(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_owned()
}
