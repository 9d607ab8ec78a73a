//! References: positions in an arena, independent of its address.

use super::GRANULE_BYTES;

/// A position in an arena, in granules from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Ref(u32);

impl Ref {
    /// Null: the region's first granule is never allocated.
    pub(crate) const NULL: Ref = Ref(0);

    #[inline]
    pub(crate) const fn from_raw(raw: u32) -> Ref {
        Ref(raw)
    }

    #[inline]
    pub(crate) fn raw(self) -> u32 {
        self.0
    }

    #[inline]
    pub(crate) fn is_null(self) -> bool {
        self.0 == 0
    }

    /// The position `granules` after this one. It must lie in the same allocation.
    #[inline]
    pub(crate) fn forward(self, granules: usize) -> Ref {
        Ref(self.0.wrapping_add(granules as u32))
    }

    /// The position `granules` before this one. It must lie in the same allocation.
    #[inline]
    pub(crate) fn back(self, granules: usize) -> Ref {
        Ref(self.0.wrapping_sub(granules as u32))
    }

    #[inline]
    pub(super) fn byte_offset(self) -> usize {
        self.0 as usize * GRANULE_BYTES
    }
}
