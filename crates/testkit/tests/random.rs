//! Random scripts against the model. `SPILLWAY_SEEDS=1000` runs 1000 seeds of each profile; `SPILLWAY_SEED=n` runs seed
//! n. The seed also selects the profile's variant: key order, memtable, ingests behind.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use base::metrics::Ticker;
use testkit::engine::SeqNo;
use testkit::ops::{Op, Script};
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
        let script = generate::script(seed, &profile.variant(seed), OPERATIONS);
        let fails = |script: &Script| run::run_script(script).err();
        if fails(&script).is_some() {
            let (least, failure) = shrink::shrink(&script, fails);
            panic!(
                "profile {}, seed {seed}: {failure}\nthe script, to keep in tests/scripts:\n{least}",
                script.profile
            );
        }
    }
}

/// Guards against scripts too small to test compaction.
#[test]
fn scripts_reach_several_levels() {
    for name in ["tiny", "vector", "static-levels", "universal"] {
        let profile = profile::by_name(name).unwrap();
        let mut deepest = 0;
        for seed in 0..SEEDS / 2 {
            let script = generate::script(seed, &profile, OPERATIONS);
            let levels = run::run_and_look(&script, |runner| {
                let families = runner.db().families();
                let tables = |level: &usize| {
                    let property = format!("rocksdb.num-files-at-level{level}");
                    families.iter().any(|family| runner.db().property(family, &property).is_some_and(|n| n != "0"))
                };
                (1..7).filter(tables).count()
            });
            deepest = deepest.max(levels.unwrap());
        }
        assert!(deepest >= 2, "{name}: no script had tables on two sorted levels");
    }
}

/// Guards against scripts with a single ingest path.
#[test]
fn scripts_reach_queued_ingests_and_virtual_tables() {
    let (mut queued, mut parts) = (0, 0);
    for name in ["queued", "tiny"] {
        let profile = profile::by_name(name).unwrap();
        for seed in 0..2 * SEEDS {
            let operations = 30 + 10 * (seed % SEEDS); // ends before the next flush
            let script = generate::script(seed, &profile, operations as usize);
            let files = run::run_and_look(&script, |runner| runner.db().live_files()).unwrap();
            queued += files.iter().filter(|file| file.is_queued).count();
            parts += files.iter().filter(|file| file.is_virtual).count();
        }
    }
    println!("{queued} tables were in queues, {parts} were parts of files");
    assert!(queued > 0 && parts > 0, "{queued} tables were in queues, {parts} were parts of files");
}

/// Guards against scripts with only merged or only linked ingests over memtables.
#[test]
fn scripts_reach_ingests_that_are_merged_and_such_that_are_linked() {
    for (name, merges) in [("tiny", true), ("static-levels", false), ("queued", false)] {
        let profile = profile::by_name(name).unwrap();
        let (mut above, mut merged, mut placed) = (0, 0, 0);
        for seed in 0..SEEDS / 2 {
            let mut script = generate::script(seed, &profile, OPERATIONS);
            script.ops.retain(|op| !matches!(op, Op::Reopen | Op::ReadOnly { .. })); // statistics begin anew with those
            let statistics = run::run_and_look(&script, |runner| runner.db().statistics()).unwrap().unwrap();
            above += statistics.count(Ticker::IngestAbove);
            merged += statistics.count(Ticker::IngestMerged);
            placed += statistics.count(Ticker::IngestPlacedMiddle) + statistics.count(Ticker::IngestPlacedLast);
        }
        println!("{name}: {above} ingests above memtables, {merged} tables merged, {placed} below level 0");
        assert!(above > 0 && placed > 0, "{name}: {above} ingests above memtables, {placed} below level 0");
        assert_eq!(merged > 0, merges, "{name}: {merged} merged");
    }
}

/// Guards against scripts without ingests behind or without refusals.
#[test]
fn scripts_reach_ingests_from_behind_and_refusals() {
    let profile = profile::by_name("tiny behind").unwrap();
    let (mut behind, mut refusals) = (0, 0);
    for seed in 0..SEEDS / 4 {
        let script = generate::script(seed, &profile, OPERATIONS);
        let (files, refused) =
            run::run_and_look(&script, |runner| (runner.db().live_files(), runner.refusals())).unwrap();
        behind += files.iter().filter(|file| file.largest_seq == SeqNo(0) && file.level == 6).count();
        refusals += refused;
    }
    assert!(behind > 0 && refusals > 0, "{behind} tables came from behind, {refusals} ingests were refused");
    println!("{behind} tables came from behind, {refusals} ingests were refused");
}

#[test]
fn tiny() {
    run_seeds("tiny");
}

#[test]
fn mapped() {
    run_seeds("mapped");
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
fn queued() {
    run_seeds("queued");
}

#[test]
fn converted() {
    run_seeds("converted");
}

#[test]
fn dumped() {
    run_seeds("dumped");
}

#[test]
fn dispatched() {
    run_seeds("dispatched");
}

#[test]
fn universal() {
    run_seeds("universal");
}

#[test]
fn fifo() {
    run_seeds("fifo");
}

#[test]
fn defaults() {
    run_seeds("defaults");
}
