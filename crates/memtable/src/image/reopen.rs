//! Reopening a memtable from the image in a file: mapped, checked as a whole, then read in place by the code of live
//! memtables.

use std::sync::Arc;

use base::{Error, Result, UserOrder};
use vfs::ReadMapping;

use super::{Report, Representation, check};
use crate::arena::{Arena, GRANULE_BYTES};
use crate::{Memtable, skiplist, trie};

/// A read-only memtable, and the report of its image's check.
pub struct Reopened {
    /// Full and sealed: nothing can be reserved, and inserting panics.
    pub memtable: Arc<dyn Memtable>,
    /// What the check found.
    pub report: Report,
}

/// The memtable whose sealed image is the first `image_bytes` of a mapping.
///
/// The file must be the caller's alone: no process may write to it while it is mapped. Its contents may be arbitrary.
///
/// # Errors
/// `Corruption`: no image, a damaged or unsealed one, or one of another length. Otherwise as [`check`]. `Unsupported`
/// also if the mapping is not word-aligned.
pub fn reopen(mapping: Arc<dyn ReadMapping>, image_bytes: u64, order: &UserOrder) -> Result<Reopened> {
    let whole = (*mapping).as_ref();
    let bytes = usize::try_from(image_bytes).ok().and_then(|end| whole.get(..end));
    let bytes = bytes
        .ok_or_else(|| Error::corruption(format!("an image of {image_bytes} bytes in a file of {}", whole.len())))?;
    let report = check(bytes, order)?;
    let allocated_bytes = match report.header.sealed {
        Some(seal) if seal.allocated_bytes == image_bytes && bytes.len().is_multiple_of(GRANULE_BYTES) => bytes.len(),
        Some(seal) => {
            let sealed = seal.allocated_bytes;
            return Err(Error::corruption(format!("an image of {image_bytes} bytes that was sealed at {sealed}")));
        }
        None => return Err(Error::corruption("the image of a memtable that was never sealed")),
    };
    // SAFETY: the bytes passed the check just now, and are whole granules, as the check found them; they are the
    // caller's alone.
    let arena = unsafe { Arena::over_image(mapping, allocated_bytes)? };
    let (counts, head) = (report.counts, report.header.head);
    let memtable = match report.header.representation {
        // SAFETY: the check found a trie of this order and shift, with its head there and these totals, of which every
        // link and length that a reader follows was followed (T1).
        Representation::Trie { shift } => unsafe { trie::of_image(order, arena, shift, head, counts) },
        // SAFETY: likewise a skiplist (A2).
        Representation::SkipList => Some(unsafe { skiplist::of_image(order, arena, head, counts) }),
    };
    let memtable = memtable.ok_or_else(|| Error::corruption("a trie in an order that is not one of bytes"))?;
    Ok(Reopened { memtable, report })
}
