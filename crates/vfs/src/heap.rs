//! The heap of a process whose address space is limited (`ulimit -v`).

/// Has all threads share one heap. The C library reserves 64 MiB of addresses for each thread's own.
pub fn share_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the call changes a number of the allocator, at any time.
    let _ = unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}
