//! Range latches. While an ingest in mode `direct` gives its tables levels, or a commit with a conflict check is under
//! way, overlapping commits wait before they take numbers. A gate (modes `blocking`, `flush-first`) is a latch over
//! everything. Without a latch a write pays one atomic load.
//!
//! # Waits and deadlock freedom
//! An ingest in mode `direct` holds a *latch* over all its spans. So does a commit whose conflict check met other
//! commits, over each key. Every other commit only looks for overlapping latches. If it finds one, it waits for a *pass*. A pass blocks
//! overlapping latches until the commit has numbers.
//!
//! Latches and passes share one queue, in request order. An entry is granted once no earlier entry conflicts with it,
//! granted or not. All spans of one call are one entry, and entries wait for earlier entries only. So there is no
//! deadlock and no starvation.
//!
//! An ingest requests its latch after admission; a commit with a conflict check requests it with no memtable in hand. A
//! pass is given back before any wait, except for the commit lock, whose holder never waits. Jobs take
//! neither (V2 protects them).
//!
//! # Why no overlapping write takes a number under a latch
//! Sequence numbers are allocated under the commit lock. Just before, the write asks [`RangeLatches::lets_pass`]. The
//! latch holder first publishes the latch in `stamp`, then takes the commit lock once, as a barrier. In commit lock
//! order, a write is
//! - before the barrier: the holder finds it in the pipeline's slots or in the memtable;
//! - after it: the lock makes this latch's stamp, or a later one, visible to the write. Such a stamp is not 0, and no
//!   write has it in a permit without a look at this latch.
//!
//! `loom_tests.rs` runs this under every thread interleaving and shows that the barrier is needed.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use base::{FamilyId, Result, UserOrder};
use crossbeam_utils::CachePadded;

use crate::order::sync::{AtomicU64, Condvar, Mutex, MutexGuard};
use crate::version::span::{Span, merged};

/// Latched keys of one family.
#[derive(Clone)]
pub(crate) struct LatchSpan {
    pub family: FamilyId,
    /// User key order of the family.
    pub order: UserOrder,
    pub span: Span,
}

impl LatchSpan {
    pub fn of(keys: &KeyRange<'_>) -> Self {
        LatchSpan { family: keys.family, order: keys.order.clone(), span: keys.to_span() }
    }
}

/// Key bounds of a write or an ingest in one family.
#[derive(Clone, Copy)]
pub(crate) struct KeyRange<'a> {
    pub family: FamilyId,
    /// User key order of the family.
    pub order: &'a UserOrder,
    pub start: &'a [u8],
    pub end: &'a [u8],
    pub end_is_exclusive: bool,
}

impl<'a> KeyRange<'a> {
    pub fn of(family: FamilyId, order: &'a UserOrder, span: &'a Span) -> Self {
        let Span { start, end, end_is_exclusive } = span;
        KeyRange { family, order, start, end, end_is_exclusive: *end_is_exclusive }
    }

    pub fn to_span(self) -> Span {
        let KeyRange { start, end, end_is_exclusive, .. } = self;
        Span { start: start.to_vec(), end: end.to_vec(), end_is_exclusive }
    }
}

/// All latches of a database. The lock is a leaf.
pub(crate) struct RangeLatches {
    /// 0 while no latch is granted, else the number of grants so far. Equal nonzero stamps at two times: no latch was
    /// granted in between. Written under the lock of `queue`.
    stamp: CachePadded<AtomicU64>,
    queue: Mutex<Queue>,
    granted: Condvar,
}

/// Result of a look at the latches, valid for the keys looked up. The default lets a commit pass only if no latch is
/// granted.
#[derive(Default)]
pub(crate) struct LatchPermit<'a> {
    /// The stamp when no granted latch overlapped.
    stamp: u64,
    /// A pass: no overlapping latch is granted while it is held.
    pass: Option<LatchGuard<'a>>,
}

impl LatchPermit<'_> {
    /// Stops blocking latches. Called off the commit lock, before any wait.
    pub fn give_back(&mut self) {
        self.pass = None;
    }
}

/// A latch or a pass, released on drop.
#[must_use = "a latch that is dropped holds nobody back"]
pub(crate) struct LatchGuard<'a> {
    latches: &'a RangeLatches,
    number: u64,
}

impl Drop for LatchGuard<'_> {
    fn drop(&mut self) {
        let mut queue = self.latches.lock();
        let (granted_any, _removed) = queue.remove(self.number);
        self.latches.publish(&queue);
        drop(queue); // before `_removed`: an entry may hold many spans
        if granted_any {
            self.latches.granted.notify_all();
        }
    }
}

impl RangeLatches {
    pub fn new() -> Self {
        RangeLatches {
            stamp: CachePadded::new(AtomicU64::new(0)),
            queue: Mutex::new(Queue::default()),
            granted: Condvar::new(),
        }
    }

