use base::ValueKind;
use base::key::encode;
use base::tombstone::RangeTombstone;

use super::*;
use crate::cursor::testing::{Random, fragmented};
use crate::version::table_file::FileMeta;

fn random_tombstones(random: &mut Random, count: u64) -> Vec<RangeTombstone> {
    (0..count)
        .map(|_| RangeTombstone {
            start: vec![random.below(20) as u8],
            end: vec![random.below(20) as u8],
            seq: SeqNo(1 + random.below(30)),
        })
        .collect()
}

/// Walks in both directions and jumps agree with the definition.
#[test]
fn spans_agree_with_the_definition() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let visible = SeqNo(random.below(32));
        let mut index = CoverIndex::new(UserOrder::Bytewise, visible);
        let mut all = Vec::new();
        for rank in 0..random.below(4) as usize {
            let count = random.below(5);
            let tombstones = random_tombstones(&mut random, count);
            all.extend(tombstones.iter().cloned().map(|t| (rank, t)));
            if let Some(tombstones) = fragmented(tombstones) {
                index.add(rank, tombstones);
            }
        }
        let mut at = 10i64;
        for _ in 0..200 {
            at = match random.below(8) {
                0..3 => at + 1,
                3..6 => at - 1,
                _ => random.below(22) as i64,
            }
            .clamp(0, 21);
            let key = [at as u8];
            let over = |t: &RangeTombstone| *t.start <= key[..] && key[..] < *t.end && t.seq <= visible;
            let covering: Vec<&(usize, RangeTombstone)> = all.iter().filter(|(_, t)| over(t)).collect();
            let expected = covering.iter().map(|(_, t)| t.seq).max().unwrap_or(SeqNo::ZERO);
            assert_eq!(index.newest_over(&key), expected, "seed {seed} key {at}");
            let hole = index.hole();
            assert_eq!(hole.as_ref().map(|hole| hole.rank), covering.iter().map(|(rank, _)| *rank).min());
            assert!(hole.is_none_or(|hole| hole.start <= &key[..] && &key[..] < hole.end));
        }
    }
}

#[test]
fn a_table_covers_nothing_outside_its_bounds() {
    let whole = |seq| RangeTombstone { start: b"a".to_vec(), end: b"z".to_vec(), seq: SeqNo(seq) };
    let tombstones = fragmented(vec![whole(9)]).unwrap();
    let meta = |largest: Vec<u8>| FileMeta {
        smallest: encode(b"f", SeqNo(3), ValueKind::Value),
        largest,
        ..FileMeta::default()
    };
    let covers = |order: UserOrder, largest: Vec<u8>, key: &[u8]| {
        let all = FragmentedTombstones::build(order, vec![whole(9)]);
        meta(largest).tombstones_inside(&Arc::new(all)).covering(key, SeqNo(9)).is_some()
    };
    let ending_at = || encode(b"m", SeqNo(2), ValueKind::Value);
    let ending_before = || encode(b"m", SeqNo::MAX, ValueKind::RangeDeletion);
    for (key, inclusive, exclusive) in
        [("e", false, false), ("f", true, true), ("m", true, false), ("m0", false, false)]
    {
        assert_eq!(covers(UserOrder::Bytewise, ending_at(), key.as_bytes()), inclusive, "{key}");
        assert_eq!(covers(UserOrder::Bytewise, ending_before(), key.as_bytes()), exclusive, "{key}");
    }
    let spanning = FileMeta {
        smallest: encode(b"a", SeqNo(9), ValueKind::RangeDeletion),
        ..meta(encode(b"z", SeqNo::MAX, ValueKind::RangeDeletion))
    };
    let same = spanning.tombstones_inside(&tombstones);
    assert!(Arc::ptr_eq(&same, &tombstones), "nothing to cut, nothing copied");
}
