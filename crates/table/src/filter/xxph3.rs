//! The 64-bit hash of RocksDB's filters: XXH3 as of xxHash 0.7.2, before it was final. Stock XXH3 gives other values
//! for nearly every length. The value of the empty string is RocksDB's own. Filters use seed 0 only.

const PRIME32_1: u64 = 0x9e37_79b1;
const PRIME32_2: u64 = 0x85eb_ca77;
const PRIME32_3: u64 = 0xc2b2_ae3d;
const PRIME64_1: u64 = 0x9e37_79b1_85eb_ca87;
const PRIME64_2: u64 = 0xc2b2_ae3d_27d4_eb4f;
const PRIME64_3: u64 = 0x1656_67b1_9e37_79f9;
const PRIME64_4: u64 = 0x85eb_ca77_c2b2_ae63;
const PRIME64_5: u64 = 0x27d4_eb2f_1656_67c5;

/// Mixed into inputs. Its bytes are read as little-endian words at any byte offset.
const SECRET_BYTES: usize = 192;
const SECRET: [u8; SECRET_BYTES] = secret_bytes([
    0xb8fe6c3923a44bbe7c01812cf721ad1c,
    0xded46de9839097db7240a4a4b7b3671f,
    0xcb79e64eccc0e578825ad07dccff7221,
    0xb8084674f743248ee03590e6813a264c,
    0x3c2852bb91c300cb88d0658b1b532ea3,
    0x71644897a20df94e3819ef46a9deacd8,
    0xa8fa763fe39c343ff9dcbbc7c70b4f1d,
    0x8a51e04bcdb45931c89f7ec9d9787364,
    0xeac5ac8334d3ebc3c581a0fffa1363eb,
    0x170ddd51b7f0da49d316552629d4689e,
    0x2b16be587d47a1fc8ff8b8d17ad031ce,
    0x45cb3a8f95160428afd7fbcabb4b407e,
]);

const STRIPE_BYTES: usize = 64;
/// Secret bytes to advance per stripe of a block.
const STRIPE_STEP: usize = 8;
const BLOCK_BYTES: usize = (SECRET_BYTES - STRIPE_BYTES) / STRIPE_STEP * STRIPE_BYTES;
/// Longest input hashed without stripes.
const MEDIUM_MAX: usize = 240;
/// The smallest secret the algorithm allows; offsets for medium lengths count back from its end.
const SECRET_BYTES_MIN: usize = 136;

/// Hashes a key for a filter.
#[inline]
pub fn xxph3_64(input: &[u8]) -> u64 {
    match input.len() {
        9..=16 => of_9_to_16(input),
        4..=8 => of_4_to_8(input),
        0..=3 => of_0_to_3(input),
        17..=128 => of_17_to_128(input),
        129..=MEDIUM_MAX => of_129_to_240(input),
        _ => of_long(input),
    }
}

fn of_0_to_3(input: &[u8]) -> u64 {
    let (Some(&first), Some(&middle), Some(&last)) = (input.first(), input.get(input.len() / 2), input.last()) else {
        return fold(secret(0), PRIME64_2);
    };
    let combined = u32::from_le_bytes([first, middle, last, input.len() as u8]);
    let keyed = u64::from(combined) ^ (secret(0) & 0xffff_ffff);
    avalanche(keyed.wrapping_mul(PRIME64_1))
}

#[inline]
fn of_4_to_8(input: &[u8]) -> u64 {
    let (Some(&low), Some(&high)) = (input.first_chunk(), input.last_chunk()) else {
        unreachable!("at least four bytes");
    };
    let both = u64::from(u32::from_le_bytes(low)) | u64::from(u32::from_le_bytes(high)) << 32;
    let keyed = both ^ secret(0);
    let mixed = (keyed ^ (keyed >> 51)).wrapping_mul(PRIME32_1).wrapping_add(input.len() as u64);
    avalanche((mixed ^ (mixed >> 47)).wrapping_mul(PRIME64_2))
}

#[inline]
fn of_9_to_16(input: &[u8]) -> u64 {
    let (Some(&low), Some(&high)) = (input.first_chunk(), input.last_chunk()) else {
        unreachable!("at least eight bytes");
    };
    let low = u64::from_le_bytes(low) ^ secret(0);
    let high = u64::from_le_bytes(high) ^ secret(8);
    avalanche((input.len() as u64).wrapping_add(low).wrapping_add(high).wrapping_add(fold(low, high)))
}

