//! Finds earlier occurrences of a value's bytes: in the dictionary and in the value, by hash chains.

use super::{COPY_MIN, Source};
use base::bytes::shared_prefix;

/// Most places tried per search.
const DICTIONARY_TRIES_MAX: usize = 8;
const VALUE_TRIES_MAX: usize = 4;
/// The search stops at a copy of this many bytes.
const LONG_ENOUGH: usize = 128;

/// Bytes per hash of the dictionary: a shorter copy is seldom worth the bits of its place.
const DICTIONARY_HASHED: usize = 5;

const NONE: u32 = u32::MAX;

/// Places by the hash of their bytes, the latest first.
struct Chains {
    heads: Vec<u32>,
    /// For each place, the previous place with the same hash.
    previous: Vec<u32>,
    shift: u32,
}

impl Chains {
    fn new(places: usize) -> Chains {
        let bits = places.next_power_of_two().trailing_zeros().clamp(8, 17);
        Chains { heads: vec![NONE; 1 << bits], previous: Vec::new(), shift: u64::BITS - bits }
    }

    #[inline]
    fn hash(&self, bytes: u64) -> usize {
        (bytes.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> self.shift) as usize
    }

    /// Adds the next place, with the `bytes` to hash.
    #[inline]
    fn push(&mut self, bytes: u64) {
        let (hash, place) = (self.hash(bytes), self.previous.len() as u32);
        if let Some(head) = self.heads.get_mut(hash) {
            self.previous.push(*head);
            *head = place;
        }
    }

    #[inline]
    fn places(&self, bytes: u64, most: usize) -> impl Iterator<Item = u32> + '_ {
        let first = self.heads.get(self.hash(bytes)).copied().filter(|place| *place != NONE);
        let before = |place: &u32| self.previous.get(*place as usize).copied().filter(|place| *place != NONE);
        std::iter::successors(first, before).take(most)
    }

    /// Removes all places, in time proportional to their number. `hashed`: the bytes of each.
    fn clear(&mut self, hashed: impl Iterator<Item = u64>) {
        for bytes in hashed {
            let hash = self.hash(bytes);
            if let Some(head) = self.heads.get_mut(hash) {
                *head = NONE;
            }
        }
        self.previous.clear();
    }
}

/// The places of a dictionary, and of one value at a time.
pub struct Matches {
    dictionary: Vec<u8>,
    in_dictionary: Chains,
    in_value: Chains,
}

impl Matches {
    pub fn new(dictionary: Vec<u8>) -> Matches {
        let mut in_dictionary = Chains::new(dictionary.len());
        dictionary.windows(DICTIONARY_HASHED).for_each(|bytes| in_dictionary.push(five(bytes)));
        // A value has few places.
        Matches { dictionary, in_dictionary, in_value: Chains::new(1 << 12) }
    }

    /// Adds the next place of `value`.
    #[inline]
    pub fn push(&mut self, value: &[u8], at: usize) {
        let rest = value.get(at..).unwrap_or_default();
        if rest.len() >= COPY_MIN {
            self.in_value.push(three(rest));
        }
    }

    /// Removes the places of `value`.
    pub fn forget(&mut self, value: &[u8]) {
        self.in_value.clear(value.windows(COPY_MIN).map(three));
    }

    /// Passes sources of the bytes at `at` to `show`, with the length of each: at least [`COPY_MIN`], and increasing
    /// within the value. All places of `value` before `at` must have been added.
    #[inline]
    pub fn find(&self, value: &[u8], at: usize, mut show: impl FnMut(Source, usize)) {
        let rest = value.get(at..).unwrap_or_default();
        if rest.len() < COPY_MIN {
            return;
        }
        let mut longest = COPY_MIN - 1;
        for place in self.in_value.places(three(rest), VALUE_TRIES_MAX) {
            let len = common(rest, value.get(place as usize..).unwrap_or_default(), longest);
            if len > longest {
                show(Source::Back(at as u32 - place), len);
                longest = len;
                if len >= LONG_ENOUGH {
                    return;
                }
            }
        }
        if rest.len() < DICTIONARY_HASHED {
            return;
        }
        for place in self.in_dictionary.places(five(rest), DICTIONARY_TRIES_MAX) {
            let len = common(rest, self.dictionary.get(place as usize..).unwrap_or_default(), 0);
            if len >= DICTIONARY_HASHED {
                show(Source::Dictionary(place), len);
                if len >= LONG_ENOUGH {
                    return;
                }
            }
        }
    }
}

/// Length of the common prefix; 0 if byte `longer_than` differs.
#[inline]
fn common(a: &[u8], b: &[u8], longer_than: usize) -> usize {
    if longer_than > 0 && a.get(longer_than) != b.get(longer_than) {
        return 0;
    }
    shared_prefix(a, b)
}

/// Five bytes, as a number.
#[inline]
fn five(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |&[a, b, c, d, e]| u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]))
}

/// Three bytes, as a number.
#[inline]
fn three(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |&[a, b, c]| u64::from_le_bytes([a, b, c, 0, 0, 0, 0, 0]))
}
