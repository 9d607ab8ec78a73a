//! A sample of operations: one in 64, so that the others need no clock.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Distribution;
use super::histogram::Buckets;

/// How many operations one of the sample stands for, on average.
pub const SAMPLED_ONE_IN: u32 = 64;

thread_local! {
    /// Operations of this thread up to the next one of the sample.
    static LEFT: Cell<u32> = const { Cell::new(1) };
    /// The last random number drawn; 0 before the first.
    static DRAWN: Cell<u64> = const { Cell::new(0) };
}

/// Seeds of threads.
static NEXT_SEED: AtomicU64 = AtomicU64::new(1);

/// Whether the thread's present operation is one of the sample. Costs a countdown.
#[inline]
pub fn is_sampled() -> bool {
    let is_due = |left: &Cell<u32>| {
        left.set(left.get().wrapping_sub(1));
        left.get() == 0
    };
    LEFT.try_with(is_due).unwrap_or(false) && draw()
}

/// Draws the next one. Gaps vary, so that a thread which does its operations by turns has all kinds in the sample.
#[cold]
fn draw() -> bool {
    if DRAWN.get() == 0 {
        DRAWN.set(NEXT_SEED.fetch_add(1, Relaxed).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        // A thread of a single operation has it in the sample as often as others have theirs.
        let first = random_up_to(SAMPLED_ONE_IN);
        if first > 1 {
            LEFT.set(first - 1);
            return false;
        }
    }
    LEFT.set(random_up_to(2 * SAMPLED_ONE_IN - 1));
    true
}

/// From 1 to `max`, each as often. Xorshift.
fn random_up_to(max: u32) -> u32 {
    let mut drawn = DRAWN.get();
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    DRAWN.set(drawn);
    1 + (drawn >> 32) as u32 % max
}

/// A distribution in one copy, for records that are rare.
#[derive(Default)]
pub struct RareDistribution(Buckets);

impl RareDistribution {
    /// Adds a record.
    pub fn record(&self, value: u64) {
        self.0.record(value);
    }

    /// A copy.
    pub fn read(&self) -> Distribution {
        let mut read = Distribution::default();
        self.0.add_to(&mut read);
        read
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_operation_in_64_is_drawn_of_each_kind() {
        let mut sampled = [0u32; 2];
        for operation in 0..128_000 {
            sampled[operation % 2] += u32::from(is_sampled());
        }
        // The standard deviation is about 20.
        assert!(sampled.iter().all(|count| (850..1150).contains(count)), "{sampled:?}");
    }

    #[test]
    fn threads_of_one_operation_are_sampled_as_often() {
        let first = || std::thread::scope(|scope| scope.spawn(is_sampled).join().is_ok_and(|is| is));
        let sampled = (0..2_000).filter(|_| first()).count();
        assert!((8..70).contains(&sampled), "{sampled} of 31 expected");
    }
}
