//! Seeded random numbers, so that failures are reproducible: SplitMix64 (Steele, Lea, Flood 2014).

/// Rotates the sample of tests that try a part of their cases: `SPILLWAY_SAMPLE`, 0 if unset. The gate sets it from the
/// commit.
pub fn sample() -> u64 {
    std::env::var("SPILLWAY_SAMPLE").map_or(0, |text| text.parse().expect("SPILLWAY_SAMPLE is a number"))
}

/// A deterministic generator: one seed, one sequence.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        random.0 = random.draw(); // adjacent seeds must not give similar sequences
        random
    }

    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`; `limit` must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.draw() % limit
    }

    /// True with a probability of `percent`.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `choices`.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let index = self.below(choices.len() as u64) as usize;
        choices.get(index).expect("there is something to choose from")
    }
}
