//! One error type for every layer. Kinds follow the caller's remedy, not the origin.

use std::error::Error as StdError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A result with Spillway's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What a caller can do about an [`Error`]. Absence of a key is not an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The call itself is wrong; change it.
    InvalidArgument,
    /// Stored bytes are damaged; restore the file named in the error.
    Corruption,
    /// The file system failed.
    Io,
    /// The disk, or a quota, is full; free space and go on.
    NoSpace,
    /// A concurrent write came first: run the transaction again.
    Conflict,
    /// Something is in use (a lock, a file); try again when it is free.
    Busy,
    /// The database no longer accepts writes; the message says why and how to go on.
    ReadOnly,
    /// The database or the family is closed or dropped.
    Closed,
    /// Well-formed, but not supported by this version.
    Unsupported,
    /// The answer needs a file, and the call was limited to memory; repeat it without that limit.
    Incomplete,
    /// A wait reached its time limit; try again, or roll back so that others go on.
    TimedOut,
    /// Transactions wait for each other; roll this one back and run it again.
    Deadlock,
    /// The transaction took longer than it may, and its locks are lost; roll it back and run it again.
    Expired,
    /// Memory set aside is in use; release iterators, or give more.
    MemoryLimit,
    /// Changes that were asked for are not in the log, or not any more; copy the database anew.
    NotLogged,
}

/// An error: kind, message and, if known, the file, the offset in it, and the cause.
///
/// [`kind`](Self::kind) is what a program decides by; the text is for people. `Display` prints all of it but the kind.
/// A clone is an allocation; the type is one pointer wide.
///
/// ```
/// # use spillway_db_base::{Error, ErrorKind};
/// fn is_worth_another_try(error: &Error) -> bool {
///     matches!(error.kind(), ErrorKind::Busy | ErrorKind::Conflict | ErrorKind::NoSpace)
/// }
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

/// EIO, ENODATA, EBADMSG and EUCLEAN.
#[cfg(target_os = "linux")]
const READ_FAILURES: [i32; 4] = [5, 61, 74, 117];
/// EIO.
#[cfg(not(any(target_os = "linux", windows)))]
const READ_FAILURES: [i32; 1] = [5];
/// `ERROR_CRC`, `ERROR_SECTOR_NOT_FOUND`, `ERROR_READ_FAULT` and `ERROR_IO_DEVICE`.
#[cfg(windows)]
const READ_FAILURES: [i32; 4] = [23, 27, 30, 1117];

/// What helps against a lack of something, by the system's code of it.
#[cfg(not(windows))]
const REMEDIES: [(i32, &str); 5] = [
    (24, DESCRIPTORS),
    (23, "the system has all the open files that it may have: raise fs.file-max, or close programs"),
    (NO_MEMORY, MEMORY),
    (28, "make room in this file system"),
    (
        27,
        "a file may not become larger here: raise the limit (`ulimit -f`), or lower write_buffer_size, max_total_wal_size \
          and target_file_size_base",
    ),
];
#[cfg(windows)]
const REMEDIES: [(i32, &str); 4] =
    [(4, DESCRIPTORS), (NO_MEMORY, MEMORY), (14, MEMORY), (112, "make room in this file system")];

/// ENOMEM, `ERROR_NOT_ENOUGH_MEMORY`.
const NO_MEMORY: i32 = if cfg!(windows) { 8 } else { 12 };

const DESCRIPTORS: &str = "the process has all the open files that it may have: raise its limit (`ulimit -n`, LimitNOFILE= of \
                           systemd), or lower max_open_files";
const MEMORY: &str = "the process gets no more memory: raise its limit (`ulimit -v`, the container's memory, vm.max_map_count), or \
                      lower the block cache and write_buffer_size";

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    message: String,
    path: Option<PathBuf>,
    offset: Option<u64>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

impl Error {
    /// What the caller can do about it.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What happened, without file, offset and cause. For people: it may change.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The file or directory, if known.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// The byte offset in the file, if known.
    pub fn offset(&self) -> Option<u64> {
        self.0.offset
    }

    fn io_source(&self) -> Option<&std::io::Error> {
        self.0.source.as_ref()?.downcast_ref()
    }

