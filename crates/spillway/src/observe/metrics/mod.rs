//! A reading as OpenMetrics text, for Prometheus. Names end with their unit; times are in seconds.
//!
//! Every counter and distribution of `statistics` is there under RocksDB's name with `_` for the dots, its microseconds
//! as seconds: `rocksdb.db.get.micros` is the histogram `rocksdb_db_get_seconds`.

mod families;
mod text;

use self::text::{Kind, Text};
use crate::observe::{
    Observation, ObservedAnswers, ObservedBy, ObservedDisk, ObservedHistogram, ObservedJobKind, ObservedReads,
    ObservedSample, ObservedStatistics, ObservedTrace, ObservedWrites, WriteGate,
};
use Kind::{Counter, Gauge, Histogram};

const MICROS: f64 = 1e6;

impl Observation {
    /// The reading as OpenMetrics text, up to `# EOF`. Serve it as `application/openmetrics-text; version=1.0.0;
    /// charset=utf-8`.
    pub fn to_metrics(&self) -> String {
        let mut text = Text::new();
        process(&mut text, self);
        health(&mut text, self);
        self.writes.iter().for_each(|seen| writes(&mut text, seen));
        self.reads.iter().for_each(|seen| reads(&mut text, seen));
        let traces = self.writes.as_ref().map_or(&[][..], |seen| &seen.traces);
        self.sample.iter().for_each(|seen| sample(&mut text, seen, traces));
        families::write(&mut text, &self.families);
        jobs(&mut text, self);
        disk(&mut text, &self.disk);
        logs(&mut text, self);
        ingests(&mut text, self);
        cache(&mut text, self);
        memory(&mut text, self);
        pins(&mut text, self);
        self.statistics.iter().for_each(|seen| statistics(&mut text, seen));
        text.end()
    }
}

fn process(text: &mut Text, seen: &Observation) {
    let process = &seen.process;
    let by = match process.observed_by {
        ObservedBy::Writer => "writer",
        ObservedBy::Reader => "reader",
        ObservedBy::Secondary => "secondary",
    };
    let labels = [
        ("version", &*process.version),
        ("directory", &*process.directory),
        ("identity", &*process.identity),
        ("observed_by", by),
    ];
    text.metric("spillway", Kind::Info, "The database and who observes it.").sample(&labels, 1.0);
    text.metric("spillway_uptime_seconds", Gauge, "Time since the open.")
        .sample(&[], process.uptime_us as f64 / MICROS);
    text.single("spillway_sequence_number", Gauge, "The newest visible sequence number.", process.last_number);
}

fn health(text: &mut Text, seen: &Observation) {
    let health = &seen.health;
    // A reader refuses writes whatever the state of the database: the gate would tell of a trouble that there is not.
    if seen.process.observed_by == ObservedBy::Writer {
        write_gate(text, health.gate);
    }
    let yes = |is: bool| u64::from(is);
    text.single(
        "spillway_background_error",
        Gauge,
        "1 while the database is read-only after an error.",
        yes(health.background_error.is_some()),
    );
    text.single("spillway_background_errors", Counter, "Background errors.", health.background_errors);
    text.single("spillway_waits_for_space", Gauge, "1 while a job waits for disk space.", yes(health.waits_for_space));
    text.single(
        "spillway_reserve_spent",
        Gauge,
        "1 while the reserve for a full disk is given up: only deletions are written.",
        yes(health.reserve_is_spent),
    );
    text.single(
        "spillway_recovery_doubts",
        Gauge,
        "What the open could not recover for certain.",
        health.recovery_doubts.len() as u64,
    );
    text.metric("spillway_compaction_debt_ratio", Gauge, "How far compactions are behind: writers stop at 1.")
        .sample(&[], health.debt);
    if let Some(rate) = health.delayed_bytes_per_second {
        text.single("spillway_delayed_write_rate", Gauge, "Bytes per second of writers while slowed down.", rate);
    }
}

fn write_gate(text: &mut Text, now: WriteGate) {
    text.metric("spillway_write_gate", Kind::StateSet, "Whether writes go on.");
    let gates = [
        ("free", WriteGate::Free),
        ("delayed", WriteGate::Delayed),
        ("stopped", WriteGate::Stopped),
        ("refused", WriteGate::Refused),
    ];
    for (name, gate) in gates {
        text.sample(&[("spillway_write_gate", name)], f64::from(u8::from(now == gate)));
    }
}

