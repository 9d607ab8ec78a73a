//! Damage to files, and correction of their checksums.

use base::checksum::{crc32c, mask};
use testkit::random::Random;

/// Of an image's header: see docs/format/image.md.
const PAGE_BYTES: usize = 4096;
const CRC_AT: usize = 12;
const COVERED_AT: usize = 16;
const NAME_LEN_AT: usize = 28;
const NAME_AT: usize = 192;
const SEAL_NUMBERS: std::ops::Range<usize> = 2056..2088;
const WATERMARK_AT: usize = 3072;
const WATERMARK_BYTES: usize = 40;

/// Of a converted table's footer: see docs/format/converted.md.
const FOOTER_BYTES: usize = 64;
const EXTENT_BYTES: usize = 256 << 10;

/// Longest range that is overwritten.
const RANGE_MAX: u64 = 3000;

/// Damages a file in one to four places. `other` is a file of the same kind to copy parts from.
pub fn damage(random: &mut Random, bytes: &mut Vec<u8>, other: &[u8]) {
    for _ in 0..=random.below(4) {
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        if used == 0 {
            return;
        }
        let at = place(random, used);
        match random.below(16) {
            0..4 => bytes[at] ^= 1 << random.below(8),
            4 => bytes[at] = *random.pick(&[0, 1, 0x7F, 0x80, 0xFF]),
            5..8 => {
                let (from, to) = (word(random, used), word(random, used));
                copy(bytes, from, to, 4);
            }
            8 => bytes[at & !3] = bytes[at & !3].wrapping_add(8), // a little beside where it led
            9 => put(bytes, at & !7, *random.pick(&[0, 1, u64::from(u32::MAX), u64::MAX >> 8, u64::MAX])),
            10 => overwrite(random, bytes, at, |_| 0),
            11 => overwrite(random, bytes, at, |random| random.draw() as u8),
            12 => {
                let (from, len) = (random_place(random, used), 1 + random.below(RANGE_MAX) as usize);
                copy(bytes, from, at, len);
            }
            13 => {
                let end = other.len().min(bytes.len());
                if at < end {
                    bytes[at..end].copy_from_slice(&other[at..end]);
                }
            }
            14 => bytes.truncate(if random.chance(50) { at } else { at.next_multiple_of(PAGE_BYTES) }),
            _ => bytes.extend((0..random.below(RANGE_MAX)).map(|n| n as u8)),
        }
    }
}

/// A place to damage. Header and watermark are favoured: most other places in a small file are of little interest.
fn place(random: &mut Random, used: usize) -> usize {
    let place = match random.below(8) {
        0 => random.below(PAGE_BYTES as u64) as usize,
        1 => WATERMARK_AT + random.below(WATERMARK_BYTES as u64) as usize,
        2 => used.saturating_sub(1 + random.below(600) as usize),
        _ => random_place(random, used),
    };
    place.min(used - 1)
}

fn random_place(random: &mut Random, used: usize) -> usize {
    random.below(used as u64) as usize
}

/// Possible place of a reference.
fn word(random: &mut Random, used: usize) -> usize {
    place(random, used) & !3
}

fn put(bytes: &mut [u8], at: usize, number: u64) {
    if let Some(there) = bytes.get_mut(at..at + 8) {
        there.copy_from_slice(&number.to_le_bytes());
    }
}

fn copy(bytes: &mut [u8], from: usize, to: usize, len: usize) {
    let len = len.min(bytes.len() - from.max(to));
    bytes.copy_within(from..from + len, to);
}

fn overwrite(random: &mut Random, bytes: &mut [u8], at: usize, with: impl Fn(&mut Random) -> u8) {
    let end = bytes.len().min(at + 1 + random.below(RANGE_MAX) as usize);
    bytes[at..end].fill_with(|| with(random));
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("a word")) as usize
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("a word")) as usize
}

/// Corrects the checksums of an image's header and seal.
pub fn mend_image(bytes: &mut [u8]) {
    if bytes.len() < PAGE_BYTES {
        return;
    }
    if let Some(covered) = bytes.get(COVERED_AT..NAME_AT + u32_at(bytes, NAME_LEN_AT)) {
        let crc = mask(crc32c(covered));
        bytes[CRC_AT..COVERED_AT].copy_from_slice(&crc.to_le_bytes());
    }
    let crc = u64::from(mask(crc32c(&bytes[SEAL_NUMBERS])));
    put(bytes, SEAL_NUMBERS.end, crc);
}

/// Corrects the checksums of a converted table and of its image.
pub fn mend_table(bytes: &mut [u8]) {
    mend_image(bytes);
    let Some(footer) = bytes.len().checked_sub(FOOTER_BYTES) else { return };
    let (image, checksums) = (u64_at(bytes, footer), u64_at(bytes, footer + 8));
    if image > checksums || checksums > footer {
        return;
    }
    let extents: Vec<u32> = bytes[..image].chunks(EXTENT_BYTES).map(|extent| mask(crc32c(extent))).collect();
    for (at, crc) in (checksums..footer).step_by(4).zip(extents) {
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    }
    let crc = mask(crc32c(&bytes[checksums..footer + 48]));
    bytes[footer + 48..footer + 52].copy_from_slice(&crc.to_le_bytes());
}