    /// True if the file system reported the file as not found.
    pub fn is_not_found(&self) -> bool {
        self.io_source().is_some_and(|e| e.kind() == std::io::ErrorKind::NotFound)
    }

    /// True if space, descriptors or memory lack, or a file has the largest size that it may have: the same call succeeds once there is some.
    pub fn is_lack(&self) -> bool {
        let is_known = |code| REMEDIES.iter().any(|(lack, _)| *lack == code);
        self.kind() == ErrorKind::NoSpace
            || self.io_source().and_then(std::io::Error::raw_os_error).is_some_and(is_known)
    }

    /// True if the storage cannot return bytes that it holds, as of a bad sector. Reading them again fails again.
    pub fn is_read_failure(&self) -> bool {
        let code = self.io_source().and_then(std::io::Error::raw_os_error);
        code.is_some_and(|code| READ_FAILURES.contains(&code))
    }

    /// An error of a kind.
    #[cold]
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Error(Box::new(Inner { kind, message: message.into(), path: None, offset: None, source: None }))
    }
}

/// Making errors: for the engine.
#[doc(hidden)]
impl Error {
    /// An error of kind `InvalidArgument`.
    #[cold]
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument, message)
    }

    /// An error of kind `Corruption`.
    #[cold]
    pub fn corruption(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Corruption, message)
    }

    /// An error of kind `Busy`.
    #[cold]
    pub fn busy(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Busy, message)
    }

    /// An error of kind `ReadOnly`.
    #[cold]
    pub fn read_only(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::ReadOnly, message)
    }

    /// An error of kind `Closed`.
    #[cold]
    pub fn closed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Closed, message)
    }

    /// An error of kind `Unsupported`.
    #[cold]
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// An error of kind `Incomplete`.
    #[cold]
    pub fn incomplete(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Incomplete, message)
    }

    /// A file system error; `doing` names the attempt ("write", "sync", "open for reading").
    #[cold]
    pub fn io(doing: &str, path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind as K;
        let kind = match source.kind() {
            K::StorageFull | K::QuotaExceeded => ErrorKind::NoSpace,
            _ => ErrorKind::Io,
        };
        let remedy = REMEDIES.iter().find(|(code, _)| source.raw_os_error() == Some(*code));
        let error = Self::new(kind, format!("cannot {doing}")).at_path(path).with_source(source);
        match remedy {
            Some((_, remedy)) => error.advise(remedy),
            None => error,
        }
    }

    /// Memory that cannot be had.
    #[cold]
    pub fn no_memory(what: impl Into<String>) -> Self {
        let source = std::io::Error::from_raw_os_error(NO_MEMORY);
        Self::new(ErrorKind::Io, what).with_source(source).advise(MEMORY)
    }

    /// Adds the file, unless there is one already.
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

    /// Adds the cause.
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
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        // RocksDB's words name the file themselves.
        let is_named = |path: &str| [" in ", ": "].iter().any(|word| self.0.message.contains(&format!("{word}{path}")));
        let path = self.0.path.as_ref().map(|path| path.display().to_string());
        if let Some(path) = path.filter(|path| path.is_empty() || !is_named(path)) {
            write!(f, " ({path}")?;
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

    #[cfg(unix)]
    #[test]
    fn a_lack_of_descriptors_and_memory_says_what_helps() {
        for (code, remedy) in [(24, "`ulimit -n`"), (23, "fs.file-max"), (12, "`ulimit -v`")] {
            let error = Error::io("open", Path::new("/db/000012.sst"), std::io::Error::from_raw_os_error(code));
            assert!(error.is_lack() && error.kind() == ErrorKind::Io && error.to_string().contains(remedy), "{error}");
        }
        let other = Error::io("open", Path::new("/db/000012.sst"), std::io::Error::from_raw_os_error(5));
        assert!(!other.is_lack() && other.to_string().starts_with("cannot open (/db/000012.sst): "), "{other}");
    }

    #[test]
    fn a_path_in_the_message_is_not_told_again() {
        let error = Error::corruption("found 7 in /db/000012.sst").at_path("/db/000012.sst").advise("restore it");
        assert_eq!(error.to_string(), "found 7 in /db/000012.sst; restore it");
        let other = Error::corruption("found 7").at_path("7");
        assert_eq!(other.to_string(), "found 7 (7)");
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
