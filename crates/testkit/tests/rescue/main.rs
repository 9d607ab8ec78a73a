//! The rescue oracle: random lives, damaged and rescued. `SPILLWAY_SEEDS=10000` tries so many lives; `SPILLWAY_SEED=n`
//! tries every damage of life n.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use testkit::random::{Random, sample};
use testkit::rescue::damage::{self, Kind};
use testkit::rescue::lives::{self, Files, Life};
use testkit::rescue::{Effort, Failing, Tried, shortest, try_rocksdb, try_seed};
use testkit::run::DIR;
use testkit::threads::{start, within};

/// Lives of the ordinary suite, and kinds of damage that each suffers.
const SEEDS: u64 = 240;
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
    let trials: u64 = tried.trials.values().map(|(count, _)| count).sum();
    println!("{trials} trials of lives that ended as {:?}", tried.lives);
    for (place, (count, opened)) in &tried.trials {
        println!("  {place:?}: {count}, of which {opened} led to an open database");
    }
}

#[test]
fn rescue_never_says_more_than_it_knows() {
    let (first, count, effort) = match number("SPILLWAY_SEED") {
        Some(seed) => (seed, 1, Effort::All),
        // The ordinary suite has the same lives each time; who asks for a number gets others by the sample.
        None => match number("SPILLWAY_SEEDS") {
            Some(count) => (sample().wrapping_mul(1 << 20), count, Effort::Kinds(KINDS)),
            None => (0, SEEDS, Effort::Kinds(KINDS)),
        },
    };
    let tried = within(LIMIT, move || try_seeds(first, count, effort));
    report(&tried);
    assert_right(tried, true);
}

/// Failing places that get a shorter script; each takes some seconds.
const SHORTENED_MAX: usize = 8;

/// Prints all failures, then shorter scripts for the first ones of each place, and fails.
fn assert_right(mut tried: Tried, shortens: bool) {
    tried.failures.sort_by_key(|failing| (failing.fault, failing.place, failing.seed));
    for failing in &tried.failures {
        println!("\nSPILLWAY_SEED={}: {failing}", failing.seed);
    }
    let mut places: Vec<&Failing> = tried.failures.iter().filter(|_| shortens).collect();
    places.dedup_by_key(|failing| (failing.fault, failing.place));
    for failing in places.into_iter().take(SHORTENED_MAX) {
        let (script, how) = shortest(failing);
        println!(
            "\nseed {}, by a shorter script: {:?}, {:?}, {how}\n{script}",
            failing.seed, failing.fault, failing.place
        );
    }
    assert!(tried.failures.is_empty(), "{} failures of {:?} lives", tried.failures.len(), tried.lives);
}

/// Guards against lives that miss a kind of damage or an ending.
#[test]
fn lives_suffer_every_kind_of_damage() {
    const LIVES: u64 = 40;
    let mut missed = BTreeSet::from(Kind::ALL);
    let mut endings = BTreeSet::new();
    for seed in 0..LIVES {
        let life = Life::of(seed, lives::script(seed)).unwrap();
        endings.insert(life.ending);
        let damages = damage::all(&life, &mut Random::new(seed)).unwrap();
        missed.retain(|kind| damages.iter().all(|damage| damage.kind != *kind));
    }
    missed.remove(&Kind::ManifestExchanged); // needs a second life
    assert!(missed.is_empty(), "no life suffers {missed:?}");
    assert_eq!(endings.len(), 4, "{endings:?}");
}

/// The directories of RocksDB's in the command's tests.
#[test]
fn directories_of_rocksdb_are_rescued() {
    let mut tried = Tried::default();
    for (seed, name) in (0..).zip(["db-unflushed", "db-ingested", "db-universal"]) {
        tried.add(try_rocksdb(seed, fixture(name)));
    }
    report(&tried);
    assert_right(tried, false);
}

#[expect(clippy::disallowed_methods, reason = "fixtures are files of the repository")]
fn fixture(name: &str) -> Files {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/fixtures").join(name);
    let file = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        (Path::new(DIR).join(path.file_name().unwrap()), std::fs::read(&path).unwrap())
    };
    std::fs::read_dir(folder).unwrap().map(file).collect()
}
