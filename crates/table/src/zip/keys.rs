//! Prefix-compressed keys: lengths, bytes, sequence numbers and kinds, in codes trained on all keys of the table.
//! A field with one value in all keys takes no bits. Format: docs/format/zip.md, "Groups".

use base::bytes::shared_prefix;
use base::{Error, Result, SeqNo, ValueKind, key};

use super::bits::{BitReader, BitWriter};
use super::classes::{self, CLASSES, class_of};
use super::huffman::{Decoder, Encoder, Histogram};

/// Kinds by their number in a table.
const KINDS: [ValueKind; 4] = [ValueKind::Value, ValueKind::Deletion, ValueKind::Merge, ValueKind::SingleDeletion];
/// Widths in bits of a sequence number less the table's smallest: 0 to 56.
const SEQ_WIDTHS: usize = 57;

/// Symbols of each alphabet: key length less the shortest, length shared with the previous key, bytes of the rest,
/// kind and width of the sequence number, record length (compressed records first, then plain ones).
const ALPHABETS: [usize; 5] = [CLASSES, CLASSES, 256, KINDS.len() * SEQ_WIDTHS, 2 * CLASSES];

/// Lengths of the codes of all alphabets.
pub const CODE_LENGTHS: usize = ALPHABETS[0] + ALPHABETS[1] + ALPHABETS[2] + ALPHABETS[3] + ALPHABETS[4];

/// Bounds over all keys of a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyBounds {
    /// Bytes of the shortest user key, and of the longest.
    pub bytes_min: u32,
    pub bytes_max: u32,
    pub smallest_seq: SeqNo,
}

/// How the record of an entry's value lies in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordSize {
    pub bytes: u32,
    /// The value is stored uncompressed.
    pub is_plain: bool,
}

impl RecordSize {
    fn first_class(self) -> usize {
        if self.is_plain { CLASSES } else { 0 }
    }
}

/// Symbol, plain bits and their number, for kind and sequence number.
fn trailer_symbol(trailer: u64, bounds: KeyBounds) -> (usize, u64, u32) {
    let kind = KINDS.iter().position(|kind| *kind as u8 == trailer as u8).unwrap_or_default();
    let seq = (trailer >> 8).saturating_sub(bounds.smallest_seq.0);
    let width = u64::BITS - seq.leading_zeros();
    // The highest bit is always one and not stored.
    let plain = width.saturating_sub(1);
    (kind * SEQ_WIDTHS + width as usize, seq & !(u64::MAX << plain), plain)
}

/// Symbol counts, to make codes of.
pub struct KeyCounts {
    bounds: KeyBounds,
    histograms: [Histogram; 5],
}

impl KeyCounts {
    pub fn new(bounds: KeyBounds) -> Self {
        KeyCounts { bounds, histograms: ALPHABETS.map(Histogram::new) }
    }

    /// Counts the key of the entry after `previous`.
    pub fn add_key(&mut self, previous: &[u8], user_key: &[u8], trailer: u64) {
        let [lengths, shares, bytes, trailers, _] = &mut self.histograms;
        let same = shared_prefix(previous, user_key);
        lengths.count(class_of(user_key.len() as u32 - self.bounds.bytes_min).0);
        shares.count(class_of(same as u32).0);
        user_key.iter().skip(same).for_each(|byte| bytes.count(usize::from(*byte)));
        trailers.count(trailer_symbol(trailer, self.bounds).0);
    }

    /// Counts the record of a sampled value.
    pub fn add_record(&mut self, size: RecordSize) {
        let [.., records] = &mut self.histograms;
        records.count(size.first_class() + class_of(size.bytes).0);
    }

    /// [`CODE_LENGTHS`] bytes. Record codes are smoothed, as records are only sampled.
    pub fn code_lengths(&self) -> Vec<u8> {
        let [keys @ .., records] = &self.histograms;
        let mut lengths: Vec<u8> = keys.iter().flat_map(Histogram::lengths).collect();
        lengths.append(&mut records.smoothed().lengths());
        lengths
    }
}

/// A slice of lengths for each alphabet.
fn by_alphabet(mut lengths: &[u8]) -> Result<[&[u8]; 5]> {
    let malformed = || Error::corruption("the codes of keys are malformed");
    let mut parts = [&[][..]; 5];
    for (part, symbols) in parts.iter_mut().zip(ALPHABETS) {
        (*part, lengths) = lengths.split_at_checked(symbols).ok_or_else(malformed)?;
    }
    if lengths.is_empty() { Ok(parts) } else { Err(malformed()) }
}

pub struct KeyEncoder {
    bounds: KeyBounds,
    codes: [Encoder; 5],
}

impl KeyEncoder {
    /// # Errors
    /// `Corruption`: the lengths fit no code.
    pub fn new(bounds: KeyBounds, code_lengths: &[u8]) -> Result<KeyEncoder> {
        let [a, b, c, d, e] = by_alphabet(code_lengths)?.map(Encoder::new);
        Ok(KeyEncoder { bounds, codes: [a?, b?, c?, d?, e?] })
    }

