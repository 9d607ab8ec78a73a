//! Range latches: while an ingest is given its level at once (mode `direct`), writes and other ingests that overlap it
//! are held back before they take numbers. All others go on, and where there is no latch each pays one atomic load.
//!
//! # Who waits for whom
//! An ingest in mode `direct` holds a *latch* on all its spans. Whatever else takes numbers only has to be *clear* of
//! latches: it looks, and where a latch overlaps its keys it waits for a *pass*, which keeps overlapping latches from
//! being granted until it is numbered. Latches and passes stand in one queue in the order in which they were asked for;
//! one is granted when no earlier one conflicts with it, granted or not. All spans of one call are one entry, and waits
//! go to earlier entries only: so there is no deadlock among them, and nobody is overtaken for ever.
//!
//! Neither is held over back-pressure: a latch is asked for after admission, a pass is given back before any other wait, but
//! for those for whoever has the commit lock, who waits for nobody.
//! Jobs take none (V2 protects them).
//!
//! # Why no overlapping write takes a number under a latch
//! Numbers are given out under the commit lock, and there, just before, the write asks [`RangeLatches::lets_pass`]. A
//! latch is published in `stamp` first, and then its holder takes the commit lock once, as a barrier. In the order of that
//! lock a write is
//! - before the barrier: then the holder finds it, in the pipeline's slots or in the memtable;
//! - behind it: then the lock makes it see this latch's stamp or a later one, none of which is 0 or was told to a write
//!   that did not look at this latch.
//!
//! `loom_tests.rs` runs this through every order in which threads can meet, and shows that the barrier is needed.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use base::{FamilyId, Result, UserOrder};
use crossbeam_utils::CachePadded;

use crate::commit::overlap::merged;
use crate::commit::sync::{AtomicU64, Condvar, Mutex, MutexGuard};
use crate::version::span::Span;

/// Keys of one family that an ingest latches.
#[derive(Clone)]
pub(crate) struct LatchSpan {
    pub family: FamilyId,
    /// The family's.
    pub order: UserOrder,
    pub span: Span,
}

impl LatchSpan {
    pub fn of(keys: &KeyRange<'_>) -> Self {
        LatchSpan { family: keys.family, order: keys.order.clone(), span: keys.to_span() }
    }
}

/// Bounds of what a write or an ingest touches in one family.
#[derive(Clone, Copy)]
pub(crate) struct KeyRange<'a> {
    pub family: FamilyId,
    /// The family's.
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

/// The latches of a database. Its lock is a leaf.
pub(crate) struct RangeLatches {
    /// 0 while no latch is granted; else a number that no earlier set of granted latches had, but for larger ones of which
    /// this is what is left. Written under the lock of `queue`.
    stamp: CachePadded<AtomicU64>,
    queue: Mutex<Queue>,
    granted: Condvar,
}

/// What someone who wants numbers has learnt of the latches, good for the keys that it was asked for. The default is to
/// have learnt nothing: it lets pass where there is no latch.
#[derive(Default)]
pub(crate) struct Clearance<'a> {
    /// Where the latches stood when none of them overlapped.
    stamp: u64,
    /// No overlapping latch is granted as long as it is held.
    pass: Option<LatchGuard<'a>>,
}

impl Clearance<'_> {
    /// Holds no latch up any more. Called before a wait that others may wait in, and off the commit lock.
    pub fn give_back_pass(&mut self) {
        self.pass = None;
    }
}

