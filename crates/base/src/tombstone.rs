//! Range tombstones and their fragmented form: sorted, disjoint fragments, each with its covering sequence numbers. One
//! binary search finds the tombstones over a key.

use std::cmp::Ordering;
use std::collections::{BTreeMap, btree_map};
use std::sync::Arc;

use crate::comparator::UserOrder;
use crate::key::SeqNo;

/// "Everything in `[start, end)` older than `seq` is deleted."
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    /// The first deleted key.
    pub start: Vec<u8>,
    /// The end, not deleted itself.
    pub end: Vec<u8>,
    /// The number of the deletion.
    pub seq: SeqNo,
}

/// A key range with the same tombstones throughout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// The first key.
    pub start: Vec<u8>,
    /// The end, not part of it.
    pub end: Vec<u8>,
    /// Newest first, no duplicates, never empty.
    pub seqs: Vec<SeqNo>,
}

/// Range tombstones cut into fragments sorted by start.
#[derive(Clone, Debug, Default)]
pub struct FragmentedTombstones {
    order: UserOrder,
    fragments: Vec<Fragment>,
}

impl FragmentedTombstones {
    /// Cuts `tombstones` (in any order; empty and inverted ranges are dropped) into fragments: O(n log n) comparisons
    /// plus the size of the output.
    pub fn build(order: UserOrder, mut tombstones: Vec<RangeTombstone>) -> Self {
        tombstones.retain(|t| order.compare(&t.start, &t.end).is_lt());
        let mut bounds: Vec<&[u8]> = tombstones.iter().flat_map(|t| [t.start.as_slice(), &t.end]).collect();
        bounds.sort_by(|a, b| order.compare(a, b));
        bounds.dedup_by(|a, b| order.equal(a, b));
        let mut by_start: Vec<&RangeTombstone> = tombstones.iter().collect();
        let mut by_end = by_start.clone();
        by_start.sort_by(|a, b| order.compare(&a.start, &b.start));
        by_end.sort_by(|a, b| order.compare(&a.end, &b.end));
        let (mut starting, mut ending) = (by_start.into_iter().peekable(), by_end.into_iter().peekable());
        let mut fragments: Vec<Fragment> = Vec::with_capacity(bounds.len().saturating_sub(1));
        let mut open = OpenSeqs::default();
        for pair in bounds.windows(2) {
            let [start, end] = pair else { continue };
            // No range ends before it starts, so tombstones ending here were added at an earlier bound.
            while let Some(t) = ending.next_if(|t| order.compare(&t.end, start).is_le()) {
                open.remove(t.seq);
            }
            while let Some(t) = starting.next_if(|t| order.compare(&t.start, start).is_le()) {
                open.add(t.seq);
            }
            if !open.counts.is_empty() {
                fragments.push(Fragment { start: start.to_vec(), end: end.to_vec(), seqs: open.newest_first() });
            }
        }
        FragmentedTombstones { order, fragments }
    }

    /// Adds a tombstone: the fragments are those that [`build`](Self::build) makes of all. Cuts the fragments under it anew, and
    /// moves those behind.
    pub fn add(&mut self, tombstone: RangeTombstone) {
        let (first, order) = (self.seek(&tombstone.start), &self.order);
        let behind = self.fragments.partition_point(|f| order.compare(&f.start, &tombstone.end).is_lt());
        let under = first..behind.max(first);
        let parts = self.fragments.get(under.clone()).unwrap_or_default().iter().flat_map(|f| {
            f.seqs.iter().map(|seq| RangeTombstone { start: f.start.clone(), end: f.end.clone(), seq: *seq })
        });
        let cut = Self::build(order.clone(), parts.chain([tombstone]).collect());
        self.fragments.splice(under, cut.fragments);
    }

    /// True without tombstones.
    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    /// The fragments, in key order, without overlap.
    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    /// The order of keys.
    pub fn order(&self) -> &UserOrder {
        &self.order
    }

    /// The index of the first fragment whose end is after `user_key`.
    pub fn seek(&self, user_key: &[u8]) -> usize {
        self.fragments.partition_point(|f| self.order.compare(&f.end, user_key).is_le())
    }

