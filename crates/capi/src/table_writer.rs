//! `rocksdb_sstfilewriter_t`: tables made outside of a database, for ingests.

use std::ffi::CStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use spillway::internal::options::kept::review;
use spillway::internal::vfs::{IfExists, Vfs};
use spillway::internal::{FamilyOptions, TableWriter};

use crate::boundary::argument::Out;
use crate::boundary::{export, fallible, handles};
use crate::env::EnvOptions;
use crate::extend::comparator::CallbackOrder;
use crate::failure::Failure;
use crate::options::Options;
use crate::text::path;

/// Writes tables, one after the other.
pub struct TableMaker {
    vfs: Arc<dyn Vfs>,
    pub options: FamilyOptions,
    /// Ignores unsupported options that affect stored data.
    ignore_unsupported: bool,
    /// The table being written, and its path.
    writer: Option<(TableWriter, PathBuf)>,
    /// Bytes of the last finished table.
    finished_bytes: u64,
}

handles!(TableMaker);

impl TableMaker {
    pub fn new(options: &Options) -> TableMaker {
        TableMaker {
            vfs: options.vfs(),
            options: options.within_bounds(),
            ignore_unsupported: options.db.ignore_unsupported_options,
            writer: None,
            finished_bytes: 0,
        }
    }

    /// # Errors
    /// No table is open.
    pub fn table(&mut self) -> Result<&mut TableWriter, Failure> {
        let writer = self.writer.as_mut().map(|(writer, _)| writer);
        writer.ok_or_else(|| Failure::invalid_argument("File is not opened"))
    }

    /// Replaces an existing file.
    pub fn open(&mut self, file: PathBuf) -> Result<(), Failure> {
        self.abandon();
        review(&self.options, self.ignore_unsupported)?;
        if self.vfs.exists(&file)? {
            self.vfs.remove_file(&file)?;
        }
        let writer = TableWriter::create(self.vfs.clone(), &file, &self.options)?;
        self.writer = Some((writer, file));
        Ok(())
    }

    /// Approximate bytes of the open table, 0 before its first entry; if none is open, of the last one.
    pub fn bytes(&self) -> u64 {
        let so_far = |writer: &TableWriter| if writer.entries() == 0 { 0 } else { writer.estimated_bytes() };
        self.writer.as_ref().map_or(self.finished_bytes, |(writer, _)| so_far(writer))
    }

    pub fn finish(&mut self) -> Result<(), Failure> {
        let (writer, file) = self.writer.take().ok_or_else(|| Failure::invalid_argument("File is not opened"))?;
        let finished = writer.finish().inspect_err(|_| self.leave_empty(&file))?;
        self.finished_bytes = finished.file_bytes;
        Ok(())
    }

    /// Drops an unfinished table.
    fn abandon(&mut self) {
        if let Some((writer, file)) = self.writer.take() {
            drop(writer); // removes the file
            self.leave_empty(&file);
        }
    }

    /// Leaves an empty file for a table without an end. RocksDB leaves its file too: programs count on the name, and take an
    /// empty file for no entries.
    fn leave_empty(&self, file: &Path) {
        if let Err(error) = self.vfs.create(file, IfExists::Truncate) {
            tracing::warn!(%error, "no empty file is left for an unfinished table");
        }
    }
}

impl Drop for TableMaker {
    fn drop(&mut self) {
        self.abandon();
    }
}

export! {
    fn rocksdb_sstfilewriter_create(_env: Option<&EnvOptions>, options: &Options) -> Box<TableMaker> {
        Box::new(TableMaker::new(options))
    }

    fn rocksdb_sstfilewriter_create_with_comparator(
        _env: Option<&EnvOptions>,
        options: &Options,
        comparator: Option<&CallbackOrder>,
    ) -> Box<TableMaker> {
        let mut maker = TableMaker::new(options);
        maker.options.order = comparator.map_or_else(Default::default, CallbackOrder::order);
        Box::new(maker)
    }

    /// Leaves an empty file for an unfinished table.
    fn rocksdb_sstfilewriter_destroy(writer: Option<Box<TableMaker>>) {
        drop(writer);
    }

    /// See [`TableMaker::bytes`].
    fn rocksdb_sstfilewriter_file_size(writer: &TableMaker, bytes: Out<u64>) {
        bytes.set(writer.bytes());
    }
}

fallible! {
    fn rocksdb_sstfilewriter_open(writer: &mut TableMaker, name: &CStr) {
        writer.open(path(name).to_owned())
    }

    /// An older name of `put`.
    fn rocksdb_sstfilewriter_add(writer: &mut TableMaker, key[key_len]: &[u8], value[value_len]: &[u8]) {
        Ok(writer.table()?.put(key, value)?)
    }

    fn rocksdb_sstfilewriter_put(writer: &mut TableMaker, key[key_len]: &[u8], value[value_len]: &[u8]) {
        Ok(writer.table()?.put(key, value)?)
    }

    fn rocksdb_sstfilewriter_merge(writer: &mut TableMaker, key[key_len]: &[u8], operand[operand_len]: &[u8]) {
        Ok(writer.table()?.merge(key, operand)?)
    }

    fn rocksdb_sstfilewriter_delete(writer: &mut TableMaker, key[key_len]: &[u8]) {
        Ok(writer.table()?.delete(key)?)
    }

    fn rocksdb_sstfilewriter_delete_range(
        writer: &mut TableMaker,
        start[start_len]: &[u8],
        end[end_len]: &[u8],
    ) {
        Ok(writer.table()?.delete_range(start, end)?)
    }

    fn rocksdb_sstfilewriter_finish(writer: &mut TableMaker) {
        writer.finish()
    }
}
