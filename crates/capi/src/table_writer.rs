//! `rocksdb_sstfilewriter_t`: tables made outside of a database, for ingests.

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;

use spillway::internal::options::kept::review;
use spillway::internal::vfs::Vfs;
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
    /// The table being written.
    writer: Option<TableWriter>,
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
        self.writer.as_mut().ok_or_else(|| Failure::invalid_argument("File is not opened"))
    }

    /// Replaces an existing file.
    pub fn open(&mut self, file: PathBuf) -> Result<(), Failure> {
        self.writer = None; // an unfinished table is removed
        review(&self.options, self.ignore_unsupported)?;
        if self.vfs.exists(&file)? {
            self.vfs.remove_file(&file)?;
        }
        self.writer = Some(TableWriter::create(self.vfs.clone(), file, &self.options)?);
        Ok(())
    }

    /// Approximate bytes of the open table, 0 before its first entry; if none is open, of the last one.
    pub fn bytes(&self) -> u64 {
        let so_far = |writer: &TableWriter| if writer.entries() == 0 { 0 } else { writer.estimated_bytes() };
        self.writer.as_ref().map_or(self.finished_bytes, so_far)
    }

    pub fn finish(&mut self) -> Result<(), Failure> {
        let writer = self.writer.take().ok_or_else(|| Failure::invalid_argument("File is not opened"))?;
        self.finished_bytes = writer.finish()?.file_bytes;
        Ok(())
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

    /// Removes an unfinished table.
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
