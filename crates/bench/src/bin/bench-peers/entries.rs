//! Keys and values. An entry has a number; its key scatters the number, and each value begins with a stamp that follows from its key.
//! So every read is checked, and all engines must give the same sum of stamps.

use base::{Error, Result};
use bench::workload::Rng;

use crate::peers::{Change, Changes};

pub const KEY_BYTES: usize = 24;

/// Bytes at the start of a value that follow from its key.
pub const STAMP_BYTES: usize = 8;

/// Random bytes that values are cut from.
const POOL_BYTES: usize = 1 << 20;

/// The scattered number of an entry: the order of the keys is the order of these.
pub fn scattered(number: u64) -> u64 {
    Rng::new(number).next()
}

pub fn key_of(scattered: u64) -> [u8; KEY_BYTES] {
    let mut rng = Rng::new(scattered);
    let mut key = [0; KEY_BYTES];
    let words = [scattered, rng.next(), rng.next()];
    for (to, from) in key.iter_mut().zip(words.iter().flat_map(|word| word.to_be_bytes())) {
        *to = from;
    }
    key
}

fn word(bytes: &[u8]) -> Option<u64> {
    bytes.first_chunk().map(|word| u64::from_be_bytes(*word))
}

/// The stamp of a value, checked against the key.
///
/// # Errors
/// `Corruption`: the value belongs to a different key.
#[inline]
pub fn stamp(key: &[u8], value: &[u8]) -> Result<u64> {
    match (key.get(8..).and_then(word), word(value)) {
        (Some(expected), Some(found)) if expected == found => Ok(found),
        _ => Err(Error::corruption(format!("the value of key {key:02x?} is not one that was written"))),
    }
}

/// Makes entries, one at a time.
pub struct Entries {
    key: [u8; KEY_BYTES],
    value: Vec<u8>,
    pool: Vec<u8>,
    rng: Rng,
}

impl Entries {
    pub fn new(seed: u64, value_bytes: usize) -> Self {
        let mut rng = Rng::new(seed);
        let pool = (0..(POOL_BYTES.max(2 * value_bytes)) / 8).flat_map(|_| rng.next().to_be_bytes()).collect();
        Entries { key: [0; KEY_BYTES], value: vec![0; value_bytes], pool, rng }
    }

    /// The entry of a scattered number, with a new value.
    #[inline]
    pub fn entry(&mut self, scattered: u64) -> (&[u8], &[u8]) {
        self.key = key_of(scattered);
        let from = self.rng.below((self.pool.len() - self.value.len()) as u64) as usize;
        let (stamp, rest) = self.value.split_at_mut(STAMP_BYTES);
        stamp.copy_from_slice(self.key.get(8..16).unwrap_or_default());
        rest.copy_from_slice(self.pool.get(from..from + rest.len()).unwrap_or_default());
        (&self.key, &self.value)
    }
}

/// Puts of scattered numbers.
pub struct Puts<'a, N> {
    pub entries: &'a mut Entries,
    pub scattered: N,
}

impl<N: Iterator<Item = u64>> Changes for Puts<'_, N> {
    fn next(&mut self) -> Option<Change<'_>> {
        let (key, value) = self.entries.entry(self.scattered.next()?);
        Some(Change::Put { key, value })
    }
}

/// Removals of scattered numbers.
pub struct Removals<N> {
    pub key: [u8; KEY_BYTES],
    pub scattered: N,
}

impl<N: Iterator<Item = u64>> Changes for Removals<N> {
    fn next(&mut self) -> Option<Change<'_>> {
        self.key = key_of(self.scattered.next()?);
        Some(Change::Remove { key: &self.key })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn keys_differ_and_keep_the_order_of_their_numbers() {
        let mut numbers: Vec<u64> = (0..1000).map(scattered).collect();
        numbers.sort_unstable();
        let keys: Vec<_> = numbers.into_iter().map(key_of).collect();
        assert!(keys.is_sorted());
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), 1000);
    }

    #[test]
    fn a_value_is_known_to_be_the_one_of_its_key() {
        let mut entries = Entries::new(7, 64);
        let (key, value) = entries.entry(scattered(3));
        let (key, value) = (key.to_vec(), value.to_vec());
        assert_eq!(value.len(), 64);
        assert!(stamp(&key, &value).is_ok());
        assert_ne!(entries.entry(scattered(3)).1, value, "each write has a new value");
        assert!(stamp(&key_of(scattered(4)), &value).is_err());
        assert!(stamp(&key, &value[..4]).is_err());
    }
}
