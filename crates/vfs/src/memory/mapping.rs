//! Mappings of files in memory. A writable mapping stores directly to its file. Each store by `write` is an operation,
//! and a crash can lose any store.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use base::{Error, Result};
use parking_lot::Mutex;

use super::handle::MemoryFile;
use super::window::Window;
use crate::page::PAGE_BYTES;
use crate::{AnonymousMapping, GuardedMapping, IoClass, MappedMemory, ReadMapping, RwMapping};

/// A copy of the file, page-aligned like a mapping of the operating system.
pub(super) struct MemoryReadMapping {
    /// `None` for an empty file.
    memory: Option<AnonymousMapping>,
}

impl MemoryReadMapping {
    pub(super) fn of(bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Ok(MemoryReadMapping { memory: None });
        }
        let memory = AnonymousMapping::new(bytes.len())?;
        // SAFETY: M1 gives `bytes.len()` writable bytes at a fresh address, not shared with any code yet.
        unsafe { memory.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        Ok(MemoryReadMapping { memory: Some(memory) })
    }
}

impl AsRef<[u8]> for MemoryReadMapping {
    fn as_ref(&self) -> &[u8] {
        match &self.memory {
            // SAFETY: M1; nothing stores to the memory after `of`.
            Some(memory) => unsafe { std::slice::from_raw_parts(memory.as_ptr(), memory.capacity()) },
            None => &[],
        }
    }
}

impl ReadMapping for MemoryReadMapping {}

impl GuardedMapping for MemoryReadMapping {
    fn check(&self) -> Result<()> {
        Ok(())
    }
}

pub(super) struct MemoryRwMapping {
    file: MemoryFile,
    capacity: u64,
    allocated: AtomicU64,
    /// True after a cut: the file grows no more, as in the real mapping.
    is_cut: Mutex<bool>,
    /// `u64::MAX` for none.
    cut_at: AtomicU64,
    /// Created on the first request for the address.
    window: OnceLock<Arc<Window>>,
}

impl MemoryRwMapping {
    /// `capacity` in whole pages.
    pub(super) fn new(file: MemoryFile, capacity: u64) -> Self {
        let (allocated, cut_at) = (AtomicU64::new(0), AtomicU64::new(u64::MAX));
        MemoryRwMapping { file, capacity, allocated, is_cut: Mutex::new(false), cut_at, window: OnceLock::new() }
    }

    pub(super) fn whole_pages(capacity: u64) -> Result<u64> {
        let rounded = capacity.checked_next_multiple_of(PAGE_BYTES as u64);
        let rounded = rounded.filter(|&bytes| bytes > 0 && bytes <= isize::MAX as u64);
        rounded.ok_or_else(|| Error::invalid_argument(format!("cannot map {capacity} bytes")))
    }

    fn assert_allocated(&self, offset: u64, len: usize) {
        let allocated = self.allocated();
        let end = offset.checked_add(len as u64);
        assert!(end.is_some_and(|end| end <= allocated), "mapped file touched beyond its allocated {allocated} bytes");
    }
}

impl RwMapping for MemoryRwMapping {
    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn allocated(&self) -> u64 {
        self.allocated.load(Ordering::Acquire)
    }

    fn ensure(&self, end: u64) -> Result<()> {
        if end > self.capacity {
            let message = format!("{end} bytes asked of a mapped file of at most {}", self.capacity);
            return Err(Error::invalid_argument(message).at_path(self.file.path()));
        }
        let end = end.next_multiple_of(PAGE_BYTES as u64);
        let is_cut = self.is_cut.lock();
        if *is_cut && end > self.allocated() {
            let error = Error::invalid_argument("a mapped file that was cut grows no more");
            return Err(error.at_path(self.file.path()));
        }
        self.file.grow(end)?;
        self.allocated.fetch_max(end, Ordering::AcqRel);
        Ok(())
    }

    fn populate(&self, _offset: u64, _len: u64) {}

    fn write(&self, offset: u64, bytes: &[u8]) {
        assert!(offset.is_multiple_of(8), "stores to a mapped file start at a word");
        let padded_len = bytes.len().next_multiple_of(8);
        self.assert_allocated(offset, padded_len);
        let mut padded = bytes.to_vec();
        padded.resize(padded_len, 0);
        self.file.write(offset, &padded).expect("a store below `allocated` needs no room");
    }

    fn read(&self, offset: u64, buf: &mut [u8]) {
        self.assert_allocated(offset, buf.len());
        if let Some(window) = self.window.get() {
            return window.read(offset as usize, buf);
        }
        let count = self.file.read(offset, buf);
        assert_eq!(count, buf.len(), "the file was cut under its mapping");
    }

    /// `Unsupported` under Miri, for lack of shared mappings.
    fn memory(self: Arc<Self>) -> Result<MappedMemory> {
        if cfg!(miri) {
            return Err(Error::unsupported("no address of a mapped file").at_path(self.file.path()));
        }
        let window = self.file.open_window(self.capacity as usize)?;
        self.window.get_or_init(|| Arc::clone(&window));
        // SAFETY: the window's region is mapped, from a page's address, until the window is dropped, and the mapping
        // keeps the window. The region is read and written through the kernel only.
        Ok(unsafe { MappedMemory::new(window.base(), window.len(), self) })
    }

    fn sync(&self, _class: IoClass) -> Result<()> {
        self.file.sync_content();
        Ok(())
    }

    fn truncate_on_drop(&self, len: u64) {
        self.cut_at.store(len, Ordering::Relaxed);
    }

    fn cut(&self, len: u64) -> Result<()> {
        let mut is_cut = self.is_cut.lock();
        *is_cut = true;
        let end = len.min(self.capacity).next_multiple_of(PAGE_BYTES as u64);
        if end >= self.allocated() {
            return Ok(());
        }
        self.allocated.store(end, Ordering::Release);
        self.file.set_len(end)
    }
}

impl Drop for MemoryRwMapping {
    fn drop(&mut self) {
        if self.window.get().is_some() {
            self.file.close_window();
        }
        let len = *self.cut_at.get_mut();
        if len < *self.allocated.get_mut() {
            self.file.set_len(len).expect("a cut needs no room");
        }
    }
}
