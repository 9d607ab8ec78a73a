//! Handles that consult the script before each call.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base::Result;

use super::{Faults, Operation};
use crate::{AppendFile, IoClass, MappedMemory, RandomFile, RwMapping, SharedFile};

/// A handle `F` of the wrapped file system.
pub(super) struct FaultHandle<F> {
    inner: F,
    faults: Arc<Faults>,
    path: PathBuf,
    /// A sync failed: the unsynced bytes are lost for good.
    lost: AtomicBool,
}

impl<F> FaultHandle<F> {
    pub(super) fn new(inner: F, faults: &Arc<Faults>, path: &Path) -> Self {
        FaultHandle { inner, faults: Arc::clone(faults), path: path.to_owned(), lost: AtomicBool::new(false) }
    }
}

impl RandomFile for FaultHandle<Arc<dyn RandomFile>> {
    fn read_at(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize> {
        self.faults.read(class, &self.path, offset, buf, |buf| self.inner.read_at(offset, buf, class))
    }

    fn len(&self) -> Result<u64> {
        self.faults.call(Operation::Metadata, None, &self.path, || self.inner.len())
    }

    fn prefetch(&self, offset: u64, len: u64) {
        self.inner.prefetch(offset, len);
    }

    fn expect_random(&self) {
        self.inner.expect_random();
    }
}

impl AppendFile for FaultHandle<Box<dyn AppendFile>> {
    fn append(&mut self, bytes: &[u8], class: IoClass) -> Result<()> {
        self.faults.write(class, &self.path, bytes, |bytes| self.inner.append(bytes, class))
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn sync(&mut self, class: IoClass) -> Result<()> {
        self.faults.sync(class, &self.path, &self.lost, || self.inner.sync(class))
    }

    fn start_writeback(&mut self, class: IoClass) {
        self.inner.start_writeback(class);
    }

    fn write_back(&mut self, class: IoClass) {
        self.inner.write_back(class);
    }
}

impl SharedFile for FaultHandle<Arc<dyn SharedFile>> {
    fn write_at(&self, offset: u64, bytes: &[u8], class: IoClass) -> Result<()> {
        self.faults.write(class, &self.path, bytes, |bytes| self.inner.write_at(offset, bytes, class))
    }

    fn read_at(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize> {
        self.faults.read(class, &self.path, offset, buf, |buf| self.inner.read_at(offset, buf, class))
    }

    fn sync(&self, class: IoClass) -> Result<()> {
        self.faults.sync(class, &self.path, &self.lost, || self.inner.sync(class))
    }

    fn start_writeback(&self, offset: u64, len: u64, class: IoClass) -> Result<()> {
        let start = || self.inner.start_writeback(offset, len, class);
        self.faults.call(Operation::Writeback, Some(class), &self.path, start)
    }

    fn allocate(&self, offset: u64, len: u64, class: IoClass) -> Result<()> {
        self.faults.call(Operation::Allocate, Some(class), &self.path, || self.inner.allocate(offset, len, class))
    }

    fn len(&self) -> Result<u64> {
        self.faults.call(Operation::Metadata, None, &self.path, || self.inner.len())
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.faults.call(Operation::Truncate, None, &self.path, || self.inner.truncate(len))
    }
}

impl RwMapping for FaultHandle<Arc<dyn RwMapping>> {
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    fn allocated(&self) -> u64 {
        self.inner.allocated()
    }

    fn ensure(&self, end: u64) -> Result<()> {
        self.faults.call(Operation::Allocate, None, &self.path, || self.inner.ensure(end))
    }

    fn populate(&self, offset: u64, len: u64) {
        self.inner.populate(offset, len);
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        self.inner.write(offset, bytes);
    }

    fn read(&self, offset: u64, buf: &mut [u8]) {
        self.inner.read(offset, buf);
    }

    fn read_file(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize> {
        self.faults.read(class, &self.path, offset, buf, |buf| self.inner.read_file(offset, buf, class))
    }

    fn memory(self: Arc<Self>) -> Result<MappedMemory> {
        Arc::clone(&self.inner).memory()
    }

    fn sync(&self, class: IoClass) -> Result<()> {
        self.faults.sync(class, &self.path, &self.lost, || self.inner.sync(class))
    }

    fn start_writeback(&self, offset: u64, len: u64, class: IoClass) -> Result<()> {
        let start = || self.inner.start_writeback(offset, len, class);
        self.faults.call(Operation::Writeback, Some(class), &self.path, start)
    }

    fn truncate_on_drop(&self, len: u64) {
        self.inner.truncate_on_drop(len);
    }

    fn cut(&self, len: u64) -> Result<()> {
        self.faults.call(Operation::Truncate, None, &self.path, || self.inner.cut(len))
    }
}
