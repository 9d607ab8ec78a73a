//! Open files. A handle keeps its file alive after the last name is gone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, Result};

use super::content::FileNode;
use super::crash::WriteUnderWay;
use super::window::Window;
use super::{Disk, State};
use crate::{AppendFile, IoClass, RandomFile, SharedFile};

/// A file accessed at positions.
pub(super) struct MemoryFile {
    disk: Arc<Disk>,
    node: Arc<FileNode>,
    path: PathBuf,
}

impl MemoryFile {
    pub(super) fn new(disk: &Arc<Disk>, node: Arc<FileNode>, path: &Path) -> Self {
        MemoryFile { disk: Arc::clone(disk), node, path: path.to_owned() }
    }

    pub(super) fn length(&self) -> u64 {
        self.node.content.lock().len()
    }

    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> usize {
        self.disk.tick();
        self.node.current().read(offset, buf)
    }

    pub(super) fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let mut state = self.disk.state.lock();
        let end = self.checked_end(offset, bytes.len() as u64)?;
        self.check_room("write", &state, end)?;
        let offset = offset as usize;
        let under_way = WriteUnderWay { node: &self.node, offset, bytes };
        let operation = self.disk.begin(&mut state, Some(under_way));
        let mut content = self.node.current();
        content.write(Some(operation), offset, bytes);
        content.modified_us = self.disk.time_us();
        Ok(())
    }

    pub(super) fn sync_content(&self) {
        let mut state = self.disk.state.lock();
        self.disk.begin(&mut state, None);
        self.node.current().sync();
    }

    pub(super) fn set_len(&self, len: u64) -> Result<()> {
        let mut state = self.disk.state.lock();
        let len = self.checked_end(len, 0)?;
        self.check_room("truncate", &state, len)?;
        let operation = self.disk.begin(&mut state, None);
        self.node.current().set_len(Some(operation), len as usize);
        Ok(())
    }

    /// Extends the file to at least `len` bytes.
    pub(super) fn grow(&self, len: u64) -> Result<()> {
        if len > self.length() { self.set_len(len).map_err(|e| e.context("cannot allocate")) } else { Ok(()) }
    }

    /// Opens the file's window: memory with the file's bytes, up to `capacity`, whose stores become the file's. One per
    /// file.
    pub(super) fn open_window(&self, capacity: usize) -> Result<Arc<Window>> {
        self.node.current().open_window(|| Window::new(capacity, &self.path))
    }

    /// Closes the window. Later stores are lost.
    pub(super) fn close_window(&self) {
        self.node.current().close_window();
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// `offset + len`; an error if beyond the limit of a file in memory.
    fn checked_end(&self, offset: u64, len: u64) -> Result<u64> {
        let end = offset.checked_add(len).filter(|&end| end <= isize::MAX as u64);
        end.ok_or_else(|| Error::invalid_argument("beyond what a file can hold").at_path(&self.path).at_offset(offset))
    }

    fn check_room(&self, doing: &str, state: &State, end: u64) -> Result<()> {
        if state.has_room_for(end.saturating_sub(self.length())) {
            return Ok(());
        }
        Err(Error::io(doing, &self.path, std::io::ErrorKind::StorageFull.into()))
    }
}

impl RandomFile for MemoryFile {
    fn read_at(&self, offset: u64, buf: &mut [u8], _class: IoClass) -> Result<usize> {
        Ok(self.read(offset, buf))
    }

    fn len(&self) -> Result<u64> {
        Ok(self.length())
    }
}

impl SharedFile for MemoryFile {
    fn write_at(&self, offset: u64, bytes: &[u8], _class: IoClass) -> Result<()> {
        self.write(offset, bytes)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8], _class: IoClass) -> Result<usize> {
        Ok(self.read(offset, buf))
    }

    fn sync(&self, _class: IoClass) -> Result<()> {
        self.sync_content();
        Ok(())
    }

    fn allocate(&self, offset: u64, len: u64, _class: IoClass) -> Result<()> {
        if len == 0 { Ok(()) } else { self.grow(self.checked_end(offset, len)?) }
    }

    fn len(&self) -> Result<u64> {
        Ok(self.length())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.set_len(len)
    }
}

/// An append-only file with one writer.
pub(super) struct MemoryAppendFile {
    file: MemoryFile,
    len: u64,
}

impl MemoryAppendFile {
    pub(super) fn new(file: MemoryFile) -> Self {
        MemoryAppendFile { len: file.length(), file }
    }
}

impl AppendFile for MemoryAppendFile {
    fn append(&mut self, bytes: &[u8], _class: IoClass) -> Result<()> {
        self.file.write(self.len, bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn sync(&mut self, _class: IoClass) -> Result<()> {
        self.file.sync_content();
        Ok(())
    }
}
