//! Small functions over byte strings, for inner loops.

/// Length of the common prefix of `a` and `b`, compared eight bytes at a time.
#[inline]
pub fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    let mut shared = 0;
    for (x, y) in a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0) {
        let differing = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differing != 0 {
            return shared + (differing.trailing_zeros() / 8) as usize;
        }
        shared += 8;
    }
    let (x, y) = (a.get(shared..).unwrap_or(&[]), b.get(shared..).unwrap_or(&[]));
    shared + x.iter().zip(y).take_while(|(x, y)| x == y).count()
}

/// The first eight bytes as a number ordered like them, short keys padded with zeros.
#[inline]
pub fn leading_u64(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => bytes
            .iter()
            .fold(0, |sum, &byte| (sum << 8) | u64::from(byte))
            .checked_shl(64 - 8 * bytes.len() as u32)
            .unwrap_or(0),
    }
}

/// As [`leading_u64`], of the first four bytes.
#[inline]
pub fn leading_u32(bytes: &[u8]) -> u32 {
    match bytes.first_chunk::<4>() {
        Some(chunk) => u32::from_be_bytes(*chunk),
        None => bytes.iter().zip([24, 16, 8]).fold(0, |sum, (&byte, shift)| sum | u32::from(byte) << shift),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_prefixes_end_where_keys_part_or_end() {
        let a: Vec<u8> = (0..40).collect();
        for len in 0..=40 {
            for other_len in 0..=40 {
                assert_eq!(shared_prefix(&a[..len], &a[..other_len]), len.min(other_len));
                let mut b = a[..other_len].to_vec();
                for at in 0..other_len.min(len) {
                    b[at] ^= 0x80;
                    assert_eq!(shared_prefix(&a[..len], &b), at);
                    b[at] ^= 0x80;
                }
            }
        }
    }

    #[test]
    fn leading_numbers_ascend_with_keys() {
        let keys: [&[u8]; 8] = [b"", b"\0", b"a", b"ab", b"abcd", b"abcdefgh", b"abcdefgi", b"\xff\xff"];
        assert!(keys.map(leading_u64).is_sorted() && keys.map(leading_u32).is_sorted());
        assert_eq!((leading_u64(b"ab"), leading_u32(b"ab")), (0x6162 << 48, 0x6162 << 16));
    }
}
