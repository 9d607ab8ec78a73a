//! How much may be walked before what was met must have been met before. Blocks of an image do not overlap, so those on one
//! way through it have no more bytes together than the image; whoever meets more is led in circles.

use base::Result;

use crate::image::view::wrong;

/// How often a walk may come by an entry: to find it, to look for the version to begin with, to find the oldest version,
/// and to list those between.
const PASSES: u64 = 4;

/// Bytes of entries that may be met still.
#[derive(Clone, Copy)]
pub(super) struct Budget {
    left: u64,
    whole: u64,
}

impl Budget {
    pub(super) fn of(image_bytes: u64) -> Budget {
        let whole = image_bytes.saturating_mul(PASSES);
        Budget { left: whole, whole }
    }

    /// For another walk through the same image.
    pub(super) fn renew(&mut self) {
        self.left = self.whole;
    }

    /// Meets an entry of `bytes` at `at`.
    ///
    /// # Errors
    /// `Corruption`: more was met than the image has.
    #[inline]
    pub(super) fn spend(&mut self, at: u64, bytes: u64) -> Result<()> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| wrong(at, "entries lead to entries that were met before"))?;
        Ok(())
    }
}
