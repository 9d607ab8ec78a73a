//! Forked processes. A child has a copy of everything that its parent had open, but none of its threads: locks that these held are
//! held for good, and files that they work on are the parent's.

use std::sync::atomic::{AtomicU32, Ordering};

/// Forks between the first process that asked for its [`Origin`] and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// The process that made a thing. A forked child leaves what its parent made as it is: it frees nothing, waits for nothing and
/// touches no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(u32);

impl Origin {
    /// This process.
    pub fn here() -> Origin {
        crate::real::watch_forks();
        Origin(FORKS.load(Ordering::Relaxed))
    }

    /// Whether it is this process. Costs one load.
    #[inline]
    pub fn is_here(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }
}

impl Default for Origin {
    fn default() -> Self {
        Origin::here()
    }
}

/// Called in a forked child, before it has a second thread.
#[cfg_attr(not(unix), expect(dead_code, reason = "there is no fork"))]
pub(crate) fn count_fork() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}
