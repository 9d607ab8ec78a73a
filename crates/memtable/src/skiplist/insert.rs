//! Insertion: a node's place, height and publication.

use std::sync::atomic::Ordering::{Relaxed, Release};

use parking_lot::Mutex;

use super::list::{BRANCHING, HEIGHT_MAX, Link, List, Splice, Target};
use crate::Entry;
use crate::arena::{GRANULE_BYTES, Ref};
use crate::order::KeyOrder;
use crate::record::{self, RECORD_OVERHEAD_BYTES, record_bytes, trailer_of};

/// Links reserved for each insertion. Towers have 2 on average. Later insertions of the stripe may use what is left over;
/// a tower beyond that is cut. So a reservation need not assume the tallest tower.
const LINKS_PAID: usize = 3;

/// Bytes reserved for each insertion beside its key and value: links, the record's lengths and trailer, and alignment.
pub(super) const BYTES_PAID: usize = LINKS_PAID * GRANULE_BYTES + RECORD_OVERHEAD_BYTES + GRANULE_BYTES - 1;

/// Reserved bytes left over go back to the arena in such steps. What the tallest tower takes stays with the stripe.
const STEP_BYTES: usize = 4096;
const KEPT_BYTES: usize = HEIGHT_MAX * GRANULE_BYTES;

/// Level-0 steps tried from the place of the last insertion before a descent.
const NEAR_STEPS_MAX: usize = 3;

/// State shared by the writers of one stripe.
pub(super) struct Finger(Mutex<FingerState>);

struct FingerState {
    /// Place of the stripe's last insertion.
    splice: Splice,
    /// Reserved bytes that the stripe's insertions did not need.
    left_over: usize,
}

impl Finger {
    pub(super) fn new(head: Ref) -> Finger {
        Finger(Mutex::new(FingerState { splice: Splice::new(head), left_over: 0 }))
    }
}

impl<O: KeyOrder, const IMAGE: bool> List<O, IMAGE> {
    /// Inserts an entry with reserved bytes. Of entries with equal internal keys the later comes first.
    pub(super) fn insert(&self, finger: &Finger, entry: &Entry<'_>) -> Ref {
        let target = self.target(entry.user_key, trailer_of(entry));
        let random = self.random(target.trailer);
        // No waiting: if the stripe's finger is in use, insert without it.
        let Some(mut finger) = finger.0.try_lock() else {
            let mut splice = Splice::new(self.head);
            self.descend::<false>(&target, |level, node| splice.set(level, node));
            return self.link_in(entry, &target, &mut splice, height(random).min(LINKS_PAID));
        };
        if !self.is_near(&mut finger.splice, &target) {
            let mut splice = Splice::new(self.head);
            self.descend::<false>(&target, |level, node| splice.set(level, node));
            finger.splice = splice;
        }
        let height = self.pay(&mut finger, entry, height(random));
        let node = self.link_in(entry, &target, &mut finger.splice, height);
        self.keep_near(&mut finger.splice, node, &target);
        node
    }

    /// Inserts an entry at the place in `splice`, found by a descent; later insertions may have made it stale.
    pub(super) fn insert_at(&self, finger: &Finger, entry: &Entry<'_>, splice: &mut Splice) -> Ref {
        let target = self.target(entry.user_key, trailer_of(entry));
        let wanted = height(self.random(target.trailer));
        let height = match finger.0.try_lock() {
            Some(mut finger) => self.pay(&mut finger, entry, wanted),
            None => wanted.min(LINKS_PAID),
        };
        self.link_in(entry, &target, splice, height)
    }

    /// Pays for a node from the entry's reservation; returns its height, at most `wanted`. Gives back what gathers unused:
    /// without that a memtable of small entries would be full with a sixth of its bytes untouched.
    fn pay(&self, finger: &mut FingerState, entry: &Entry<'_>, wanted: usize) -> usize {
        let height = finger.pay(record_bytes(entry), wanted);
        if finger.left_over >= STEP_BYTES + KEPT_BYTES {
            finger.left_over -= STEP_BYTES;
            self.arena.give_back(STEP_BYTES);
        }
        height
    }

    /// True if `entry` belongs near the stripe's last insertion: keys seem to come in order.
    pub(super) fn continues(&self, finger: &Finger, entry: &Entry<'_>) -> bool {
        let target = self.target(entry.user_key, trailer_of(entry));
        finger.0.try_lock().is_some_and(|mut finger| self.is_near(&mut finger.splice, &target))
    }

    /// Ensures that no node of `splice` is behind its lowest, after `node` was linked in. One can be if another writer
    /// linked a node in between, after this writer passed level 0 and before it walked a higher level.
    fn keep_near(&self, splice: &mut Splice, node: Ref, target: &Target<'_>) {
        if self.next(splice.at(0), 0).node() != node {
            let (before, _) = self.walk::<false>(splice.at(0), 0, target);
            splice.set(0, before);
        }
    }

    /// True if the target's place is at most a few steps from `splice`. Then the nodes of all levels are before the
    /// target, because none is behind the lowest.
    fn is_near(&self, splice: &mut Splice, target: &Target<'_>) -> bool {
        let mut node = splice.at(0);
        if node != self.head && self.compare(node, target).is_ge() {
            return false;
        }
        for _ in 0..=NEAR_STEPS_MAX {
            let link = self.next(node, 0);
            if !self.passes::<false>(link, target) {
                splice.set(0, node);
                return true;
            }
            node = link.node();
        }
        false
    }

