//! An export's tables. RocksDB's own are linked or copied. Rewritten as block-based tables, entry by entry: our
//! formats, virtual tables, and tables with range tombstones beyond their bounds. The database is not changed.

use std::path::PathBuf;
use std::sync::Arc;

use base::{Error, FileNumber, Result};
use table::{BlockBasedTableBuilder, TableBuilderConfig, TableFormat, TableSummary};
use vfs::{IfExists, IoClass};

use crate::background::staging::Staging;
use crate::compaction::output::FamilyRules;
use crate::core::context::Context;
use crate::manage::copied_table::copy_table;
use crate::manage::export::ExportOptions;
use crate::version::file_name::{self, FileType};
use crate::version::table_file::{FileMeta, TableFile};

/// Starts write-back every so many bytes, to shorten the final sync.
const BYTES_PER_SYNC: u64 = 1 << 20;

/// Exports the tables of one family.
pub(super) struct TableExport<'a> {
    pub context: &'a Context,
    pub staging: &'a Staging,
    pub family: FamilyRules,
    pub options: ExportOptions,
}

impl TableExport<'_> {
    /// Exports a table of `level`. Returns its new metadata if the table was rewritten.
    ///
    /// # Errors
    /// The table's and the file system's.
    pub fn bring(&self, level: usize, table: &Arc<TableFile>) -> Result<Option<FileMeta>> {
        if !self.is_rocksdbs(table)? || reaches_out(table)? {
            return self.rewrite(level, table).map(Some);
        }
        if !self.options.skip_verification {
            table.verify_file()?; // damage must not pass unnoticed into the export
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

    /// Keeps every version of every key: snapshots or older tables may need them. Keeps the bounds: neighbours in the
    /// level rely on them. Takes a new number: a name stands for one content.
    fn rewrite(&self, level: usize, table: &Arc<TableFile>) -> Result<FileMeta> {
        let number = self.context.numbers.take();
        let path = self.staging.dir().join(file_name::format(FileType::Table, number));
        let summary = self.write(level, table, number, path.clone()).map_err(|error| error.at_path(path))?;
        if summary.properties.entries == 0 {
            let what = "nothing is left of the table between the bounds that the MANIFEST gives";
            return Err(Error::corruption(what).at_path(self.context.table_path(table.meta.physical_number())));
        }
        Ok(table.meta.copied_to(number, &summary))
    }

    fn write(&self, level: usize, table: &Arc<TableFile>, number: FileNumber, path: PathBuf) -> Result<TableSummary> {
        let from = table.open()?;
        let file = self.context.vfs.create(&path, IfExists::Fail)?;
        let config = TableBuilderConfig {
            origin: self.family.origin(
                self.context,
                number,
                table.meta.oldest_ancestor_time,
                table.meta.file_creation_time,
            ),
            ..self.config(level, path)
        };
        let builder = BlockBasedTableBuilder::new(file, config)?;
        copy_table(&from, &table.meta, &self.family.order, builder, None)
    }

    /// All but the origin.
    fn config(&self, level: usize, path: PathBuf) -> TableBuilderConfig {
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
            class: IoClass::Other,
            bytes_per_sync: BYTES_PER_SYNC,
            ..TableBuilderConfig::new(path)
        }
    }
}

/// Whether range tombstones reach beyond the table's bounds, where they are void. Read without the MANIFEST's bounds,
/// the file would delete neighbouring keys.
fn reaches_out(table: &TableFile) -> Result<bool> {
    let all = table.open()?.tombstones();
    Ok(all.is_some_and(|all| !Arc::ptr_eq(&all, &table.meta.tombstones_inside(&all))))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use base::{SeqNo, ValueKind, key};
    use vfs::{MemoryVfs, Vfs};

    use super::*;
    use crate::internal::{Database, IngestOptions, OpenOptions, ReadOptions, TableWriter, WriteOptions};

    /// As RocksDB leaves it where a compaction cut a range tombstone over two tables.
    #[test]
    fn a_tombstone_that_reaches_out_of_its_table_deletes_nothing_of_its_neighbours() {
        let vfs = MemoryVfs::new(1);
        let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).unwrap();
        let (core, family) = (db.core(), db.default_family());
        let path = core.context.table_path(FileNumber(900));
        let mut table = TableWriter::create(vfs.clone(), &path, &family.options()).unwrap();
        table.put(b"d", b"of the table").unwrap();
        table.delete_range(b"c", b"z").unwrap();
        let made = table.finish().unwrap();
        let bounds = |largest| FileMeta {
            number: FileNumber(900),
            file_bytes: made.file_bytes,
            smallest: key::encode(b"c", SeqNo::ZERO, ValueKind::RangeDeletion),
            largest,
            ..FileMeta::default()
        };
        let cut = bounds(key::encode(b"n", SeqNo::MAX, ValueKind::RangeDeletion));
        let whole = bounds(key::encode(b"z", SeqNo::MAX, ValueKind::RangeDeletion));
        for (meta, is_written_anew) in [(whole, false), (cut, true)] {
            let dir = Path::new("/export").join(is_written_anew.to_string());
            vfs.create_dir_all(Path::new("/export")).unwrap();
            let staging = Staging::begin(vfs.clone(), &dir, "export").unwrap();
            let (context, options) = (&*core.context, ExportOptions::default());
            let export = TableExport { context, staging: &staging, family: FamilyRules::of(&family), options };
            assert_eq!(export.bring(6, &family.tables().file(meta)).unwrap().is_some(), is_written_anew);
            staging.commit().unwrap();
        }
        db.put(&family, b"p", b"of its neighbour", &WriteOptions::default()).unwrap();
        let exported = vfs.read_dir(Path::new("/export/true")).unwrap();
        let exported = Path::new("/export/true").join(&exported[0]);
        let as_import = IngestOptions { allow_db_generated_files: true, ..IngestOptions::default() };
        db.ingest(&family, &[exported], &as_import).unwrap();
        for (key, is_there) in [("d", true), ("p", true), ("e", false)] {
            let found = db.get(&family, key.as_bytes(), &ReadOptions::default()).unwrap();
            assert_eq!(found.is_some(), is_there, "{key}");
        }
    }
}
