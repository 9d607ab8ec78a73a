//! The rescue oracle: random lives, damaged and rescued. `SPILLWAY_SEEDS=10000` tries so many lives; `SPILLWAY_SEED=n`
//! tries every damage of life n.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use testkit::random::sample;
use testkit::rescue::{Effort, Tried, shortest, try_seed};
use testkit::threads::{start, within};

/// Lives of the ordinary suite, and kinds of damage that each suffers.
const SEEDS: u64 = 80;
const KINDS: usize = 3;

const THREADS: usize = 2;
const LIMIT: Duration = Duration::from_secs(4 * 3600);

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|e| panic!("{variable}={text}: {e}")))
}

/// Tries the seeds from `first` on, on some threads.
fn try_seeds(first: u64, count: u64, effort: Effort) -> Tried {
    let next = Arc::new(AtomicU64::new(0));
    let worker = |_| {
        let next = next.clone();
        start(move || {
            let mut tried = Tried::default();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= count {
                    return tried;
                }
                tried.add(try_seed(first.wrapping_add(at), effort));
            }
        })
    };
    let workers: Vec<_> = (0..THREADS).map(worker).collect();
    let mut all = Tried::default();
    workers.into_iter().for_each(|worker| all.add(worker.join().unwrap()));
    all
}

fn report(tried: &Tried) {
    println!("{} lives, {} trials", tried.lives, tried.trials.values().map(|(count, _)| count).sum::<u64>());
    for (place, (count, opened)) in &tried.trials {
        println!("  {place:?}: {count}, of which {opened} led to an open database");
    }
}

#[test]
fn rescue_never_says_more_than_it_knows() {
    let (first, count, effort) = match number("SPILLWAY_SEED") {
        Some(seed) => (seed, 1, Effort::All),
        None => (sample().wrapping_mul(1 << 20), number("SPILLWAY_SEEDS").unwrap_or(SEEDS), Effort::Kinds(KINDS)),
    };
    let mut tried = within(LIMIT, move || try_seeds(first, count, effort));
    report(&tried);
    tried.failures.sort_by_key(|failing| (failing.fault, failing.place, failing.seed));
    let mut shown = String::new();
    for (at, failing) in tried.failures.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| tried.failures.get(before));
        let is_first = before.is_none_or(|before| (before.fault, before.place) != (failing.fault, failing.place));
        shown.push_str(&format!("\nSPILLWAY_SEED={}: {failing}\n", failing.seed));
        if is_first {
            let (script, how) = shortest(failing);
            shown.push_str(&format!("by a shorter script, {how}\n{script}"));
        }
    }
    assert!(tried.failures.is_empty(), "{} failures{shown}", tried.failures.len());
}
