//! Rates between two readings, and ten minutes of them.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use serde::Serialize;
use spillway::observe::{
    Observation, ObservedAnswers, ObservedHistogram, ObservedJobKind, ObservedReads, ObservedSample, ObservedWrites,
};

/// How far back a history goes.
pub const HISTORY: Duration = Duration::from_secs(600);

/// What happened between two readings, a second apart or more. Rates are per second; `None` is "not measured".
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Point {
    /// Of the second reading, in milliseconds since 1970.
    pub unix_ms: u64,
    /// Between the readings.
    pub seconds: f64,
    /// Changes written.
    pub writes: f64,
    /// Bytes of them.
    pub write_bytes: f64,
    /// Median time of a write, in microseconds.
    pub write_p50_us: Option<u64>,
    /// Time that one write in a hundred exceeded.
    pub write_p99_us: Option<u64>,
    /// Time that one write in a thousand exceeded.
    pub write_p999_us: Option<u64>,
    /// The longest write, as far as the buckets of its histogram tell.
    pub write_max_us: Option<u64>,
    /// Waits of writers, in milliseconds for each second, by cause. Several writers may wait at once.
    pub stall_ms: BTreeMap<String, f64>,
    /// Waits of writers that were stopped, not slowed down.
    pub stops: f64,
    /// Keys looked up.
    pub reads: Option<f64>,
    /// Median time of a lookup.
    pub get_p50_us: Option<u64>,
    /// Time that one lookup in a hundred exceeded.
    pub get_p99_us: Option<u64>,
    /// Time that one lookup in a thousand exceeded.
    pub get_p999_us: Option<u64>,
    /// Where lookups were answered.
    pub answers: Option<Answers>,
    /// The part of the block cache's lookups that found their block.
    pub cache_hit_rate: Option<f64>,
    /// Bytes of tables written by flushes.
    pub flushed_bytes: f64,
    /// Bytes of tables written by compactions.
    pub compacted_bytes: f64,
    /// The part of `rate_limiter_bytes_per_sec` that flushes and compactions used. `None` without a limit.
    pub limit_used: Option<f64>,
    /// Milliseconds that jobs waited for their rate for each second, of all jobs together.
    pub rest_ms: f64,
    /// Bytes of ingested tables that were given a level.
    pub ingested_bytes: f64,
    /// Their number.
    pub ingested_tables: f64,
    /// Syncs of the log.
    pub syncs: f64,
    /// Time that one sync in a hundred exceeded.
    pub sync_p99_us: Option<u64>,
    /// Tables in level 0 of the family that has most.
    pub level0_tables: u64,
    /// How far compactions are behind, from 0 to 1.
    pub debt: f64,
    /// Bytes to be compacted.
    pub pending_bytes: u64,
    /// Bytes of memtables.
    pub memtable_bytes: u64,
    /// Memtables that wait for a flush.
    pub sealed_memtables: u64,
    /// Bytes of memtables kept for old readers alone.
    pub kept_memtable_bytes: u64,
    /// Bytes of tables kept for old readers alone.
    pub kept_table_bytes: u64,
    /// Bytes of deleted files whose space is not released yet.
    pub release_bytes: u64,
    /// Bytes of live logs.
    pub log_bytes: u64,
    /// Bytes of tables.
    pub table_bytes: u64,
    /// Running flushes, compactions and ingests.
    pub running: [u64; 3],
}

/// Lookups per second by where they were answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Answers {
    /// In memtables.
    pub memtables: f64,
    /// By kept answers.
    pub kept: f64,
    /// In level 0.
    pub level0: f64,
    /// In level 1.
    pub level1: f64,
    /// Deeper.
    pub deeper: f64,
    /// Nowhere.
    pub nowhere: f64,
}

impl Answers {
    fn between(before: &ObservedAnswers, now: &ObservedAnswers, per: Per) -> Answers {
        Answers {
            memtables: per.second(now.memtables, before.memtables),
            kept: per.second(now.kept, before.kept),
            level0: per.second(now.level0, before.level0),
            level1: per.second(now.level1, before.level1),
            deeper: per.second(now.deeper, before.deeper),
            nowhere: per.second(now.nowhere, before.nowhere),
        }
    }
}

/// Differences of counters, per second.
#[derive(Clone, Copy)]
struct Per(f64);

