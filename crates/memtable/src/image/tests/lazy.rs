//! Images read without a check of the whole: reads of whole images, and reads of damaged ones ending in order or with
//! an error. The conformance suite compares whole images with the live memtable; `tests/killed.rs` covers killed
//! processes.

use base::{Cursor, LookupKey, Result};

use super::damage::{damage, each_small_image, golden_images};
use super::*;
use crate::arena::IMAGE_HEADER_BYTES;
use crate::conformance::{LazyMemtable, ShortestFirst};
use crate::image::{Header, LazyImage};

const OPTIONS: [&str; 2] = ["trie", "skip_list"];

fn open(bytes: &[u8], order: &UserOrder, cut: u64) -> Result<Arc<LazyImage>> {
    Ok(Arc::clone(&LazyMemtable::open(bytes.to_vec(), order, SeqNo(cut))?.image))
}

/// The pairs of a walk, of at most `max` steps. They must be in order, and none above the cut.
fn walk(image: &Arc<LazyImage>, order: &InternalOrder, forward: bool, max: usize) -> Result<Pairs> {
    let mut cursor = Arc::clone(image).cursor();
    let mut found = Pairs::new();
    let mut more = if forward { cursor.seek_to_first() } else { cursor.seek_to_last() };
    while more {
        assert!(found.len() < max, "a walk without an end");
        let pair = (cursor.key().to_vec(), cursor.value().to_vec());
        let parsed = key::ParsedKey::parse(&pair.0).expect("a key of a known kind");
        assert!(parsed.seq <= image.cut() && parsed.kind != ValueKind::RangeDeletion);
        if let Some((last, _)) = found.last() {
            let order = order.compare(last, &pair.0);
            assert!(if forward { order.is_le() } else { order.is_ge() }, "{last:?} {pair:?}");
        }
        found.push(pair);
        more = if forward { cursor.next() } else { cursor.prev() };
    }
    cursor.status().map(|()| found)
}

/// The versions shown by a lookup, newest first, none above the requested number.
fn get(image: &LazyImage, key: &[u8], seq: u64) -> Result<Vec<(u64, ValueKind, Vec<u8>)>> {
    let mut found: Vec<(u64, ValueKind, Vec<u8>)> = Vec::new();
    image.get(&LookupKey::new(key, SeqNo(seq)), &mut |version, kind, value| {
        assert!(version <= image.cut() && version.0 <= seq);
        assert!(found.last().is_none_or(|newer| newer.0 >= version.0));
        found.push((version.0, kind, value.to_vec()));
        true
    })?;
    Ok(found)
}

fn visible(pairs: &Pairs, cut: u64) -> Pairs {
    let seq = |key: &[u8]| key::ParsedKey::parse(key).expect("whole").seq.0;
    pairs.iter().filter(|(key, _)| seq(key) <= cut).cloned().collect()
}

