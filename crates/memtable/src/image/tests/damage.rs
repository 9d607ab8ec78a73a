//! Damaged images: an error, or data in order; never a panic, never without end.

use std::time::{Duration, Instant};

use super::*;
use crate::image::Header;

/// The images that docs/format/image.md shows.
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

/// Opens a damaged image; where that is no error, its data must be in order and as many as were counted.
fn data_of(bytes: &[u8], order: &InternalOrder) -> Option<(Pairs, Vec<(Vec<u8>, Vec<u8>, SeqNo)>)> {
    let expected = Expected { representation: None, order: order.user.clone() };
    let image = Image::open(bytes, &expected).ok()?;
    let (pairs, ranges) = (pairs(&image), ranges(&image));
    for pair in pairs.windows(2) {
        assert!(order.compare(&pair[0].0, &pair[1].0).is_le(), "{pair:?}");
    }
    let report = image.report();
    assert_eq!(pairs.len() as u64 + report.range_deletions, report.entries);
    assert_eq!(ranges.len() as u64, report.range_deletions);
    Some((pairs, ranges))
}

/// Bits in which two lists of entries differ; `None` where their shapes do.
fn bits_apart(a: &Pairs, b: &Pairs) -> Option<u32> {
    if a.len() != b.len() {
        return None;
    }
    let bits = |a: &[u8], b: &[u8]| -> Option<u32> {
        (a.len() == b.len()).then(|| a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum())
    };
    a.iter().zip(b).map(|(a, b)| Some(bits(&a.0, &b.0)? + bits(&a.1, &b.1)?)).sum()
}

fn each_small_image(mut run: impl FnMut(&InternalOrder, &[u8], bool)) {
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

/// A flipped bit in a sealed image changes one bit of a key, a number or a value that still is in order, or nothing; or it
/// is told.
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

/// Every word in the place of every other: among them all references swapped, and all cycles of one reference.
#[test]
#[cfg_attr(miri, ignore)]
fn every_word_in_the_place_of_every_other_is_told_or_harmless() {
    each_small_image(|order, image, is_sealed| {
        if !is_sealed || order.user.name() != UserOrder::BYTEWISE_NAME {
            return;
        }
        let whole = data_of(image, order).expect("whole").0;
        let body = crate::arena::IMAGE_HEADER_BYTES;
        let mut words: Vec<[u8; 4]> = image[body..].as_chunks::<4>().0.to_vec();
        words.sort_unstable();
        words.dedup();
        let mut bytes = image.to_vec();
        for at in (body..image.len() - 3).step_by(4) {
            for word in &words {
                bytes[at..at + 4].copy_from_slice(word);
                if let Some((pairs, _)) = data_of(&bytes, order) {
                    assert_eq!(pairs.len(), whole.len(), "at {at}");
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
    let error = |at: usize, bytes: &[u8], message: &str| {
        let mut damaged = image.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        let error = Image::open(&damaged, &subject.expected()).err().expect(message);
        assert!(error.message().contains(message), "{error}");
        assert!(error.offset().is_some(), "{error}");
    };
    let header = u32::from_le_bytes(*image[root_at..].first_chunk().expect("a header"));
    error(root_at, &(header | 1 << 12).to_le_bytes(), "is no header of a N4 that is in use");
    error(root_at, &(header | 0x200).to_le_bytes(), "a node of kind N23 where a link says N4");
    error(root_at + 4, &9u32.to_le_bytes(), "");
    error(root_at + 8, &[0; 4], "a node's sample is no leaf below it");
    error(root_at + 16, &root.to_le_bytes(), "a node of depth 0 where 1 bytes are used");
    error(head, &0x00FF_FFF0u32.to_le_bytes(), "would end beyond");
    error(head + 8, &(head as u32 / 8).to_le_bytes(), "overlaps what was reached before");
    error(0, b"X", "not the image of a memtable");
    error(40, b"X", "does not match its checksum");
}

/// Damages an image in one of the ways that files are damaged in, or that are worst for it.
fn damage(random: &mut Random, bytes: &mut [u8]) {
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

/// Damages `image` `rounds` times over; returns how many were told.
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

/// Random damage to random memtables; for `SPILLWAY_FUZZ_SECONDS` seconds where that is set, each time with another seed.
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
