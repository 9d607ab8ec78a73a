//! Range deletions, timestamps, estimates, insertion orders, limits.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::*;

#[test]
fn range_deletions_are_apart_and_fragmented_anew_after_each() {
    for option in options() {
        let memtable = make(&option, &config(UserOrder::Bytewise, 1 << 20));
        assert!(memtable.tombstones().is_none());
        assert!(put(&*memtable, b"m", 3, ValueKind::Value, b"v"));
        assert!(put(&*memtable, b"a", 5, ValueKind::RangeDeletion, b"n"));
        let first = memtable.tombstones().expect("one");
        assert!(Arc::ptr_eq(&first, &memtable.tombstones().expect("one")), "built once");
        assert_eq!(first.covering(b"m", SeqNo(9)), Some(SeqNo(5)));
        assert!(put(&*memtable, b"k", 7, ValueKind::RangeDeletion, b"z"));
        let second = memtable.tombstones().expect("two");
        assert_eq!(second.covering(b"m", SeqNo(9)), Some(SeqNo(7)));
        assert_eq!(second.covering(b"m", SeqNo(6)), Some(SeqNo(5)));
        assert_eq!(get(&*memtable, b"a", 9), []);
        assert_eq!(forward(&mut *Arc::clone(&memtable).cursor()).len(), 1, "no range deletion among the points");
        let counts = memtable.counts();
        assert_eq!((counts.entries, counts.deletions, counts.payload_bytes), (3, 2, 6));
    }
}

/// Byte order, counted.
#[derive(Default)]
struct Counted(AtomicUsize);

impl Comparator for Counted {
    fn name(&self) -> &str {
        "test.Counted"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.fetch_add(1, Relaxed);
        a.cmp(b)
    }
}

/// To build the fragments anew at each read takes two thousand times as many, and more.
#[test]
fn range_deletions_and_reads_in_turn_take_few_comparisons_each() {
    let counted = Arc::new(Counted::default());
    let memtable = make("skip_list", &config(UserOrder::Custom(counted.clone()), 1 << 20));
    let mut random = Random(3);
    for i in 0..2000 {
        let start = random.below(1 << 30) as u32;
        assert!(put(&*memtable, &start.to_be_bytes(), i, ValueKind::RangeDeletion, &(start + 9).to_be_bytes()));
        let tombstones = memtable.tombstones().expect("some");
        assert_eq!(tombstones.covering(&(start + 8).to_be_bytes(), SeqNo(i)), Some(SeqNo(i)));
    }
    assert!(counted.0.load(Relaxed) < 2000 * 100, "{}", counted.0.load(Relaxed));
}

#[test]
fn a_batch_may_mix_points_and_ranges() {
    for option in options() {
        let memtable = make(&option, &config(UserOrder::Bytewise, 1 << 20));
        let keys: Vec<[u8; 2]> = (0..100u16).map(|i| (i.wrapping_mul(7919)).to_be_bytes()).collect();
        let kind = |i: usize| if i.is_multiple_of(10) { ValueKind::RangeDeletion } else { ValueKind::Value };
        assert!(memtable.try_reserve(memtable.worst_case_bytes(100, 400)));
        memtable.insert_all(&mut keys.iter().enumerate().map(|(i, key)| Entry {
            user_key: key,
            seq: SeqNo(i as u64),
            kind: kind(i),
            value: b"\xff\xff",
        }));
        let counts = memtable.counts();
        assert_eq!((counts.entries, counts.deletions, counts.payload_bytes), (100, 10, 400));
        assert_eq!(forward(&mut *Arc::clone(&memtable).cursor()).len(), 90);
        assert!(memtable.tombstones().is_some());
    }
}

#[test]
fn versions_of_a_timed_key_are_one_key() {
    for option in options() {
        for bloom_ratio in [0.0, 0.1] {
            let mut config = config(UserOrder::Custom(Arc::new(Timed)), 1 << 20);
            config.bloom_ratio = bloom_ratio;
            let memtable = make(&option, &config);
            for (key, seq) in [(b"k\x05", 10), (b"k\x03", 12), (b"k\x03", 4), (b"j\x04", 5), (b"l\x01", 6)] {
                assert!(put(&*memtable, key, seq, ValueKind::Value, &[key[1], seq as u8]));
            }
            let values =
                |time: u8, seq| get(&*memtable, &[b'k', time], seq).into_iter().map(|(_, _, v)| v).collect::<Vec<_>>();
            assert_eq!(values(9, 20), [[5, 10], [3, 12], [3, 4]]);
            assert_eq!(values(4, 20), [[3, 12], [3, 4]]);
            assert_eq!(values(9, 11), [[5, 10], [3, 4]], "an older time can have a newer number");
            assert_eq!(values(2, 20), [[0u8; 2]; 0]);
        }
    }
}

