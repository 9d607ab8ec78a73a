//! Deadlocks: cycles of owners of which each waits for the next.
//!
//! A request looks for a cycle through itself after it joined a queue; a key that waited for a range and goes on to the
//! key's own queue looks again. That is enough: an owner in the way of a waiting request either was when that request
//! looked, or has been granted something since, so that it runs; it looks when it waits next.
//!
//! The walk takes one stripe at a time, while others go on. So a cycle it finds is walked a second time. An owner that
//! waited in both walks by the same request waited all the time between them, and gave nothing back: if every step
//! stands in both, all stood together at one instant.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base::{Error, ErrorKind, FamilyId};
use parking_lot::Mutex;

use super::ranges::Owners;
use super::waiter::{Target, Waiter};
use super::{LockTable, Mode};

/// A wait in a cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wait {
    pub owner: u64,
    pub family: FamilyId,
    /// The key waited for, or the start of the range.
    pub key: Vec<u8>,
    pub mode: Mode,
}

/// Owners that wait for each other: each for the next, the last for the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cycle {
    /// Microseconds since the epoch.
    pub found_at_us: u64,
    pub waits: Vec<Wait>,
    /// The owners were more than `deadlock_depth`, and no cycle was looked for behind them.
    pub is_guess: bool,
}

/// The last cycles. Its mutex is held while a request looks for one and leaves: of two requests that close a cycle
/// together, one gets the error.
pub(super) struct Deadlocks {
    found: Mutex<VecDeque<Cycle>>,
    found_max: AtomicUsize,
}

/// A step of the walk: a waiting request, and the step that led to it.
struct Step {
    waiter: Arc<Waiter>,
    from: Option<usize>,
    depth: usize,
}

enum Found {
    /// The waiting requests of the cycle, that of the searcher first.
    Cycle(Vec<Arc<Waiter>>),
    TooDeep(Vec<Arc<Waiter>>),
}

impl Deadlocks {
    pub fn new(found_max: usize) -> Self {
        Deadlocks { found: Mutex::default(), found_max: AtomicUsize::new(found_max) }
    }

    /// Forgets the oldest beyond the limit.
    fn trim(&self, found: &mut VecDeque<Cycle>) {
        let too_many = found.len().saturating_sub(self.found_max.load(Ordering::Relaxed));
        found.drain(..too_many);
    }

    pub fn set_max(&self, found_max: usize) {
        let mut found = self.found.lock();
        self.found_max.store(found_max, Ordering::Relaxed);
        self.trim(&mut found);
    }

    pub fn all(&self) -> Vec<Cycle> {
        self.found.lock().iter().cloned().collect()
    }
}

impl LockTable {
    /// The error of a request whose wait would never end; its owner then waits for nothing.
    pub(super) fn deadlock(&self, waiter: &Arc<Waiter>, depth_max: usize) -> Option<Error> {
        let mut found_before = self.deadlocks.found.lock();
        let (path, is_guess) = loop {
            match self.search(waiter, depth_max)? {
                Found::TooDeep(path) => break (path, true),
                Found::Cycle(path) if self.stands(&path) => break (path, false),
                Found::Cycle(_) => {} // somebody went on meanwhile
            }
        };
        if waiter.granted().is_some() {
            return None;
        }
        let cycle = Cycle {
            found_at_us: self.vfs.unix_time_us(),
            waits: path.iter().map(|waiter| Wait::of(waiter)).collect(),
            is_guess,
        };
        *waiter.owner.waits_for.lock() = None; // others look for cycles without it
        let error = Error::new(ErrorKind::Deadlock, cycle.to_string());
        found_before.push_back(cycle);
        self.deadlocks.trim(&mut found_before);
        Some(error)
    }

    /// Walks breadth first from a request through the owners in its way.
    fn search(&self, waiter: &Arc<Waiter>, depth_max: usize) -> Option<Found> {
        let mut steps = vec![Step { waiter: waiter.clone(), from: None, depth: 0 }];
        let mut next = 0;
        while let Some(Step { waiter: at, depth, .. }) = steps.get(next) {
            let (at, depth) = (at.clone(), *depth);
            for owner in self.blockers(&at) {
                if owner.id == waiter.owner.id {
                    return Some(Found::Cycle(path_to(&steps, next)));
                }
                if steps.iter().any(|step| step.waiter.owner.id == owner.id) {
                    continue;
                }
                if depth >= depth_max {
                    return Some(Found::TooDeep(path_to(&steps, next)));
                }
                if let Some(waiter) = owner.waits_for.lock().clone() {
                    steps.push(Step { waiter, from: Some(next), depth: depth + 1 });
                }
            }
            next += 1;
        }
        None
    }

    /// Whether each of the requests still waits for the owner of the next.
    fn stands(&self, path: &[Arc<Waiter>]) -> bool {
        let next = path.iter().cycle().skip(1);
        path.iter().zip(next).all(|(waiter, next)| {
            let waits = waiter.owner.waits_for.lock().as_ref().is_some_and(|now| Arc::ptr_eq(now, waiter));
            waits && self.blockers(waiter).iter().any(|owner| owner.id == next.owner.id)
        })
    }

    /// The owners for which a request waits now.
    pub(super) fn blockers(&self, waiter: &Waiter) -> Owners {
        if waiter.granted().is_some() {
            return Owners::new();
        }
        if let Some(owners) = self.blockers_in_ranges(waiter) {
            return owners;
        }
        let Target::Key { hash, .. } = waiter.target else { return Owners::new() };
        self.stripe(hash).lock().of(waiter).map(|held| held.blockers(waiter)).unwrap_or_default()
    }
}

fn path_to(steps: &[Step], last: usize) -> Vec<Arc<Waiter>> {
    let back = std::iter::successors(steps.get(last), |step| step.from.and_then(|from| steps.get(from)));
    let mut path: Vec<_> = back.map(|step| step.waiter.clone()).collect();
    path.reverse();
    path
}

impl Wait {
    fn of(waiter: &Waiter) -> Wait {
        let (family, key) = match &waiter.target {
            Target::Key { family, key, .. } => (*family, key),
            Target::Range(range) => (range.family, &range.start),
        };
        Wait { owner: waiter.owner.id, family, key: key.to_vec(), mode: waiter.mode }
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_guess {
            write!(f, "deadlock assumed behind {} waiting transactions (deadlock_detect_depth):", self.waits.len())?;
        } else {
            write!(f, "deadlock of {} transactions:", self.waits.len())?;
        }
        for (i, wait) in self.waits.iter().enumerate() {
            let (comma, target) = (if i > 0 { "," } else { "" }, Target::key(0, wait.locked()));
            write!(f, "{comma} {} waits for {target}", wait.owner)?;
        }
        Ok(())
    }
}

impl Wait {
    fn locked(&self) -> super::LockedKey<'_> {
        super::LockedKey { family: self.family, key: &self.key }
    }
}
