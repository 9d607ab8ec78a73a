//! Streams of bits: the first bit is the lowest of the first byte.

/// Bits that one [`BitWriter::put`] takes and one [`BitReader::refill`] makes ready, at least.
pub const BITS_MAX: u32 = 56;

#[derive(Debug, Default)]
pub struct BitWriter {
    out: Vec<u8>,
    pending: u64,
    /// Bits of `pending` that are set or cleared on purpose; below 8 between calls.
    count: u32,
}

impl BitWriter {
    pub fn clear(&mut self) {
        self.out.clear();
        (self.pending, self.count) = (0, 0);
    }

    /// Appends the lowest `count` bits of `bits`, whose others are zero; [`BITS_MAX`] at most.
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

    /// Fills the last byte with zeros and shows the bytes.
    pub fn padded(&mut self) -> &[u8] {
        if self.count > 0 {
            self.out.push(self.pending as u8);
            (self.pending, self.count) = (0, 0);
        }
        &self.out
    }

    /// Appends a one, so that zeros that fill the last byte tell from what was put; then as [`padded`](Self::padded).
    pub fn marked(&mut self) -> &[u8] {
        self.put(1, 1);
        self.padded()
    }
}

/// Reads bits; past the end of the bytes there are zeros, and [`position`](BitReader::position) tells.
#[derive(Clone, Debug)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    /// The byte to take next; goes on past the end.
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

    /// Makes [`BITS_MAX`] bits ready, at least.
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
        // What the last whole refill brought beyond `count` is the same bytes again.
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

    /// Bits that are ready, the next one lowest.
    #[inline]
    pub fn peek(&self) -> u64 {
        self.ready
    }

    /// Goes past `count` bits, which are ready.
    #[inline]
    pub fn skip(&mut self, count: u32) {
        debug_assert!(count <= self.count, "bits that are not ready");
        self.ready >>= count;
        self.count -= count;
    }

    /// Takes `count` bits, which are ready; below 64.
    #[inline]
    pub fn take(&mut self, count: u32) -> u64 {
        let bits = self.ready & ((1 << count) - 1);
        self.skip(count);
        bits
    }
}

/// Where the mark that ends a stream of bits lies: the bits before it. `None`: there is none in the last byte.
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
