//! A table's file mapped for reading: blocks without a system call, a copy, or the block cache.
//!
//! Bytes of the mapping turn into zeros if the disk fails ([`GuardedMapping`]). So values and blocks are copied before
//! they leave this crate, and the mapping is checked after the copy.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use base::Result;
use vfs::GuardedMapping;

use super::file::TRAILER;
use crate::handle::BlockHandle;

/// Blocks that begin in one stretch of so many bytes share a bit. Shorter blocks are checked at every read.
const STRETCH_BYTES: u64 = 256;

/// The mapping, and the blocks whose checksums were compared since the table was opened.
pub struct MappedFile {
    mapping: Arc<dyn GuardedMapping>,
    /// A bit per stretch in which a checked block begins. Relaxed: a reader that misses a bit checks again.
    checked: Box<[AtomicU64]>,
}

impl MappedFile {
    pub fn new(mapping: Arc<dyn GuardedMapping>) -> Self {
        let words = ((*mapping).as_ref().len() as u64).div_ceil(STRETCH_BYTES * u64::from(u64::BITS));
        MappedFile { mapping, checked: (0..words).map(|_| AtomicU64::new(0)).collect() }
    }

    /// A block's stored bytes with their trailer; `None` if they are not in the file.
    #[inline]
    pub fn stored(&self, handle: BlockHandle) -> Option<&[u8]> {
        let start = usize::try_from(handle.offset).ok()?;
        let end = start.checked_add(usize::try_from(handle.size).ok()?)?.checked_add(TRAILER)?;
        (*self.mapping).as_ref().get(start..end)
    }

    /// # Errors
    /// `Io`: what was read before may be wrong.
    #[inline]
    pub fn check_intact(&self) -> Result<()> {
        self.mapping.check()
    }

    #[inline]
    fn bit_of(&self, handle: BlockHandle) -> Option<(&AtomicU64, u64)> {
        let stretch = handle.offset / STRETCH_BYTES;
        let word = self.checked.get(usize::try_from(stretch / u64::from(u64::BITS)).ok()?)?;
        (handle.size + TRAILER as u64 >= STRETCH_BYTES).then_some((word, 1 << (stretch % u64::from(u64::BITS))))
    }

    /// Whether the block's checksum was compared before.
    #[inline]
    pub fn is_checked(&self, handle: BlockHandle) -> bool {
        self.bit_of(handle).is_some_and(|(word, bit)| word.load(Ordering::Relaxed) & bit != 0)
    }

    pub fn set_checked(&self, handle: BlockHandle) {
        if let Some((word, bit)) = self.bit_of(handle) {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub fn memory_bytes(&self) -> usize {
        self.checked.len() * size_of::<AtomicU64>()
    }
}