    /// Latches the whole reach at once; waits for overlapping latches and passes. `barrier` takes and releases the
    /// commit lock: an overlapping write with numbers after this call had them before `barrier`. An ingest calls this
    /// once: a second call would wait for the first latch.
    ///
    /// # Errors
    /// Errors of `go_on`. It is called before each sleep, under the lock of the queue, and must take no lock. After a
    /// change of its answer, call [`wake`](Self::wake).
    pub fn acquire(
        &self,
        reach: Reach,
        go_on: &dyn Fn() -> Result<()>,
        barrier: impl FnOnce(),
    ) -> Result<LatchGuard<'_>> {
        let latch = self.enter(reach, Kind::Latch, go_on)?;
        barrier();
        Ok(latch)
    }

    /// As [`acquire`](Self::acquire), without waiting: `None` if an overlapping latch or pass is granted or queued.
    pub fn try_acquire(&self, reach: Reach, barrier: impl FnOnce()) -> Option<LatchGuard<'_>> {
        let mut queue = self.lock();
        let number = queue.push(reach, Kind::Latch);
        if !queue.is_granted(number) {
            let (_, _refused) = queue.remove(number);
            drop(queue);
            return None;
        }
        self.publish(&queue);
        drop(queue);
        barrier();
        Some(LatchGuard { latches: self, number })
    }

    /// Whether a commit with this permit may take numbers. Called under the commit lock, just before.
    #[inline]
    pub fn lets_pass(&self, permit: &LatchPermit<'_>) -> bool {
        // The commit lock makes a granted latch visible. Acquire pairs with a latch's release: its holder's effects
        // come before this write.
        let stamp = self.stamp.load(Ordering::Acquire);
        stamp == 0 || stamp == permit.stamp || permit.pass.is_some()
    }

    /// A permit if no granted latch overlaps the keys, else `None`. Does not wait for latches.
    pub fn look(&self, keys: &[KeyRange<'_>]) -> Option<LatchPermit<'_>> {
        let queue = self.lock();
        (!queue.is_latched(keys)).then(|| LatchPermit { stamp: queue.stamp(), pass: None })
    }

    /// Waits behind overlapping latches, granted or queued, and returns with a pass. Called only after
    /// [`look`](Self::look) found a latch. The caller holds no lock and no resource the latch holder may wait for.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn wait(&self, keys: &[KeyRange<'_>], go_on: &dyn Fn() -> Result<()>) -> Result<LatchPermit<'_>> {
        let spans = keys.iter().map(LatchSpan::of).collect();
        Ok(LatchPermit { stamp: 0, pass: Some(self.enter(Reach::of(spans), Kind::Pass, go_on)?) })
    }

    /// Makes every waiter call `go_on` again.
    pub fn wake(&self) {
        drop(self.lock()); // a waiter holds it from `go_on` until it sleeps
        self.granted.notify_all();
    }

    fn enter(&self, reach: Reach, kind: Kind, go_on: &dyn Fn() -> Result<()>) -> Result<LatchGuard<'_>> {
        let mut queue = self.lock();
        let number = queue.push(reach, kind);
        self.publish(&queue);
        drop(queue);
        // Made before the second lock: if the wait fails, the guard drops off the lock.
        let guard = LatchGuard { latches: self, number };
        let mut queue = self.lock();
        while !queue.is_granted(number) {
            go_on()?;
            queue = self.granted.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        drop(queue);
        Ok(guard)
    }

    fn publish(&self, queue: &Queue) {
        self.stamp.store(queue.stamp(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Latch,
    Pass,
}

/// The keys of an entry.
pub(crate) enum Reach {
    /// Ascending by id, each family once.
    Families(Vec<FamilyReach>),
    Everything,
}

/// The keys of an entry in one family. An ingest of thousands of tables has as many spans.
pub(crate) struct FamilyReach {
    family: FamilyId,
    order: UserOrder,
    /// Ascending, disjoint.
    spans: Vec<Span>,
}

impl Reach {
    pub fn of(mut spans: Vec<LatchSpan>) -> Self {
        spans.sort_by_key(|span| span.family);
        let mut families: Vec<FamilyReach> = Vec::new();
        for LatchSpan { family, order, span } in spans {
            match families.last_mut() {
                Some(last) if last.family == family => last.spans.push(span),
                _ => families.push(FamilyReach { family, order, spans: vec![span] }),
            }
        }
        for FamilyReach { order, spans, .. } in &mut families {
            *spans = merged(order, std::mem::take(spans));
        }
        Reach::Families(families)
    }

    fn meets(&self, other: &Reach) -> bool {
        let (Reach::Families(families), Reach::Families(others)) = (self, other) else { return true };
        families.iter().any(|reach| of_family(others, reach.family).is_some_and(|other| reach.meets(other)))
    }

    fn meets_keys(&self, keys: &[KeyRange<'_>]) -> bool {
        let Reach::Families(families) = self else { return true };
        keys.iter().any(|range| of_family(families, range.family).is_some_and(|reach| reach.meets_keys(range)))
    }
}

fn of_family(families: &[FamilyReach], id: FamilyId) -> Option<&FamilyReach> {
    let place = families.binary_search_by_key(&id, |reach| reach.family).ok()?;
    families.get(place)
}

impl FamilyReach {
    /// Walks the side with fewer spans and seeks in the longer one.
    fn meets(&self, other: &FamilyReach) -> bool {
        let self_is_shorter = self.spans.len() <= other.spans.len();
        let (few, many) = if self_is_shorter { (self, other) } else { (other, self) };
        let mut rest = many.spans.as_slice();
        few.spans.iter().any(|span| {
            rest = self.not_before(rest, &span.start);
            rest.first().is_some_and(|next| next.overlaps(&self.order, span))
        })
    }

    fn meets_keys(&self, keys: &KeyRange<'_>) -> bool {
        self.not_before(&self.spans, keys.start).first().is_some_and(|next| {
            let end = self.order.compare(keys.end, &next.start);
            end.is_gt() || (end.is_eq() && !keys.end_is_exclusive)
        })
    }

    /// The spans from the first one not ending before the key. A galloping search from the front: many short steps cost
    /// as little as a merge.
    fn not_before<'a>(&self, spans: &'a [Span], user_key: &[u8]) -> &'a [Span] {
        let ends_before = |span: &Span| !span.reaches(&self.order, user_key);
        let mut stride = 1;
        while spans.get(stride).is_some_and(ends_before) {
            stride *= 2;
        }
        let near = spans.get(..stride).unwrap_or(spans);
        spans.get(near.partition_point(ends_before)..).unwrap_or_default()
    }
}

struct Entry {
    number: u64,
    kind: Kind,
    reach: Reach,
    granted: bool,
}

impl Entry {
    fn conflicts_with(&self, other: &Entry) -> bool {
        (self.kind == Kind::Latch || other.kind == Kind::Latch) && self.reach.meets(&other.reach)
    }

    fn is_latch(&self) -> bool {
        self.granted && self.kind == Kind::Latch
    }
}

/// Latches and passes, granted and waiting, in request order.
#[derive(Default)]
struct Queue {
    /// By `number`, ascending.
    entries: Vec<Entry>,
    last_number: u64,
    /// Latches granted so far.
    grants: u64,
}

impl Queue {
    fn push(&mut self, reach: Reach, kind: Kind) -> u64 {
        self.last_number += 1;
        let mut entry = Entry { number: self.last_number, kind, reach, granted: false };
        entry.granted = !self.entries.iter().any(|earlier| earlier.conflicts_with(&entry));
        self.grants += u64::from(entry.is_latch());
        self.entries.push(entry);
        self.last_number
    }

    /// Removes an entry and grants every entry with no conflict left. Returns whether any was granted, and the removed
    /// entry, to be dropped off the lock.
    fn remove(&mut self, number: u64) -> (bool, Entry) {
        let place = self.entries.binary_search_by_key(&number, |entry| entry.number);
        let removed = self.entries.remove(place.expect("an entry is removed by its only guard"));
        let mut granted_any = false;
        for end in 1..=self.entries.len() {
            let upto = self.entries.get_mut(..end).unwrap_or_default();
            let Some((entry, earlier)) = upto.split_last_mut() else { break };
            let waited = !entry.granted && entry.conflicts_with(&removed);
            if waited && !earlier.iter().any(|earlier| earlier.conflicts_with(entry)) {
                entry.granted = true;
                granted_any = true;
                self.grants += u64::from(entry.kind == Kind::Latch);
            }
        }
        (granted_any, removed)
    }

    fn is_granted(&self, number: u64) -> bool {
        let place = self.entries.binary_search_by_key(&number, |entry| entry.number);
        place.ok().and_then(|place| self.entries.get(place)).is_some_and(|entry| entry.granted)
    }

    fn is_latched(&self, keys: &[KeyRange<'_>]) -> bool {
        self.entries.iter().any(|entry| entry.is_latch() && entry.reach.meets_keys(keys))
    }

    fn stamp(&self) -> u64 {
        if self.entries.iter().any(Entry::is_latch) { self.grants } else { 0 }
    }
}

#[cfg(all(test, not(loom)))]
mod database_tests;
#[cfg(all(test, loom))]
mod loom_tests;
#[cfg(all(test, not(loom)))]
mod tests;