/// A latch, or a pass; it ends when dropped.
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
        drop(queue); // before the entry, which may hold many spans
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

    /// Latches all spans at once, waiting for overlapping latches and passes. `barrier` takes the commit lock and
    /// releases it: every overlapping write that has numbers after the call had them before `barrier`. An ingest asks
    /// once: a second call would wait for the first one's latch.
    ///
    /// # Errors
    /// Those of `go_on`, which is asked before each sleep, under the lock here: it takes none. Whoever changes its answer
    /// calls [`wake`](Self::wake) afterwards.
    pub fn acquire(
        &self,
        spans: Vec<LatchSpan>,
        go_on: &dyn Fn() -> Result<()>,
        barrier: impl FnOnce(),
    ) -> Result<LatchGuard<'_>> {
        let latch = self.enter(Reach::of(spans), Kind::Latch, go_on)?;
        barrier();
        Ok(latch)
    }

    /// As [`acquire`](Self::acquire), of every key of every family: a gate for all that takes numbers.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn acquire_all(&self, go_on: &dyn Fn() -> Result<()>, barrier: impl FnOnce()) -> Result<LatchGuard<'_>> {
        let gate = self.enter(Reach::Everything, Kind::Latch, go_on)?;
        barrier();
        Ok(gate)
    }

    /// As [`acquire`](Self::acquire), without waiting: `None` where something that overlaps is latched, asked for before,
    /// or let pass just now.
    pub fn try_acquire(&self, spans: Vec<LatchSpan>, barrier: impl FnOnce()) -> Option<LatchGuard<'_>> {
        self.try_enter(Reach::of(spans)).inspect(|_| barrier())
    }

    /// As [`acquire_all`](Self::acquire_all), without waiting.
    pub fn try_acquire_all(&self, barrier: impl FnOnce()) -> Option<LatchGuard<'_>> {
        self.try_enter(Reach::Everything).inspect(|_| barrier())
    }

    /// Whether what the clearance was given for may take numbers. Asked under the commit lock, just before.
    #[inline]
    pub fn lets_pass(&self, clearance: &Clearance<'_>) -> bool {
        // The commit lock makes a granted latch be seen. Acquire is for what a latch's release says: that whatever its
        // holder did comes before this write.
        let stamp = self.stamp.load(Ordering::Acquire);
        stamp == 0 || stamp == clearance.stamp || clearance.pass.is_some()
    }

    /// A clearance for keys that no granted latch overlaps; `None` where one does. Waits for nobody.
    pub fn look(&self, keys: &[KeyRange<'_>]) -> Option<Clearance<'_>> {
        let queue = self.lock();
        (!queue.is_latched(keys)).then(|| Clearance { stamp: queue.stamp(), pass: None })
    }

    /// Waits behind overlapping latches, granted or asked for, and returns with a pass. Only after
    /// [`look`](Self::look) found one. The caller holds no lock, and nothing that the latch's holder may wait for.
    ///
    /// # Errors
    /// As [`acquire`](Self::acquire).
    pub fn wait(&self, keys: &[KeyRange<'_>], go_on: &dyn Fn() -> Result<()>) -> Result<Clearance<'_>> {
        let spans = keys.iter().map(LatchSpan::of).collect();
        Ok(Clearance { stamp: 0, pass: Some(self.enter(Reach::of(spans), Kind::Pass, go_on)?) })
    }

    /// Has everyone who waits ask again whether to go on.
    pub fn wake(&self) {
        drop(self.lock()); // whoever asked before the change holds it until it sleeps
        self.granted.notify_all();
    }

    fn enter(&self, reach: Reach, kind: Kind, go_on: &dyn Fn() -> Result<()>) -> Result<LatchGuard<'_>> {
        let mut queue = self.lock();
        let number = queue.push(reach, kind);
        self.publish(&queue);
        drop(queue);
        // Made before the lock is taken again, so that it is dropped off the lock where the wait fails.
        let guard = LatchGuard { latches: self, number };
        let mut queue = self.lock();
        while !queue.is_granted(number) {
            go_on()?;
            queue = self.granted.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
        drop(queue);
        Ok(guard)
    }

    /// Nobody else sees an entry that is not granted at once.
    fn try_enter(&self, reach: Reach) -> Option<LatchGuard<'_>> {
        let mut queue = self.lock();
        let number = queue.push(reach, Kind::Latch);
        if !queue.is_granted(number) {
            let (_, _refused) = queue.remove(number);
            drop(queue);
            return None;
        }
        self.publish(&queue);
        Some(LatchGuard { latches: self, number })
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

/// The keys that an entry is about.
enum Reach {
    /// By id, each family once.
    Families(Vec<FamilyReach>),
    Everything,
}

/// What an entry is about in one family. Thousands of spans where that many tables are ingested.
struct FamilyReach {
    family: FamilyId,
    order: UserOrder,
    /// Ascending, none overlapping another.
    spans: Vec<Span>,
}

impl Reach {
    fn of(mut spans: Vec<LatchSpan>) -> Self {
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
    /// Walks along the one with fewer spans and seeks in the other.
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

    /// The spans from the first one on that does not end before the key. Sought from the front in growing strides: a walk
    /// of many short steps costs as little as one along both.
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

/// Latches and passes, granted ones and those waited for, in the order in which they were asked for.
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

    /// Takes an entry out and grants what waited for nothing else; false where there was nothing. Returns the entry, to be
    /// dropped off the lock.
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
