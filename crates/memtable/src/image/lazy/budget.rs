//! A bound on walks, to detect cycles. Blocks of an image do not overlap, so the blocks on one path have at most the
//! image's bytes together; a longer walk has met some block twice.

use base::Result;

use crate::image::view::wrong;

/// Times a walk may pass an entry: to find it, to find the first version, to find the oldest version, and to list the
/// versions between.
const PASSES: u64 = 4;

/// Bytes of entries left to meet.
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

    /// Resets it for another walk through the same image.
    pub(super) fn renew(&mut self) {
        self.left = self.whole;
    }

    /// Charges an entry of `bytes` at `at`.
    ///
    /// # Errors
    /// `Corruption`: the budget is exhausted.
    #[inline]
    pub(super) fn spend(&mut self, at: u64, bytes: u64) -> Result<()> {
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or_else(|| wrong(at, "entries lead to entries that were met before"))?;
        Ok(())
    }
}
