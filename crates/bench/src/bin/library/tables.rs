//! Table files to ingest, made outside databases.

use std::path::Path;

use base::Result;

use super::Options;
use super::call::{Owned, c_bytes, c_path, checked};
use super::table::Functions;

/// A table file in the making. Keys come in order.
pub struct TableFile<'a> {
    functions: &'static Functions,
    writer: Owned,
    /// Kept alive: the writer may still read it.
    _environment: Owned,
    _options: &'a Options,
}

impl<'a> TableFile<'a> {
    /// # Errors
    /// `Io`: the file cannot be made.
    pub fn create(options: &'a Options, path: &Path) -> Result<TableFile<'a>> {
        let functions = options.functions;
        // SAFETY: a create function without arguments, and its destroy function.
        let environment = unsafe { Owned::new((functions.envoptions_create)(), functions.envoptions_destroy) }?;
        // SAFETY: both handles outlive the writer, since this value holds one and borrows one; and its destroy function.
        let mut writer = unsafe {
            let made = (functions.sstfilewriter_create)(environment.get(), options.handle.get());
            Owned::new(made, functions.sstfilewriter_destroy)
        }?;
        let (name, at) = (c_path(path)?, writer.get_mut());
        checked(functions, "sstfilewriter_open", |failed| {
            // SAFETY: a live writer, and a C string alive until the call returns.
            unsafe { (functions.sstfilewriter_open)(at, name.as_ptr(), failed) }
        })?;
        Ok(TableFile { functions, writer, _environment: environment, _options: options })
    }

    /// # Errors
    /// `InvalidArgument`: the key does not come after the last. `Io`: the file system failed.
    #[inline]
    pub fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        let (functions, at) = (self.functions, self.writer.get_mut());
        checked(functions, "sstfilewriter_put", |failed| {
            // SAFETY: a live writer, used by no other thread (`&mut self`), and two pieces of memory with their lengths.
            unsafe {
                (functions.sstfilewriter_put)(at, c_bytes(key), key.len(), c_bytes(value), value.len(), failed);
            }
        })
    }

    /// # Errors
    /// `InvalidArgument`: nothing was put. `Io`: the file system failed.
    pub fn finish(mut self) -> Result<()> {
        let (functions, at) = (self.functions, self.writer.get_mut());
        checked(functions, "sstfilewriter_finish", |failed| {
            // SAFETY: a live writer, destroyed only after this.
            unsafe { (functions.sstfilewriter_finish)(at, failed) }
        })
    }
}
