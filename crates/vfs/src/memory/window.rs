//! Memory beside a file, for access by address. The file's content picks up stores on its next read, through the
//! kernel. So no read here races with a concurrent store.

use std::path::Path;

use base::Result;
use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::io::{Errno, pread, pwrite, retry_on_intr};
use rustix::mm::ProtFlags;

use crate::real::mapping::Region;

pub(super) struct Window {
    fd: OwnedFd,
    region: Region,
    len: usize,
}

impl Window {
    /// `len` zeroed bytes, in whole pages; `path` names the file in errors.
    pub(super) fn new(len: usize, path: &Path) -> Result<Window> {
        let failed = |e: Errno| base::Error::io("map", path, e.into());
        let fd = memfd_create("spillway", MemfdFlags::CLOEXEC).map_err(failed)?;
        ftruncate(&fd, len as u64).map_err(failed)?;
        let region = Region::map(&fd, path, len, ProtFlags::READ | ProtFlags::WRITE)?;
        Ok(Window { fd, region, len })
    }

    pub(super) fn base(&self) -> std::ptr::NonNull<u8> {
        self.region.base
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// # Panics
    /// If the range passes the end.
    pub(super) fn read(&self, offset: usize, mut buf: &mut [u8]) {
        let mut at = offset as u64;
        while !buf.is_empty() {
            let count = retry_on_intr(|| pread(&self.fd, &mut *buf, at)).expect("memory can be read");
            assert!(count > 0, "a read beyond the mapped memory");
            at += count as u64;
            buf = buf.get_mut(count..).unwrap_or_default();
        }
    }

    /// Ignores bytes beyond the end.
    pub(super) fn write(&self, offset: usize, bytes: &[u8]) {
        let room = self.len.saturating_sub(offset).min(bytes.len());
        let mut bytes = bytes.get(..room).unwrap_or_default();
        let mut at = offset as u64;
        while !bytes.is_empty() {
            let count = retry_on_intr(|| pwrite(&self.fd, bytes, at)).expect("memory can be written");
            at += count as u64;
            bytes = bytes.get(count..).unwrap_or_default();
        }
    }
}
