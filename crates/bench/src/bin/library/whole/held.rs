//! Handles, and what calls have in common.

use std::ffi::{CString, c_char};
use std::path::Path;
use std::ptr;
use std::rc::Rc;

use crate::library::Functions;
use crate::library::call::{lent, take_text};
use crate::library::table::Handle;

/// What a call yields, or the library's message.
pub type Answer<T> = Result<T, String>;

/// A counted handle.
pub type Counted = Rc<Held>;

/// A handle, what ends it, and what must outlive it.
pub struct Held {
    at: *mut Handle,
    destroy: unsafe extern "C" fn(*mut Handle),
    _keeps: Vec<Counted>,
}

impl Held {
    /// # Safety
    /// `at` was just returned by a function that makes it, `destroy` is the matching one that ends it, and the handle depends on
    /// nothing but `keeps`.
    pub unsafe fn new(
        at: *mut Handle,
        destroy: unsafe extern "C" fn(*mut Handle),
        keeps: &[&Counted],
    ) -> Answer<Counted> {
        if at.is_null() {
            return Err("the library returned a null handle without a message".to_owned());
        }
        let keeps = keeps.iter().map(|&kept| Rc::clone(kept)).collect();
        Ok(Rc::new(Held { at, destroy, _keeps: keeps }))
    }

    pub fn at(&self) -> *mut Handle {
        self.at
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the promise of `new`; nothing that depends on the handle is left, since it would keep this.
        unsafe { (self.destroy)(self.at) }
    }
}

/// Makes a fallible call: `call` gets the place for the error message.
pub fn told<T>(functions: &Functions, call: impl FnOnce(*mut *mut c_char) -> T) -> Answer<T> {
    let mut message = ptr::null_mut();
    let result = call(&mut message);
    if message.is_null() {
        return Ok(result);
    }
    // SAFETY: `call` passed the place to the library, which stores error messages there only.
    Err(unsafe { take_text(functions, message) })
}

/// Copies a value allocated by the library, and frees it. `None` for null.
///
/// # Safety
/// `at` is null or points at `length` bytes handed over by this library, and is not used afterwards.
pub unsafe fn taken(functions: &Functions, at: *mut c_char, length: usize) -> Option<Vec<u8>> {
    if at.is_null() {
        return None;
    }
    // SAFETY: the caller's promise; they are read before they are freed.
    unsafe {
        let copy = lent(at, length).to_vec();
        (functions.free)(at.cast());
        Some(copy)
    }
}

/// Copies a pinned value, and destroys its handle. `None` for null.
///
/// # Safety
/// `at` is null or a pinned value made by this library, and is not used afterwards.
pub unsafe fn unpinned(functions: &Functions, at: *mut Handle) -> Option<Vec<u8>> {
    if at.is_null() {
        return None;
    }
    let mut length = 0;
    // SAFETY: the caller's promise; the bytes are read before they are destroyed.
    unsafe {
        let value = (functions.pinnableslice_value)(at, &mut length);
        let copy = lent(value, length).to_vec();
        (functions.pinnableslice_destroy)(at);
        Some(copy)
    }
}

pub fn text(text: &str) -> CString {
    CString::new(text).expect("names and options hold no zero byte")
}

pub fn path(path: &Path) -> CString {
    crate::library::call::c_path(path).expect("paths hold no zero byte")
}
