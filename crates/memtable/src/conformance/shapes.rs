//! Keys with special shapes for representations: no keys, very long ones, a key with more extensions than a byte can
//! distinguish; and backward walks while writers insert.

use std::sync::atomic::{AtomicBool, Ordering};

use base::key;

use super::*;

fn user_keys(entries: &[(Vec<u8>, Vec<u8>)]) -> Vec<Vec<u8>> {
    entries.iter().map(|(internal, _)| key::user_key(internal).to_vec()).collect()
}

/// Inserts each key with a distinct value, and checks gets and walks both ways.
fn check(option: &str, order: &UserOrder, keys: &[Vec<u8>]) {
    let memtable = make(option, &config(order.clone(), 16 << 20));
    for (i, key) in keys.iter().enumerate() {
        assert!(put(&*memtable, key, i as u64 + 1, ValueKind::Value, &i.to_le_bytes()), "{option}");
    }
    for (i, key) in keys.iter().enumerate() {
        let expected = vec![(i as u64 + 1, ValueKind::Value, i.to_le_bytes().to_vec())];
        assert_eq!(get(&*memtable, key, u64::from(u32::MAX)), expected, "{option}: key {i} of {} bytes", key.len());
    }
    let mut sorted = keys.to_vec();
    sorted.sort_by(|a, b| order.compare(a, b));
    let mut cursor = Arc::clone(&memtable).cursor();
    assert_eq!(user_keys(&forward(&mut *cursor)), sorted, "{option}");
    sorted.reverse();
    assert_eq!(user_keys(&backward(&mut *cursor)), sorted, "{option}");
}

/// A prefix as a key, followed by all 256 bytes, some of them followed by more.
#[test]
fn a_key_below_which_everything_branches() {
    let prefix = b"prefix".to_vec();
    let with = |tail: &[u8]| [&prefix[..], tail].concat();
    let mut keys: Vec<Vec<u8>> = (0..=255u8).map(|byte| with(&[byte])).collect();
    keys.extend((0..=255u8).step_by(5).map(|byte| with(&[byte, byte, 1])));
    keys.insert(100, prefix.clone()); // when its node has outgrown every small kind
    keys.extend([Vec::new(), b"prefi".to_vec()]);
    assert!(keys.len() > 300);
    for option in options() {
        for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise] {
            check(&option, &order, &keys);
        }
    }
}

#[test]
fn keys_of_no_bytes_and_of_64_kib() {
    let long = |fill: u8, len: usize, last: u8| {
        let mut key = vec![fill; len];
        key.push(last);
        key
    };
    let mut keys = vec![Vec::new(), vec![0], vec![0xff]];
    for len in [254, 255, 256, 4095, 65_534, 65_535, 65_536] {
        keys.extend([long(b'a', len, 0), long(b'a', len, 1), long(b'b', len, 0xff)]);
    }
    for option in options() {
        for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise, UserOrder::Custom(Arc::new(ShortestFirst))] {
            check(&option, &order, &keys);
        }
    }
}

/// A backward walk descends strictly and includes every entry from before its start, even with concurrent inserts.
#[test]
fn walks_backward_while_writers_insert() {
    for option in options() {
        let memtable = make(&option, &config(UserOrder::Bytewise, 16 << 20));
        let even = |i: u64| (2 * i).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        let odd = |i: u64| (2 * i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes();
        (0..2000).for_each(|i| assert!(put(&*memtable, &even(i), i + 1, ValueKind::Value, b"before")));
        let inserting = AtomicBool::new(true);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                (0..20_000).for_each(|i| assert!(put(&*memtable, &odd(i), 10_000 + i, ValueKind::Value, b"during")));
                inserting.store(false, Ordering::Release);
            });
            let mut walks = 0;
            while walks == 0 || inserting.load(Ordering::Acquire) {
                let shown = backward(&mut *Arc::clone(&memtable).cursor());
                assert!(shown.is_sorted_by(|(a, _), (b, _)| key::user_key(a) > key::user_key(b)), "{option}");
                assert_eq!(shown.iter().filter(|(_, value)| value == b"before").count(), 2000, "{option}");
                walks += 1;
            }
        });
    }
}
