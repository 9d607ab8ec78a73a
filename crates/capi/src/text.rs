//! C's text as Rust's.

use std::borrow::Cow;
use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use spillway::internal::name;

/// Names and option strings are arbitrary bytes, too.
pub fn text(text: &CStr) -> Cow<'_, str> {
    name::text(text.to_bytes())
}

/// Paths are arbitrary bytes.
pub fn path(text: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(text.to_bytes()))
}
