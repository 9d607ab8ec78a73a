//! One error type for every layer. Kinds follow the caller's remedy, not the origin.

use std::error::Error as StdError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Error kinds by remedy. Absence of a key is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// The call itself is wrong; change it.
    InvalidArgument,
    /// Stored bytes are damaged; restore the file named in the error.
    Corruption,
    /// The file system failed.
    Io,
    /// The disk, or a quota, is full; free space and go on.
    NoSpace,
    /// A concurrent write came first; try again.
    Conflict,
    /// Something is in use (a lock, a file); try again when it is free.
    Busy,
    /// The database no longer accepts writes; the message says why and how to go on.
    ReadOnly,
    /// The database or the family is closed or dropped.
    Closed,
    /// Well-formed, but not supported by this version.
    Unsupported,
}

/// An error: kind, message and, if known, the file, the offset in it, and the cause.
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    offset: Option<u64>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, message: message.into(), path: None, offset: None, source: None }))
    }

    #[cold]
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    #[cold]
    pub fn corruption(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corruption, message)
    }

    #[cold]
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Busy, message)
    }

    #[cold]
    pub fn read_only(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::ReadOnly, message)
    }

    #[cold]
    pub fn closed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Closed, message)
    }

    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// A file system error; `doing` names the attempt ("write", "sync", "open for reading").
    #[cold]
    pub fn io(doing: &str, path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        let kind = match source.kind() {
            K::StorageFull | K::QuotaExceeded | K::FileTooLarge => ErrorKind::NoSpace,
            _ => ErrorKind::Io,
        };
        Self::new(kind, format!("cannot {doing}")).at_path(path).with_source(source)
    }

    #[cold]
    #[must_use]
    pub fn at_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.0.path.get_or_insert_with(|| path.into());
        self
    }

    /// Adds the byte offset of the damage in the file.
    #[cold]
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.0.offset.get_or_insert(offset);
        self
    }

    /// Adds the record being read: its file and byte offset. If the error already names another file, its path stays
    /// and the record goes in front of the message. A `NoSpace` error on another file stays unchanged.
    #[cold]
    #[must_use]
    pub fn at_record(self, path: &Path, offset: u64) -> Self {
        match self.path() {
            Some(other) if other != path && self.kind() == ErrorKind::NoSpace => self,
            Some(other) if other != path => self.context(format!("the record at byte {offset} of {}", path.display())),
            _ => self.at_path(path).at_offset(offset),
        }
    }

    #[cold]
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Arc::new(source));
        self
    }

    /// Puts `context` in front of the message ("while replaying the log: ...").
    #[cold]
    #[must_use]
    pub fn context(mut self, context: impl fmt::Display) -> Self {
        self.0.message = format!("{context}: {}", self.0.message);
        self
    }

    /// Appends advice to the message.
    #[cold]
    #[must_use]
    pub fn advise(mut self, advice: impl fmt::Display) -> Self {
        self.0.message = format!("{}; {advice}", self.0.message);
        self
    }

    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    pub fn message(&self) -> &str {
        &self.0.message
    }

    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    /// True if the file system reported the file as not found.
    pub fn is_not_found(&self) -> bool {
        let source = self.0.source.as_ref().and_then(|s| s.downcast_ref::<std::io::Error>());
        source.is_some_and(|e| e.kind() == std::io::ErrorKind::NotFound)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        if let Some(path) = &self.0.path {
            write!(f, " ({}", path.display())?;
            if let Some(offset) = self.0.offset {
                write!(f, " at byte {offset}")?;
            }
            f.write_str(")")?;
        }
        if let Some(source) = &self.0.source {
            write!(f, ": {source}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|s| s as &(dyn StdError + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_file_offset_and_cause() {
        let cause = std::io::Error::from(std::io::ErrorKind::StorageFull);
        let error = Error::io("write", Path::new("/db/000012.sst"), cause).at_offset(4096);
        assert_eq!(error.kind(), ErrorKind::NoSpace);
        assert!(error.to_string().starts_with("cannot write (/db/000012.sst at byte 4096): "));
    }

    #[test]
    fn the_innermost_path_stands() {
        let error = Error::corruption("bad block").at_path("a.sst").at_path("b.sst").context("while reading");
        assert_eq!(error.to_string(), "while reading: bad block (a.sst)");
    }

    #[test]
    fn an_offset_is_one_in_the_file_that_is_named() {
        let at_record = |error: Error| error.at_record(Path::new("a.log"), 64).to_string();
        assert_eq!(at_record(Error::corruption("bad")), "bad (a.log at byte 64)");
        assert_eq!(at_record(Error::corruption("bad").at_path("a.log")), "bad (a.log at byte 64)");
        assert_eq!(at_record(Error::corruption("bad").at_path("b.sst")), "the record at byte 64 of a.log: bad (b.sst)");
        let full = Error::new(ErrorKind::NoSpace, "cannot append").at_path("b.sst");
        assert_eq!(at_record(full), "cannot append (b.sst)", "the record has no part in it");
    }
}
