//! Range tombstones, and their fragmented form: sorted pieces that do not overlap, each with the sequence numbers that
//! cover it, so that one binary search answers what covers a key.

use std::cmp::Ordering;

use crate::comparator::UserOrder;
use crate::key::SeqNo;

/// "Everything in `[start, end)` older than `seq` is deleted."
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeTombstone {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    pub seq: SeqNo,
}

/// One piece: between its bounds the same tombstones apply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragment {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    /// Newest first, no number twice, never empty.
    pub seqs: Vec<SeqNo>,
}

/// Range tombstones cut into fragments sorted by start. Built once, then shared.
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
        let mut bounds: Vec<Vec<u8>> = tombstones.iter().flat_map(|t| [t.start.clone(), t.end.clone()]).collect();
        bounds.sort_by(|a, b| order.compare(a, b));
        bounds.dedup_by(|a, b| order.equal(a, b));
        tombstones.sort_by(|a, b| order.compare(&a.start, &b.start));
        let mut fragments: Vec<Fragment> = Vec::with_capacity(bounds.len());
        let mut pending = tombstones.into_iter().peekable();
        let mut open: Vec<RangeTombstone> = Vec::new();
        for pair in bounds.windows(2) {
            let [start, end] = pair else { continue };
            open.retain(|t| order.compare(&t.end, start).is_gt());
            while let Some(t) = pending.next_if(|t| order.compare(&t.start, start).is_le()) {
                open.push(t);
            }
            if open.is_empty() {
                continue;
            }
            let mut seqs: Vec<SeqNo> = open.iter().map(|t| t.seq).collect();
            seqs.sort_unstable_by(|a, b| b.cmp(a));
            seqs.dedup();
            fragments.push(Fragment { start: start.clone(), end: end.clone(), seqs });
        }
        FragmentedTombstones { order, fragments }
    }

    pub fn is_empty(&self) -> bool {
        self.fragments.is_empty()
    }

    pub fn fragments(&self) -> &[Fragment] {
        &self.fragments
    }

    pub fn order(&self) -> &UserOrder {
        &self.order
    }

    /// The index of the first fragment whose end is after `user_key`.
    pub fn seek(&self, user_key: &[u8]) -> usize {
        self.fragments.partition_point(|f| self.order.compare(&f.end, user_key).is_le())
    }

    /// The newest tombstone at or below `visible` that covers `user_key`: entries of it older than that are deleted.
    pub fn covering(&self, user_key: &[u8], visible: SeqNo) -> Option<SeqNo> {
        let fragment = self.fragments.get(self.seek(user_key))?;
        if self.order.compare(&fragment.start, user_key) == Ordering::Greater {
            return None;
        }
        fragment.newest_at(visible)
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