    /// Makes the node and links it in from the lowest level up, so that a reader reaching it at any level can descend.
    /// Every node of `splice` must be before the target.
    fn link_in(&self, entry: &Entry<'_>, target: &Target<'_>, splice: &mut Splice, height: usize) -> Ref {
        let node = self.arena.allocate(height * GRANULE_BYTES + record_bytes(entry)).forward(height - 1);
        // SAFETY: behind the tower the allocation has room for the record, and it is not published yet.
        unsafe { record::write(&self.arena, node.forward(1), entry) };
        let published = Link::new(node, target.tag).0;
        for level in 0..height {
            // SAFETY: both towers have the level: this one was made with it, and nodes of a splice were reached at it.
            // Their granules are atomic words to everyone.
            let own = unsafe { self.arena.word(node.back(level)) };
            loop {
                let (before, next) = self.walk::<false>(splice.at(level), level, target);
                splice.set(level, before);
                own.store(next.0, Relaxed);
                // SAFETY: as above.
                let link = unsafe { self.arena.word(before.back(level)) };
                // Release publishes the record and the links stored so far; acquire is in the next walk's loads.
                if link.compare_exchange(next.0, published, Release, Relaxed).is_ok() {
                    break;
                }
            }
        }
        if height > self.top() {
            self.height.fetch_max(height as u32, Relaxed);
        }
        node
    }

    /// Random bits for a tower's height. They depend only on the inserted data, so one seed replays a run. The arena's
    /// frontier distinguishes entries of one sequence number.
    fn random(&self, trailer: u64) -> u64 {
        let mut x = (self.arena.allocated() as u64 ^ trailer.rotate_left(32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        x = (x ^ (x >> 32)).wrapping_mul(0xD6E8_FEB8_6659_FD93);
        x ^ (x >> 32)
    }
}

impl FingerState {
    /// Pays for a node with a record of so many bytes; returns its height, at most `wanted`.
    fn pay(&mut self, record_bytes: usize, wanted: usize) -> usize {
        let payload_bytes = record_bytes - RECORD_OVERHEAD_BYTES;
        let for_links = self.left_over + BYTES_PAID + payload_bytes - record_bytes.next_multiple_of(GRANULE_BYTES);
        let height = wanted.min(for_links / GRANULE_BYTES);
        self.left_over = for_links - height * GRANULE_BYTES;
        height
    }
}

/// Draws a height; each is `BRANCHING` times as likely as the next.
fn height(random: u64) -> usize {
    let level = random.trailing_zeros() / BRANCHING.ilog2();
    (level as usize + 1).min(HEIGHT_MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;

    use base::{SeqNo, ValueKind};

    use super::*;
    use crate::arena::{Arena, ArenaConfig};
    use crate::order::Bytewise;

    /// Writers of ascending keys that lie between each other's, each with a finger of its own.
    #[test]
    fn every_level_is_in_order_whoever_wrote_between() {
        const WRITERS: usize = 4;
        const KEYS: u64 = 20_000;
        let arena = Arena::with(&ArenaConfig::new(8 << 20)).expect("memory");
        let list = List::new(arena, Bytewise).expect("room for a head");
        let next = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..WRITERS {
                scope.spawn(|| {
                    let finger = Finger::new(list.head);
                    while let n = next.fetch_add(1, Relaxed)
                        && n < KEYS
                    {
                        assert!(list.arena.try_reserve(64));
                        // Fifteen keys of sixteen follow the last, a few steps off; the other begins elsewhere.
                        let key = if n % 16 < 15 { n ^ 7 } else { n / 2 }.to_be_bytes();
                        list.insert(
                            &finger,
                            &Entry { user_key: &key, seq: SeqNo(n), kind: ValueKind::Value, value: b"" },
                        );
                    }
                });
            }
        });
        for level in 0..HEIGHT_MAX {
            let mut node = list.next(list.head, level).node();
            while !node.is_null() {
                let next = list.next(node, level).node();
                if !next.is_null() {
                    let (user_key, trailer) = list.record(next).split();
                    let order = list.compare(node, &list.target(user_key, trailer));
                    assert!(order.is_lt(), "level {level}: {node:?} leads to {next:?}");
                }
                node = next;
            }
        }
    }

    #[test]
    fn nodes_never_take_more_than_was_reserved() {
        let mut state = FingerState { splice: Splice::new(Ref::NULL), left_over: 0 };
        let (mut reserved, mut taken, mut cut) = (0, 0, 0);
        for n in 1..=10_000u64 {
            // Runs of tall towers between the usual mixture.
            let wanted = if n % 100 < 20 { HEIGHT_MAX } else { height(n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20) };
            let payload = n as usize % 37;
            let height = state.pay(RECORD_OVERHEAD_BYTES + payload, wanted);
            assert!((1..=wanted).contains(&height));
            reserved += BYTES_PAID + payload;
            taken += (height * GRANULE_BYTES + RECORD_OVERHEAD_BYTES + payload).next_multiple_of(GRANULE_BYTES);
            cut += usize::from(height < wanted);
            assert_eq!(reserved - taken, state.left_over, "after {n} insertions");
        }
        assert!(cut > 0);
    }

    /// A full memtable has few bytes that no insertion needed.
    #[test]
    fn what_insertions_did_not_need_goes_back() {
        let arena = Arena::with(&ArenaConfig::new(1 << 20)).expect("memory");
        let list = List::new(arena, Bytewise).expect("room for a head");
        let finger = Finger::new(list.head);
        let mut n = 0u64;
        while list.arena.try_reserve(BYTES_PAID + 44) {
            let key = n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
            list.insert(&finger, &Entry { user_key: &key, seq: SeqNo(n), kind: ValueKind::Value, value: &[0; 36] });
            n += 1;
        }
        let unused = list.arena.capacity() - list.arena.allocated();
        assert!(unused < STEP_BYTES + 2 * KEPT_BYTES, "{unused} bytes unused of {}", list.arena.capacity());
    }
}
