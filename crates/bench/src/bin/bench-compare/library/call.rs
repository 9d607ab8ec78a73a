//! What all calls have in common: texts and bytes going in, messages and values coming out.

use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use base::{Error, ErrorKind, Result};

use super::table::{Functions, Handle};

/// Makes a call that may fail: `call` gets the place for the message.
#[inline]
pub fn checked<T>(functions: &Functions, name: &str, call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T> {
    let mut message = ptr::null_mut();
    let result = call(&mut message);
    if message.is_null() {
        return Ok(result);
    }
    // SAFETY: `call` passed the place on to the library, which puts nothing else there; only unsafe code could.
    Err(unsafe { failure(functions, name, message) })
}

/// The error that a message stands for; the message is freed.
///
/// # Safety
/// As [`take_text`].
#[cold]
pub unsafe fn failure(functions: &Functions, name: &str, message: *mut c_char) -> Error {
    // SAFETY: the caller's promise.
    let text = unsafe { take_text(functions, message) };
    let kind = match text.split(':').next() {
        Some("Invalid argument") => ErrorKind::InvalidArgument,
        Some("Corruption") => ErrorKind::Corruption,
        Some("Not implemented") => ErrorKind::Unsupported,
        _ => ErrorKind::Io,
    };
    Error::new(kind, text).context(format!("rocksdb_{name}"))
}

/// A text that the library allocated, as our own.
///
/// # Safety
/// `text` is a C string that this library has handed over, as it does with error messages and property values, and nobody uses it
/// afterwards.
pub unsafe fn take_text(functions: &Functions, text: *mut c_char) -> String {
    // SAFETY: the caller's promise; it is read before it is freed.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        (functions.free)(text.cast());
        copy
    }
}

/// # Errors
/// `InvalidArgument`: there is a zero byte in it.
pub fn c_text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::invalid_argument(format!("{text:?} holds a zero byte")))
}

/// # Errors
/// As [`c_text`].
pub fn c_path(path: &Path) -> Result<CString> {
    let bytes = path.as_os_str().as_bytes();
    CString::new(bytes).map_err(|_| Error::invalid_argument("a path holds a zero byte").at_path(path))
}

/// Bytes as the C API takes them, with their number in the next argument.
#[inline]
pub fn c_bytes(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// Bytes that a handle lends.
///
/// # Safety
/// `at` points at `length` bytes that stay as they are while whatever `'a` borrows from is neither changed nor dropped; it may be
/// null where there are none.
#[inline]
pub unsafe fn lent<'a>(at: *const c_char, length: usize) -> &'a [u8] {
    if at.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(at.cast(), length) }
}

/// A handle that the library made, destroyed with its owner.
pub struct Owned {
    at: *mut Handle,
    destroy: unsafe extern "C" fn(*mut Handle),
}

// SAFETY: RocksDB's C API lets option, batch, iterator and writer handles move between threads; none is tied to the one that made it.
unsafe impl Send for Owned {}
// SAFETY: through a shared `Owned` only options are passed, as const pointers that concurrent calls read; handles that calls change
// (batches, iterators, table writers) are passed by `get_mut`.
unsafe impl Sync for Owned {}

impl Owned {
    /// # Safety
    /// `at` is what a create function has just returned, and `destroy` is the function that undoes it.
    ///
    /// # Errors
    /// `Io`: the library returned no handle.
    pub unsafe fn new(at: *mut Handle, destroy: unsafe extern "C" fn(*mut Handle)) -> Result<Owned> {
        if at.is_null() {
            return Err(Error::new(ErrorKind::Io, "the library made no handle and gave no reason"));
        }
        Ok(Owned { at, destroy })
    }

    #[inline]
    pub fn get(&self) -> *const Handle {
        self.at
    }

    #[inline]
    pub fn get_mut(&mut self) -> *mut Handle {
        self.at
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: the promise of `new`; only this destroys it.
        unsafe { (self.destroy)(self.at) }
    }
}
