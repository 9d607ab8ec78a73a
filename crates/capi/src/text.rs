//! C's text as Rust's.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::failure::Failure;

/// Names and option strings are UTF-8.
pub fn utf8(text: &CStr) -> Result<&str, Failure> {
    text.to_str().map_err(|_| Failure::invalid_argument(format!("{text:?} is not UTF-8")))
}

/// Paths are arbitrary bytes.
pub fn path(text: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(text.to_bytes()))
}
