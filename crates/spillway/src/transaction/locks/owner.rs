//! Owners of locks.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use super::waiter::Waiter;

/// A transaction, as the lock table knows it.
pub struct Owner {
    /// Its number in reports.
    pub id: u64,
    /// By the vfs's clock. From then on others may take its locks; `None`: never.
    expires_at: Option<Duration>,
    state: AtomicU8,
    /// The request it waits for. A leaf.
    pub(super) waits_for: Mutex<Option<Arc<Waiter>>>,
}

const RUNNING: u8 = 0;
/// Its locks can no longer be taken.
const COMMITTING: u8 = 1;
/// Expired, and its locks are lost.
const EXPIRED: u8 = 2;

impl Owner {
    pub fn new(id: u64, expires_at: Option<Duration>) -> Arc<Self> {
        Arc::new(Owner { id, expires_at, state: AtomicU8::new(RUNNING), waits_for: Mutex::new(None) })
    }

    /// Keeps the locks to the end, from the commit on. False if the owner has lost them, or has expired at `now`.
    pub(super) fn begin_commit(&self, now: impl FnOnce() -> Duration) -> bool {
        let Some(expires) = self.expires_at else { return true };
        if self.state.load(Ordering::Acquire) == COMMITTING {
            return true;
        }
        now() < expires && self.state.compare_exchange(RUNNING, COMMITTING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// True once others may take the locks. It stays true: such an owner cannot commit.
    pub(super) fn has_lost_locks(&self, now: impl FnOnce() -> Duration) -> bool {
        let Some(expires) = self.expires_at else { return false };
        match self.state.load(Ordering::Acquire) {
            COMMITTING => false,
            EXPIRED => true,
            _ if now() < expires => false,
            _ => match self.state.compare_exchange(RUNNING, EXPIRED, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => true,
                Err(state) => state == EXPIRED,
            },
        }
    }

    /// When its locks can be taken; `None`: never.
    pub(super) fn expires_at(&self) -> Option<Duration> {
        self.expires_at.filter(|_| self.state.load(Ordering::Acquire) != COMMITTING)
    }
}
