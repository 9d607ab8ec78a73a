//! Requests that wait.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base::FamilyId;
use parking_lot::{Condvar, Mutex};

use super::{Granted, LockedKey, LockedRange, Mode, Owner};

/// A request, and the thread asleep on it.
pub(super) struct Waiter {
    pub owner: Arc<Owner>,
    pub target: Target,
    pub mode: Mode,
    /// A leaf.
    told: Mutex<Told>,
    wakes: Condvar,
}

#[derive(Default)]
struct Told {
    granted: Option<Granted>,
    /// The sleeper is to look at its place again.
    woken: bool,
}

/// The end of a sleep.
pub(super) enum Slept {
    Granted(Granted),
    Woken { timed_out: bool },
}

/// What a request is for.
pub(super) enum Target {
    Key { hash: u64, family: FamilyId, key: Box<[u8]> },
    Range(LockedRange),
}

impl Waiter {
    pub fn new(owner: &Arc<Owner>, target: Target, mode: Mode) -> Arc<Self> {
        Arc::new(Waiter { owner: owner.clone(), target, mode, told: Mutex::default(), wakes: Condvar::new() })
    }

    pub fn grant(&self, granted: Granted) {
        self.told.lock().granted = Some(granted);
        self.wakes.notify_one();
    }

    pub fn wake(&self) {
        self.told.lock().woken = true;
        self.wakes.notify_one();
    }

    pub fn granted(&self) -> Option<Granted> {
        self.told.lock().granted
    }

    /// Sleeps until the grant, a wake, or for `most` (`None`: without end).
    pub fn sleep(&self, most: Option<Duration>) -> Slept {
        let mut told = self.told.lock();
        let mut timed_out = false;
        if told.granted.is_none() && !told.woken {
            match most {
                Some(most) => timed_out = self.wakes.wait_for(&mut told, most).timed_out(),
                None => self.wakes.wait(&mut told),
            }
        }
        told.woken = false;
        told.granted.map_or(Slept::Woken { timed_out }, Slept::Granted)
    }

    pub fn conflicts_with(&self, other: &Waiter) -> bool {
        (self.mode == Mode::Exclusive || other.mode == Mode::Exclusive)
            && self.owner.id != other.owner.id
            && self.target.meets(&other.target)
    }
}

impl Target {
    pub fn key(hash: u64, key: LockedKey<'_>) -> Target {
        Target::Key { hash, family: key.family, key: key.key.into() }
    }

    fn meets(&self, other: &Target) -> bool {
        match (self, other) {
            (Target::Range(range), Target::Range(other)) => range.meets(other),
            (Target::Range(range), Target::Key { family, key, .. })
            | (Target::Key { family, key, .. }, Target::Range(range)) => {
                range.covers(LockedKey { family: *family, key })
            }
            (Target::Key { family, key, .. }, Target::Key { family: other_family, key: other, .. }) => {
                family == other_family && key == other
            }
        }
    }
}

impl LockedRange {
    pub(super) fn covers(&self, key: LockedKey<'_>) -> bool {
        self.family == key.family && self.order.compare(&self.start, key.key).is_le() && self.ends_after(key.key)
    }

    fn ends_after(&self, user_key: &[u8]) -> bool {
        self.end.as_ref().is_none_or(|end| self.order.compare(user_key, end).is_lt())
    }

    fn meets(&self, other: &LockedRange) -> bool {
        self.family == other.family && self.ends_after(&other.start) && other.ends_after(&self.start)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Key { family, key, .. } => write!(f, "key 0x{} of family {}", Hex(key), family.0),
            Target::Range(LockedRange { family, start, end, .. }) => {
                write!(f, "keys from 0x{}", Hex(start))?;
                end.as_ref().map_or(Ok(()), |end| write!(f, " to 0x{}", Hex(end)))?;
                write!(f, " of family {}", family.0)
            }
        }
    }
}

struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02X}"))
    }
}
