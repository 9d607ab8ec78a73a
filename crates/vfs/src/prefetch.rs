//! Hints to the processor's caches.

/// Asks for the cache lines of `bytes[start..end]`, as far as they exist, and does not wait. A hint.
#[inline]
pub fn prefetch(bytes: &[u8], start: usize, end: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        const LINE_BYTES: usize = 64;
        for at in (start..end.min(bytes.len())).step_by(LINE_BYTES) {
            // SAFETY: prefetching has no effect but on caches, at any address.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(bytes.as_ptr().wrapping_add(at).cast()) }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (bytes, start, end);
}
