//! Makes builders of every kind of table. The family's `table_factory` selects the kind of each level.

use std::sync::Arc;

use base::Result;
use base::options::{AutoSortOptions, TableKind};
use vfs::{AppendFile, Vfs};

use crate::{BlockBasedTableBuilder, TableBuilder, TableBuilderConfig};

/// A builder of a `kind` table in `file`. Entries must come in order: a sorting kind yields the builder of its final
/// table. `vfs` is for temporary files.
///
/// # Errors
/// As of the kind's builder. `Unsupported`: this build lacks the kind.
pub fn new_builder(
    kind: &TableKind,
    vfs: &Arc<dyn Vfs>,
    file: Box<dyn AppendFile>,
    config: TableBuilderConfig,
) -> Result<Box<dyn TableBuilder>> {
    match kind {
        TableKind::BlockBased | TableKind::AutoSort(_) => Ok(Box::new(BlockBasedTableBuilder::new(file, config)?)),
        TableKind::SingleFast | TableKind::Zip(_) => topling::new_builder(kind, vfs, file, config),
    }
}

/// A builder of a block-based table in `file`, for entries in any order.
///
/// # Errors
/// As [`BlockBasedTableBuilder::new`]. `Unsupported`: this build lacks the kind.
pub fn new_sorting_builder(
    options: &AutoSortOptions,
    vfs: &Arc<dyn Vfs>,
    file: Box<dyn AppendFile>,
    config: TableBuilderConfig,
) -> Result<Box<dyn TableBuilder>> {
    topling::new_sorting_builder(options, vfs, file, config)
}

#[cfg(feature = "topling")]
mod topling {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::{AutoSortSettings, AutoSortTableBuilder, FastTableBuilder, ZipSettings, ZipTableBuilder};

    pub(super) fn new_builder(
        kind: &TableKind,
        vfs: &Arc<dyn Vfs>,
        file: Box<dyn AppendFile>,
        config: TableBuilderConfig,
    ) -> Result<Box<dyn TableBuilder>> {
        let TableKind::Zip(options) = kind else { return Ok(Box::new(FastTableBuilder::new(file, config)?)) };
        let spill_dir = match options.local_temp_dir.as_str() {
            "" => beside(&config.path),
            dir => PathBuf::from(dir),
        };
        let settings = ZipSettings { vfs: vfs.clone(), spill_dir, memory_bytes: options.memory_bytes };
        Ok(Box::new(ZipTableBuilder::new(file, config, settings)?))
    }

    pub(super) fn new_sorting_builder(
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
}

#[cfg(not(feature = "topling"))]
mod topling {
    use base::features::{TOPLING, missing};

    use super::*;

    pub(super) fn new_builder(
        kind: &TableKind,
        _vfs: &Arc<dyn Vfs>,
        _file: Box<dyn AppendFile>,
        _config: TableBuilderConfig,
    ) -> Result<Box<dyn TableBuilder>> {
        Err(missing(kind.name(), TOPLING))
    }

    pub(super) fn new_sorting_builder(
        _options: &AutoSortOptions,
        _vfs: &Arc<dyn Vfs>,
        _file: Box<dyn AppendFile>,
        _config: TableBuilderConfig,
    ) -> Result<Box<dyn TableBuilder>> {
        Err(missing("VecAutoSortTable", TOPLING))
    }
}
