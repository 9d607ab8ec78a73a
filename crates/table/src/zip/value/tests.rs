use base::ErrorKind;

use super::*;

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

fn sentence(state: &mut u64) -> Vec<u8> {
    const WORDS: [&str; 8] =
        ["the reservoir ", "spills ", "over ", "a river ", "of snow ", "in May ", "and ", "never "];
    let mut text: Vec<u8> = (0..random(state) % 12).flat_map(|_| WORDS[random(state) as usize % 8].bytes()).collect();
    text.extend(format!("{}", random(state) % 100_000).bytes());
    text
}

fn samples() -> Vec<Vec<u8>> {
    (0..3000).scan(1, |state, _| Some(sentence(state))).collect()
}

fn both(trained: &Trained, value_bytes_max: usize) -> (ValueEncoder, ValueDecoder) {
    let decoder = ValueDecoder::new(trained.dictionary.clone(), &trained.code_lengths, value_bytes_max);
    (ValueEncoder::new(trained).expect("codes"), decoder.expect("codes"))
}

#[test]
fn values_come_back() {
    let samples = samples();
    for dictionary_bytes in [0, 4000] {
        let trained = train(&samples, dictionary_bytes, 5).expect("trains");
        assert_eq!(trained.dictionary.is_empty(), dictionary_bytes == 0);
        let (mut encoder, decoder) = both(&trained, 1 << 20);
        let mut values = samples[..500].to_vec();
        values.extend([b"a".repeat(3), b"a".repeat(100_000), b"xyz".repeat(40_000), samples.concat()]);
        let (mut whole, mut packed, mut out) = (0, 0, Vec::new());
        for value in &values {
            let Some(record) = encoder.encode(value) else { continue };
            (whole, packed) = (whole + value.len(), packed + record.len());
            decoder.decode(record, record.len(), &mut out).expect("whole");
            assert_eq!(out, *value);
        }
        assert!(packed * 4 < whole, "{packed} of {whole}");
    }
}

#[test]
fn noise_is_left_as_it_is() {
    let (mut encoder, _) = both(&train(&samples(), 4000, 5).expect("trains"), 1000);
    let noise: Vec<u8> = (0..300).scan(7, |state, _| Some(random(state) as u8)).collect();
    assert_eq!(encoder.encode(&noise), None);
    assert_eq!(encoder.encode(b""), None);
}

/// Whatever a record's bits say, there is an error or a value of the length that a table can have.
#[test]
fn damaged_records_are_refused_or_bounded() {
    const MOST: usize = 300;
    let samples = samples();
    let trained = train(&samples, 4000, 5).expect("trains");
    let (mut encoder, decoder) = both(&trained, MOST);
    let (mut state, mut out, mut refused, mut read) = (3, Vec::new(), 0, 0);
    for value in samples.iter().filter(|value| value.len() <= MOST) {
        let Some(record) = encoder.encode(value).map(<[u8]>::to_vec) else { continue };
        for _ in 0..20 {
            let mut damaged = record.clone();
            let at = random(&mut state) as usize % damaged.len();
            damaged[at] ^= 1 << (random(&mut state) % 8);
            damaged.truncate(1 + random(&mut state) as usize % damaged.len());
            match decoder.decode(&damaged, damaged.len(), &mut out) {
                Ok(()) => read += 1,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corruption);
                    refused += 1;
                }
            }
            assert!(out.len() <= MOST + damaged.len() * 8, "{}", out.len());
        }
    }
    assert!(refused > 1000 && read > 1000, "{refused} {read}");
    for (record, len) in [(&[][..], 0), (&[1, 0], 2), (&[1], 2), (&[0, 1], 1)] {
        assert!(decoder.decode(record, len, &mut out).is_err(), "{record:?} {len}");
    }
    assert!(ValueDecoder::new(Vec::new(), &[0; 7], 10).is_err());
}