/// Checks that an image with arbitrary bytes behind its allocated part shows `whole`, at several cuts.
pub(crate) fn assert_shows(bytes: &[u8], order: &InternalOrder, whole: &Pairs, cuts: &[u64]) {
    for &cut in cuts {
        let image = open(bytes, &order.user, cut).expect("an image");
        let expected = visible(whole, cut);
        assert_eq!(walk(&image, order, true, bytes.len()).expect("whole"), expected);
        let mut backward = walk(&image, order, false, bytes.len()).expect("whole");
        backward.reverse();
        assert_eq!(backward, expected);
        // Each reads all entries, so only a few of many.
        for (key, _) in whole.iter().step_by(whole.len() / 6 + 1) {
            let user_key = key::user_key(key);
            let of_key = expected.iter().filter(|(other, _)| order.user.equal(key::user_key(other), user_key));
            let versions = of_key.map(|(key, value)| {
                let parsed = key::ParsedKey::parse(key).expect("whole");
                (parsed.seq.0, parsed.kind, value.clone())
            });
            assert_eq!(get(&image, user_key, u64::MAX >> 8).expect("whole"), versions.collect::<Vec<_>>());
        }
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn files_with_room_behind_what_was_handed_out_are_read() {
    for option in OPTIONS {
        for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise, UserOrder::Custom(Arc::new(ShortestFirst))] {
            let mut subject = Subject::new(option, order, 1 << 20);
            let check = |subject: &Subject, bytes: &[u8]| {
                assert_shows(bytes, &subject.order, &subject.points(), &[u64::MAX >> 8, 30, 7, 0]);
                let image = open(bytes, &subject.order.user, u64::MAX >> 8).expect("an image");
                assert_eq!(
                    crate::image::check(bytes, subject.user_order()).expect("whole").counts.entries,
                    subject.memtable.entries()
                );
                assert_eq!(image.tombstones().is_some(), !subject.ranges().is_empty());
            };
            check(&subject, &subject.image());
            subject.insert_all(a_few_of_each());
            check(&subject, &subject.image());
            subject.insert_all(random_ops(&mut Random(5), 300));
            while subject.memtable.prefault(usize::MAX, &|_| true) {}
            check(&subject, &subject.image());
            let (_, sealed) = subject.images();
            check(&subject, &sealed);
        }
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn range_deletions_above_the_cut_are_not_there() {
    for option in OPTIONS {
        let mut subject = Subject::new(option, UserOrder::Bytewise, 64 << 10);
        subject.insert_all(a_few_of_each());
        let bytes = subject.image();
        for (cut, expected) in [(8, vec![]), (9, vec![9]), (29, vec![9]), (30, vec![9, 30])] {
            let image = open(&bytes, &UserOrder::Bytewise, cut).expect("an image");
            let fragments = image.tombstones().map(|all| all.fragments().to_vec()).unwrap_or_default();
            assert_eq!(fragments.iter().map(|fragment| fragment.seqs[0].0).collect::<Vec<_>>(), expected);
        }
    }
}

/// Every kind of read; an error if one of them reported damage. The other reads were in order.
fn read_all(bytes: &[u8], order: &InternalOrder, keys: &[Vec<u8>]) -> Result<Pairs> {
    let image = open(bytes, &order.user, 25)?;
    // An entry takes at least 16 bytes, and a walk may pass four times as many as fit.
    let max = bytes.len() / 4;
    let forward = walk(&image, order, true, max);
    let backward = walk(&image, order, false, max);
    let mut told = None;
    let mut note = |result: Result<()>| told = told.take().or(result.err());
    let mut cursor = Arc::clone(&image).cursor();
    for (i, key) in keys.iter().enumerate() {
        note(get(&image, key, u64::MAX >> 8).map(|_| ()));
        let target = key::encode(key, SeqNo(10), ValueKind::Value);
        let mut more = if i % 2 == 0 { cursor.seek(&target) } else { cursor.seek_for_prev(&target) };
        for step in 0..4 {
            if more {
                more = if (i + step) % 3 == 0 { cursor.next() } else { cursor.prev() };
            }
        }
        note(cursor.status());
    }
    note(backward.map(|_| ()));
    if let Some(error) = told {
        return Err(error);
    }
    forward
}

fn keys_of(ops: &[Op]) -> Vec<Vec<u8>> {
    ops.iter().map(|op| op.0.clone()).chain([b"absent".to_vec(), b"abab".to_vec(), Vec::new()]).collect()
}

#[test]
#[cfg_attr(miri, ignore)]
fn every_flipped_bit_is_told_or_leaves_data_in_order() {
    each_small_image(|order, image, is_sealed| {
        if is_sealed {
            return;
        }
        let keys = keys_of(&a_few_of_each());
        let whole = read_all(image, order, &keys).expect("whole");
        let (mut bytes, mut told, mut same, mut other) = (image.to_vec(), 0, 0, 0);
        for bit in IMAGE_HEADER_BYTES * 8..image.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            match read_all(&bytes, order, &keys) {
                Err(_) => told += 1,
                Ok(found) if found == whole => same += 1,
                Ok(_) => other += 1,
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        // Damage to values, numbers, ends of keys and hidden entries is not detected.
        assert!(told > 500 && same > 1000 && other < told, "{told} told, {same} the same, {other} other data");
    });
}

#[test]
fn damaged_images_of_the_page_end_every_read() {
    let rounds = if cfg!(miri) { 40 } else { 3000 };
    for image in golden_images() {
        let (order, mut random) = (InternalOrder::default(), Random(11));
        let keys: Vec<Vec<u8>> = [&b""[..], b"river", b"rain", b"rainy", b"z"].map(<[u8]>::to_vec).to_vec();
        assert_eq!(read_all(&image, &order, &keys).expect("whole").len(), 4);
        assert!(fuzz(&image, &order, &keys, &mut random, rounds) > rounds / 8);
    }
}

/// Damages `image` `rounds` times; returns the number detected.
fn fuzz(image: &[u8], order: &InternalOrder, keys: &[Vec<u8>], random: &mut Random, rounds: u32) -> u32 {
    let (mut told, mut bytes) = (0, image.to_vec());
    for _ in 0..rounds {
        bytes.copy_from_slice(image);
        for _ in 0..=random.below(4) {
            damage(random, &mut bytes);
        }
        told += u32::from(read_all(&bytes, order, keys).is_err());
    }
    told
}

#[test]
#[cfg_attr(miri, ignore)]
fn random_damage_ends_every_read() {
    for seed in 1..4 {
        for option in OPTIONS {
            for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise] {
                let mut random = Random(seed);
                let mut subject = Subject::new(option, order, 1 << 20);
                subject.insert_all(random_ops(&mut random, seed * 60));
                let keys = keys_of(&subject.ops[..20]);
                let (open, sealed) = subject.images();
                for image in [open, sealed] {
                    let told = fuzz(&image, &subject.order, &keys, &mut random, 100);
                    assert!(told > 0, "{option}, seed {seed}");
                }
            }
        }
    }
}

fn put_u32(bytes: &mut [u8], at: usize, word: u32) {
    bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("a word"))
}

/// A range deletion, a version and a list node linked to themselves.
#[test]
fn circles_end() {
    let [trie, list] = golden_images().try_into().expect("two");
    let head = |image: &[u8]| Header::read(image).expect("a header").head as usize;
    let expect = |bytes: &[u8], message: &str| {
        let order = InternalOrder::default();
        let error = read_all(bytes, &order, &[b"river".to_vec()]).expect_err(message);
        assert!(error.message().contains(message) && error.offset().is_some() && error.path().is_some(), "{error}");
    };
    for (image, newest_at) in [(&trie, head(&trie) + 8), (&list, head(&list) + 8)] {
        let mut bytes = image.clone();
        let newest = u32_at(&bytes, newest_at);
        put_u32(&mut bytes, newest as usize * 8, newest);
        expect(&bytes, "entries that were met before");
    }
    let mut bytes = trie.clone();
    let oldest = bytes.windows(5).position(|window| window == b"river").expect("there") - 8;
    put_u32(&mut bytes, oldest, oldest as u32 >> 2);
    expect(&bytes, "entries that were met before");
    let mut bytes = list.clone();
    let last = bytes.windows(5).rposition(|window| window == b"river").expect("there");
    let older = bytes.windows(5).position(|window| window == b"river").expect("there") - 16;
    assert!(last > older);
    put_u32(&mut bytes, older, older as u32 / 8);
    expect(&bytes, "entries that were met before");
}

/// A chain of nodes, each with two links to the next: exponentially many paths.
#[test]
fn ways_that_multiply_end() {
    const NODES: u32 = 64;
    let [trie, _] = golden_images().try_into().expect("two");
    let head = Header::read(&trie).expect("a header").head as usize;
    let leaf = trie.windows(5).position(|window| window == b"river").expect("there") as u32 - 8;
    for ends_at_leaf in [false, true] {
        let mut bytes = trie.clone();
        let first = bytes.len().next_multiple_of(32);
        bytes.resize(first + NODES as usize * 32, 0);
        put_u32(&mut bytes, 2048, 0);
        put_u32(&mut bytes, head, first as u32 >> 2 | 1);
        for n in 0..NODES {
            let at = first + n as usize * 32;
            let next = (at as u32 + 32) >> 2 | 1;
            let is_last = n + 1 == NODES;
            put_u32(&mut bytes, at, if is_last && !ends_at_leaf { 0 } else { 2 });
            put_u32(&mut bytes, at + 4, n);
            put_u32(&mut bytes, at + 8, leaf >> 2);
            put_u32(&mut bytes, at + 12, u32::from(b'r') | u32::from(b's') << 8);
            put_u32(&mut bytes, at + 16, if is_last { leaf >> 2 } else { next });
            put_u32(&mut bytes, at + 20, if is_last { leaf >> 2 } else { next });
        }
        let image = open(&bytes, &UserOrder::Bytewise, 100).expect("a header");
        for forward in [true, false] {
            let error = walk(&image, &InternalOrder::default(), forward, 8).expect_err("no key has such a way");
            let expected = if ends_at_leaf { "does not agree with its way" } else { "leads nowhere" };
            assert!(error.message().contains(expected), "{error}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore)]
fn what_is_not_what_was_expected_is_not_opened() {
    for option in OPTIONS {
        let mut subject = Subject::new(option, UserOrder::Bytewise, 64 << 10);
        subject.insert_all(a_few_of_each());
        let bytes = subject.image();
        let refused = |bytes: &[u8], order: UserOrder| open(bytes, &order, 1).err().expect("refused").kind();
        assert_eq!(refused(&bytes, UserOrder::ReverseBytewise), base::ErrorKind::InvalidArgument);
        assert_eq!(refused(&bytes[..4096], UserOrder::Bytewise), base::ErrorKind::Corruption);
        assert_eq!(refused(&[], UserOrder::Bytewise), base::ErrorKind::Corruption);
        let mut other = bytes.clone();
        other[100] ^= 1;
        assert_eq!(refused(&other, UserOrder::Bytewise), base::ErrorKind::Corruption, "the identity has a checksum");
    }
}