    /// Clips to the user keys from `start` to `end`, including `end` unless it is exclusive. Returns `self`, shared, if
    /// nothing is cut. In bytewise order a fragment past an inclusive end is cut right behind `end`. Other orders
    /// cannot name the key right behind `end`, so the fragment keeps its own.
    #[must_use]
    pub fn clipped(self: &Arc<Self>, start: &[u8], end: &[u8], end_is_exclusive: bool) -> Arc<Self> {
        let order = &self.order;
        let past = match order {
            _ if end_is_exclusive => Some(end.to_vec()),
            UserOrder::Bytewise => Some([end, &[0]].concat()),
            _ => None,
        };
        let begins_inside = |f: &Fragment| match &past {
            Some(past) => order.compare(&f.start, past).is_lt(),
            None => order.compare(&f.start, end).is_le(),
        };
        let cut_at = |f: &Fragment| past.as_ref().filter(|past| order.compare(&f.end, past).is_gt());
        let (Some(first), Some(last)) = (self.fragments.first(), self.fragments.last()) else { return self.clone() };
        if order.compare(&first.start, start).is_ge() && begins_inside(last) && cut_at(last).is_none() {
            return self.clone();
        }
        let reaching = self.fragments.iter().filter(|f| order.compare(&f.end, start).is_gt() && begins_inside(f));
        let cut = reaching.map(|f| Fragment {
            start: if order.compare(&f.start, start).is_lt() { start } else { &f.start }.to_vec(),
            end: cut_at(f).unwrap_or(&f.end).clone(),
            seqs: f.seqs.clone(),
        });
        Arc::new(FragmentedTombstones { order: order.clone(), fragments: cut.collect() })
    }

    /// The newest tombstone over `user_key` at or below `visible`: older entries of the key are deleted.
    pub fn covering(&self, user_key: &[u8], visible: SeqNo) -> Option<SeqNo> {
        let fragment = self.fragments.get(self.seek(user_key))?;
        if self.order.compare(&fragment.start, user_key) == Ordering::Greater {
            return None;
        }
        fragment.newest_at(visible)
    }
}

/// Sequence numbers of the tombstones open at a bound, each with its count.
#[derive(Default)]
struct OpenSeqs {
    counts: BTreeMap<SeqNo, usize>,
}

impl OpenSeqs {
    fn add(&mut self, seq: SeqNo) {
        *self.counts.entry(seq).or_default() += 1;
    }

    fn remove(&mut self, seq: SeqNo) {
        if let btree_map::Entry::Occupied(mut count) = self.counts.entry(seq) {
            *count.get_mut() -= 1;
            if *count.get() == 0 {
                count.remove();
            }
        }
    }

    /// Allocated to the exact size: fragments live as long as their table.
    fn newest_first(&self) -> Vec<SeqNo> {
        let mut seqs = Vec::with_capacity(self.counts.len());
        seqs.extend(self.counts.keys().rev());
        seqs
    }
}

impl Fragment {
    /// The newest of its sequence numbers at or below `visible`.
    pub fn newest_at(&self, visible: SeqNo) -> Option<SeqNo> {
        let at = self.seqs.partition_point(|&seq| seq > visible);
        self.seqs.get(at).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tombstone(start: &str, end: &str, seq: u64) -> RangeTombstone {
        RangeTombstone { start: start.into(), end: end.into(), seq: SeqNo(seq) }
    }

    #[test]
    fn overlapping_tombstones_are_cut_where_they_begin_and_end() {
        let cut = FragmentedTombstones::build(
            UserOrder::Bytewise,
            vec![tombstone("a", "e", 10), tombstone("c", "g", 15), tombstone("x", "x", 3), tombstone("z", "y", 4)],
        );
        let text: Vec<String> = cut
            .fragments()
            .iter()
            .map(|f| {
                format!(
                    "{}-{}:{:?}",
                    f.start[0] as char,
                    f.end[0] as char,
                    f.seqs.iter().map(|s| s.0).collect::<Vec<_>>()
                )
            })
            .collect();
        assert_eq!(text, ["a-c:[10]", "c-e:[15, 10]", "e-g:[15]"]);
        assert_eq!(cut.covering(b"d", SeqNo(12)), Some(SeqNo(10)));
        assert_eq!(cut.covering(b"d", SeqNo(20)), Some(SeqNo(15)));
        assert_eq!(cut.covering(b"f", SeqNo(12)), None);
        assert_eq!(cut.covering(b"g", SeqNo(20)), None);
        assert_eq!(cut.covering(b"A", SeqNo(20)), None);
    }

    #[test]
    fn one_by_one_they_are_cut_as_all_at_once() {
        let mut random = 1u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise] {
            for _ in 0..50 {
                let of = |start: u64, end: u64, seq| RangeTombstone {
                    start: vec![start as u8],
                    end: vec![end as u8],
                    seq: SeqNo(seq),
                };
                let all: Vec<_> = (0..20).map(|_| of(next(40), next(40), next(30))).collect();
                let mut added = FragmentedTombstones::build(order.clone(), Vec::new());
                all.iter().for_each(|tombstone| added.add(tombstone.clone()));
                let built = FragmentedTombstones::build(order.clone(), all);
                assert_eq!(added.fragments(), built.fragments());
            }
        }
    }

