//! Whether the process was started with a standard output. Rust's runtime opens `/dev/null` in the place of a closed one before
//! `main`, and passes over errors of one that is open for reading alone: what a program prints then is lost in silence.

use std::sync::atomic::{AtomicBool, Ordering};

static TAKES_NOTHING: AtomicBool = AtomicBool::new(false);

/// Called by the loader, before the runtime begins.
#[cfg(target_os = "linux")]
#[used]
// SAFETY: the section holds functions that are called without arguments; this one touches an atomic and makes one system call.
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

#[cfg(target_os = "linux")]
extern "C" fn look() {
    // SAFETY: the call takes any number, and changes nothing.
    let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFL) };
    TAKES_NOTHING.store(flags == -1 || flags & libc::O_ACCMODE == libc::O_RDONLY, Ordering::Relaxed);
}

/// True if the process was started without a standard output that can be written to.
pub fn standard_output_takes_nothing() -> bool {
    TAKES_NOTHING.load(Ordering::Relaxed)
}
