//! Where there are no Unix sockets.

use std::convert::Infallible;
use std::path::Path;
use std::time::Duration;

use base::{Error, Result};

/// A listening socket; there is none here.
#[derive(Debug)]
pub struct LocalListener(Infallible);

/// A connection; there is none here.
#[derive(Debug)]
pub struct LocalStream(Infallible);

fn none<T>() -> Result<T> {
    Err(Error::unsupported("there are no Unix sockets here"))
}

impl LocalListener {
    /// # Errors
    /// `Unsupported`.
    pub fn bind(_path: &Path) -> Result<LocalListener> {
        none()
    }

    /// # Errors
    /// `Unsupported`.
    pub fn accept(&self) -> Result<Option<LocalStream>> {
        match self.0 {}
    }

    /// Does nothing.
    pub fn stop(&self) {}
}

impl LocalStream {
    /// # Errors
    /// `Unsupported`.
    pub fn connect(_path: &Path) -> Result<LocalStream> {
        none()
    }

    /// # Errors
    /// `Unsupported`.
    pub fn read_line(&mut self, _bytes_max: usize, _time: Duration) -> Result<Option<String>> {
        match self.0 {}
    }

    /// # Errors
    /// `Unsupported`.
    pub fn write_line(&mut self, _line: &str, _time: Duration) -> Result<()> {
        match self.0 {}
    }
}
