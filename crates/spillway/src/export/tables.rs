//! The tables of an export: linked or copied where they are RocksDB's, and written anew as block-based tables, entry by
//! entry, where they are files of ours or parts of files. The database itself stays as it is.

use std::path::PathBuf;
use std::sync::Arc;

use base::tombstone::RangeTombstone;
use base::{Cursor, Error, Result};
use table::{BlockBasedTableBuilder, TableBuilder, TableBuilderConfig, TableFormat, TableReadOptions, TableSummary};
use vfs::{IfExists, IoClass};

use crate::compaction::output::FamilyRules;
use crate::context::Context;
use crate::export::ExportOptions;
use crate::staging::Staging;
use crate::version::file_name::{self, FileType};
use crate::version::table_file::{FileMeta, TableFile};

/// Write-back is started whenever so many bytes were written, so that the sync at the end finds little to do.
const BYTES_PER_SYNC: u64 = 1 << 20;

/// Brings the tables of one family.
pub(super) struct TableExport<'a> {
    pub context: &'a Context,
    pub staging: &'a Staging,
    pub family: FamilyRules,
    pub options: ExportOptions,
}

impl TableExport<'_> {
    /// Brings a table of `level`. Returns its metadata where it is not what it was.
    ///
    /// # Errors
    /// The table's and the file system's.
    pub fn bring(&self, level: usize, table: &Arc<TableFile>) -> Result<Option<FileMeta>> {
        if !self.is_rocksdbs(table)? {
            return self.rewrite(level, table).map(Some);
        }
        let path = self.context.table_path(table.number());
        match self.options.copy_tables {
            true => self.staging.copy(&path, Some(table.meta.file_bytes))?,
            false => self.staging.link_or_copy(&path)?,
        }
        Ok(None)
    }

    fn is_rocksdbs(&self, table: &TableFile) -> Result<bool> {
        if table.meta.is_virtual() {
            return Ok(false);
        }
        let path = self.context.table_path(table.number());
        let format = TableFormat::of(&*self.context.vfs.open(&path)?, table.meta.file_bytes, IoClass::Other);
        Ok(format.map_err(|e| e.at_path(path))?.is_rocksdbs())
    }

    /// Every version of every key comes along: what snapshots or older tables need of them is not known here. The bounds
    /// stay, which other tables of the level respect.
    fn rewrite(&self, level: usize, table: &Arc<TableFile>) -> Result<FileMeta> {
        let path = self.staging.dir().join(file_name::format(FileType::Table, table.number()));
        let summary = self.write(level, table, path.clone()).map_err(|error| error.at_path(path))?;
        if summary.properties.entries == 0 {
            let what = "nothing is left of the table between the bounds that the MANIFEST gives";
            return Err(Error::corruption(what).at_path(self.context.table_path(table.meta.physical_number())));
        }
        // What names the old file's bytes does not hold of the new one.
        Ok(FileMeta {
            file_bytes: summary.file_bytes,
            backing: None,
            file_checksum: Vec::new(),
            file_checksum_func: String::new(),
            unique_id: None,
            value_logs: Vec::new(),
            ..table.meta.clone()
        })
    }

    fn write(&self, level: usize, table: &Arc<TableFile>, path: PathBuf) -> Result<TableSummary> {
        let from = table.open()?;
        let file = self.context.vfs.create(&path, IfExists::Fail)?;
        let mut builder = Box::new(BlockBasedTableBuilder::new(file, self.config(level, &table.meta, path))?);
        let options = TableReadOptions { fill_cache: false, class: IoClass::Other, ..TableReadOptions::default() };
        let mut cursor = from.clone().cursor(&options);
        let mut valid = cursor.seek_to_first();
        while valid {
            builder.add(cursor.key(), cursor.value())?;
            valid = cursor.next();
        }
        cursor.status()?;
        for fragment in from.tombstones().iter().flat_map(|all| table.meta.tombstones_inside(all).fragments().to_vec())
        {
            for seq in fragment.seqs {
                let (start, end) = (fragment.start.clone(), fragment.end.clone());
                builder.add_tombstone(&RangeTombstone { start, end, seq })?;
            }
        }
        builder.finish()
    }

    fn config(&self, level: usize, meta: &FileMeta, path: PathBuf) -> TableBuilderConfig {
        let family = &self.family;
        let compression = family.options.compression_at(level, false);
        let mut compression_options = family.options.compression_opts.clone();
        compression_options.max_dict_bytes = 0;
        TableBuilderConfig {
            order: family.order.clone(),
            options: family.options.table.clone(),
            compression,
            compression_options,
            prefix_extractor: family.options.prefix_extractor(),
            merge_operator: family.merge_operator_name(),
            origin: family.origin(self.context, meta.number, (meta.oldest_ancestor_time, meta.file_creation_time)),
            class: IoClass::Other,
            bytes_per_sync: BYTES_PER_SYNC,
            ..TableBuilderConfig::new(path)
        }
    }
}
