//! Hash index of a data block: user key hash to restart interval, one byte a bucket. Point lookups skip the binary
//! search. Format: docs/format/table.md, "Data-block hash index".

use base::coding::put_u16;
use base::{Error, Result};

use crate::filter::rocks_hash;

const NO_ENTRY: u8 = 255;
const COLLISION: u8 = 254;
/// Largest restart interval number a bucket can hold.
const RESTARTS_MAX: usize = 253;
/// Blocks larger than this carry no hash index: RocksDB does not look for one.
pub const BLOCK_BYTES_MAX: usize = 64 << 10;

/// A bucket's answer for the keys hashed to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// No key of the block hashes here.
    Empty,
    /// Keys of several restart intervals hash here: search without the hash index.
    Collision,
    /// Every key hashed here is in this restart interval.
    Restart(usize),
}

impl Bucket {
    #[inline]
    pub(super) fn from_byte(byte: u8) -> Bucket {
        match byte {
            NO_ENTRY => Bucket::Empty,
            COLLISION => Bucket::Collision,
            restart => Bucket::Restart(usize::from(restart)),
        }
    }
}

/// Bucket count, and the buckets' offset in `body` (a block without its last word).
pub(super) fn split(body: &[u8]) -> Result<(usize, usize)> {
    let malformed = || Error::corruption("a block's hash index does not fit the block");
    let (before, count) = body.split_last_chunk::<2>().ok_or_else(malformed)?;
    let buckets = usize::from(u16::from_le_bytes(*count));
    let start = before.len().checked_sub(buckets).ok_or_else(malformed)?;
    if buckets == 0 {
        return Err(malformed());
    }
    Ok((buckets, start))
}

/// Collects hashes while a block is written.
#[derive(Debug)]
pub struct HashIndexBuilder {
    buckets_per_key: f64,
    entries: Vec<(u32, u8)>,
    /// False once the block has more intervals than a bucket can name.
    fits: bool,
}

impl HashIndexBuilder {
    /// `utilization` is keys per bucket, in (0, 1]; RocksDB's default is 0.75.
    pub fn new(utilization: f64) -> Self {
        let sane = if utilization > 0.0 && utilization <= 1.0 { utilization } else { 0.75 };
        HashIndexBuilder { buckets_per_key: 1.0 / sane, entries: Vec::new(), fits: true }
    }

    pub fn add(&mut self, user_key: &[u8], restart: usize) {
        match u8::try_from(restart) {
            Ok(byte) if restart <= RESTARTS_MAX => self.entries.push((hash_of(user_key), byte)),
            _ => self.fits = false,
        }
    }

    fn buckets(&self) -> usize {
        let wanted = (self.entries.len() as f64 * self.buckets_per_key) as usize;
        wanted | 1 // odd: the hash spreads poorly over powers of two
    }

    pub fn estimated_bytes(&self) -> usize {
        self.buckets() + 2
    }

    /// Appends the index to a block if it fits, and returns whether it did. The builder is then empty again.
    pub fn finish(&mut self, block: &mut Vec<u8>) -> bool {
        let count = self.buckets();
        let fits = self.fits && !self.entries.is_empty() && block.len() + count + 6 <= BLOCK_BYTES_MAX;
        if let (true, Ok(stored)) = (fits, u16::try_from(count)) {
            let start = block.len();
            block.resize(start + count, NO_ENTRY);
            for &(hash, restart) in &self.entries {
                if let Some(bucket) = block.get_mut(start + hash as usize % count) {
                    *bucket = if *bucket == NO_ENTRY || *bucket == restart { restart } else { COLLISION };
                }
            }
            put_u16(block, stored);
            self.reset();
            return true;
        }
        self.reset();
        false
    }

    fn reset(&mut self) {
        self.entries.clear();
        self.fits = true;
    }
}

/// The hash of a user key in this index.
pub fn hash_of(user_key: &[u8]) -> u32 {
    const SEED: u32 = 397;
    rocks_hash(user_key, SEED)
}
