//! The table of a library's C functions, with RocksDB's names and signatures.

use std::ffi::{c_char, c_int, c_uchar, c_void};
use std::path::Path;

use base::{Error, Result};
use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};

/// A handle: only ever held by pointer.
pub type Handle = c_void;
pub(super) type Text = *const c_char;
pub(super) type Bytes = *const c_char;
/// The place for an error message, to be freed with `free`; unchanged on success.
pub(super) type Failure = *mut *mut c_char;
pub(super) type Flag = c_uchar;

macro_rules! functions {
    ($table:ident: $($functions:tt)+) => {
        $crate::library::table::functions! { $table, "rocksdb_": $($functions)+ }
    };
    (
        $table:ident, $prefix:literal:
        $( $name:ident($($argument:ty),*) $(-> $result:ty)?; )+
    ) => {
        /// Functions of one library. The library stays loaded until the process ends.
        #[allow(non_snake_case, reason = "RocksDB's names")]
        pub struct $table {
            $( pub $name: unsafe extern "C" fn($($argument),*) $(-> $result)?, )+
        }

        #[allow(non_snake_case, reason = "RocksDB's names")]
        impl $table {
            fn look_up(
                library: &libloading::os::unix::Library,
                missing: &mut Vec<&'static str>,
            ) -> Option<$table> {
                // SAFETY: the signatures in the table are from RocksDB's `c.h`.
                unsafe {
                    $( let $name = $crate::library::table::find(library, concat!($prefix, stringify!($name)), missing); )+
                    Some($table {
                        $( $name: $name?, )+
                    })
                }
            }

            /// Loads a library, and never unloads it.
            ///
            /// # Errors
            /// `Unsupported`: the library cannot be loaded, or lacks functions; the message names them all.
            pub fn load(path: &std::path::Path) -> base::Result<&'static $table> {
                $crate::library::table::load(path, $table::look_up)
            }
        }
    };
}
pub(super) use functions;