    #[test]
    fn tombstones_of_one_number_that_lie_in_each_other_cost_one_number_each() {
        let nested = (1..50_000u32).map(|end| RangeTombstone {
            start: 0u32.to_be_bytes().into(),
            end: end.to_be_bytes().into(),
            seq: SeqNo(7),
        });
        let cut = FragmentedTombstones::build(UserOrder::Bytewise, nested.collect());
        assert_eq!(cut.fragments().len(), 49_999);
        assert!(cut.fragments().iter().all(|f| f.seqs == [SeqNo(7)] && f.seqs.capacity() == 1));
    }

    /// Against the definition: inside, what covers a key is what covered it; outside there is nothing.
    #[test]
    fn clipping_agrees_with_the_definition() {
        let all = vec![tombstone("b", "d", 5), tombstone("c", "h", 7), tombstone("k", "n", 9)];
        let all = Arc::new(FragmentedTombstones::build(UserOrder::Bytewise, all));
        for (start, end) in (b'a'..b'p').flat_map(|start| (start..b'p').map(move |end| (start, end))) {
            for exclusive in [true, false] {
                let clipped = all.clipped(&[start], &[end], exclusive);
                for key in (b'a'..b'p').flat_map(|key| [vec![key], vec![key, 0]]) {
                    let inside = key >= vec![start] && (key < vec![end] || (key == [end] && !exclusive));
                    let expected = all.covering(&key, SeqNo::MAX).filter(|_| inside);
                    assert_eq!(clipped.covering(&key, SeqNo::MAX), expected, "{start}..{end} at {key:?}");
                }
            }
        }
        assert!(Arc::ptr_eq(&all, &all.clipped(b"b", b"n", true)), "shared where nothing is outside");
    }

    #[test]
    fn an_order_that_names_no_next_key_still_drops_what_begins_behind_the_end() {
        let all = vec![tombstone("h", "c", 7), tombstone("b", "a", 5)];
        let all = Arc::new(FragmentedTombstones::build(UserOrder::ReverseBytewise, all));
        let clipped = all.clipped(b"g", b"d", false);
        assert_eq!(clipped.fragments(), [Fragment { start: "g".into(), end: "c".into(), seqs: vec![SeqNo(7)] }]);
        assert_eq!(all.clipped(b"g", b"d", true).fragments()[0].end, b"d");
    }

    /// Against the definition, over every key and number of a small space.
    #[test]
    fn covering_agrees_with_the_definition() {
        let mut state = 7u64;
        let mut random = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for _ in 0..200 {
            let all: Vec<RangeTombstone> = (0..random(6))
                .map(|_| RangeTombstone {
                    start: vec![random(8) as u8],
                    end: vec![random(8) as u8],
                    seq: SeqNo(random(5)),
                })
                .collect();
            let cut = FragmentedTombstones::build(UserOrder::Bytewise, all.clone());
            for key in 0..8u8 {
                for visible in 0..6 {
                    let expected = all
                        .iter()
                        .filter(|t| t.start[0] <= key && key < t.end[0] && t.seq.0 <= visible)
                        .map(|t| t.seq)
                        .max();
                    assert_eq!(cut.covering(&[key], SeqNo(visible)), expected);
                }
            }
        }
    }
}
