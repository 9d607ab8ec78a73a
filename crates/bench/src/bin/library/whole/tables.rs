//! Table files to ingest, with entries of every kind.

use std::path::Path;

use super::held::{Answer, Held, path, told};
use super::setup::Setup;
use super::writes::Change;
use crate::library::call::c_bytes;

/// Writes a table file of these changes, whose keys come in order; range deletions may come anywhere.
///
/// # Errors
/// The library's.
pub fn write_table(setup: &Setup, file: &Path, changes: &[Change]) -> Answer<()> {
    let (functions, calls) = (setup.library.functions, setup.library.calls);
    // SAFETY: create functions with their destroy functions; the writer depends on both options.
    let writer = unsafe {
        let environment = Held::new((functions.envoptions_create)(), functions.envoptions_destroy, &[])?;
        let made = (functions.sstfilewriter_create)(environment.at(), setup.options.at());
        Held::new(made, functions.sstfilewriter_destroy, &[&environment, &setup.options])?
    };
    let (name, at) = (path(file), writer.at());
    told(functions, |failed| {
        // SAFETY: a live writer, and a C string alive until the call returns.
        unsafe { (functions.sstfilewriter_open)(at, name.as_ptr(), failed) }
    })?;
    for change in changes {
        told(functions, |failed| {
            // SAFETY: a live writer, and pieces of memory with their lengths.
            unsafe {
                match change {
                    Change::Put(key, value) => {
                        (functions.sstfilewriter_put)(at, c_bytes(key), key.len(), c_bytes(value), value.len(), failed);
                    }
                    Change::Merge(key, value) => {
                        (calls.sstfilewriter_merge)(at, c_bytes(key), key.len(), c_bytes(value), value.len(), failed);
                    }
                    Change::Delete(key) | Change::SingleDelete(key) => {
                        (calls.sstfilewriter_delete)(at, c_bytes(key), key.len(), failed);
                    }
                    Change::DeleteRange(from, to) => {
                        (calls.sstfilewriter_delete_range)(
                            at,
                            c_bytes(from),
                            from.len(),
                            c_bytes(to),
                            to.len(),
                            failed,
                        );
                    }
                }
            }
        })?;
    }
    told(functions, |failed| {
        // SAFETY: a live writer, destroyed only after this.
        unsafe { (functions.sstfilewriter_finish)(at, failed) }
    })
}