/// Sixteen bytes at a time, from both ends towards the middle; the two may overlap.
fn of_17_to_128(input: &[u8]) -> u64 {
    let mut sum = (input.len() as u64).wrapping_mul(PRIME64_1);
    for pair in 0..=(input.len() - 1) / 32 {
        sum = sum.wrapping_add(mix16(input, 16 * pair, 32 * pair));
        sum = sum.wrapping_add(mix16(input, input.len() - 16 * (pair + 1), 32 * pair + 16));
    }
    avalanche(sum)
}

fn of_129_to_240(input: &[u8]) -> u64 {
    let mut sum = (input.len() as u64).wrapping_mul(PRIME64_1);
    for round in 0..8 {
        sum = sum.wrapping_add(mix16(input, 16 * round, 16 * round));
    }
    sum = avalanche(sum);
    for round in 8..input.len() / 16 {
        sum = sum.wrapping_add(mix16(input, 16 * round, 16 * (round - 8) + 3));
    }
    avalanche(sum.wrapping_add(mix16(input, input.len() - 16, SECRET_BYTES_MIN - 17)))
}

#[inline(never)]
fn of_long(input: &[u8]) -> u64 {
    let mut lanes = [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1];
    let (blocks, rest) = input.as_chunks::<BLOCK_BYTES>();
    for block in blocks {
        accumulate_stripes(&mut lanes, block);
        for (i, lane) in lanes.iter_mut().enumerate() {
            *lane = (*lane ^ (*lane >> 47) ^ secret(SECRET_BYTES - STRIPE_BYTES + 8 * i)).wrapping_mul(PRIME32_1);
        }
    }
    accumulate_stripes(&mut lanes, rest);
    if !input.len().is_multiple_of(STRIPE_BYTES)
        && let Some(last) = input.last_chunk()
    {
        accumulate(&mut lanes, last, SECRET_BYTES - STRIPE_BYTES - 7);
    }
    let mut sum = (input.len() as u64).wrapping_mul(PRIME64_1);
    for (i, &[a, b]) in lanes.as_chunks().0.iter().enumerate() {
        sum = sum.wrapping_add(fold(a ^ secret(11 + 16 * i), b ^ secret(19 + 16 * i)));
    }
    avalanche(sum)
}

/// Accumulates the whole stripes at the front of `bytes`.
fn accumulate_stripes(lanes: &mut [u64; 8], bytes: &[u8]) {
    for (i, stripe) in bytes.as_chunks::<STRIPE_BYTES>().0.iter().enumerate() {
        accumulate(lanes, stripe, STRIPE_STEP * i);
    }
}

#[inline]
fn accumulate(lanes: &mut [u64; 8], stripe: &[u8; STRIPE_BYTES], secret_at: usize) {
    for (i, (lane, &word)) in lanes.iter_mut().zip(stripe.as_chunks().0).enumerate() {
        let word = u64::from_le_bytes(word);
        let keyed = word ^ secret(secret_at + 8 * i);
        let product = (keyed & 0xffff_ffff).wrapping_mul(keyed >> 32);
        *lane = lane.wrapping_add(word).wrapping_add(product);
    }
}

/// Mixes the 16 bytes at `at` with the secret's at `secret_at`.
#[inline]
fn mix16(input: &[u8], at: usize, secret_at: usize) -> u64 {
    fold(word(input, at) ^ secret(secret_at), word(input, at + 8) ^ secret(secret_at + 8))
}

#[inline]
fn secret(at: usize) -> u64 {
    word(&SECRET, at)
}

#[inline]
#[expect(clippy::indexing_slicing, reason = "offsets follow from the input's length, checked by `xxph3_64`'s match")]
fn word(bytes: &[u8], at: usize) -> u64 {
    let [a, b, c, d, e, f, g, h] = bytes[at..at + 8] else { unreachable!("eight bytes") };
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// The two halves of the 128-bit product, xored.
#[inline]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

#[inline]
fn avalanche(mut hash: u64) -> u64 {
    hash ^= hash >> 37;
    hash = hash.wrapping_mul(PRIME64_3);
    hash ^ (hash >> 32)
}

/// Lays out sixteen bytes per number, first byte first.
#[expect(clippy::indexing_slicing, reason = "evaluated when compiled")]
const fn secret_bytes(rows: [u128; SECRET_BYTES / 16]) -> [u8; SECRET_BYTES] {
    let mut bytes = [0; SECRET_BYTES];
    let mut i = 0;
    while i < SECRET_BYTES {
        bytes[i] = rows[i / 16].to_be_bytes()[i % 16];
        i += 1;
    }
    bytes
}
