//! Rounding to pages.

/// The granularity of advice and of writing back. Larger hardware pages are multiples of it, and the kernel refuses an
/// unaligned hint, which is then merely not taken.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Start and length of the whole pages that cover `offset .. offset + len`, cut at `limit`; `None` where nothing is left.
pub(crate) fn covering(offset: usize, len: usize, limit: usize) -> Option<(usize, usize)> {
    let start = offset & !(PAGE_BYTES - 1);
    let end = offset.saturating_add(len).min(limit);
    (start < end && len > 0).then(|| (start, end - start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_grows_to_its_pages_and_is_cut_at_the_limit() {
        assert_eq!(covering(5000, 1, 100_000), Some((4096, 905)));
        assert_eq!(covering(0, 10_000, 8192), Some((0, 8192)));
        assert_eq!(covering(9000, 10, 8192), None);
        assert_eq!(covering(10, 0, 8192), None);
        assert_eq!(covering(usize::MAX, usize::MAX, 8192), None);
    }
}
