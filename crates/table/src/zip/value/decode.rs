//! Decompression of one value. Records are not trusted: copies are bounds-checked, and a value is limited to the
//! table's longest (B1, B2).

use base::{Error, Result};

use super::super::bits::{BitReader, mark_of};
use super::super::classes;
use super::super::huffman::Decoder;
use super::{After, CODE_LENGTHS, COPY_MIN, FIRST_REGION, LITERALS, NEAR, NEAR_BIAS, TOKENS, region_bits};

/// Decompresses the values of a table.
pub struct ValueDecoder {
    dictionary: Vec<u8>,
    region_bits: u32,
    after_literal: Decoder,
    after_copy: Decoder,
    sources: Decoder,
    value_bytes_max: usize,
}

impl ValueDecoder {
    /// `code_lengths`: [`CODE_LENGTHS`] bytes. `value_bytes_max`: limit of a value.
    ///
    /// # Errors
    /// `Corruption`: the lengths fit no code.
    pub fn new(dictionary: Vec<u8>, code_lengths: &[u8], value_bytes_max: usize) -> Result<ValueDecoder> {
        let malformed = || Error::corruption("the codes of values are malformed");
        if code_lengths.len() != CODE_LENGTHS {
            return Err(malformed());
        }
        let (after_literal, rest) = code_lengths.split_at_checked(TOKENS).ok_or_else(malformed)?;
        let (after_copy, sources) = rest.split_at_checked(TOKENS).ok_or_else(malformed)?;
        Ok(ValueDecoder {
            region_bits: region_bits(dictionary.len()),
            dictionary,
            after_literal: Decoder::new(after_literal)?,
            after_copy: Decoder::new(after_copy)?,
            sources: Decoder::new(sources)?,
            value_bytes_max,
        })
    }

    pub fn dictionary(&self) -> &[u8] {
        &self.dictionary
    }

    pub fn memory_bytes(&self) -> usize {
        let codes = [&self.after_literal, &self.after_copy, &self.sources];
        self.dictionary.capacity() + codes.iter().map(|code| code.memory_bytes()).sum::<usize>()
    }

    /// Replaces `out` by the value of the record in `bytes[..len]`. Bytes after the record are ignored, but spare the
    /// bit reader its slow path.
    ///
    /// # Errors
    /// `Corruption`.
    pub fn decode(&self, bytes: &[u8], len: usize, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        let end = bytes.get(..len).and_then(mark_of).ok_or_else(|| damaged("has no end"))?;
        let mut bits = BitReader::new(bytes);
        let mut after = After::Literal;
        // End of the last copy from the dictionary.
        let mut near = 0u32;
        while bits.position() < end {
            bits.refill();
            let code = match after {
                After::Literal => &self.after_literal,
                After::Copy => &self.after_copy,
            };
            let token = code.take(&mut bits);
            if token < LITERALS {
                out.push(token as u8);
                after = After::Literal;
                continue;
            }
            let len = COPY_MIN.saturating_add(classes::finish(&mut bits, token - LITERALS) as usize);
            if len > self.value_bytes_max.saturating_sub(out.len()) {
                return Err(damaged("is longer than the table's longest value"));
            }
            self.copy(&mut bits, len, &mut near, out)?;
            after = After::Copy;
        }
        if bits.position() != end {
            return Err(damaged("ends within a token"));
        }
        if out.len() > self.value_bytes_max {
            return Err(damaged("is longer than the table's longest value"));
        }
        Ok(())
    }

    #[inline]
    fn copy(&self, bits: &mut BitReader<'_>, len: usize, near: &mut u32, out: &mut Vec<u8>) -> Result<()> {
        bits.refill();
        let symbol = self.sources.take(bits);
        let from = if symbol >= FIRST_REGION {
            let region = (symbol - FIRST_REGION) as u32;
            (region << self.region_bits) + bits.take(self.region_bits) as u32
        } else if symbol < NEAR {
            near.wrapping_add(symbol as u32).wrapping_sub(NEAR_BIAS)
        } else {
            let back = (classes::finish(bits, symbol - NEAR) as usize).saturating_add(1);
            return copy_back(out, back, len);
        };
        let copied = self.dictionary.get(from as usize..).and_then(|rest| rest.get(..len));
        out.extend_from_slice(copied.ok_or_else(|| damaged("copies from beyond the dictionary"))?);
        *near = from + len as u32;
        Ok(())
    }
}

/// Appends `len` bytes, each a copy of the byte `back` before it.
fn copy_back(out: &mut Vec<u8>, back: usize, len: usize) -> Result<()> {
    let start = out.len().checked_sub(back).ok_or_else(|| damaged("copies from before its start"))?;
    if len <= back {
        out.extend_from_within(start..start + len);
        return Ok(());
    }
    // Overlapping copy: appended bytes are copied again, doubling the length each time.
    let mut left = len;
    while left > 0 {
        let step = left.min(out.len() - start);
        out.extend_from_within(start..start + step);
        left -= step;
    }
    Ok(())
}

#[cold]
fn damaged(what: &str) -> Error {
    Error::corruption(format!("a compressed value {what}"))
}
