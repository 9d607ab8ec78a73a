//! Blocks against a sorted list, at every restart interval, with and without the hash index.

use std::sync::Arc;

use base::key::{LookupKey, encode};
use base::{ErrorKind, InternalOrder, SeqNo, ValueKind};

use super::cursor::PASSED_KEYS_MAX;
use super::*;
use crate::cached::CachedBlock;

type Entry = (Vec<u8>, Vec<u8>);

/// Keys that share prefixes, some of several versions, one with a value whose length takes more than a byte.
fn entries(count: usize) -> Vec<Entry> {
    let mut all = Vec::new();
    for i in 0..count {
        let user_key = format!("{}{:03}", "p".repeat(i / 20), i);
        for seq in (1..=1 + i as u64 % 3).rev() {
            let value = vec![b'v'; if i % 11 == 5 { 300 } else { i % 7 }];
            all.push((encode(user_key.as_bytes(), SeqNo(seq), ValueKind::Value), value));
        }
    }
    all.sort_by(|a, b| InternalOrder::default().compare(&a.0, &b.0));
    all
}

fn build(entries: &[Entry], interval: usize, hash: bool) -> Block {
    let mut builder = BlockBuilder::new(interval);
    if hash {
        builder = builder.with_hash_index(0.75);
    }
    for (key, value) in entries {
        builder.add(key, value);
    }
    Block::parse(builder.finish().to_vec()).expect("well formed")
}

fn cursor(block: Block) -> BlockCursor {
    let mut cursor = BlockCursor::new(GlobalSeq(None));
    cursor.set_block(Arc::new(CachedBlock::entries(block)));
    cursor
}

#[test]
fn a_block_reads_in_every_way() {
    let order = InternalOrder::default();
    for count in [1, 2, 40] {
        let all = entries(count);
        for interval in [1, 2, 3, 16, 1000] {
            let mut cursor = cursor(build(&all, interval, false));
            let mut at = 0;
            let mut valid = cursor.seek_to_first();
            while valid {
                assert_eq!((cursor.key(), cursor.value()), (&all[at].0[..], &all[at].1[..]));
                at += 1;
                valid = cursor.next();
            }
            assert_eq!(at, all.len());
            valid = cursor.seek_to_last();
            while valid {
                at -= 1;
                assert_eq!((cursor.key(), cursor.value()), (&all[at].0[..], &all[at].1[..]));
                valid = cursor.prev();
            }
            assert_eq!(at, 0);
            for (i, (key, _)) in all.iter().enumerate() {
                assert!(cursor.seek(key, &order));
                assert_eq!(cursor.key(), &all[i].0[..]);
                assert_eq!(cursor.prev().then(|| cursor.key().to_vec()), i.checked_sub(1).map(|b| all[b].0.clone()));
                assert!(!cursor.valid() || cursor.next());
            }
            cursor.status().expect("no damage");
        }
    }
}

#[test]
fn the_hash_index_finds_what_is_there_and_denies_most_of_the_rest() {
    let order = InternalOrder::default();
    let all = entries(60);
    for interval in [1, 4, 16] {
        let block = build(&all, interval, true);
        assert!(block.layout.buckets != 0);
        let mut cursor = cursor(block);
        for (key, _) in &all {
            let target = LookupKey::new(base::key::user_key(key), SeqNo::MAX);
            assert_eq!(cursor.seek_for_get(target.internal(), &order), Some(true));
            assert_eq!(base::key::user_key(cursor.key()), base::key::user_key(key));
        }
        let denied = (0..100)
            .filter(|i| {
                let target = LookupKey::new(format!("absent{i}").as_bytes(), SeqNo::MAX);
                cursor.seek_for_get(target.internal(), &order).is_none()
            })
            .count();
        assert!(denied > 20, "{denied}");
    }
}

#[test]
fn the_global_sequence_number_stands_in_every_key() {
    let all: Vec<Entry> =
        (0..40).map(|i| (encode(format!("k{i:02}").as_bytes(), SeqNo(0), ValueKind::Value), vec![1])).collect();
    let mut cursor = BlockCursor::new(GlobalSeq(Some(SeqNo(70))));
    cursor.set_block(Arc::new(CachedBlock::entries(build(&all, 4, false))));
    let order = InternalOrder::default();
    assert!(cursor.seek(LookupKey::new(b"k07", SeqNo(70)).internal(), &order));
    assert_eq!(cursor.key(), encode(b"k07", SeqNo(70), ValueKind::Value));
    assert!(cursor.seek(LookupKey::new(b"k07", SeqNo(69)).internal(), &order));
    assert_eq!(cursor.key(), encode(b"k08", SeqNo(70), ValueKind::Value), "k07 is too new to be seen");
    assert!(cursor.prev());
    assert_eq!(cursor.key(), encode(b"k07", SeqNo(70), ValueKind::Value));
}

