//! Calls that differ between systems, behind the same functions for each.

#[cfg(target_vendor = "apple")]
mod apple;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_vendor = "apple")]
pub(crate) use apple::*;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
compile_error!("spillway-db runs on Linux, and builds for macOS: other systems need a file in crates/vfs/src/real/os");

/// Advice on a range of memory.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Advice {
    /// Unmap pages of a shared mapping until the next access.
    Unmap,
    HugePages,
    SmallPages,
    /// Make the pages present and writable.
    Populate,
}

/// What to do with a range of a file whose bytes are not on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WriteBack {
    Start,
    /// Wait for what was started.
    Wait,
    StartAndWait,
}
