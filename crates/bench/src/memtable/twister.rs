//! The Mersenne Twisters MT19937 and MT19937-64 (Matsumoto, Nishimura 1998, 2000) and the shuffle that `memtablerep_bench`
//! gets from the C++ library it was built with, so that keys come in the same order here.

/// The 32-bit generator.
pub struct Mt19937 {
    state: Vec<u32>,
    at: usize,
}

impl Mt19937 {
    const SIZE: usize = 624;
    const SHIFT: usize = 397;

    pub fn new(seed: u32) -> Self {
        let mut state = Vec::with_capacity(Self::SIZE);
        let mut word = seed;
        for i in 1..=Self::SIZE as u32 {
            state.push(word);
            word = (word ^ (word >> 30)).wrapping_mul(1_812_433_253).wrapping_add(i);
        }
        Mt19937 { state, at: Self::SIZE }
    }

    fn word(&self, at: usize) -> u32 {
        self.state.get(at % Self::SIZE).copied().unwrap_or_default()
    }

    fn turn(&mut self) {
        for i in 0..Self::SIZE {
            let joined = (self.word(i) & 0x8000_0000) | (self.word(i + 1) & 0x7FFF_FFFF);
            let odd = if joined & 1 == 1 { 0x9908_B0DF } else { 0 };
            let turned = self.word(i + Self::SHIFT) ^ (joined >> 1) ^ odd;
            if let Some(word) = self.state.get_mut(i) {
                *word = turned;
            }
        }
        self.at = 0;
    }

    pub fn next(&mut self) -> u32 {
        if self.at == Self::SIZE {
            self.turn();
        }
        let mut x = self.word(self.at);
        self.at += 1;
        x ^= x >> 11;
        x ^= (x << 7) & 0x9D2C_5680;
        x ^= (x << 15) & 0xEFC6_0000;
        x ^ (x >> 18)
    }

    /// A number below `end`, which is at least 1: Lemire's method, as libstdc++ draws since its version 11.
    pub fn below(&mut self, end: u32) -> u32 {
        loop {
            let product = u64::from(self.next()) * u64::from(end);
            let low = product as u32;
            if low >= end || low >= end.wrapping_neg() % end {
                return (product >> 32) as u32;
            }
        }
    }
}

/// The 64-bit generator.
pub struct Mt19937x64 {
    state: Vec<u64>,
    at: usize,
}

impl Mt19937x64 {
    const SIZE: usize = 312;
    const SHIFT: usize = 156;

    pub fn new(seed: u64) -> Self {
        let mut state = Vec::with_capacity(Self::SIZE);
        let mut word = seed;
        for i in 1..=Self::SIZE as u64 {
            state.push(word);
            word = (word ^ (word >> 62)).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i);
        }
        Mt19937x64 { state, at: Self::SIZE }
    }

    fn word(&self, at: usize) -> u64 {
        self.state.get(at % Self::SIZE).copied().unwrap_or_default()
    }

    fn turn(&mut self) {
        for i in 0..Self::SIZE {
            let joined = (self.word(i) & 0xFFFF_FFFF_8000_0000) | (self.word(i + 1) & 0x7FFF_FFFF);
            let odd = if joined & 1 == 1 { 0xB502_6F5A_A966_19E9 } else { 0 };
            let turned = self.word(i + Self::SHIFT) ^ (joined >> 1) ^ odd;
            if let Some(word) = self.state.get_mut(i) {
                *word = turned;
            }
        }
        self.at = 0;
    }

    pub fn next(&mut self) -> u64 {
        if self.at == Self::SIZE {
            self.turn();
        }
        let mut x = self.word(self.at);
        self.at += 1;
        x ^= (x >> 29) & 0x5555_5555_5555_5555;
        x ^= (x << 17) & 0x71D6_7FFF_EDA6_0000;
        x ^= (x << 37) & 0xFFF7_EEE0_0000_0000;
        x ^ (x >> 43)
    }
}

/// The numbers below `count`, shuffled: each place in turn, from the second on, changes with one at or before it.
///
/// The C++ standard leaves the draws of `std::shuffle` open. From 65,536 numbers on this is libstdc++'s order (version 11
/// and later); below that libstdc++ takes two places from one draw.
pub fn shuffled(count: u32, seed: u32) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..count).collect();
    let mut draws = Mt19937::new(seed);
    for at in 1..count {
        numbers.swap(at as usize, draws.below(at + 1) as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generators_give_the_standards_numbers() {
        // C++ [rand.predef]: the 10,000th of each, seeded with 5489.
        let mut small = Mt19937::new(5489);
        let mut large = Mt19937x64::new(5489);
        (0..9_999).for_each(|_| _ = (small.next(), large.next()));
        assert_eq!((small.next(), large.next()), (4_123_659_995, 9_981_545_732_273_789_042));
        let (mut small, mut large) = (Mt19937::new(0), Mt19937x64::new(0));
        assert_eq!([small.next(), small.next()], [2_357_136_044, 2_546_248_239]);
        assert_eq!([large.next(), large.next()], [2_947_667_278_772_165_694, 18_301_848_765_998_365_067]);
    }

    #[test]
    fn the_shuffle_is_libstdcxxs() {
        // std::shuffle with std::mt19937(0), compiled by g++ 12.
        let numbers = shuffled(100_000, 0);
        assert_eq!(numbers[..8], [26990, 68204, 21904, 3028, 29287, 11021, 25046, 752]);
        let hash = numbers.iter().fold(0u64, |hash, &n| hash.wrapping_mul(31).wrapping_add(u64::from(n)));
        assert_eq!(hash, 16_635_995_991_996_078_346);
    }

    #[test]
    fn short_shuffles_lose_nothing() {
        for count in [0, 1, 2, 7] {
            let mut numbers = shuffled(count, 3);
            numbers.sort_unstable();
            assert_eq!(numbers, (0..count).collect::<Vec<u32>>());
        }
    }
}
