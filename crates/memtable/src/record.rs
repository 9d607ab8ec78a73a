//! An entry as it lies in an arena: lengths, internal key, value, without gaps.
//!
//! | bytes | what |
//! |---|---|
//! | 4 | length of the user key |
//! | 4 | length of the value |
//! | n | user key |
//! | 8 | trailer, `sequence << 8 or kind`, little-endian |
//! | n | value |

use base::key::{self, TRAILER_BYTES};
use base::{SeqNo, ValueKind};

use crate::Entry;
use crate::arena::{Arena, Ref};

const LENGTHS_BYTES: usize = 8;

/// Bytes of a record beside the user key and the value.
pub(crate) const RECORD_OVERHEAD_BYTES: usize = LENGTHS_BYTES + TRAILER_BYTES;

/// Bytes of the record of `entry`, before rounding to granules.
#[inline]
pub(crate) fn record_bytes(entry: &Entry<'_>) -> usize {
    RECORD_OVERHEAD_BYTES + entry.user_key.len() + entry.value.len()
}

#[inline]
pub(crate) fn trailer_of(entry: &Entry<'_>) -> u64 {
    key::pack_trailer(entry.seq, entry.kind as u8)
}

/// User key and trailer of a target. A target too short for a trailer comes before all versions.
#[inline]
pub(crate) fn split_target(target: &[u8]) -> (&[u8], u64) {
    key::split(target).unwrap_or((target, u64::MAX))
}

/// Writes the record of `entry` at `at`.
///
/// # Panics
/// In an image, or if a length does not fit 32 bits: callers refuse such keys and values at admission (C4).
///
/// # Safety
/// [`record_bytes`] from `at` on must lie in an unpublished allocation of `arena`.
#[inline]
pub(crate) unsafe fn write<const IMAGE: bool>(arena: &Arena<IMAGE>, at: Ref, entry: &Entry<'_>) {
    assert!(!IMAGE, "a write to an image (A5)");
    let (Ok(key_len), Ok(value_len)) = (u32::try_from(entry.user_key.len()), u32::try_from(entry.value.len())) else {
        panic!("a key or value of 4 GiB or more was let in (C4)");
    };
    // SAFETY: by the caller the whole record lies inside one allocation of this thread's own (A1), so nobody else
    // accesses it until it is published (A2).
    unsafe {
        let start = arena.address(at);
        start.cast::<u64>().write(u64::from(key_len) | (u64::from(value_len) << 32));
        let key_start = start.add(LENGTHS_BYTES);
        key_start.copy_from_nonoverlapping(entry.user_key.as_ptr(), entry.user_key.len());
        let trailer_start = key_start.add(entry.user_key.len());
        trailer_start.copy_from_nonoverlapping(trailer_of(entry).to_le_bytes().as_ptr(), TRAILER_BYTES);
        let value_start = trailer_start.add(TRAILER_BYTES);
        value_start.copy_from_nonoverlapping(entry.value.as_ptr(), entry.value.len());
    }
}

/// A published entry.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a> {
    internal_key: &'a [u8],
    value: &'a [u8],
}

/// The record at `at`.
///
/// # Safety
/// A record of `arena` must have been [`write`]n at `at`, and published to this thread (A2).
#[inline]
pub(crate) unsafe fn read<const IMAGE: bool>(arena: &Arena<IMAGE>, at: Ref) -> Record<'_> {
    // SAFETY: the record lies whole in one allocation (A2), was written before it was published, and is not written
    // again while the arena lives (A3, A4); so shared slices of it are sound for the arena's borrow.
    unsafe {
        let start = arena.address(at).cast_const();
        let lengths = start.cast::<u64>().read();
        let key_len = (lengths as u32) as usize + TRAILER_BYTES;
        let key_start = start.add(LENGTHS_BYTES);
        Record {
            internal_key: std::slice::from_raw_parts(key_start, key_len),
            value: std::slice::from_raw_parts(key_start.add(key_len), (lengths >> 32) as usize),
        }
    }
}

impl<'a> Record<'a> {
    #[inline]
    pub(crate) fn internal_key(&self) -> &'a [u8] {
        self.internal_key
    }

    #[inline]
    pub(crate) fn value(&self) -> &'a [u8] {
        self.value
    }

    /// User key and trailer.
    #[inline]
    pub(crate) fn split(&self) -> (&'a [u8], u64) {
        key::split(self.internal_key).expect("a record holds a whole internal key (A2)")
    }

    #[inline]
    pub(crate) fn user_key(&self) -> &'a [u8] {
        self.split().0
    }

    /// Sequence number and kind.
    #[inline]
    pub(crate) fn version(&self) -> (SeqNo, ValueKind) {
        let trailer = self.split().1;
        let kind = ValueKind::from_u8(trailer as u8).expect("a record's kind was a ValueKind when written (A2)");
        (SeqNo(trailer >> 8), kind)
    }
}