impl Per {
    fn second(self, now: u64, before: u64) -> f64 {
        now.saturating_sub(before) as f64 / self.0
    }
}

impl Point {
    /// `None` if the readings are of two opens, or of one instant.
    pub fn between(before: &Observation, now: &Observation) -> Option<Point> {
        let seconds = now.seconds_since(before);
        if seconds <= 0.0 || now.process.pid != before.process.pid {
            return None;
        }
        let per = Per(seconds);
        let mut point = Point { unix_ms: now.process.unix_time_us / 1000, seconds, ..Point::default() };
        if let (Some(before), Some(now)) = (&before.writes, &now.writes) {
            point.set_writes(before, now, per);
        }
        if let (Some(before), Some(now)) = (&before.reads, &now.reads) {
            point.set_reads(before, now, per);
        }
        if let (Some(before), Some(now)) = (&before.sample, &now.sample) {
            point.set_sampled(before, now, per);
        }
        point.set_tables(before, now, per);
        point.set_gauges(now);
        Some(point)
    }

    fn set_writes(&mut self, before: &ObservedWrites, now: &ObservedWrites, per: Per) {
        self.writes = per.second(now.keys, before.keys);
        self.write_bytes = per.second(now.bytes, before.bytes);
        self.set_write_times(since(now.latency_us.as_ref(), before.latency_us.as_ref()).as_ref());
        let stops = |all: &ObservedWrites| all.stalls.iter().map(|stall| stall.stops).sum();
        self.stops = per.second(stops(now), stops(before));
        self.syncs = per.second(now.syncs, before.syncs);
        self.sync_p99_us = percentile(since(now.sync_us.as_ref(), before.sync_us.as_ref()).as_ref(), 99.0);
        for stall in &now.stalls {
            let earlier = before.stalls.iter().find(|old| old.cause == stall.cause).map_or(0, |old| old.micros);
            let waited = per.second(stall.micros, earlier) / 1000.0;
            if waited > 0.0 {
                self.stall_ms.insert(stall.cause.clone(), waited);
            }
        }
    }

    fn set_reads(&mut self, before: &ObservedReads, now: &ObservedReads, per: Per) {
        self.reads = Some(per.second(now.gets + now.multi_get_keys, before.gets + before.multi_get_keys));
        self.set_read_times(&now.get_us.since(&before.get_us));
        self.answers = Some(Answers::between(&before.answers, &now.answers, per));
    }

    /// Without statistics: estimates.
    fn set_sampled(&mut self, before: &ObservedSample, now: &ObservedSample, per: Per) {
        let per = Per(per.0 / now.one_in.max(1) as f64);
        self.set_write_times(Some(&now.write_us.since(&before.write_us)));
        self.reads = Some(per.second(now.answers.all(), before.answers.all()));
        self.set_read_times(&now.get_us.since(&before.get_us));
        self.answers = Some(Answers::between(&before.answers, &now.answers, per));
    }

    fn set_read_times(&mut self, times: &ObservedHistogram) {
        [self.get_p50_us, self.get_p99_us, self.get_p999_us] =
            [50.0, 99.0, 99.9].map(|percent| percentile(Some(times), percent));
    }

    fn set_write_times(&mut self, latency: Option<&ObservedHistogram>) {
        self.write_p50_us = percentile(latency, 50.0);
        self.write_p99_us = percentile(latency, 99.0);
        self.write_p999_us = percentile(latency, 99.9);
        self.write_max_us = percentile(latency, 100.0);
    }

    fn set_tables(&mut self, before: &Observation, now: &Observation, per: Per) {
        let ingested = |all: &Observation| all.families.iter().map(|family| family.ingested_bytes).sum();
        let (disk, disk_before) = (&now.disk, &before.disk);
        self.flushed_bytes = per.second(disk.flushed_bytes, disk_before.flushed_bytes);
        self.compacted_bytes = per.second(disk.compacted_bytes, disk_before.compacted_bytes);
        self.rest_ms = per.second(disk.rate_wait_us, disk_before.rate_wait_us) / 1000.0;
        self.limit_used =
            disk.rate_limit.map(|limit| (self.flushed_bytes + self.compacted_bytes) / limit.max(1) as f64);
        self.release_bytes = disk.bytes_to_release;
        self.ingested_bytes = per.second(ingested(now), ingested(before));
        self.ingested_tables = per.second(now.ingests.placed_tables, before.ingests.placed_tables);
        let (hits, misses) = (
            now.cache.hits.saturating_sub(before.cache.hits) as f64,
            now.cache.misses.saturating_sub(before.cache.misses) as f64,
        );
        self.cache_hit_rate = (hits + misses > 0.0).then(|| hits / (hits + misses));
    }

