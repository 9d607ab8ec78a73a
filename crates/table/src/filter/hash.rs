//! RocksDB's 32-bit hash of the murmur family: picks the bits of legacy Bloom filters, and the buckets of the hash
//! index inside data blocks.

/// Hashes `bytes`. The last one to three bytes count as *signed*: the original compiler's `char` was signed.
pub fn rocks_hash(bytes: &[u8], seed: u32) -> u32 {
    const FACTOR: u32 = 0xc6a4_a793;
    let mut hash = seed ^ (bytes.len() as u32).wrapping_mul(FACTOR);
    let (words, tail) = bytes.as_chunks::<4>();
    for &word in words {
        hash = hash.wrapping_add(u32::from_le_bytes(word)).wrapping_mul(FACTOR);
        hash ^= hash >> 16;
    }
    if tail.is_empty() {
        return hash;
    }
    for (i, &byte) in tail.iter().enumerate() {
        let widened = i32::from(byte as i8) as u32;
        hash = hash.wrapping_add(widened << (8 * i));
    }
    hash = hash.wrapping_mul(FACTOR);
    hash ^ (hash >> 24)
}
