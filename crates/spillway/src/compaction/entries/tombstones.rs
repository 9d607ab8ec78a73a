//! A job's range tombstones: they drop covered entries, and outputs keep the needed ones.

use std::sync::Arc;

use base::tombstone::{Fragment, FragmentedTombstones, RangeTombstone};
use base::{SeqNo, UserOrder};

use super::stripes::Stripes;
use crate::cursor::tombstones::locate;

/// The tombstones of all inputs as one set.
pub(super) struct InputTombstones {
    all: FragmentedTombstones,
    /// The first fragment ending after the last key asked for.
    at: usize,
}

impl InputTombstones {
    /// Keeps only the newest number of each stripe per fragment. Older numbers decide nothing, and each fragment of
    /// nested ranges has up to one number per range.
    pub fn new(order: &UserOrder, inputs: &[Arc<FragmentedTombstones>], stripes: &Stripes) -> Self {
        let pieces = |f: &Fragment| {
            let (start, end) = (f.start.clone(), f.end.clone());
            let newest = needed(&f.seqs, stripes, false).into_iter();
            newest.map(move |seq| RangeTombstone { start: start.clone(), end: end.clone(), seq })
        };
        let all = inputs.iter().flat_map(|input| input.fragments().iter().flat_map(pieces)).collect();
        InputTombstones { all: FragmentedTombstones::build(order.clone(), all), at: 0 }
    }

    /// Whether a tombstone of the entry's stripe covers the entry, hiding it from every reader.
    #[inline]
    pub fn cover(&mut self, user_key: &[u8], seq: SeqNo, stripe: SeqNo) -> bool {
        !self.all.is_empty() && self.cover_among(user_key, seq, stripe)
    }

    fn cover_among(&mut self, user_key: &[u8], seq: SeqNo, stripe: SeqNo) -> bool {
        self.at = locate(&self.all, self.at, user_key);
        let Some(fragment) = self.all.fragments().get(self.at) else { return false };
        self.all.order().compare(&fragment.start, user_key).is_le()
            && fragment.newest_at(stripe).is_some_and(|newest| newest > seq)
    }

    /// The tombstones of an output over the user keys from `lower`, inclusive, to `upper`, exclusive: per fragment the
    /// newest of each stripe, clipped to the range. At the bottom, without the oldest stripe. Adjacent fragments with
    /// equal numbers are joined.
    pub fn output(
        &self,
        stripes: &Stripes,
        bottommost: bool,
        lower: Option<&[u8]>,
        upper: Option<&[u8]>,
    ) -> Vec<RangeTombstone> {
        let order = self.all.order();
        let mut joined: Vec<Fragment> = Vec::new();
        let first = lower.map_or(0, |lower| self.all.seek(lower));
        for fragment in self.all.fragments().iter().skip(first) {
            let start = lower.filter(|lower| order.compare(&fragment.start, lower).is_lt()).unwrap_or(&fragment.start);
            let end = upper.filter(|upper| order.compare(&fragment.end, upper).is_gt()).unwrap_or(&fragment.end);
            if order.compare(start, end).is_ge() {
                break;
            }
            let seqs = needed(&fragment.seqs, stripes, bottommost);
            match joined.last_mut() {
                Some(last) if last.seqs == seqs && order.equal(&last.end, start) => last.end = end.to_vec(),
                _ if seqs.is_empty() => {}
                _ => joined.push(Fragment { start: start.to_vec(), end: end.to_vec(), seqs }),
            }
        }
        let pieces = |f: Fragment| {
            let whole = f.seqs.into_iter();
            whole.map(move |seq| RangeTombstone { start: f.start.clone(), end: f.end.clone(), seq })
        };
        joined.into_iter().flat_map(pieces).collect()
    }
}

/// Keeps the newest of each stripe from one fragment's numbers, newest first; at the bottom, without the oldest stripe.
fn needed(seqs: &[SeqNo], stripes: &Stripes, bottommost: bool) -> Vec<SeqNo> {
    let mut kept: Vec<SeqNo> = Vec::new();
    for &seq in seqs {
        let hidden = kept.last().is_some_and(|&newer| stripes.of(newer) == stripes.of(seq));
        let needless = bottommost && stripes.in_oldest(seq);
        if !hidden && !needless {
            kept.push(seq);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::snapshot::CapturedSnapshots;

    #[test]
    fn ranges_that_lie_in_each_other_cost_one_number_for_each_stripe() {
        let nested = (1..=2000u32).map(|end| RangeTombstone {
            start: 0u32.to_be_bytes().into(),
            end: end.to_be_bytes().into(),
            seq: SeqNo(end.into()),
        });
        let input = Arc::new(FragmentedTombstones::build(UserOrder::Bytewise, nested.collect()));
        assert_eq!(input.fragments().iter().map(|f| f.seqs.len()).sum::<usize>(), 2000 * 2001 / 2);
        let snapshots = CapturedSnapshots { snapshots: vec![SeqNo(500)], visible: SeqNo(3000) };
        let stripes = Stripes::new(&snapshots);
        let taken = InputTombstones::new(&UserOrder::Bytewise, &[input], &stripes);
        assert_eq!(taken.all.fragments().iter().map(|f| f.seqs.len()).sum::<usize>(), 2500);
        assert_eq!(taken.output(&stripes, false, None, None).len(), 3, "joined where neighbours say the same");
    }
}
