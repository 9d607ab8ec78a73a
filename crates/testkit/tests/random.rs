//! Random scripts against the model. `SPILLWAY_SEEDS=1000` runs so many seeds of each profile; `SPILLWAY_SEED=n` runs
//! one of them.

use testkit::ops::Script;
use testkit::{generate, profile, run, shrink};

/// Seeds that each profile runs in the ordinary suite, and operations of each script.
const SEEDS: u64 = 24;
const OPERATIONS: usize = 700;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|e| panic!("{variable}={text}: {e}")))
}

fn run_seeds(profile_name: &str) {
    let profile = profile::by_name(profile_name).unwrap();
    let seeds = match number("SPILLWAY_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SPILLWAY_SEEDS").unwrap_or(SEEDS),
    };
    for seed in seeds {
        let script = generate::script(seed, &profile, OPERATIONS);
        let fails = |script: &Script| run::run_script(script).err();
        if fails(&script).is_some() {
            let (least, failure) = shrink::shrink(&script, fails);
            panic!("profile {profile_name}, seed {seed}: {failure}\nthe script, to keep in tests/scripts:\n{least}");
        }
    }
}

#[test]
fn tiny() {
    run_seeds("tiny");
}

#[test]
fn vector() {
    run_seeds("vector");
}

#[test]
fn static_levels() {
    run_seeds("static-levels");
}

#[test]
fn partitioned() {
    run_seeds("partitioned");
}

#[test]
fn defaults() {
    run_seeds("defaults");
}
