//! Crashes at file-system operations of scripted lives, under every policy (D1-D3): at every operation of the short
//! lives, at a sample of the long ones. `SPILLWAY_SAMPLE` rotates the sample. `SPILLWAY_EFFORT=1` crashes at every
//! operation, and in every recovery.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use testkit::crash::{Effort, Life};
use testkit::ingest::Way;
use testkit::random::{Random, sample};
use testkit::{generate, ops, parse, profile};

fn crash_everywhere(script: ops::Script, profile_name: &str, effort: Effort) {
    let order = profile::by_name(profile_name).unwrap().order.order();
    let script = ops::Script { profile: profile_name.to_owned(), ..script }.arranged(&order);
    let effort = match std::env::var("SPILLWAY_EFFORT").as_deref() {
        Ok("1") => Effort::ALL,
        _ => effort,
    };
    let life = Life::record(&script, 1).unwrap_or_else(|e| panic!("profile {profile_name}, {e}"));
    let tried = life.crash_everywhere(effort).unwrap_or_else(|e| panic!("SPILLWAY_SAMPLE={}: {e}", effort.sample));
    assert!(tried.operations >= life.operations() / effort.stride, "{tried:?} of {}", life.operations());
    println!("{profile_name}: {tried:?} of {} operations", life.operations());
}

/// Strides over operations, and over images that crash a second time.
fn every(stride: u64, second_crash_stride: u64) -> Effort {
    Effort { stride, second_crash_stride, sample: sample() }
}

fn life(name: &str) -> ops::Script {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lives").join(name);
    parse::script(&std::fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn a_small_life_with_mapped_logs() {
    crash_everywhere(life("small.txt"), "static-levels", every(1, 7));
}

#[test]
fn a_small_life_with_written_logs() {
    crash_everywhere(life("small.txt"), "vector", every(1, 7));
}

#[test]
fn a_small_life_with_sorted_runs() {
    crash_everywhere(life("small.txt"), "universal", every(3, 11));
}

#[test]
fn a_full_life_with_mapped_logs() {
    crash_everywhere(life("full.txt"), "tiny", every(3, 7));
}

#[test]
fn a_full_life_with_written_logs() {
    crash_everywhere(life("full.txt"), "vector", every(3, 7));
}

#[test]
fn a_full_life_whose_memtables_become_tables() {
    crash_everywhere(life("full.txt"), "converted", every(3, 7));
}

#[test]
fn a_full_life_whose_memtables_are_written_out_as_tables() {
    crash_everywhere(life("full.txt"), "dumped", every(3, 7));
}

#[test]
fn a_full_life_with_logs_for_large_batches() {
    crash_everywhere(life("full.txt"), "partitioned", every(3, 7));
}

#[test]
fn a_life_with_unlogged_writes() {
    crash_everywhere(life("unlogged.txt"), "tiny", every(1, 7));
}

#[test]
fn a_life_of_families_flushed_together() {
    crash_everywhere(life("atomic.txt"), "atomic", every(3, 11));
    crash_everywhere(life("atomic.txt"), "atomic reverse trie-file", every(7, 11));
}

/// Batches put one number into every family, beside writes of all sizes to single ones.
#[test]
fn random_lives_of_families_flushed_together() {
    for seed in 1..=2 {
        let mut random = Random::new(seed);
        let families: Vec<String> = (0..2 + seed % 2).map(|nth| format!("unlogged-{nth}")).collect();
        let mut text: String = families.iter().map(|name| format!("create {name}\n")).collect();
        for n in 0..60 {
            let name = random.pick(&families).clone();
            text += &match random.below(12) {
                0..6 => {
                    let put =
                        |name: &String| format!("put {name} number {n}; put {name} k{} v*{}", n % 7, n % 3 * 1500);
                    format!("batch {}; unlogged\n", families.iter().map(put).collect::<Vec<_>>().join("; "))
                }
                6..9 => format!("put {name} w{} w*{} unlogged\n", n % 5, 1 + random.below(40_000)),
                9 => format!("put default d{n} v*{}\n", 1 + random.below(20_000)),
                10 => format!("flush {name}\n"),
                _ => format!("put {name} f{n} 1 unlogged flushed\n"),
            };
        }
        crash_everywhere(parse::script(&text).unwrap(), "atomic", every(11, 23));
    }
}

#[test]
fn a_life_with_eager_flushes() {
    for profile in ["tiny trie", "vector reverse", "partitioned shortlex"] {
        crash_everywhere(life("eager.txt"), profile, every(1, 7));
    }
}

/// An empty WAL still names its predecessor, which is gone.
#[test]
fn a_life_of_logs_that_hold_nothing() {
    let script = parse::script("create other\ncreate sums\nreopen\nput sums k u64:1").unwrap();
    for profile in ["tiny", "vector"] {
        crash_everywhere(script.clone(), profile, every(1, 1));
    }
}

fn ingest_life(way: Way) -> ops::Script {
    let mut script = life("ingest.txt");
    script.ingest_by(way);
    script
}

#[test]
fn a_life_with_ingests() {
    for profile in ["tiny", "queued reverse trie-file"] {
        crash_everywhere(ingest_life(Way::Flushable), profile, every(2, 11));
    }
    // The same beside memtables that a restart finds.
    for profile in ["converted", "referring skip-list-file"] {
        crash_everywhere(ingest_life(Way::Flushable), profile, every(4, 11));
    }
}

/// The batches beside the ingests have logs of their own.
#[test]
fn a_life_with_ingests_beside_large_batches() {
    crash_everywhere(life("ingest-large.txt"), "queued", every(1, 7));
}

fn crash_at_once(way: Way, profile: &str) {
    crash_everywhere(ingest_life(way), profile, every(2, 11));
}

#[test]
fn a_life_with_ingests_that_stop_all_writers() {
    crash_at_once(Way::Blocking, "tiny shortlex");
}

#[test]
fn a_life_with_ingests_that_flush_first() {
    crash_at_once(Way::FlushFirst, "queued");
}

#[test]
fn a_life_with_ingests_that_are_given_levels_at_once() {
    crash_at_once(Way::Direct, "static-levels reverse");
}

#[test]
fn a_life_with_ingests_from_behind() {
    for profile in ["tiny behind", "queued reverse trie-dump behind"] {
        crash_everywhere(life("behind.txt"), profile, every(2, 11));
    }
}

/// Random lives under every `step`th profile, so that the test harness runs several in parallel. The default profile is
/// left out: its WALs of 64 MiB are copied for each crash.
fn random_lives(first: usize, step: usize) {
    let profiles = profile::ALL.iter().filter(|profile| profile.name != "defaults").enumerate();
    for (seed, profile) in profiles.skip(first).step_by(step) {
        let seed = 1000 + seed as u64;
        let profile = profile.variant(seed);
        let mut script = generate::script(seed, &profile, 400);
        for op in &mut script.ops {
            if let ops::Op::Single(_, durability) | ops::Op::Batch(_, durability) = op {
                durability.disable_wal = false;
            }
        }
        crash_everywhere(script, &profile.to_string(), every(23, 37));
    }
}

#[test]
fn random_lives_under_one_half_of_the_profiles() {
    random_lives(0, 2);
}

#[test]
fn random_lives_under_the_other_half() {
    random_lives(1, 2);
}
