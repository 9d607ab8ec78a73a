//! Skewed choices, as YCSB makes them.
//! Paper: Gray et al., "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994.

use bench::workload::Rng;

/// YCSB's skew.
const THETA: f64 = 0.99;

/// Draws ranks below a count; rank 0 most often. A rank is the number of an entry, whose key is scattered already.
#[derive(Clone, Debug)]
pub struct Zipf {
    count: u64,
    zeta: f64,
    alpha: f64,
    eta: f64,
}

impl Zipf {
    /// `count` is at least 1. Takes time in proportion to it.
    pub fn new(count: u64) -> Self {
        let zeta = |count: u64| (1..=count).map(|rank| (rank as f64).powf(-THETA)).sum::<f64>();
        let (all, two) = (zeta(count), zeta(2.min(count)));
        let eta = (1.0 - (2.0 / count as f64).powf(1.0 - THETA)) / (1.0 - two / all);
        Zipf { count, zeta: all, alpha: 1.0 / (1.0 - THETA), eta }
    }

    #[inline]
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        let u = rng.next() as f64 / (u64::MAX as f64 + 1.0);
        let scaled = u * self.zeta;
        let rank = if scaled < 1.0 {
            0.0
        } else if scaled < 1.0 + 0.5f64.powf(THETA) {
            1.0
        } else {
            self.count as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha)
        };
        (rank as u64).min(self.count - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_have_the_shares_of_their_distribution() {
        let (zipf, mut rng, draws) = (Zipf::new(1000), Rng::new(1), 200_000);
        let mut seen = vec![0u32; 1000];
        (0..draws).for_each(|_| seen[zipf.draw(&mut rng) as usize] += 1);
        let share = |rank: usize| f64::from(seen[rank]) / f64::from(draws);
        for rank in [0, 1] {
            let expected = ((rank + 1) as f64).powf(-THETA) / zipf.zeta;
            assert!((share(rank) / expected - 1.0).abs() < 0.05, "{rank}: {} for {expected}", share(rank));
        }
        assert!(seen[500..].iter().any(|&count| count > 0), "the tail is drawn too");
        let one = Zipf::new(1);
        assert!((0..100).all(|_| one.draw(&mut rng) == 0));
    }
}