#[test]
fn keys_in_order_either_way_and_of_all_lengths_are_found() {
    for option in options() {
        for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise] {
            for descending in [false, true] {
                let memtable = make(&option, &config(order.clone(), 8 << 20));
                let key = |i: u32| format!("table{:0width$}", i, width = 1 + (i % 9) as usize).into_bytes();
                for i in 0..3000u32 {
                    let i = if descending { 3000 - i } else { i };
                    assert!(put(&*memtable, &i.to_be_bytes(), 1, ValueKind::Value, b""));
                    assert!(put(&*memtable, &key(i), 2, ValueKind::Value, b"x"));
                }
                let mut cursor = Arc::clone(&memtable).cursor();
                let entries = forward(&mut *cursor);
                assert_eq!(entries.len(), 6000);
                let order = InternalOrder::new(order.clone());
                assert!(entries.is_sorted_by(|a, b| order.compare(&a.0, &b.0).is_le()));
                for i in 1..3000u32 {
                    assert_eq!(get(&*memtable, &i.to_be_bytes(), 9).len(), 1);
                    assert!(!get(&*memtable, &key(i), 9).is_empty());
                    assert!(get(&*memtable, &(i + 5000).to_be_bytes(), 9).is_empty());
                }
            }
        }
    }
}

#[test]
fn estimates_are_exact_for_few_and_near_for_many() {
    for option in options().into_iter().filter(|option| option.starts_with("trie") || option.starts_with("skip_list")) {
        let memtable = make(&option, &config(UserOrder::Bytewise, 8 << 20));
        assert_eq!(memtable.approximate_entries(b"", b"\xff"), 0);
        for i in 0..20_000u32 {
            assert!(put(&*memtable, &i.reverse_bits().to_be_bytes(), u64::from(i), ValueKind::Value, b""));
        }
        let half = memtable.approximate_entries(&[0], &[0x80]);
        assert!((5_000..20_000).contains(&half), "{option}: {half} of 10000");
        let (start, end) = (5u32.reverse_bits().to_be_bytes(), [0xa0, 0, 0, 1]);
        assert_eq!(memtable.approximate_entries(&start, &end), 1, "{option}");
        assert_eq!(memtable.approximate_entries(&end, &start), 0, "{option}");
    }
}

/// Equal keys and numbers must not make a representation slow or lose entries.
#[test]
fn equal_internal_keys_are_all_kept_the_later_first() {
    for option in options() {
        let memtable = make(&option, &config(UserOrder::Bytewise, 8 << 20));
        for i in 0..1000u32 {
            assert!(put(&*memtable, b"same", 7, ValueKind::Value, &i.to_be_bytes()));
        }
        let expected: Vec<_> = (0..1000u32).rev().map(|i| (7, ValueKind::Value, i.to_be_bytes().to_vec())).collect();
        assert_eq!(get(&*memtable, b"same", 7), expected, "{option}");
        assert_eq!(get(&*memtable, b"same", 6), [], "{option}");
        let mut cursor = Arc::clone(&memtable).cursor();
        assert_eq!(backward(&mut *cursor).last().expect("entries").1, 999u32.to_be_bytes());
    }
}

#[test]
fn empty_keys_and_values_are_entries() {
    for option in options() {
        let memtable = make(&option, &config(UserOrder::Bytewise, 1 << 20));
        assert!(put(&*memtable, b"", 1, ValueKind::Value, b""));
        assert_eq!(get(&*memtable, b"", 1), [(1, ValueKind::Value, vec![])]);
        assert_eq!(get(&*memtable, b"a", 1), []);
    }
}

#[test]
fn a_cursor_sees_what_came_after_it_was_made() {
    for option in options() {
        let memtable = make(&option, &config(UserOrder::Bytewise, 1 << 20));
        let mut cursor = Arc::clone(&memtable).cursor();
        assert!(!cursor.seek_to_first());
        for key in [b"b", b"d", b"a", b"c"] {
            assert!(put(&*memtable, key, 1, ValueKind::Value, b""));
        }
        drop(memtable);
        assert_eq!(forward(&mut *cursor).len(), 4, "{option}: it keeps the memtable alive");
    }
}

#[test]
fn capacities_without_room_for_anything_are_refused() {
    for option in options() {
        let factory = factory_from_option_string(&option).expect("known");
        assert!(factory.create(&config(UserOrder::Bytewise, 0)).is_err(), "{option}");
        let mut config = config(UserOrder::Bytewise, 1 << 20);
        config.bloom_ratio = 2.0;
        assert!(factory.create(&config).is_err(), "{option}");
    }
}