fn writes(text: &mut Text, seen: &ObservedWrites) {
    text.single("spillway_writes", Counter, "Writes.", seen.writes);
    text.single("spillway_written_keys", Counter, "Changes in writes.", seen.keys);
    text.single("spillway_written_bytes", Counter, "Bytes of writes.", seen.bytes);
    text.single("spillway_logged_writes", Counter, "Writes that were logged.", seen.logged);
    text.single("spillway_logged_bytes", Counter, "Bytes of logged writes.", seen.logged_bytes);
    text.single("spillway_log_syncs", Counter, "Syncs of a log.", seen.syncs);
    text.metric("spillway_stalls", Counter, "Waits of writers, by cause.");
    for stall in &seen.stalls {
        text.sample(&[("cause", &stall.cause)], stall.waits as f64);
    }
    text.metric("spillway_stall_seconds", Counter, "Time of writers' waits, by cause.");
    for stall in &seen.stalls {
        text.sample(&[("cause", &stall.cause)], stall.micros as f64 / MICROS);
    }
    text.metric("spillway_waiting_writers", Gauge, "Writers that wait now, by cause.");
    for stall in &seen.stalls {
        text.sample(&[("cause", &stall.cause)], stall.waiting as f64);
    }
    text.metric("spillway_waiting_seconds", Gauge, "How long the first of them has waited, by cause.");
    for stall in &seen.stalls {
        text.sample(&[("cause", &stall.cause)], stall.waiting_us as f64 / MICROS);
    }
    if let Some(values) = &seen.latency_us {
        let text = text.metric("spillway_write_duration_seconds", Histogram, "Times of writes.");
        text.histogram_with(&[], values, MICROS, &seen.traces);
    }
    if let Some(values) = &seen.sync_us {
        let text = text.metric("spillway_log_sync_duration_seconds", Histogram, "Times of syncs of the log.");
        text.histogram(&[], values, MICROS);
    }
}

fn reads(text: &mut Text, seen: &ObservedReads) {
    text.metric("spillway_lookups", Counter, "Keys looked up, by where they were answered.");
    answered(text, &seen.answers);
    let filters = &seen.filters;
    text.metric("spillway_filter_looks", Counter, "Looks into filters of tables, by outcome.");
    let by_outcome = [
        ("useful", filters.useful),
        ("true_positive", filters.passed_rightly),
        ("false_positive", filters.false_positives()),
    ];
    for (outcome, count) in by_outcome {
        text.sample(&[("outcome", outcome)], count as f64);
    }
    text.single("spillway_read_value_bytes", Counter, "Bytes of values found by lookups.", seen.bytes);
    text.single("spillway_iterator_seeks", Counter, "Seeks of iterators.", seen.seeks);
    text.single("spillway_iterator_steps", Counter, "Steps of iterators.", seen.steps);
    text.single("spillway_iterator_skipped_entries", Counter, "Hidden entries passed by iterators.", seen.skipped);
    let times: [(&str, &str, &ObservedHistogram); 4] = [
        ("spillway_get_duration_seconds", "Times of lookups.", &seen.get_us),
        ("spillway_multi_get_duration_seconds", "Times of lookups of several keys.", &seen.multi_get_us),
        ("spillway_seek_duration_seconds", "Times of iterators' seeks.", &seen.seek_us),
        ("spillway_table_read_duration_seconds", "Times of reads of table files.", &seen.table_read_us),
    ];
    for (name, help, values) in times {
        text.metric(name, Histogram, help).histogram(&[], values, MICROS);
    }
}

/// The samples of a metric by where lookups were answered.
fn answered(text: &mut Text, answers: &ObservedAnswers) {
    let by_place = [
        ("memtables", answers.memtables),
        ("kept_answers", answers.kept),
        ("level_0", answers.level0),
        ("level_1", answers.level1),
        ("deeper", answers.deeper),
        ("nowhere", answers.nowhere),
    ];
    for (place, count) in by_place {
        text.sample(&[("answered_in", place)], count as f64);
    }
}

