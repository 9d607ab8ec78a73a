//! Huffman codes, made once per table; their lengths are stored in the file. Canonical, 12 bits at most: one lookup in
//! an array of 4096 entries decodes a symbol.

use base::{Error, Result};

use super::bits::{BitReader, BitWriter};

/// Bits of the longest code.
pub const CODE_BITS_MAX: u32 = 12;
const TABLE_LEN: usize = 1 << CODE_BITS_MAX;
/// A symbol and the length of its code share 16 bits.
pub const SYMBOLS_MAX: usize = 1 << (16 - LENGTH_BITS);
const LENGTH_BITS: u32 = 4;

/// Counts by symbol of an alphabet.
#[derive(Clone, Debug)]
pub struct Histogram(Vec<u64>);

impl Histogram {
    pub fn new(symbols: usize) -> Self {
        debug_assert!(symbols <= SYMBOLS_MAX, "{symbols} symbols");
        Histogram(vec![0; symbols])
    }

    #[inline]
    pub fn count(&mut self, symbol: usize) {
        if let Some(count) = self.0.get_mut(symbol) {
            *count += 1;
        }
    }

    /// Makes every count positive, so each symbol gets a code: for counts of a sample.
    #[must_use]
    pub fn smoothed(&self) -> Histogram {
        const WEIGHT: u64 = 16;
        Histogram(self.0.iter().map(|count| count * WEIGHT + 1).collect())
    }

    /// Code length of each symbol: 0 for a symbol with count 0, `ALONE` for a single symbol.
    pub fn lengths(&self) -> Vec<u8> {
        let mut seen: Vec<(u64, usize)> = self
            .0
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(symbol, &count)| (count, symbol))
            .collect();
        seen.sort_unstable();
        let mut lengths = vec![0; self.0.len()];
        let with_length = numbers_of_lengths(&seen.iter().map(|(count, _)| *count).collect::<Vec<_>>());
        // Rarest symbols first: they get the longest codes.
        let longest_first = with_length.iter().enumerate().rev();
        let all = longest_first.flat_map(|(length, &number)| std::iter::repeat_n(length as u8, number));
        for ((_, symbol), length) in seen.into_iter().zip(all) {
            if let Some(place) = lengths.get_mut(symbol) {
                *place = length;
            }
        }
        // A single symbol has a code of zero bits; `ALONE` marks it as present.
        if lengths.iter().filter(|length| **length > 0).count() == 1 {
            lengths.iter_mut().filter(|length| **length > 0).for_each(|length| *length = ALONE);
        }
        lengths
    }
}

/// Stored length of a single symbol's code, which has no bits.
const ALONE: u8 = 15;

/// Number of codes of each length, for ascending `counts`: the depths of Huffman's tree, adjusted to
/// [`CODE_BITS_MAX`] if the tree is deeper.
fn numbers_of_lengths(counts: &[u64]) -> [usize; CODE_BITS_MAX as usize + 1] {
    let mut numbers = [0; CODE_BITS_MAX as usize + 1];
    for depth in depths(counts) {
        let length = depth.clamp(1, CODE_BITS_MAX) as usize;
        if let Some(number) = numbers.get_mut(length) {
            *number += 1;
        }
    }
    let used = |numbers: &[usize]| -> usize {
        numbers.iter().enumerate().skip(1).map(|(length, number)| number << (CODE_BITS_MAX as usize - length)).sum()
    };
    // Each step frees the room of one longest code: a shorter code grows by a bit and shares its room with a longest.
    while used(&numbers) > TABLE_LEN {
        let Some(shorter) =
            (1..CODE_BITS_MAX as usize).rev().find(|&length| numbers.get(length).is_some_and(|n| *n > 0))
        else {
            break;
        };
        for (length, change) in [(CODE_BITS_MAX as usize, -1), (shorter, -1), (shorter + 1, 2)] {
            if let Some(number) = numbers.get_mut(length) {
                *number = number.saturating_add_signed(change);
            }
        }
    }
    numbers
}

/// Depths of the leaves of Huffman's tree over ascending `counts`, in the same order.
fn depths(counts: &[u64]) -> Vec<u32> {
    // Inner nodes are also made in ascending order: two queues suffice.
    let mut joined: Vec<u64> = Vec::with_capacity(counts.len());
    let mut parents: Vec<usize> = vec![0; counts.len() * 2];
    let (mut leaf, mut inner) = (0, 0);
    for parent in counts.len()..(counts.len() * 2).saturating_sub(1) {
        let mut sum = 0;
        for _ in 0..2 {
            let (next_leaf, next_inner) = (counts.get(leaf), joined.get(inner));
            let takes_leaf = next_leaf.is_some_and(|a| next_inner.is_none_or(|b| a <= b));
            let (node, count) = match takes_leaf {
                true => (leaf, next_leaf),
                false => (counts.len() + inner, next_inner),
            };
            if takes_leaf {
                leaf += 1
            } else {
                inner += 1
            }
            sum += count.copied().unwrap_or_default();
            if let Some(place) = parents.get_mut(node) {
                *place = parent;
            }
        }
        joined.push(sum);
    }
    // Top down; the root was made last.
    let mut depths = vec![0u32; counts.len() * 2];
    for node in (0..(counts.len() * 2).saturating_sub(2)).rev() {
        let above = parents.get(node).and_then(|parent| depths.get(*parent)).copied().unwrap_or_default();
        if let Some(depth) = depths.get_mut(node) {
            *depth = above + 1;
        }
    }
    depths.truncate(counts.len());
    depths
}

/// Codes by symbol.
#[derive(Clone, Debug)]
pub struct Encoder(Vec<Code>);

#[derive(Clone, Copy, Debug, Default)]
struct Code {
    bits: u16,
    len: u8,
}

