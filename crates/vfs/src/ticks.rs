//! A counter of the processor, for times that are measured at every operation: one instruction where a clock is a call.

/// The counter. It grows at a steady rate, unknown here: compare it with a clock over the same time. Counters of two
/// processors may differ by a moment.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
pub fn ticks() -> u64 {
    // SAFETY: the instruction has no precondition and touches no memory.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The counter: nanoseconds of the clock here.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[allow(clippy::disallowed_methods, reason = "this is where the clock is called")]
pub fn ticks() -> u64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as u64
}
