//! Streams of bits: the first bit is the lowest of the first byte.

/// Most bits of one [`BitWriter::put`]; least bits ready after [`BitReader::refill`].
pub const BITS_MAX: u32 = 56;

#[derive(Debug, Default)]
pub struct BitWriter {
    out: Vec<u8>,
    pending: u64,
    /// Bits in `pending`; below 8 between calls.
    count: u32,
}

impl BitWriter {
    pub fn clear(&mut self) {
        self.out.clear();
        (self.pending, self.count) = (0, 0);
    }

    /// Appends the lowest `count` bits of `bits`, at most [`BITS_MAX`]. Higher bits must be zero.
    #[inline]
    pub fn put(&mut self, bits: u64, count: u32) {
        debug_assert!(count <= BITS_MAX && bits >> count == 0, "{bits:#x} has more than {count} bits");
        self.pending |= bits << self.count;
        self.count += count;
        while self.count >= 8 {
            self.out.push(self.pending as u8);
            self.pending >>= 8;
            self.count -= 8;
        }
    }

    /// Pads the last byte with zeros and returns all bytes.
    pub fn padded(&mut self) -> &[u8] {
        if self.count > 0 {
            self.out.push(self.pending as u8);
            (self.pending, self.count) = (0, 0);
        }
        &self.out
    }

    /// As [`padded`](Self::padded), after an end mark: a one bit, to tell the padding from data.
    pub fn marked(&mut self) -> &[u8] {
        self.put(1, 1);
        self.padded()
    }
}

/// Reads bits. Past the end it reads zeros, and [`position`](BitReader::position) exceeds the bits there are.
#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// Index of the next byte; may exceed the end.
    at: usize,
    ready: u64,
    count: u32,
}

impl<'a> BitReader<'a> {
    pub fn new(bytes: &'a [u8]) -> Self {
        BitReader { bytes, at: 0, ready: 0, count: 0 }
    }

    /// Bits taken so far.
    #[inline]
    pub fn position(&self) -> usize {
        self.at * 8 - self.count as usize
    }

    /// Makes at least [`BITS_MAX`] bits ready.
    #[inline]
    pub fn refill(&mut self) {
        match self.bytes.get(self.at..).and_then(<[u8]>::first_chunk) {
            Some(chunk) => {
                self.ready |= u64::from_le_bytes(*chunk) << self.count;
                let bytes = (63 - self.count) >> 3;
                self.at += bytes as usize;
                self.count += bytes * 8;
            }
            None => self.refill_at_end(),
        }
    }

    #[cold]
    fn refill_at_end(&mut self) {
        // The last full refill left bits above `count`; their bytes are loaded again below.
        self.ready &= (1u64 << self.count) - 1;
        while self.count <= BITS_MAX - 8 {
            let byte = self.bytes.get(self.at).copied().unwrap_or(0);
            self.ready |= u64::from(byte) << self.count;
            self.at += 1;
            self.count += 8;
        }
        if self.count < BITS_MAX {
            let byte = self.bytes.get(self.at).copied().unwrap_or(0);
            self.ready |= u64::from(byte) << self.count;
            self.at += 1;
            self.count += 8;
        }
    }

    /// The ready bits, the next one lowest.
    #[inline]
    pub fn peek(&self) -> u64 {
        self.ready
    }

    /// Skips `count` bits, which must be ready.
    #[inline]
    pub fn skip(&mut self, count: u32) {
        debug_assert!(count <= self.count, "bits that are not ready");
        self.ready >>= count;
        self.count -= count;
    }

    /// Takes `count` bits, below 64, which must be ready.
    #[inline]
    pub fn take(&mut self, count: u32) -> u64 {
        let bits = self.ready & ((1 << count) - 1);
        self.skip(count);
        bits
    }
}

/// Number of bits before the end mark. `None` if the last byte has no mark.
pub fn mark_of(bytes: &[u8]) -> Option<usize> {
    let last = bytes.last().filter(|&&last| last != 0)?;
    Some(bytes.len() * 8 - last.leading_zeros() as usize - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_back_in_order_and_zeros_follow() {
        let widths: Vec<u32> = (0..400).map(|i| i * 7 % 57).collect();
        let mut writer = BitWriter::default();
        let number = |i: usize, width: u32| (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) & ((1 << width) - 1);
        for (i, &width) in widths.iter().enumerate() {
            writer.put(number(i, width), width);
        }
        let bytes = writer.marked().to_vec();
        let mut reader = BitReader::new(&bytes);
        for (i, &width) in widths.iter().enumerate() {
            reader.refill();
            assert_eq!(reader.take(width), number(i, width), "{i}");
        }
        assert_eq!(Some(reader.position()), mark_of(&bytes));
        reader.refill();
        assert_eq!(reader.take(1), 1);
        for _ in 0..20 {
            reader.refill();
            assert_eq!(reader.take(56), 0);
        }
        assert!(reader.position() > bytes.len() * 8);
        assert_eq!((mark_of(&[]), mark_of(&[1, 0]), mark_of(&[0x80])), (None, None, Some(7)));
    }
}
