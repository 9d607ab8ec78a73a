//! A sealed memtable's memory as the bytes of a file.

use super::header;
use crate::arena::{Arena, SealedFile};
use crate::stripe::Counts;

/// The memory of a sealed memtable: an image, with its seal.
pub struct SealedImage<'a> {
    /// The allocated bytes, header first. Immutable.
    pub bytes: &'a [u8],
    /// Counts of the entries.
    pub totals: Counts,
    /// The memtable's file, if it was made in one.
    pub file: Option<SealedFile<'a>>,
}

impl<'a> SealedImage<'a> {
    /// `None` without a header, or before the seal.
    pub(crate) fn of<const IMAGE: bool>(arena: &'a Arena<IMAGE>, totals: impl FnOnce() -> Counts) -> Option<Self> {
        if !header::is_sealed(arena) {
            return None;
        }
        // SAFETY: the seal is written once the gate is closed for good and nobody is inside (`crate::gate`), or it lies
        // in a file that nobody writes (A5); so nothing is stored any more.
        let bytes = unsafe { arena.bytes() };
        Some(SealedImage { bytes, totals: totals(), file: arena.file() })
    }
}
