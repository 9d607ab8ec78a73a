//! Numbers as a symbol (their class) and plain bits after it. Small numbers have a symbol each; larger ones share
//! eight symbols per power of two.

use super::bits::{BitReader, BitWriter};
use super::huffman::{Decoder, Encoder};

/// Numbers with a symbol of their own.
const EXACT: u32 = 32;
/// `log2(EXACT)`.
const EXACT_BITS: u32 = 5;
/// Bits below the highest one that are part of the symbol.
const TOP_BITS: u32 = 3;

/// Symbols for all numbers of 32 bits.
pub const CLASSES: usize = EXACT as usize + ((32 - EXACT_BITS as usize) << TOP_BITS);

/// A number's symbol, and its number of plain bits.
#[inline]
pub fn class_of(number: u32) -> (usize, u32) {
    if number < EXACT {
        return (number as usize, 0);
    }
    let high = 31 - number.leading_zeros();
    let plain = high - TOP_BITS;
    let top = (number >> plain) & ((1 << TOP_BITS) - 1);
    ((EXACT + ((high - EXACT_BITS) << TOP_BITS) + top) as usize, plain)
}

/// The least number of a class below [`CLASSES`], and its number of plain bits.
#[inline]
pub fn start_of(class: usize) -> (u32, u32) {
    let class = class as u32;
    let Some(above) = class.checked_sub(EXACT) else { return (class, 0) };
    let high = (above >> TOP_BITS) + EXACT_BITS;
    let plain = (high - TOP_BITS) & 31;
    let top = (1 << TOP_BITS) | (above & ((1 << TOP_BITS) - 1));
    (top << plain, plain)
}

/// Writes `number`. Classes start at symbol `first` of `encoder`.
#[inline]
pub fn put(writer: &mut BitWriter, encoder: &Encoder, first: usize, number: u32) {
    let (class, plain) = class_of(number);
    encoder.put(writer, first + class);
    let (start, _) = start_of(class);
    writer.put(u64::from(number - start), plain);
}

/// Bits written by [`put`].
#[inline]
pub fn cost(encoder: &Encoder, first: usize, number: u32) -> u32 {
    let (class, plain) = class_of(number);
    encoder.bits(first + class) + plain
}

/// Clamps a symbol past all classes to the last one.
#[inline]
fn within(class: usize) -> usize {
    class.min(CLASSES - 1)
}

/// Reads the plain bits of a number of known class. 29 bits must be ready.
#[inline]
pub fn finish(reader: &mut BitReader<'_>, class: usize) -> u32 {
    let (start, plain) = start_of(within(class));
    start + reader.take(plain) as u32
}

/// Reads a number from an alphabet of classes only. 41 bits must be ready.
#[inline]
pub fn take(reader: &mut BitReader<'_>, decoder: &Decoder) -> u32 {
    let class = decoder.take(reader);
    finish(reader, class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_its_class_and_plain_bits() {
        let edges = (0..32).flat_map(|shift| [1u32 << shift, (1u32 << shift) - 1, (1 << shift) | 1]);
        for number in edges.chain(0..5000).chain([u32::MAX, u32::MAX - 1]) {
            let (class, plain) = class_of(number);
            let (start, same) = start_of(class);
            assert!(class < CLASSES && plain == same, "{number}");
            assert!(
                start <= number && u64::from(number) < u64::from(start) + (1 << plain),
                "{number}: {start}+{plain}"
            );
        }
        assert_eq!(class_of(u32::MAX).0, CLASSES - 1);
    }
}
