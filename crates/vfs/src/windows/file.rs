//! Files accessed at positions or appended to. No buffering: every call here is a system call.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::windows::fs::FileExt;
use std::path::{Path, PathBuf};

use base::{Error, ErrorKind, Result};

use super::os_error;
use crate::{AppendFile, IoClass, RandomFile, ReadMapping, SharedFile};

/// A file accessed at positions, read-only or read-write.
pub(super) struct RealFile {
    file: File,
    path: PathBuf,
}

impl RealFile {
    /// # Errors
    /// `InvalidArgument` unless `path` is a regular file.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|e| os_error("open", path, e))?;
        if !file.metadata().map_err(|e| os_error("examine", path, e))?.is_file() {
            return Err(Error::new(ErrorKind::InvalidArgument, "not a regular file").at_path(path));
        }
        Ok(RealFile { file, path: path.to_owned() })
    }

    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path);
        Ok(RealFile { file: file.map_err(|e| os_error("create", path, e))?, path: path.to_owned() })
    }

    fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while let Some(rest) = buf.get_mut(filled..)
            && !rest.is_empty()
        {
            let at = offset + filled as u64;
            match self.file.seek_read(rest, at) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(os_error("read", &self.path, e).at_offset(at)),
            }
        }
        Ok(filled)
    }

    fn bytes(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(|e| os_error("examine", &self.path, e))?.len())
    }
}

impl RandomFile for RealFile {
    fn read_at(&self, offset: u64, buf: &mut [u8], _class: IoClass) -> Result<usize> {
        self.read(offset, buf)
    }

    fn len(&self) -> Result<u64> {
        self.bytes()
    }
}

impl SharedFile for RealFile {
    fn write_at(&self, offset: u64, bytes: &[u8], _class: IoClass) -> Result<()> {
        write_all(&self.file, offset, bytes).map_err(|(e, at)| os_error("write", &self.path, e).at_offset(at))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8], _class: IoClass) -> Result<usize> {
        self.read(offset, buf)
    }

    fn sync(&self, _class: IoClass) -> Result<()> {
        self.file.sync_data().map_err(|e| os_error("sync", &self.path, e))
    }

    /// NTFS allocates the clusters of a longer file, unless it is sparse or compressed.
    fn allocate(&self, offset: u64, len: u64, _class: IoClass) -> Result<()> {
        let end = offset.saturating_add(len);
        if end <= self.bytes()? {
            return Ok(());
        }
        self.file.set_len(end).map_err(|e| os_error("allocate", &self.path, e).at_offset(offset))
    }

    fn len(&self) -> Result<u64> {
        self.bytes()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|e| os_error("truncate", &self.path, e))
    }
}

/// An append-only file with one writer.
pub(super) struct RealAppendFile {
    file: File,
    path: PathBuf,
    /// Offset of the next byte. Includes the written part of a failed append.
    len: u64,
}

impl RealAppendFile {
    pub(super) fn new(file: File, path: &Path, len: u64) -> Self {
        RealAppendFile { file, path: path.to_owned(), len }
    }
}

impl AppendFile for RealAppendFile {
    fn append(&mut self, bytes: &[u8], _class: IoClass) -> Result<()> {
        let written = write_all(&self.file, self.len, bytes);
        self.len = written.as_ref().map_or_else(|(_, reached)| *reached, |()| self.len + bytes.len() as u64);
        written.map_err(|(e, reached)| os_error("append", &self.path, e).at_offset(reached))
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn sync(&mut self, _class: IoClass) -> Result<()> {
        self.file.sync_data().map_err(|e| os_error("sync", &self.path, e))
    }
}

/// Writes everything. An error carries the offset reached.
fn write_all(file: &File, offset: u64, bytes: &[u8]) -> Result<(), (io::Error, u64)> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..)
        && !rest.is_empty()
    {
        let at = offset + written as u64;
        match file.seek_write(rest, at) {
            Ok(0) => return Err((io::ErrorKind::WriteZero.into(), at)),
            Ok(count) => written += count,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err((e, at)),
        }
    }
    Ok(())
}

/// In place of a mapping: the file's bytes.
pub(super) struct WholeFile(Vec<u8>);

impl WholeFile {
    pub(super) fn read(path: &Path) -> Result<WholeFile> {
        let file = RealFile::open(path)?;
        let len = usize::try_from(file.bytes()?)
            .map_err(|e| Error::unsupported("too large to map").at_path(path).with_source(e))?;
        let mut bytes = vec![0; len];
        let read = file.read(0, &mut bytes)?;
        bytes.truncate(read);
        Ok(WholeFile(bytes))
    }
}

impl AsRef<[u8]> for WholeFile {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl ReadMapping for WholeFile {}
