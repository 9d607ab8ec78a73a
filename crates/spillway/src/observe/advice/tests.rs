use super::*;
use crate::observe::*;

/// A minute of a healthy, busy database.
fn healthy() -> Observation {
    let mut seen = Observation::default();
    seen.process.uptime_us = 60_000_000;
    let stall = |cause: &crate::StallCause| ObservedStall { cause: cause.name().to_owned(), ..Default::default() };
    let stalls = crate::StallCause::ALL.iter().map(stall).collect();
    seen.writes = Some(ObservedWrites { writes: 1_000_000, stalls, ..ObservedWrites::default() });
    seen.statistics = Some(ObservedStatistics::default());
    let mut reads = ObservedReads { gets: 1_000_000, steps: 1_000_000, skipped: 200_000, ..ObservedReads::default() };
    reads.filters = ObservedFilters { useful: 900_000, passed: 500_000, passed_rightly: 491_000, ..Default::default() };
    seen.reads = Some(reads);
    seen.cache = ObservedCache { capacity_bytes: 1 << 30, usage_bytes: 1 << 30, hits: 900_000, ..Default::default() };
    let mut family = ObservedFamily { name: "default".to_owned(), table_bytes: 1 << 30, ..ObservedFamily::default() };
    family.memtables.capacity_bytes = 64 << 20;
    family.flushes = ObservedWork { jobs: 12, written_bytes: 12 * (60 << 20), ..ObservedWork::default() };
    family.levels = vec![ObservedLevel { tables: 3, ..ObservedLevel::default() }];
    seen.families = vec![family];
    seen
}

/// The one piece of advice after a change: its rule, severity and option.
fn only(seen: &Observation, before: Option<&Observation>) -> (String, AdviceSeverity, Option<String>) {
    let advice = seen.advice(before);
    let [one] = advice.as_slice() else { panic!("{advice:#?}") };
    assert!(!one.seen.is_empty() && !one.advice.is_empty());
    (one.rule.clone(), one.severity, one.option.clone())
}

fn expect(change: impl Fn(&mut Observation), rule: &str, severity: AdviceSeverity, option: Option<&str>) {
    let mut seen = healthy();
    change(&mut seen);
    assert_eq!(only(&seen, None), (rule.to_owned(), severity, option.map(str::to_owned)));
}

#[test]
fn advice_says_whether_its_option_changes_while_the_database_is_open() {
    let names = ["max_background_jobs", "write_buffer_size", "filter_policy", "block_cache", "statistics", "wal_dir"];
    assert_eq!(names.map(is_mutable), [true, true, true, false, false, false]);
    let mut seen = healthy();
    seen.statistics = None;
    assert!(!seen.advice(None)[0].is_mutable, "{seen:?}");
    assert!(seen.advice(None)[0].advice.contains("Nothing is known of latencies"), "{seen:?}");
    seen.sample = Some(ObservedSample::default());
    assert!(seen.advice(None)[0].advice.contains("known of a sample"), "{seen:?}");
}

#[test]
fn a_healthy_database_gets_no_advice() {
    assert_eq!(healthy().advice(None), []);
    assert_eq!(healthy().advice(Some(&Observation::default())), []);
}

#[test]
fn each_rule_finds_its_case() {
    use AdviceSeverity::{Note, Urgent, Warning};
    expect(|seen| seen.health.background_error = Some("Io".to_owned()), "read-only", Urgent, None);
    expect(|seen| seen.health.reserve_is_spent = true, "disk-full", Urgent, None);
    let doubts =
        |seen: &mut Observation| seen.health.recovery_doubts = vec!["every family: a log is missing".to_owned()];
    expect(doubts, "recovery-doubts", Warning, None);
    let level0 = |seen: &mut Observation| {
        let family = &mut seen.families[0];
        (family.gate, family.gate_cause) = (WriteGate::Delayed, Some("l0-file-count".to_owned()));
        family.levels[0].tables = 21;
    };
    expect(level0, "level0-behind", Warning, Some("max_subcompactions"));
    let all_busy = |seen: &mut Observation| {
        level0(seen);
        seen.families[0].gate = WriteGate::Stopped;
        seen.jobs = vec![ObservedJob { kind: ObservedJobKind::Compaction, ..ObservedJob::default() }];
    };
    expect(all_busy, "level0-behind", Urgent, Some("max_background_jobs"));
    let turned_off = |seen: &mut Observation| {
        level0(seen);
        let (family, value) = (Some("default".to_owned()), "true".to_owned());
        let name = "disable_auto_compactions".to_owned();
        seen.options = vec![ObservedOption { family, name, value, ..ObservedOption::default() }];
    };
    expect(turned_off, "level0-behind", Warning, Some("disable_auto_compactions"));
    let limited = |seen: &mut Observation| {
        level0(seen);
        let (name, value) = ("rate_limiter_bytes_per_sec".to_owned(), "2097152".to_owned());
        seen.options = vec![ObservedOption { name, value, ..ObservedOption::default() }];
    };
    expect(limited, "level0-behind", Warning, Some("rate_limiter_bytes_per_sec"));
    let bytes = |seen: &mut Observation| {
        let family = &mut seen.families[0];
        (family.gate, family.gate_cause) = (WriteGate::Delayed, Some("pending-compaction-bytes".to_owned()));
    };
    expect(bytes, "compactions-behind", Warning, Some("max_subcompactions"));
    let fast = |seen: &mut Observation| {
        seen.families[0].flushes = ObservedWork { jobs: 120, written_bytes: 120 * (60 << 20), ..Default::default() };
    };
    expect(fast, "buffers-too-small", Note, Some("write_buffer_size"));
    let syncs = |seen: &mut Observation| {
        let bucket = ObservedBucket { up_to: 50_000, count: 1000 };
        let times = ObservedHistogram { count: 1000, sum: 40_000_000, max: 60_000, buckets: vec![bucket] };
        seen.writes.as_mut().expect("there").sync_us = Some(times);
    };
    expect(syncs, "slow-syncs", Warning, Some("wal_dir"));
    let memory = |seen: &mut Observation| {
        seen.memory.budget_bytes = Some(64 << 20);
        let stalls = &mut seen.writes.as_mut().expect("there").stalls;
        stalls.iter_mut().filter(|stall| stall.cause == "memory-limit").for_each(|stall| stall.micros = 6_000_000);
    };
    expect(memory, "memory-limit", Warning, Some("db_write_buffer_size"));
    expect(|seen| seen.statistics = None, "not-measured", Note, Some("statistics"));
}