functions! {
    Functions:
    options_create() -> *mut Handle;
    options_destroy(*mut Handle);
    options_set_env(*mut Handle, *mut Handle);
    create_mem_env() -> *mut Handle;
    env_destroy(*mut Handle);
    get_options_from_string(*const Handle, Text, *mut Handle, Failure);
    open_column_families(
        *const Handle, Text, c_int, *const Text, *const *const Handle, *mut *mut Handle, Failure
    ) -> *mut Handle;
    column_family_handle_destroy(*mut Handle);
    close(*mut Handle);
    writeoptions_create() -> *mut Handle;
    writeoptions_destroy(*mut Handle);
    writeoptions_set_sync(*mut Handle, Flag);
    readoptions_create() -> *mut Handle;
    readoptions_destroy(*mut Handle);
    readoptions_set_verify_checksums(*mut Handle, Flag);
    put(*mut Handle, *const Handle, Bytes, usize, Bytes, usize, Failure);
    write(*mut Handle, *const Handle, *mut Handle, Failure);
    writebatch_create() -> *mut Handle;
    writebatch_destroy(*mut Handle);
    writebatch_clear(*mut Handle);
    writebatch_put(*mut Handle, Bytes, usize, Bytes, usize);
    writebatch_delete(*mut Handle, Bytes, usize);
    get_pinned(*mut Handle, *const Handle, Bytes, usize, Failure) -> *mut Handle;
    pinnableslice_value(*const Handle, *mut usize) -> Bytes;
    pinnableslice_destroy(*mut Handle);
    batched_multi_get_cf(
        *mut Handle, *const Handle, *mut Handle, usize, *const Bytes, *const usize, *mut *mut Handle,
        *mut *mut c_char, bool
    );
    create_iterator(*mut Handle, *const Handle) -> *mut Handle;
    iter_destroy(*mut Handle);
    iter_valid(*const Handle) -> Flag;
    iter_seek_to_first(*mut Handle);
    iter_seek_to_last(*mut Handle);
    iter_seek(*mut Handle, Bytes, usize);
    iter_next(*mut Handle);
    iter_prev(*mut Handle);
    iter_key(*const Handle, *mut usize) -> Bytes;
    iter_value(*const Handle, *mut usize) -> Bytes;
    iter_get_error(*const Handle, Failure);
    flushoptions_create() -> *mut Handle;
    flushoptions_destroy(*mut Handle);
    flushoptions_set_wait(*mut Handle, Flag);
    flush(*mut Handle, *const Handle, Failure);
    flush_wal(*mut Handle, Flag, Failure);
    compact_range(*mut Handle, Bytes, usize, Bytes, usize);
    property_value(*mut Handle, Text) -> *mut c_char;
    property_int(*mut Handle, Text, *mut u64) -> c_int;
    ingestexternalfileoptions_create() -> *mut Handle;
    ingestexternalfileoptions_destroy(*mut Handle);
    ingestexternalfileoptions_set_allow_blocking_flush(*mut Handle, Flag);
    ingestexternalfileoptions_set_move_files(*mut Handle, Flag);
    ingest_external_file(*mut Handle, *const Text, usize, *const Handle, Failure);
    envoptions_create() -> *mut Handle;
    envoptions_destroy(*mut Handle);
    sstfilewriter_create(*const Handle, *const Handle) -> *mut Handle;
    sstfilewriter_open(*mut Handle, Text, Failure);
    sstfilewriter_put(*mut Handle, Bytes, usize, Bytes, usize, Failure);
    sstfilewriter_finish(*mut Handle, Failure);
    sstfilewriter_destroy(*mut Handle);
    transactiondb_options_create() -> *mut Handle;
    transactiondb_options_destroy(*mut Handle);
    transactiondb_open(*const Handle, *const Handle, Text, Failure) -> *mut Handle;
    transactiondb_close(*mut Handle);
    transaction_options_create() -> *mut Handle;
    transaction_options_destroy(*mut Handle);
    transaction_options_set_deadlock_detect(*mut Handle, Flag);
    transaction_begin(*mut Handle, *const Handle, *const Handle, *mut Handle) -> *mut Handle;
    optimistictransactiondb_open(*const Handle, Text, Failure) -> *mut Handle;
    optimistictransactiondb_close(*mut Handle);
    optimistictransaction_options_create() -> *mut Handle;
    optimistictransaction_options_destroy(*mut Handle);
    optimistictransaction_begin(*mut Handle, *const Handle, *const Handle, *mut Handle) -> *mut Handle;
    transaction_put(*mut Handle, Bytes, usize, Bytes, usize, Failure);
    transaction_commit(*mut Handle, Failure);
    transaction_rollback(*mut Handle, Failure);
    transaction_destroy(*mut Handle);
    writebatch_wi_create(usize, Flag) -> *mut Handle;
    writebatch_wi_destroy(*mut Handle);
    writebatch_wi_clear(*mut Handle);
    writebatch_wi_put(*mut Handle, Bytes, usize, Bytes, usize);
    writebatch_wi_get_from_batch(*mut Handle, *const Handle, Bytes, usize, *mut usize, Failure) -> *mut c_char;
    free(*mut c_void);
}

functions! {
    Own, "spillway_":
    ingestexternalfileoptions_set_mode(*mut Handle, Text, Failure);
}

/// Loads a library, and never unloads it.
pub(super) fn load<T>(
    path: &Path,
    look_up: impl FnOnce(&Library, &mut Vec<&'static str>) -> Option<T>,
) -> Result<&'static T> {
    // SAFETY: initialisers of a shared library run here. The user named this file as a database library to load, and the library
    // promises safe initialisers to every program.
    let loaded = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) };
    let library = loaded.map_err(|e| Error::unsupported(format!("cannot be loaded: {e}")).at_path(path))?;
    let mut missing = Vec::new();
    let Some(functions) = look_up(&library, &mut missing) else {
        let message = format!("lacks {}: not a library with RocksDB's C API", missing.join(", "));
        return Err(Error::unsupported(message).at_path(path));
    };
    // Never closed: pointers into it and threads of its own could outlive it.
    std::mem::forget(library);
    Ok(Box::leak(Box::new(functions)))
}

/// A function of the library as a pointer of the type given in the table.
///
/// # Safety
/// `F` is the type of a pointer to the function of this name. The library is never closed.
pub(super) unsafe fn find<F: Copy>(
    library: &Library,
    name: &'static str,
    missing: &mut Vec<&'static str>,
) -> Option<F> {
    // SAFETY: the caller's promise.
    let symbol = unsafe { library.get::<F>(name.as_bytes()) };
    match symbol {
        Ok(symbol) => Some(*symbol),
        Err(_) => {
            missing.push(name);
            None
        }
    }
}