/// Under names of their own: their counts are not those of all operations.
fn sample(text: &mut Text, seen: &ObservedSample, traces: &[ObservedTrace]) {
    text.single("spillway_sampled_one_in", Gauge, "Operations that one of the sample stands for.", seen.one_in);
    text.metric("spillway_sampled_lookups", Counter, "Keys looked up in the sample, by where they were answered.");
    answered(text, &seen.answers);
    text.metric("spillway_sampled_write_duration_seconds", Histogram, "Times of writes in the sample.").histogram_with(
        &[],
        &seen.write_us,
        MICROS,
        traces,
    );
    let times = [
        ("spillway_sampled_get_duration_seconds", "Times of lookups in the sample.", &seen.get_us),
        ("spillway_sampled_seek_duration_seconds", "Times of iterators' seeks in the sample.", &seen.seek_us),
    ];
    for (name, help, values) in times {
        text.metric(name, Histogram, help).histogram(&[], values, MICROS);
    }
}

fn jobs(text: &mut Text, seen: &Observation) {
    let kinds = [
        ("flush", ObservedJobKind::Flush, seen.ended.flushes),
        ("compaction", ObservedJobKind::Compaction, seen.ended.compactions),
        ("ingest", ObservedJobKind::Ingest, seen.ended.ingests),
    ];
    text.metric("spillway_running_jobs", Gauge, "Running jobs, by kind.");
    for (name, kind, _) in kinds {
        text.sample(&[("kind", name)], seen.jobs.iter().filter(|job| job.kind == kind).count() as f64);
    }
    text.metric("spillway_ended_jobs", Counter, "Jobs that have ended, by kind.");
    for (name, _, ended) in kinds {
        text.sample(&[("kind", name)], ended as f64);
    }
}

fn disk(text: &mut Text, seen: &ObservedDisk) {
    text.metric("spillway_job_written_bytes", Counter, "Bytes of tables written, running jobs included, by kind.");
    for (kind, bytes) in [("flush", seen.flushed_bytes), ("compaction", seen.compacted_bytes)] {
        text.sample(&[("kind", kind)], bytes as f64);
    }
    text.metric("spillway_job_rate_wait_seconds", Counter, "Time that flushes and compactions waited for their rate.")
        .sample(&[], seen.rate_wait_us as f64 / MICROS);
    if let Some(limit) = seen.rate_limit {
        text.single(
            "spillway_job_rate_limit",
            Gauge,
            "Bytes per second that flushes and compactions may write.",
            limit,
        );
    }
    text.single("spillway_files_to_delete", Gauge, "Obsolete files not deleted yet.", seen.files_to_delete);
    text.single(
        "spillway_files_to_release",
        Gauge,
        "Deleted files whose space is released in steps.",
        seen.files_to_release,
    );
    text.single("spillway_release_bytes", Gauge, "Bytes of those files.", seen.bytes_to_release);
}

fn logs(text: &mut Text, seen: &Observation) {
    let logs = &seen.logs;
    text.single("spillway_live_logs", Gauge, "WalFiles that some family needs.", logs.live);
    text.single("spillway_live_log_bytes", Gauge, "Bytes of those logs.", logs.live_bytes);
    text.single("spillway_log_limit_bytes", Gauge, "Bytes of logs at which families are flushed.", logs.limit_bytes);
    text.single("spillway_log_window_bytes", Gauge, "Bytes of the log prefaulted ahead of writers.", logs.window_bytes);
    text.single("spillway_value_log_bytes", Gauge, "Bytes of logs with values of tables.", logs.value_log_bytes);
}

fn ingests(text: &mut Text, seen: &Observation) {
    let ingests = &seen.ingests;
    text.single("spillway_queued_ingests", Gauge, "Ingests without a level yet.", ingests.queued);
    let oldest = "Time since the oldest of them arrived; 0 without any.";
    text.single("spillway_oldest_queued_ingest_seconds", Gauge, oldest, ingests.oldest_queued_s);
    text.single("spillway_ingested_tables", Counter, "Ingested tables that were given a level.", ingests.placed_tables);
    text.single("spillway_ingested_bytes", Counter, "Bytes of those tables.", ingests.placed_bytes);
    text.single("spillway_ingest_waits", Counter, "Writes that waited for an ingest.", ingests.writer_waits);
    text.metric("spillway_ingest_wait_seconds", Counter, "Time of those waits.")
        .sample(&[], ingests.writer_wait_us as f64 / MICROS);
}