#[test]
fn each_rule_of_reads_finds_its_case() {
    use AdviceSeverity::{Note, Warning};
    let reads =
        |change: fn(&mut ObservedReads)| move |seen: &mut Observation| change(seen.reads.as_mut().expect("there"));
    let no_filter = reads(|reads| {
        reads.filters = ObservedFilters::default();
        reads.answers.nowhere = 500_000;
    });
    expect(no_filter, "filters", Warning, Some("filter_policy"));
    expect(reads(|reads| reads.filters.passed_rightly = 300_000), "filters", Note, Some("filter_policy"));
    let needless = reads(|reads| {
        reads.filters = ObservedFilters { useful: 10, passed: 500_000, passed_rightly: 500_000, ..Default::default() };
    });
    expect(needless, "filters", Note, Some("optimize_filters_for_hits"));
    expect(reads(|reads| reads.skipped = 50_000_000), "tombstones", Warning, Some("table_properties_collectors"));
    let cache = |seen: &mut Observation| (seen.cache.misses, seen.cache.returns) = (900_000, 500_000);
    expect(cache, "cache-too-small", Warning, Some("block_cache"));
    let tiny = |seen: &mut Observation| (seen.cache.hits, seen.cache.misses) = (1_000, 900_000);
    expect(tiny, "cache-too-small", Warning, Some("block_cache"));
    let mut ample = healthy();
    cache(&mut ample);
    ample.families[0].table_bytes = 1 << 20;
    assert_eq!(ample.advice(None), [], "no cache is smaller than all there is");
    let snapshot = |seen: &mut Observation| {
        let oldest = ObservedSnapshot { number: 1, age_s: 7200, changes_since: 5_000_000 };
        seen.snapshots.oldest = Some(oldest);
    };
    expect(snapshot, "old-snapshot", Warning, None);
    let iterator = |seen: &mut Observation| {
        let kept = ObservedKept { readers: 1, age_us: 900_000_000, memtable_bytes: 64 << 20, ..Default::default() };
        seen.kept = vec![kept];
    };
    expect(iterator, "old-iterator", Warning, None);
}

/// A scan of the past is no reason for advice now.
#[test]
fn between_two_readings_only_what_happened_there_counts() {
    let mut before = healthy();
    before.reads.as_mut().expect("there").skipped = 50_000_000;
    let mut now = before.clone();
    now.process.uptime_us += 10_000_000;
    now.reads.as_mut().expect("there").gets += 100_000;
    assert_eq!(now.advice(Some(&before)), []);
    now.reads.as_mut().expect("there").skipped += 50_000_000;
    assert_eq!(only(&now, Some(&before)).0, "tombstones");
    now.process.pid = 7;
    assert_eq!(only(&now, Some(&before)).0, "tombstones", "another open: all of it counts");
}

#[test]
fn options_that_are_advised_exist() {
    for (is_familys, name) in [
        (false, "max_background_jobs"),
        (false, "max_subcompactions"),
        (false, "db_write_buffer_size"),
        (true, "level0_slowdown_writes_trigger"),
        (true, "soft_pending_compaction_bytes_limit"),
        (true, "write_buffer_size"),
        (true, "disable_auto_compactions"),
        (true, "optimize_filters_for_hits"),
    ] {
        assert_ne!(default_of(is_familys, name), "", "{name}");
    }
}
