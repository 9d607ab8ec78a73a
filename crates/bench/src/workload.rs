//! Keys and values as db_bench writes them, so that both programs do the same work. A key is a number in eight big-endian bytes,
//! padded with the digit zero. A value is a slice of a pool of pieces, each partly a repetition of itself.

use crate::flags::Flags;

/// A small fast generator (splitmix64): its cost must be invisible beside an operation.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    #[inline]
    #[expect(clippy::should_implement_trait, reason = "it never ends, and an Option would be in the way")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    /// A number below `end`; `end` is at least 1.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

/// A buffer with one key, overwritten for each operation.
#[derive(Clone, Debug)]
pub struct KeyBuffer(Vec<u8>);

impl KeyBuffer {
    /// `size` is at least 8.
    pub fn new(size: usize) -> Self {
        KeyBuffer(vec![b'0'; size])
    }

    #[inline]
    pub fn set(&mut self, number: u64) -> &[u8] {
        for (to, from) in self.0.iter_mut().zip(number.to_be_bytes()) {
            *to = from;
        }
        &self.0
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Bytes of the pool of values.
const POOL_BYTES: usize = 1 << 20;

/// Bytes of a piece of the pool: a random part, then its repetitions.
const PIECE_BYTES: usize = 100;

/// Values of one size, of a given compressibility.
#[derive(Clone, Debug)]
pub struct Values {
    pool: Vec<u8>,
    at: usize,
    size: usize,
}

impl Values {
    pub fn new(rng: &mut Rng, size: usize, compression_ratio: f64) -> Self {
        let random = ((PIECE_BYTES as f64 * compression_ratio) as usize).clamp(1, PIECE_BYTES);
        let wanted = POOL_BYTES.max(2 * size);
        let mut pool = Vec::with_capacity(wanted + PIECE_BYTES);
        while pool.len() < wanted {
            let piece: Vec<u8> = (0..random).map(|_| b' ' + rng.below(95) as u8).collect();
            pool.extend(piece.iter().cycle().take(PIECE_BYTES));
        }
        Values { pool, at: 0, size }
    }

    #[inline]
    #[expect(clippy::should_implement_trait, reason = "a value is lent, which no iterator can")]
    pub fn next(&mut self) -> &[u8] {
        if self.at + self.size > self.pool.len() {
            self.at = 0;
        }
        let start = self.at;
        self.at += self.size;
        self.pool.get(start..self.at).unwrap_or_default()
    }
}

/// A buffer with one entry, overwritten for each operation: the key of a number, and the next value.
pub struct EntryBuffer {
    key: KeyBuffer,
    values: Values,
}

impl EntryBuffer {
    pub fn new(flags: &Flags, rng: &mut Rng) -> Self {
        let values = Values::new(rng, flags.value_size, flags.compression_ratio);
        EntryBuffer { key: KeyBuffer::new(flags.key_size), values }
    }

    #[inline]
    pub fn next(&mut self, number: u64) -> (&[u8], &[u8]) {
        (self.key.set(number), self.values.next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_those_of_db_bench() {
        // As `ldb scan --hex` shows a database that db_bench filled.
        assert_eq!(KeyBuffer::new(16).set(2), b"\0\0\0\0\0\0\0\x0200000000");
        assert_eq!(KeyBuffer::new(8).set(0x0102), [0, 0, 0, 0, 0, 0, 1, 2]);
    }

    #[test]
    fn values_repeat_half_of_themselves_and_never_end() {
        let mut values = Values::new(&mut Rng::new(1), 100, 0.5);
        for _ in 0..3 * POOL_BYTES / 100 {
            let value = values.next();
            assert_eq!(value.len(), 100);
            assert_eq!(value[..50], value[50..]);
        }
        assert_eq!(Values::new(&mut Rng::new(1), 3 * POOL_BYTES, 0.5).next().len(), 3 * POOL_BYTES);
    }

    #[test]
    fn random_numbers_cover_their_range() {
        let mut rng = Rng::new(7);
        let mut seen = [0u32; 10];
        (0..10_000).for_each(|_| seen[rng.below(10) as usize] += 1);
        assert!(seen.iter().all(|&n| (850..1150).contains(&n)), "{seen:?}");
    }
}