fn cache(text: &mut Text, seen: &Observation) {
    let cache = &seen.cache;
    text.single(
        "spillway_block_cache_capacity_bytes",
        Gauge,
        "Bytes that the block cache may hold.",
        cache.capacity_bytes,
    );
    text.single("spillway_block_cache_usage_bytes", Gauge, "Bytes that it holds.", cache.usage_bytes);
    text.single("spillway_block_cache_hits", Counter, "Lookups of blocks that found theirs.", cache.hits);
    text.single("spillway_block_cache_misses", Counter, "Lookups of blocks that did not.", cache.misses);
    text.single("spillway_block_cache_inserts", Counter, "Blocks put in.", cache.inserts);
    text.single(
        "spillway_block_cache_returns",
        Counter,
        "Blocks that came back soon after their eviction.",
        cache.returns,
    );
}

fn memory(text: &mut Text, seen: &Observation) {
    let memory = &seen.memory;
    text.metric("spillway_memory_bytes", Gauge, "Memory by owner.");
    let owners = [
        ("memtables", memory.memtables_bytes),
        ("block_cache", memory.block_cache_bytes),
        ("row_cache", memory.row_cache_bytes),
        ("table_readers", memory.table_readers_bytes),
    ];
    for (owner, bytes) in owners {
        text.sample(&[("owner", owner)], bytes as f64);
    }
    text.single("spillway_open_tables", Gauge, "Open tables.", memory.open_tables);
    if let (Some(limit), Some(charged)) = (memory.budget_bytes, memory.charged_bytes) {
        text.single("spillway_memtable_budget_bytes", Gauge, "The limit on all memtables.", limit);
        text.single("spillway_memtable_charged_bytes", Gauge, "What counts for that limit.", charged);
    }
}

fn pins(text: &mut Text, seen: &Observation) {
    let oldest = seen.snapshots.oldest.as_ref();
    text.single("spillway_snapshots", Gauge, "Snapshots.", seen.snapshots.count);
    text.single(
        "spillway_oldest_snapshot_age_seconds",
        Gauge,
        "Age of the oldest snapshot; 0 without any.",
        oldest.map_or(0, |oldest| oldest.age_s),
    );
    let age = seen.kept.iter().map(|kept| kept.age_us).max().unwrap_or(0);
    text.metric(
        "spillway_oldest_iterator_age_seconds",
        Gauge,
        "Age of the oldest state that iterators keep; 0 without any.",
    )
    .sample(&[], age as f64 / MICROS);
    let kept = |of: fn(&crate::observe::ObservedKept) -> u64| seen.kept.iter().map(of).sum();
    text.single(
        "spillway_kept_memtable_bytes",
        Gauge,
        "Memtables kept for iterators alone.",
        kept(|kept| kept.memtable_bytes),
    );
    text.single("spillway_kept_table_bytes", Gauge, "Tables kept for iterators alone.", kept(|kept| kept.table_bytes));
}

/// RocksDB's name of a metric as Prometheus' customs want it, and how many of its unit are one of ours.
fn custom_name(name: &str) -> (String, f64) {
    let name = name.replace(['.', '-'], "_");
    for (unit, per_second) in [("_micros", MICROS), ("_nanos", 1e9)] {
        if let Some(rest) = name.strip_suffix(unit) {
            return (format!("{rest}_seconds"), per_second);
        }
    }
    (name, 1.0)
}

fn statistics(text: &mut Text, seen: &ObservedStatistics) {
    for (name, count) in &seen.tickers {
        let (custom, per_unit) = custom_name(name);
        text.metric(&custom, Counter, &format!("Counter {name}.")).sample(&[], *count as f64 / per_unit);
    }
    for (name, values) in &seen.histograms {
        let (custom, per_unit) = custom_name(name);
        // A histogram of a counter's name, such as stalls by single waits.
        let custom = if seen.tickers.contains_key(name) { format!("{custom}_distribution") } else { custom };
        text.metric(&custom, Histogram, &format!("Distribution {name}.")).histogram(&[], values, per_unit);
    }
}

#[cfg(test)]
mod tests;
