//! Common to all calls: texts and bytes going in, messages and values coming out.

use std::ffi::{CStr, CString, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use base::{Error, ErrorKind, Result};

use super::table::{Functions, Handle};

/// Makes a fallible call: `call` gets the place for the error message.
#[inline]
pub fn checked<T>(functions: &Functions, name: &str, call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T> {
    let mut message = ptr::null_mut();
    let result = call(&mut message);
    if message.is_null() {
        return Ok(result);
    }
    // SAFETY: `call` passed the place to the library, which stores error messages there only; only unsafe code could store more.
    Err(unsafe { failure(functions, name, message) })
}

/// The error of a message. Frees the message.
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
        Some("Resource busy" | "Operation timed out" | "Operation failed. Try again.") => ErrorKind::Busy,
        _ => ErrorKind::Io,
    };
    Error::new(kind, text).context(format!("rocksdb_{name}"))
}

/// Copies a text allocated by the library, and frees it.
///
/// # Safety
/// `text` is a C string handed over by this library, such as an error message or a property value, and not used afterwards.
pub unsafe fn take_text(functions: &Functions, text: *mut c_char) -> String {
    // SAFETY: the caller's promise; it is read before it is freed.
    unsafe {
        let copy = CStr::from_ptr(text).to_string_lossy().into_owned();
        (functions.free)(text.cast());
        copy
    }
}

/// # Errors
/// `InvalidArgument`: the text contains a zero byte.
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

/// Bytes lent by a handle.
///
/// # Safety
/// `at` points at `length` bytes, unchanged while the object borrowed by `'a` is neither changed nor dropped. It may be null if
/// `length` is 0.
#[inline]
pub unsafe fn lent<'a>(at: *const c_char, length: usize) -> &'a [u8] {
    if at.is_null() {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(at.cast(), length) }
}

/// A handle made by the library, destroyed with its owner.
pub struct Owned {
    at: *mut Handle,
    destroy: unsafe extern "C" fn(*mut Handle),
}

// SAFETY: RocksDB's C API lets option, batch, iterator and writer handles move between threads; none is tied to its creator.
unsafe impl Send for Owned {}
// SAFETY: through a shared `Owned` only options are passed, as const pointers for concurrent reads; handles changed by calls
// (batches, iterators, table writers) are passed by `get_mut`.
unsafe impl Sync for Owned {}

impl Owned {
    /// # Safety
    /// `at` was just returned by a create function, and `destroy` is the matching destroy function.
    ///
    /// # Errors
    /// `Io`: the library returned no handle.
    pub unsafe fn new(at: *mut Handle, destroy: unsafe extern "C" fn(*mut Handle)) -> Result<Owned> {
        if at.is_null() {
            return Err(Error::new(ErrorKind::Io, "the library returned a null handle without a message"));
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
