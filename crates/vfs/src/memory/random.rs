//! A small deterministic generator: SplitMix64 (Steele, Lea, Flood 2014).

/// Increment of the state. Odd, so every state is visited.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        mix(self.0)
    }

    /// Returns a number in `0 ..= most`.
    pub(super) fn up_to(&mut self, most: usize) -> usize {
        match (most as u64).checked_add(1) {
            Some(choices) => (self.next() % choices) as usize,
            None => self.next() as usize,
        }
    }
}

/// The number at draw `count` from `seed`, for concurrent draws.
pub(super) fn nth(seed: u64, count: u64) -> u64 {
    mix(seed.wrapping_add(STEP.wrapping_mul(count.wrapping_add(1))))
}

fn mix(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawing_in_turn_and_by_count_agree() {
        let mut random = Random::new(42);
        for count in 0..5 {
            assert_eq!(random.next(), nth(42, count));
        }
        assert!((0..100).all(|_| random.up_to(3) <= 3));
        assert_eq!(random.up_to(0), 0);
    }
}
