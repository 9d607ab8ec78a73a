//! Pages: rounding.

/// Granularity of advice and writeback. Larger hardware pages are multiples of it. The kernel then refuses unaligned
/// hints, harmlessly.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Start and length of `offset .. offset + len`, extended down to a page's start and cut at `limit`; `None` if empty.
pub(crate) fn covering(offset: usize, len: usize, limit: usize) -> Option<(usize, usize)> {
    let start = offset & !(PAGE_BYTES - 1);
    let end = offset.saturating_add(len).min(limit);
    (start < end && len > 0).then(|| (start, end - start))
}

/// Start and length of the whole pages inside `offset .. offset + len` and below `limit`; `None` if there are none.
#[cfg(unix)]
pub(crate) fn within(offset: usize, len: usize, limit: usize) -> Option<(usize, usize)> {
    let start = offset.checked_next_multiple_of(PAGE_BYTES)?;
    let end = offset.saturating_add(len).min(limit) & !(PAGE_BYTES - 1);
    (start < end).then(|| (start, end - start))
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

    #[cfg(unix)]
    #[test]
    fn a_range_shrinks_to_its_whole_pages() {
        assert_eq!(within(0, 8192, 100_000), Some((0, 8192)));
        assert_eq!(within(1, 12_288, 100_000), Some((4096, 8192)));
        assert_eq!(within(0, 100_000, 8191), Some((0, 4096)));
        assert_eq!(within(1, 8190, 100_000), None);
        assert_eq!(within(usize::MAX, 1, usize::MAX), None);
    }
}
