//! Damaged images: an error, or data in order; never a panic, never without end.

use std::time::{Duration, Instant};

use super::*;
use crate::image::Header;

/// The images in docs/format/image.md.
pub(super) fn golden_images() -> Vec<Vec<u8>> {
    let dumps = PAGE.split("```text\n").skip(1).filter_map(|rest| rest.split("```").next());
    dumps
        .map(|dump| {
            let mut bytes = Vec::new();
            for line in dump.lines().filter(|line| *line != "*") {
                let (offset, rest) = line.split_once("  ").expect("an offset");
                bytes.resize(usize::from_str_radix(offset, 16).expect("hexadecimal"), 0);
                let hex = rest.split_once('|').expect("text").0;
                bytes.extend(hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("a byte")));
            }
            bytes
        })
        .collect()
}

/// Opens a damaged image; if it passes, its data must be in order and match the counts.
fn data_of(bytes: &[u8], order: &InternalOrder) -> Option<(Pairs, Ranges)> {
    let image = Image::open(bytes, &order.user).ok()?;
    let (pairs, ranges) = (pairs(&image), ranges(&image));
    for pair in pairs.windows(2) {
        assert!(order.compare(&pair[0].0, &pair[1].0).is_le(), "{pair:?}");
    }
    let counts = image.report.counts;
    assert_eq!(pairs.len() as u64 + counts.range_deletions, counts.entries);
    assert_eq!(ranges.len() as u64, counts.range_deletions);
    Some((pairs, ranges))
}

/// Number of different bits in two lists of entries; `None` if their shapes differ.
fn bits_apart(a: &Pairs, b: &Pairs) -> Option<u32> {
    if a.len() != b.len() {
        return None;
    }
    let bits = |a: &[u8], b: &[u8]| -> Option<u32> {
        (a.len() == b.len()).then(|| a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum())
    };
    a.iter().zip(b).map(|(a, b)| Some(bits(&a.0, &b.0)? + bits(&a.1, &b.1)?)).sum()
}

pub(super) fn each_small_image(mut run: impl FnMut(&InternalOrder, &[u8], bool)) {
    for option in ["trie", "skip_list"] {
        for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise] {
            let mut subject = Subject::new(option, order, 64 << 10);
            subject.insert_all(a_few_of_each());
            let (open, sealed) = subject.images();
            run(&subject.order, &open, false);
            run(&subject.order, &sealed, true);
        }
    }
}