    /// Appends the entry after `previous`.
    pub fn put(&self, out: &mut BitWriter, previous: &[u8], internal_key: &[u8], record: RecordSize) {
        let (user_key, trailer) = key::split(internal_key).unwrap_or_default();
        let [lengths, shares, bytes, trailers, records] = &self.codes;
        let same = shared_prefix(previous, user_key);
        classes::put(out, lengths, 0, user_key.len() as u32 - self.bounds.bytes_min);
        classes::put(out, shares, 0, same as u32);
        user_key.iter().skip(same).for_each(|byte| bytes.put(out, usize::from(*byte)));
        let (symbol, plain, width) = trailer_symbol(trailer, self.bounds);
        trailers.put(out, symbol);
        out.put(plain, width);
        classes::put(out, records, record.first_class(), record.bytes);
    }
}

pub struct KeyDecoder {
    bounds: KeyBounds,
    codes: [Decoder; 5],
}

impl KeyDecoder {
    /// # Errors
    /// `Corruption`: the lengths fit no code.
    pub fn new(bounds: KeyBounds, code_lengths: &[u8]) -> Result<KeyDecoder> {
        let [a, b, c, d, e] = by_alphabet(code_lengths)?.map(Decoder::new);
        Ok(KeyDecoder { bounds, codes: [a?, b?, c?, d?, e?] })
    }

    pub fn memory_bytes(&self) -> usize {
        self.codes.iter().map(Decoder::memory_bytes).sum()
    }

    /// Reads an entry: replaces `key`, the previous user key, by its own. Returns trailer and record.
    ///
    /// # Errors
    /// `Corruption`.
    #[inline]
    pub fn take(&self, bits: &mut BitReader<'_>, key: &mut Vec<u8>) -> Result<(u64, RecordSize)> {
        let [lengths, shares, bytes, trailers, records] = &self.codes;
        bits.refill();
        let len = self.bounds.bytes_min.saturating_add(classes::take(bits, lengths)) as usize;
        bits.refill();
        let same = classes::take(bits, shares) as usize;
        if len > self.bounds.bytes_max as usize || same > len.min(key.len()) {
            return Err(malformed_key());
        }
        key.truncate(same);
        let mut left = len - same;
        // One refill covers four codes.
        while left > 0 {
            bits.refill();
            let together = left.min(4);
            for _ in 0..together {
                key.push(bytes.take(bits) as u8);
            }
            left -= together;
        }
        bits.refill();
        let symbol = trailers.take(bits);
        let width = (symbol % SEQ_WIDTHS) as u32;
        bits.refill();
        let seq = self.seq(width, bits.take(width.saturating_sub(1)))?;
        let kind = KINDS.get(symbol / SEQ_WIDTHS).copied().ok_or_else(malformed_key)?;
        bits.refill();
        let class = records.take(bits);
        let is_plain = class >= CLASSES;
        let record = classes::finish(bits, if is_plain { class - CLASSES } else { class });
        Ok(((seq << 8) | u64::from(kind as u8), RecordSize { bytes: record, is_plain }))
    }

    #[inline]
    fn seq(&self, width: u32, plain: u64) -> Result<u64> {
        let above = if width == 0 { 0 } else { plain | (1 << (width - 1)) };
        let seq = self.bounds.smallest_seq.0 + above;
        if seq > SeqNo::MAX.0 { Err(malformed_key()) } else { Ok(seq) }
    }
}

#[cold]
fn malformed_key() -> Error {
    Error::corruption("an entry's key is malformed")
}

#[cfg(test)]
mod tests {
    use base::key::pack_trailer;

    use super::super::bits::mark_of;
    use super::*;

    #[test]
    fn entries_come_back_and_what_is_common_takes_no_bits() {
        let bounds = KeyBounds { bytes_min: 3, bytes_max: 40, smallest_seq: SeqNo(7) };
        let record = |bytes, is_plain| RecordSize { bytes, is_plain };
        let entries = [
            (&b"abc"[..], pack_trailer(SeqNo(7), 1), record(0, false)),
            (b"abcd", pack_trailer(SeqNo::MAX, 0), record(70_000, true)),
            (b"abcd", pack_trailer(SeqNo(9), 2), record(u32::MAX, false)),
            (b"abd a much longer one than those before ", pack_trailer(SeqNo(8), 7), record(33, false)),
        ];
        let mut counts = KeyCounts::new(bounds);
        let mut previous = &b"ab"[..];
        for (key, trailer, record) in entries {
            counts.add_key(previous, key, trailer);
            counts.add_record(record);
            previous = key;
        }
        let lengths = counts.code_lengths();
        let (encoder, decoder) = (KeyEncoder::new(bounds, &lengths), KeyDecoder::new(bounds, &lengths));
        let (encoder, decoder) = (encoder.expect("codes"), decoder.expect("codes"));
        let mut out = BitWriter::default();
        previous = b"ab";
        for (key, trailer, record) in entries {
            encoder.put(&mut out, previous, &[key, &trailer.to_le_bytes()].concat(), record);
            previous = key;
        }
        let bytes = out.marked().to_vec();
        let (mut bits, mut key) = (BitReader::new(&bytes), b"ab".to_vec());
        for (user_key, trailer, record) in entries {
            assert_eq!(decoder.take(&mut bits, &mut key).expect("whole"), (trailer, record));
            assert_eq!(key, user_key);
        }
        assert_eq!(Some(bits.position()), mark_of(&bytes));
    }
}