    fn set_gauges(&mut self, now: &Observation) {
        let level0 = now.families.iter().filter_map(|family| family.level(0));
        self.level0_tables = level0.map(|level| level.tables).max().unwrap_or(0);
        self.debt = now.health.debt;
        self.pending_bytes = now.families.iter().map(|family| family.pending_compaction_bytes).sum();
        self.memtable_bytes = now.memory.memtables_bytes;
        self.sealed_memtables = now.families.iter().map(|family| family.memtables.sealed).sum();
        self.kept_memtable_bytes = now.kept.iter().map(|kept| kept.memtable_bytes).sum();
        self.kept_table_bytes = now.kept.iter().map(|kept| kept.table_bytes).sum();
        self.log_bytes = now.logs.live_bytes;
        self.table_bytes = now.families.iter().map(|family| family.table_bytes).sum();
        let running = |kind| now.jobs.iter().filter(|job| job.kind == kind).count() as u64;
        self.running = [ObservedJobKind::Flush, ObservedJobKind::Compaction, ObservedJobKind::Ingest].map(running);
    }

    /// Milliseconds that writers waited for each second, for all causes together.
    pub fn stalled_ms(&self) -> f64 {
        self.stall_ms.values().sum::<f64>() + 0.0 // an empty sum is -0
    }
}

fn since(now: Option<&ObservedHistogram>, before: Option<&ObservedHistogram>) -> Option<ObservedHistogram> {
    Some(now?.since(before?))
}

/// `None` without records: a rate of zero writes has no time of a write.
fn percentile(of: Option<&ObservedHistogram>, percent: f64) -> Option<u64> {
    of.filter(|histogram| histogram.count > 0).map(|histogram| histogram.percentile(percent))
}

/// The points of the last ten minutes, oldest first.
#[derive(Debug, Default)]
pub struct History {
    points: VecDeque<Point>,
}

impl History {
    /// Adds a point, and forgets those that are too old beside it.
    pub fn push(&mut self, point: Point) {
        let oldest = point.unix_ms.saturating_sub(HISTORY.as_millis() as u64);
        self.points.push_back(point);
        while self.points.front().is_some_and(|point| point.unix_ms < oldest) {
            self.points.pop_front();
        }
    }

    /// All points, oldest first.
    pub fn points(&self) -> impl DoubleEndedIterator<Item = &Point> + ExactSizeIterator {
        self.points.iter()
    }

    /// The newest point.
    pub fn last(&self) -> Option<&Point> {
        self.points.back()
    }
}

/// A reading one to two minutes old, for advice on what happened since. In the first minute there is none.
#[derive(Debug, Default)]
pub struct Minutes {
    older: Option<Observation>,
    newer: Option<Observation>,
}

impl Minutes {
    /// The earlier reading.
    pub fn earlier(&self) -> Option<&Observation> {
        self.older.as_ref()
    }