#[test]
fn too_many_intervals_for_a_byte_give_no_hash_index() {
    let all = entries(200);
    assert_eq!(build(&all, 1, true).layout.buckets, 0);
    assert!(build(&all, 2, true).layout.buckets != 0);
}

#[test]
fn a_malformed_entry_ends_the_walk() {
    let all = entries(5);
    let mut bytes = build(&all, 16, false).bytes().to_vec();
    bytes[0] = 1; // a first key that shares a byte with none
    let mut damaged = cursor(Block::parse(bytes).expect("its footer is fine"));
    assert!(!damaged.seek_to_first());
    assert_eq!(damaged.status().expect_err("noticed").kind(), ErrorKind::Corruption);
    damaged.set_block(Arc::new(CachedBlock::entries(build(&all, 16, false))));
    assert!(damaged.seek_to_first(), "another block starts afresh");
}

/// A long first key, shared by entries of three bytes each.
fn bomb(entries: usize) -> Vec<u8> {
    let key = vec![b'k'; 100_000];
    let mut bytes = vec![0];
    base::coding::put_varint64(&mut bytes, key.len() as u64);
    bytes.push(0);
    bytes.extend_from_slice(&key);
    for _ in 0..entries {
        base::coding::put_varint64(&mut bytes, key.len() as u64);
        bytes.extend_from_slice(&[0, 0]);
    }
    bytes.extend_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
    bytes
}

#[test]
fn shared_prefixes_claim_no_memory() {
    let block = || Block::parse(bomb(20_000)).expect("its footer is fine"); // 2 GB of keys in 200 KB
    let mut shown = 0;
    let error = walk(&block(), &mut |_, _| {
        shown += 1;
        Ok(())
    });
    assert_eq!(error.expect_err("too large").kind(), ErrorKind::Corruption);
    assert!(shown < 400, "{shown}");
    let format = crate::index::IndexFormat::default();
    assert!(crate::index::IndexBlock::parse(&block(), format, 1 << 40).is_err());
    let mut cursor = cursor(Block::parse(bomb(100)).expect("its footer is fine"));
    let mut count = usize::from(cursor.seek_to_last());
    while cursor.prev() {
        count += 1;
    }
    assert_eq!(count, 101, "a backward walk forgets and passes again");
    assert!(cursor.passed_bytes() < 2 * PASSED_KEYS_MAX);
}

/// Short keys over two letters: many end inside each other, share bytes with trailers, or have several versions.
#[test]
fn seeks_agree_with_a_sorted_list() {
    let order = InternalOrder::default();
    let mut state = 1u64;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for round in 0..200 {
        let mut key = |seqs: u64| {
            let user: Vec<u8> = (0..random(6)).map(|_| [0x01, b'a', b'b'][random(3) as usize]).collect();
            encode(&user, SeqNo(random(seqs) << (8 * random(3))), ValueKind::Value)
        };
        let mut keys: Vec<Vec<u8>> = (0..60).map(|_| key(4)).collect();
        keys.sort_by(|a, b| order.compare(a, b));
        keys.dedup();
        let all: Vec<Entry> = keys.iter().map(|key| (key.clone(), vec![7])).collect();
        let mut cursor = cursor(build(&all, [1, 3, 16, 100][round % 4], false));
        for _ in 0..60 {
            let target = key(5);
            let expected = keys.iter().find(|key| order.compare(key, &target).is_ge());
            assert_eq!(cursor.seek(&target, &order).then(|| cursor.key().to_vec()), expected.cloned(), "{target:?}");
            if cursor.valid() {
                let at = keys.iter().position(|key| key == cursor.key()).expect("there");
                assert_eq!(cursor.next().then(|| cursor.key().to_vec()), keys.get(at + 1).cloned());
            }
            cursor.status().expect("no damage");
        }
    }
}
