use super::hash::rocks_hash;
use super::xxph3::xxph3_64;
use super::*;

macro_rules! fixture {
    ($name:literal) => {
        include_bytes!(concat!("../../tests/fixtures/filters/", $name)).as_slice()
    };
}

fn key(i: usize) -> Vec<u8> {
    format!("key{i:06}").into_bytes()
}

/// The keys of the fixtures `lengths-*`; see their README.
fn keys_of_many_lengths() -> Vec<Vec<u8>> {
    let special = [511, 512, 513, 1023, 1024, 1025, 1087, 1088, 1089, 2047, 2048, 2049, 2112, 3000];
    (1..=300).chain(special).map(|n: usize| (0..n).map(|j| (n * 31 + j * 7 + j / 16) as u8).collect()).collect()
}

/// Passing keys among 10,000 that were not added.
fn false_positives<B: AsRef<[u8]>>(filter: &FilterReader<B>) -> usize {
    (1_000_000 - 10_000..1_000_000).filter(|&i| filter.may_match(&key(i))).count()
}

#[test]
fn filters_of_rocksdb_hold_their_keys_and_few_others() {
    let cases = [
        (fixture!("bloom-11.9.filter"), "bloom", 0..300, 50..150),
        (fixture!("partition-first-11.9.filter"), "bloom", 0..153, 50..150),
        (fixture!("partition-last-11.9.filter"), "bloom", 153..300, 50..150),
        (fixture!("ribbon-11.9.filter"), "ribbon", 0..300, 40..150),
        (fixture!("ribbon-mixed-7.8.filter"), "ribbon", 0..1000, 20..90),
        (fixture!("legacy-11.9.filter"), "legacy bloom", 0..300, 30..180),
    ];
    for (bytes, kind, keys, expected) in cases {
        let filter = FilterReader::new(bytes);
        assert_eq!(filter.filter_kind(), kind);
        let missing: Vec<usize> = keys.clone().filter(|&i| !filter.may_match(&key(i))).collect();
        assert!(missing.is_empty(), "{kind} {keys:?} lost {missing:?}");
        let false_positives = false_positives(&filter);
        assert!(expected.contains(&false_positives), "{kind} {keys:?}: {false_positives} of 10,000");
    }
}

#[test]
fn built_filters_equal_rocksdbs_bit_for_bit() {
    let cases = [
        (4.0, fixture!("lengths-4-7.8.filter")),
        (10.0, fixture!("lengths-10-7.8.filter")),
        (16.0, fixture!("lengths-16-7.8.filter")),
        (28.0, fixture!("lengths-28-7.8.filter")),
    ];
    for (bits, expected) in cases {
        let mut builder = BloomBuilder::new(bits);
        for key in keys_of_many_lengths() {
            builder.add(&key);
        }
        assert_eq!(builder.filter_bytes(), expected.len());
        assert_eq!(builder.finish(), expected, "{bits} bits");
        assert!(builder.is_empty());
    }
    // 11.9 chose its probes by the bits that a key really got, 384 * 8 / 300.
    let mut builder = BloomBuilder::new(10.24);
    (0..300).for_each(|i| builder.add(&key(i)));
    assert_eq!(builder.finish(), fixture!("bloom-11.9.filter"));
}

#[test]
fn a_large_filter_is_as_accurate_as_promised() {
    let mut builder = BloomBuilder::new(10.0);
    for i in 0..100_000 {
        builder.add(&key(i));
        builder.add(&key(i));
    }
    assert_eq!(builder.len(), 100_000, "repeats count once");
    let filter = FilterReader::new(builder.finish());
    assert!((0..100_000).all(|i| filter.may_match(&key(i))));
    let false_positives = false_positives(&filter);
    assert!((60..140).contains(&false_positives), "{false_positives} of 10,000");
}

#[test]
fn malformed_filters_let_every_key_pass() {
    let malformed: [&[u8]; 9] = [
        b"",
        b"\xff\0\x06\0",
        b"\xff\0\x06\0\0",                             // no line
        &[&[0; 63][..], b"\xff\0\x06\0\0"].concat(),   // not a whole line
        &[&[0; 64][..], b"\xff\x01\x06\0\0"].concat(), // another sub-implementation
        &[&[0; 64][..], b"\xff\0\0\0\0"].concat(),     // no probe
        &[&[0; 64][..], b"\xfe\0\x01\0\0"].concat(),   // a ribbon of one block
        &[&[0; 64][..], b"\x06\0\0\0\0"].concat(),     // legacy without lines
        &[&[0; 96][..], b"\x06\x02\0\0\0"].concat(),   // legacy with lines of 48 bytes
    ];
    for bytes in malformed {
        let filter = FilterReader::new(bytes);
        assert_eq!(filter.filter_kind(), "unknown", "{bytes:?}");
        assert!(filter.may_match(b"any") && filter.may_match_hash(42));
    }
}

#[test]
fn no_bytes_make_a_filter_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        state >> 33
    };
    for _ in 0..20_000 {
        let len = next() as usize % 300;
        let mut bytes: Vec<u8> = (0..len).map(|_| next() as u8).collect();
        if let Some(metadata) = bytes.last_chunk_mut::<5>() {
            metadata[0] = [0xff, 0xfe, 1, 6, 0x7f][next() as usize % 5];
            // Small counts, which are the ones that get past the checks.
            metadata[1..].copy_from_slice(&[next() as u8 & 7, next() as u8 & 31, 0, 0]);
        }
        let filter = FilterReader::new(&bytes);
        for i in 0..8 {
            filter.may_match(&key(i));
            filter.may_match_hash(u64::MAX - i as u64);
        }
    }
}

#[test]
fn hash_of_the_empty_string_is_rocksdbs_own() {
    assert_eq!(xxph3_64(b""), 5_999_572_062_939_766_020);
}

#[test]
fn rocks_hash_takes_tail_bytes_as_signed() {
    let seed = 0xbc9f_1d34;
    assert_eq!(rocks_hash(b"", seed), 3_164_544_308);
    assert_eq!(rocks_hash(b"\x9a", seed), 3_195_034_349);
    assert_eq!(rocks_hash(b"\x91\xf7", seed), 31_066_776);
    assert_eq!(rocks_hash(b"\x56\xdc\xd6", seed), 2_157_698_265);
    assert_eq!(rocks_hash(b"\x69\xb8\xc0\x88", seed), 3_416_318_611);
    assert_eq!(rocks_hash(b"\xb6\xc0\xdd\x05\x3f\xc4\x86\x4c\xef", seed), 2_355_554_696);
}