    /// Keeps a reading each minute.
    pub fn note(&mut self, now: &Observation) {
        if self.newer.as_ref().is_none_or(|newer| now.seconds_since(newer) >= 60.0) {
            self.older = self.newer.replace(now.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use spillway::observe::{ObservedBucket, ObservedKept, ObservedStall};

    use super::*;

    /// A reading `us` after the open, when `keys` were written and writers had waited `waited_us`.
    fn reading(us: u64, keys: u64, waited_us: u64) -> Observation {
        let mut stall = ObservedStall::default();
        (stall.cause, stall.micros) = ("memtable-limit".into(), waited_us);
        let mut writes = ObservedWrites::default();
        (writes.keys, writes.stalls) = (keys, vec![stall]);
        let mut reading = Observation::default();
        (reading.process.uptime_us, reading.process.unix_time_us, reading.process.pid) = (us, us, 7);
        (reading.writes, reading.disk.flushed_bytes) = (Some(writes), keys * 100);
        reading
    }

    #[test]
    fn counters_become_rates() {
        let point = Point::between(&reading(1_000_000, 100, 0), &reading(3_000_000, 500, 50_000)).unwrap();
        assert_eq!((point.seconds, point.writes, point.flushed_bytes), (2.0, 200.0, 20_000.0));
        assert_eq!((point.stalled_ms(), point.stall_ms.len()), (25.0, 1));
        assert_eq!((point.reads, point.write_p99_us, point.cache_hit_rate), (None, None, None), "not measured");
        let calm = Point::between(&reading(0, 0, 9), &reading(1_000_000, 0, 9)).unwrap();
        assert_eq!(format!("{:.0}", calm.stalled_ms()), "0");
    }

    #[test]
    fn a_point_has_the_longest_write_stops_the_limit_and_what_readers_keep() {
        let (mut before, mut now) = (reading(1_000_000, 100, 0), reading(2_000_000, 300, 0));
        for (reading, count, stops) in [(&mut before, 0, 1), (&mut now, 1, 5)] {
            (reading.disk.rate_limit, reading.disk.compacted_bytes) = (Some(40_000), count * 10_000);
            (reading.disk.rate_wait_us, reading.disk.bytes_to_release) = (stops * 10_000, 5);
            let mut latency = ObservedHistogram::default();
            let bucket = |up_to, count| {
                let mut bucket = ObservedBucket::default();
                (bucket.up_to, bucket.count) = (up_to, count);
                bucket
            };
            latency.buckets = vec![bucket(10, 99 * count), bucket(500, count), bucket(90_000, 1)];
            (latency.count, latency.max) = (100 * count + 1, 80_000);
            let writes = reading.writes.as_mut().unwrap();
            writes.latency_us = Some(latency);
            writes.stalls[0].stops = stops;
        }
        let mut kept = ObservedKept::default();
        (kept.memtable_bytes, kept.table_bytes) = (3, 4);
        now.kept = vec![kept.clone(), kept];
        let point = Point::between(&before, &now).unwrap();
        assert_eq!((point.write_p50_us, point.write_max_us), (Some(10), Some(500)), "not the longest since the open");
        assert_eq!((point.stops, point.limit_used, point.rest_ms), (4.0, Some(0.75), 40.0));
        assert_eq!((point.kept_memtable_bytes, point.kept_table_bytes, point.release_bytes), (6, 8, 5));
    }

    #[test]
    fn a_sample_stands_for_all() {
        let sampled = |us, gets| {
            let (mut now, mut sample) = (reading(us, 0, 0), ObservedSample::default());
            (sample.one_in, sample.answers.level0, sample.get_us.count, sample.get_us.max) = (64, gets, gets, 7);
            now.sample = Some(sample);
            now
        };
        let point = Point::between(&sampled(0, 0), &sampled(2_000_000, 10)).unwrap();
        assert_eq!((point.reads, point.get_p99_us, point.write_p99_us), (Some(320.0), Some(7), None));
        assert_eq!(point.answers.map(|answers| answers.level0), Some(320.0));
    }

    #[test]
    fn readings_of_two_opens_have_no_rates() {
        let mut other = reading(2_000_000, 100, 0);
        other.process.pid = 8;
        assert!(Point::between(&reading(1_000_000, 0, 0), &other).is_none());
        assert!(Point::between(&reading(2_000_000, 0, 0), &reading(1_000_000, 0, 0)).is_none(), "opened again");
        assert!(Point::between(&reading(1_000_000, 0, 0), &reading(1_000_000, 0, 0)).is_none());
    }

    #[test]
    fn a_history_has_ten_minutes_and_an_earlier_reading_is_one_to_two_minutes_old() {
        let (mut history, mut minutes) = (History::default(), Minutes::default());
        for second in 1..=2000u64 {
            let now = reading(second * 1_000_000, second, 0);
            history.push(Point::between(&reading(second * 1_000_000 - 1, 0, 0), &now).unwrap());
            minutes.note(&now);
            if second > 120 {
                let age = now.seconds_since(minutes.earlier().unwrap());
                assert!((60.0..121.0).contains(&age), "{age}");
            }
        }
        assert_eq!(history.points().len(), 601);
        assert_eq!(history.last().unwrap().unix_ms, 2_000_000);
    }
}