/// A flipped bit in a sealed image is detected, changes nothing, or changes one bit of a key, a number or a value still
/// in order.
#[test]
#[cfg_attr(miri, ignore)]
fn every_flipped_bit_is_told_or_harmless() {
    each_small_image(|order, image, is_sealed| {
        let (whole, whole_ranges) = data_of(image, order).expect("whole");
        let mut bytes = image.to_vec();
        let (mut told, mut harmless) = (0, 0);
        for bit in 0..image.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            match data_of(&bytes, order) {
                Some((pairs, ranges)) if is_sealed => {
                    harmless += 1;
                    let apart = bits_apart(&pairs, &whole).expect("as many entries, as long as before");
                    assert!(apart + u32::from(ranges != whole_ranges) <= 1, "bit {bit}");
                }
                Some(_) => harmless += 1,
                None => told += 1,
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        assert!(told > 1000 && harmless > 1000, "{told} told, {harmless} not");
    });
}

#[test]
#[cfg_attr(miri, ignore)]
fn every_truncation_is_told_or_cuts_nothing_off() {
    each_small_image(|order, image, is_sealed| {
        let whole = data_of(image, order).expect("whole");
        for len in 0..image.len() {
            match data_of(&image[..len], order) {
                Some(data) => assert!(!is_sealed && data == whole, "cut to {len}"),
                None => assert!(is_sealed || len < image.len()),
            }
        }
    });
}

/// Every word in place of every other: among them all swaps of references, and all cycles of one reference.
#[test]
#[cfg_attr(miri, ignore)]
fn every_word_in_the_place_of_every_other_is_told_or_harmless() {
    each_small_image(|order, image, is_sealed| {
        if !is_sealed || order.user.name() != UserOrder::BYTEWISE_NAME {
            return;
        }
        let (whole, whole_ranges) = data_of(image, order).expect("whole");
        let body = crate::arena::IMAGE_HEADER_BYTES;
        let mut words: Vec<[u8; 4]> = image[body..].as_chunks::<4>().0.to_vec();
        words.sort_unstable();
        words.dedup();
        let mut bytes = image.to_vec();
        for at in (body..image.len() - 3).step_by(4) {
            for word in &words {
                bytes[at..at + 4].copy_from_slice(word);
                if let Some((pairs, ranges)) = data_of(&bytes, order) {
                    assert_eq!((pairs.len(), ranges.len()), (whole.len(), whole_ranges.len()));
                    let changed = pairs.iter().zip(&whole).filter(|(a, b)| a != b).count()
                        + ranges.iter().zip(&whole_ranges).filter(|(a, b)| a != b).count();
                    assert!(changed <= 1, "{changed} entries changed by a word at {at}");
                }
            }
            bytes[at..at + 4].copy_from_slice(&image[at..at + 4]);
        }
    });
}

#[test]
#[cfg_attr(miri, ignore)]
fn errors_name_the_offset_and_what_is_wrong() {
    let mut subject = Subject::new("trie", UserOrder::Bytewise, 64 << 10);
    subject.insert_all(a_few_of_each());
    let (image, _) = subject.images();
    let head = Header::read(&image).expect("a header").head as usize;
    let root = u32::from_le_bytes(*image[head..].first_chunk().expect("a root"));
    let root_at = ((root & !7) << 2) as usize;
    let error = |at, bytes: &[u8], message| assert_told(&subject, &image, at, bytes, message);
    let header = u32::from_le_bytes(*image[root_at..].first_chunk().expect("a header"));
    error(root_at, &(header | 1 << 12).to_le_bytes(), "is no header of a N4 that is in use");
    error(root_at, &(header | 0x200).to_le_bytes(), "a node of kind N23 where a link says N4");
    error(root_at + 8, &[0; 4], "a node's sample is no leaf below it");
    error(root_at + 16, &root.to_le_bytes(), "a node of depth 0 where 1 bytes are used");
    error(head, &0x00FF_FFF0u32.to_le_bytes(), "would end beyond");
    error(head + 8, &(head as u32 / 8).to_le_bytes(), "overlaps what was reached before");
    let newest = u32::from_le_bytes(*image[head + 8..].first_chunk().expect("a reference")) as usize * 8;
    error(newest + 17, &[1], "kind 0x1 among range deletions");
    error(newest + 4, &[1], "is no reference");
    error(0, b"X", "not the image of a memtable");
    error(40, b"X", "does not match its checksum");
}

/// Offset of an entry's user key in its image.
fn key_at(subject: &Subject, image: &[u8], user_key: &[u8], seq: u64) -> usize {
    let opened = Image::open(image, subject.user_order()).expect("whole");
    let internal = key::encode(user_key, SeqNo(seq), ValueKind::Value);
    let (key, _) = opened.entries().into_iter().find(|(key, _)| *key == internal).expect("there");
    key.as_ptr() as usize - image.as_ptr() as usize
}

fn assert_told(subject: &Subject, image: &[u8], at: usize, bytes: &[u8], message: &str) {
    let mut damaged = image.to_vec();
    damaged[at..at + bytes.len()].copy_from_slice(bytes);
    let error = Image::open(&damaged, subject.user_order()).err().expect(message);
    assert!(error.message().contains(message), "{error}");
    assert!(error.offset().is_some(), "{error}");
}

/// Damage to fields used by lookups but not by a walk over all entries.
#[test]
#[cfg_attr(miri, ignore)]
fn what_only_lookups_rely_on_is_checked_in_a_trie() {
    let mut subject = Subject::new("trie", UserOrder::Bytewise, 64 << 10);
    subject.insert_all(a_few_of_each());
    let (image, _) = subject.images();
    let key_at = |user_key: &[u8], seq| key_at(&subject, &image, user_key, seq);
    // A leaf with a jump has 16 bytes before its key, one of a first version 8.
    let (newest, newer, other) = (key_at(b"ab", 14) - 16, key_at(b"ab", 13) - 16, key_at(b"abd", 6) - 8);
    // A jump over more than one step.
    let long = (11..15).map(|seq| key_at(b"ab", seq) - 16).find(|leaf| image[leaf + 12] > 1).expect("a jump");
    let fan = (4096..image.len()).step_by(32).find(|at| image[*at..*at + 5] == [6, 1, 0, 0, 2]).expect("an N10");
    let fanned = key_at(&[b'x', b'y', 185], 25);
    let link = |at: usize| (at as u32 >> 2).to_le_bytes();
    for (at, bytes, message) in [
        (newest + 8, link(newest), "a jump does not lead to an older version"),
        (newer + 8, link(newest), "a jump does not lead to an older version"),
        (long + 8, [0; 4], "a jump does not lead to an older version"),
        (newest + 8, link(other), "a jump leads to no version of its key"),
        (newest + 8, link(newer + 8), "a jump leads to no version of its key"),
        (fan + 8, link(other), "a node's sample is no leaf below it"),
        (fan + 8, link(fan), "a node's sample is no leaf below it"),
        (fanned, [b'x', b'z', 185, 1], "a key does not share its first 2 bytes with the one before"),
        (fanned, [b'x', b'y', 186, 1], "a key does not agree with its way at byte 2"),
        (newer + 19, [99; 4], "a newer version behind an older one"),
        (fan, [1, 1, 0, 0], "a node that parts no keys"),
        (fan + 12, [0; 4], "two children of a node at byte 0"),
    ] {
        assert_told(&subject, &image, at, &bytes, message);
    }
}

/// A descent does not read the depth of a node if the link has the dense tag.
#[test]
#[cfg_attr(miri, ignore)]
fn a_node_said_to_skip_nothing_skips_nothing() {
    let mut subject = Subject::new("trie", UserOrder::Bytewise, 64 << 10);
    subject.insert_all((0..=255).map(|byte| value_op(&[byte, byte], 1, b"")));
    let (image, _) = subject.images();
    let head = Header::read(&image).expect("a header").head as usize;
    let root = u32::from_le_bytes(*image[head..].first_chunk().expect("a root"));
    assert_eq!(root & 7, 0b111);
    let depth_at = ((root & !7) << 2) as usize + 4;
    assert_told(&subject, &image, depth_at, &[1], "a node of depth 1 where 0 bytes are used");
}

#[test]
#[cfg_attr(miri, ignore)]
fn what_only_lookups_rely_on_is_checked_in_a_skiplist() {
    let mut subject = Subject::new("skip_list", UserOrder::Bytewise, 64 << 10);
    subject.insert_all(a_few_of_each());
    let (image, _) = subject.images();
    let head = Header::read(&image).expect("a header").head as usize;
    let next = |node: usize| (node - 8, u32::from_le_bytes(*image[node - 8..].first_chunk().expect("a link")));
    let (head_link, first) = next(head);
    let (first_link, second) = next(first as usize * 8);
    let (_, third) = next(second as usize * 8);
    assert!(first != 0 && second != 0 && third != 0);
    let message = "level 1 leads to what the level below does not lead to next";
    for (at, node) in [(first_link, first), (head_link, head as u32 / 8), (head_link, first + 1)] {
        assert_told(&subject, &image, at, &node.to_le_bytes(), message);
    }
    let mut swapped = image.clone();
    swapped[head_link..head_link + 4].copy_from_slice(&second.to_le_bytes());
    swapped[second as usize * 8 - 8..][..4].copy_from_slice(&first.to_le_bytes());
    assert_told(&subject, &swapped, first_link, &third.to_le_bytes(), message);
}

/// Damages an image in a realistic or worst-case way.
pub(super) fn damage(random: &mut Random, bytes: &mut [u8]) {
    let body = crate::arena::IMAGE_HEADER_BYTES.min(bytes.len() - 8);
    let mut place = |len: usize| {
        let start = if random.below(20) == 0 { 0 } else { body };
        start + random.below((bytes.len() - start - len + 1) as u64) as usize / 4 * 4
    };
    let (to, from) = (place(64.min(bytes.len() / 4)), place(64.min(bytes.len() / 4)));
    match random.below(6) {
        0 => bytes[to] ^= 1 << random.below(8),
        1 => bytes[to] = random.below(256) as u8,
        2 => bytes[to..to + 4].copy_from_slice(&(random.below(1 << 20) as u32).to_le_bytes()),
        3 => bytes.copy_within(from..from + 4, to),
        4 => bytes.copy_within(from..from + 32, to),
        _ => {
            let word = u32::from_le_bytes(*bytes[to..].first_chunk().expect("a word"));
            let nudged =
                word.wrapping_add([1, 2, 8, 16, 0u32.wrapping_sub(1), 0u32.wrapping_sub(8)][random.below(6) as usize]);
            bytes[to..to + 4].copy_from_slice(&nudged.to_le_bytes());
        }
    }
}

/// Damages `image` `rounds` times; returns the number detected.
fn fuzz(image: &[u8], order: &InternalOrder, random: &mut Random, rounds: u32) -> u32 {
    let mut told = 0;
    let mut bytes = image.to_vec();
    for _ in 0..rounds {
        bytes.copy_from_slice(image);
        for _ in 0..=random.below(4) {
            damage(random, &mut bytes);
        }
        told += u32::from(data_of(&bytes, order).is_none());
    }
    told
}

#[test]
fn damaged_images_of_the_page_are_told_or_in_order() {
    let rounds = if cfg!(miri) { 60 } else { 3000 };
    let images = golden_images();
    assert_eq!(images.len(), 2);
    for image in images {
        let order = InternalOrder::default();
        assert_eq!(data_of(&image, &order).expect("whole").0.len(), 4);
        assert!(fuzz(&image, &order, &mut Random(7), rounds) > rounds / 4);
    }
}

/// Random damage to random memtables; for `SPILLWAY_FUZZ_SECONDS` seconds if set, each time with another seed.
#[test]
#[cfg_attr(miri, ignore)]
#[allow(clippy::disallowed_methods, reason = "how long to go on is asked of the clock")]
fn random_damage_is_told_or_leaves_data_in_order() {
    let seconds = std::env::var("SPILLWAY_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let until = Instant::now() + Duration::from_secs(seconds);
    let first_seed = if seconds > 0 { vfs::RealVfs::new().random_u64() >> 1 } else { 1 };
    for seed in (first_seed..).take_while(|seed| *seed == first_seed || Instant::now() < until) {
        for option in ["trie", "skip_list"] {
            for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise] {
                let mut random = Random(seed);
                let mut subject = Subject::new(option, order, 1 << 20);
                let count = random.below(250);
                subject.insert_all(random_ops(&mut random, count));
                let (open, sealed) = subject.images();
                for image in [open, sealed] {
                    let told = fuzz(&image, &subject.order, &mut random, 200);
                    assert!(told > 0, "{option}, seed {seed}");
                }
            }
        }
    }
}