impl Encoder {
    /// # Errors
    /// `Corruption`: the lengths fit no code.
    pub fn new(lengths: &[u8]) -> Result<Encoder> {
        let mut codes = vec![Code::default(); lengths.len()];
        for_each_code(lengths, |symbol, bits, len| {
            if let Some(code) = codes.get_mut(symbol) {
                *code = Code { bits, len };
            }
        })?;
        Ok(Encoder(codes))
    }

    /// The symbol must have a code.
    #[inline]
    pub fn put(&self, writer: &mut BitWriter, symbol: usize) {
        let code = self.0.get(symbol).copied().unwrap_or_default();
        writer.put(u64::from(code.bits), u32::from(code.len));
    }

    /// The length of a symbol's code.
    #[inline]
    pub fn bits(&self, symbol: usize) -> u32 {
        self.0.get(symbol).map_or(CODE_BITS_MAX, |code| u32::from(code.len))
    }
}

/// Symbols by the next 12 bits.
#[derive(Clone)]
pub struct Decoder(Box<[u16; TABLE_LEN]>);

impl Decoder {
    /// # Errors
    /// `Corruption`: the lengths fit no code.
    pub fn new(lengths: &[u8]) -> Result<Decoder> {
        let mut table = Box::new([0; TABLE_LEN]);
        for_each_code(lengths, |symbol, bits, len| {
            let entry = ((symbol as u16) << LENGTH_BITS) | u16::from(len);
            table.iter_mut().skip(usize::from(bits)).step_by(1 << len).for_each(|place| *place = entry);
        })?;
        Ok(Decoder(table))
    }

    /// The next symbol. 12 bits must be ready.
    #[inline]
    pub fn take(&self, reader: &mut BitReader<'_>) -> usize {
        let entry = self.0.get(reader.peek() as usize & (TABLE_LEN - 1)).copied().unwrap_or_default();
        reader.skip(u32::from(entry) & ((1 << LENGTH_BITS) - 1));
        usize::from(entry >> LENGTH_BITS)
    }

    pub fn memory_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

/// Passes each symbol with a code to `show`, with the code, first bit lowest, and its length in bits.
fn for_each_code(lengths: &[u8], mut show: impl FnMut(usize, u16, u8)) -> Result<()> {
    let malformed = || Error::corruption("the lengths of codes fit no code");
    if lengths.len() > SYMBOLS_MAX {
        return Err(malformed());
    }
    let there = lengths.iter().filter(|length| **length > 0).count();
    if let Some(only) = lengths.iter().position(|length| *length == ALONE) {
        show(only, 0, 0);
        return if there == 1 { Ok(()) } else { Err(malformed()) };
    }
    let mut next = 0u32;
    for length in 1..=CODE_BITS_MAX as u8 {
        next <<= 1;
        for (symbol, _) in lengths.iter().enumerate().filter(|(_, other)| **other == length) {
            if next >> length != 0 {
                return Err(malformed());
            }
            show(symbol, (next as u16).reverse_bits() >> (16 - length), length);
            next += 1;
        }
    }
    // The code is complete, or empty.
    let whole = there == 0 || next == 1 << CODE_BITS_MAX;
    if whole && lengths.iter().all(|length| u32::from(*length) <= CODE_BITS_MAX) { Ok(()) } else { Err(malformed()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(counts: &[u64]) -> usize {
        let lengths = Histogram(counts.to_vec()).lengths();
        let (encoder, decoder) = (Encoder::new(&lengths).expect("codes"), Decoder::new(&lengths).expect("codes"));
        let symbols: Vec<usize> = (0..counts.len()).filter(|symbol| counts[*symbol] > 0).collect();
        let mut writer = BitWriter::default();
        symbols.iter().for_each(|symbol| encoder.put(&mut writer, *symbol));
        let bytes = writer.marked().to_vec();
        let mut reader = BitReader::new(&bytes);
        for symbol in symbols {
            reader.refill();
            assert_eq!(decoder.take(&mut reader), symbol);
        }
        assert_eq!(Some(reader.position()), super::super::bits::mark_of(&bytes));
        counts.iter().zip(&lengths).map(|(count, length)| *count as usize * usize::from(*length % ALONE)).sum()
    }

    #[test]
    fn codes_round_trip_and_are_as_short_as_can_be() {
        assert_eq!(round_trip(&[5, 1, 1, 2]), 5 + 2 * 2 + 3 + 3);
        assert_eq!(round_trip(&[0, 7, 0]), 0, "one symbol takes no bits");
        assert_eq!(round_trip(&[]), 0);
        assert_eq!(round_trip(&[1; 4096]), 4096 * 12);
        let fibonacci: Vec<u64> = (0..40).scan((1, 1), |(a, b), _| Some((*a, (*a, *b) = (*b, *a + *b)).0)).collect();
        round_trip(&fibonacci);
        for seed in 0..200u64 {
            let counts: Vec<u64> = (0..1 + seed * 7 % 500).map(|i| (i * i * seed) % 1009 % (1 + seed)).collect();
            round_trip(&counts);
            round_trip(&Histogram(counts).smoothed().0);
        }
    }

    #[test]
    fn lengths_that_fit_no_code_are_refused() {
        for lengths in [&[1, 1, 1][..], &[1], &[1, 2], &[13, 13], &[ALONE, 1], &[ALONE, ALONE], &[14; 8], &[0; 5000]] {
            assert!(Decoder::new(lengths).is_err(), "{lengths:?}");
            assert!(Encoder::new(lengths).is_err(), "{lengths:?}");
        }
        assert!(Decoder::new(&[0; 9]).is_ok() && Decoder::new(&[1, 1]).is_ok());
    }
}
