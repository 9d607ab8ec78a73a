//! Finds a byte among a node's key bytes. Callers load the bytes as atomic words, because another thread may be
//! appending; the node's header says how many bytes count.

/// A bit mask of the bytes of `words` equal to `byte`, first byte lowest. `WORDS` is at most 12.
#[inline(always)]
pub(crate) fn matches<const WORDS: usize>(words: [u32; WORDS], byte: u8) -> u64 {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return wide::matches(words, byte);
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    return portable(words, byte);
}

/// As `matches`, for one word.
#[inline(always)]
pub(crate) fn matches_in_word(word: u32, byte: u8) -> u32 {
    const LOW: u32 = 0x7F7F_7F7F;
    let differing = word ^ (u32::from(byte) * 0x0101_0101);
    // The high bit of each zero byte, then those bits side by side.
    let zero = !(((differing & LOW) + LOW) | differing | LOW);
    ((zero >> 7).wrapping_mul(0x0102_0408) >> 24) & 0xF
}

#[cfg(any(test, not(all(target_arch = "x86_64", not(miri)))))]
fn portable<const WORDS: usize>(words: [u32; WORDS], byte: u8) -> u64 {
    let bits = words.iter().rev();
    bits.fold(0, |sum, &word| sum << 4 | u64::from(matches_in_word(word, byte)))
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod wide {
    use std::arch::x86_64::{_mm_cmpeq_epi8, _mm_movemask_epi8, _mm_set_epi32, _mm_set1_epi8};

    #[inline(always)]
    pub(super) fn matches<const WORDS: usize>(words: [u32; WORDS], byte: u8) -> u64 {
        let word = |i: usize| words.get(i).map_or(0, |&word| word as i32);
        let mut found = 0;
        for (group, shift) in (0..WORDS).step_by(4).zip([0u32, 16, 32]) {
            // SAFETY: SSE2 is part of the x86-64 baseline.
            let equal = unsafe {
                let keys = _mm_set_epi32(word(group + 3), word(group + 2), word(group + 1), word(group));
                _mm_movemask_epi8(_mm_cmpeq_epi8(keys, _mm_set1_epi8(byte as i8)))
            };
            found |= u64::from(equal as u32) << shift;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_found_wherever_it_stands() {
        let mut state = 7u64;
        for round in 0..if cfg!(miri) { 20 } else { 2000 } {
            let words: [u32; 12] = std::array::from_fn(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // Few values, so that bytes repeat and neighbours of 0, 0x7F, 0x80 and 0xFF occur.
                (state >> 32) as u32 & if round % 2 == 0 { 0x8181_8181 } else { u32::MAX }
            });
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            for byte in [0, 1, 0x7F, 0x80, 0x81, 0xFF, bytes[round % 48]] {
                let expected =
                    bytes.iter().enumerate().filter(|(_, b)| **b == byte).fold(0u64, |sum, (i, _)| sum | 1 << i);
                assert_eq!(matches(words, byte), expected, "{words:x?} {byte}");
                assert_eq!(portable(words, byte), expected);
                assert_eq!(u64::from(matches_in_word(words[0], byte)), expected & 0xF);
            }
        }
    }
}
