//! In place of memory beside a file: only Linux has unnamed files in memory.

use std::path::Path;
use std::ptr::NonNull;

use base::{Error, Result};

/// There is none.
pub(super) enum Window {}

impl Window {
    /// # Errors
    /// `Unsupported`.
    pub(super) fn new(_len: usize, path: &Path) -> Result<Window> {
        Err(Error::unsupported("no address of a mapped file").at_path(path))
    }

    pub(super) fn base(&self) -> NonNull<u8> {
        match *self {}
    }

    pub(super) fn len(&self) -> usize {
        match *self {}
    }

    pub(super) fn read(&self, _offset: usize, _buf: &mut [u8]) {
        match *self {}
    }

    pub(super) fn write(&self, _offset: usize, _bytes: &[u8]) {
        match *self {}
    }
}
