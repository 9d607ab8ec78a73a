//! Tables of Spillway beside RocksDB. Losses are printed like wins.

use std::fmt::Write;

use crate::beside_db_bench::Record;
use crate::latency::Distribution;
use crate::medians::{in_order, median};

/// All rounds of a benchmark on RocksDB and on Spillway with one memtable.
struct Pair<'a> {
    rocksdb: Vec<&'a Record>,
    spillway: Vec<&'a Record>,
}

impl Pair<'_> {
    /// The medians of a figure over the rounds, RocksDB's first.
    fn medians(&self, figure: impl Fn(&Record) -> Option<f64>) -> Option<(f64, f64)> {
        let median_of = |records: &[&Record]| median(records.iter().filter_map(|record| figure(record)).collect());
        Some((median_of(&self.rocksdb)?, median_of(&self.spillway)?))
    }
}

/// The tables of one run.
pub fn draw(name: &str, records: &[Record]) -> String {
    let mut text = String::new();
    let Some(first) = records.first() else {
        return text;
    };
    conditions(&mut text, name, first, records);
    let mut rows = Vec::new();
    for ((step, bench), of_bench) in in_order(records, |record| (record.step.as_str(), record.bench.as_str())) {
        let (rocksdb, spillway): (Vec<&Record>, Vec<&Record>) =
            of_bench.into_iter().partition(|record| record.engine == "rocksdb");
        for (memtable, spillway) in in_order(spillway, |record| record.memtable.as_str()) {
            rows.push(Row { step, bench, memtable, pair: Pair { rocksdb: rocksdb.clone(), spillway } });
        }
    }
    throughput(&mut text, &rows);
    to_idle(&mut text, &rows);
    times(&mut text, &rows);
    switches(&mut text, &rows);
    text
}

fn conditions(text: &mut String, name: &str, first: &Record, records: &[Record]) {
    let machine = &first.machine;
    let rounds = records.iter().map(|record| record.round).max().unwrap_or_default() + 1;
    let version = |engine: &str| {
        records.iter().find(|record| record.engine == engine).map_or("not run", |record| record.version.as_str())
    };
    let _ = write!(
        text,
        "\n### {name}\n\n{} ({} cores, {} GiB), Linux {}, {}. {} against {}, at commit {}. Medians of {rounds} round(s).\n\n",
        machine.cpu,
        machine.cores,
        machine.memory_gib,
        machine.kernel,
        machine.file_system,
        version("rocksdb"),
        version("spillway"),
        first.commit,
    );
    let _ = writeln!(text, "Flags of both sides, by step:\n\n```");
    for (step, of_step) in in_order(records, |record| record.step.as_str()) {
        let flags = of_step.first().map_or("", |record| record.flags.as_str());
        let _ = writeln!(text, "{step}: {flags}");
    }
    text.push_str("```\n");
}

/// A benchmark on Spillway with one memtable, beside RocksDB.
struct Row<'a> {
    step: &'a str,
    bench: &'a str,
    memtable: &'a str,
    pair: Pair<'a>,
}

fn throughput(text: &mut String, rows: &[Row<'_>]) {
    text.push_str(
        "\n| step: benchmark | memtable | operations | RocksDB ops/s | Spillway ops/s | Spillway / RocksDB | lowest - highest by round \
         | RocksDB CPU µs/op | Spillway CPU µs/op |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for Row { step, bench, memtable, pair } in rows {
        let Some((theirs, ours)) = pair.medians(|record| Some(record.ops_per_s)) else {
            continue;
        };
        let (cpu_theirs, cpu_ours) = pair.medians(|record| Some(record.cpu_us_per_op)).unwrap_or_default();
        let (low, high) = spread(pair);
        let ops = pair.spillway.first().map_or(0, |record| record.ops);
        let _ = writeln!(
            text,
            "| {step}: {bench} | {memtable} | {ops} | {theirs:.0} | {ours:.0} | **{:.2}** | {low:.2} - {high:.2} | {cpu_theirs:.2} | {cpu_ours:.2} |",
            ours / theirs.max(f64::MIN_POSITIVE)
        );
    }
}

/// The lowest and the highest ratio of throughputs among the rounds.
fn spread(pair: &Pair<'_>) -> (f64, f64) {
    let of_round = |ours: &&Record| {
        let theirs = pair.rocksdb.iter().find(|theirs| theirs.round == ours.round)?;
        Some(ours.ops_per_s / theirs.ops_per_s.max(f64::MIN_POSITIVE))
    };
    let ratios = pair.spillway.iter().filter_map(of_round);
    ratios.fold((f64::INFINITY, 0.0), |(low, high), ratio| (ratio.min(low), ratio.max(high)))
}

fn to_idle(text: &mut String, rows: &[Row<'_>]) {
    let mut lines = String::new();
    for Row { step, bench, memtable, pair } in rows {
        let figures = (
            pair.medians(|record| record.idle_wall_s),
            pair.medians(|record| Some(record.wall_s)),
            pair.medians(|record| record.idle_cpu_us_per_op),
        );
        if let (Some((idle_theirs, idle_ours)), Some((theirs, ours)), Some((cpu_theirs, cpu_ours))) = figures {
            let _ = writeln!(
                lines,
                "| {step}: {bench} | {memtable} | {theirs:.1} | {idle_theirs:.1} | {ours:.1} | {idle_ours:.1} | {cpu_theirs:.2} | {cpu_ours:.2} |"
            );
        }
    }
    if !lines.is_empty() {
        text.push_str(
            "\nTo the last acknowledgement, and to the end of flushes and compactions; CPU is that of all threads to that end.\n\n\
             | step: benchmark | memtable | RocksDB s, acknowledged | idle | Spillway s, acknowledged | idle | RocksDB CPU µs/op | Spillway CPU µs/op |\n\
             |---|---|---|---|---|---|---|---|\n",
        );
        text.push_str(&lines);
    }
}

fn times(text: &mut String, rows: &[Row<'_>]) {
    text.push_str(
        "\nTimes of single operations in µs, RocksDB / Spillway. RocksDB's come from coarse buckets of whole microseconds.\n\n\
         | step: benchmark | memtable | of | p50 | p99 | p99.9 | p99.99 | longest |\n|---|---|---|---|---|---|---|---|\n",
    );
    for Row { step, bench, memtable, pair } in rows {
        for kind in ["read", "write", "seek"] {
            let cell = |figure: fn(&Distribution) -> f64| {
                let medians = pair.medians(|record| record.latency.get(kind).map(figure));
                medians.map(|(theirs, ours)| format!("{theirs:.1} / {ours:.1}"))
            };
            let cells =
                [cell(|d| d.p50_us), cell(|d| d.p99_us), cell(|d| d.p999_us), cell(|d| d.p9999_us), cell(|d| d.max_us)];
            if let Some(cells) = cells.into_iter().collect::<Option<Vec<String>>>() {
                let _ = writeln!(text, "| {step}: {bench} | {memtable} | {kind} | {} |", cells.join(" | "));
            }
        }
    }
}

/// How long writers were held up by switches, where that was measured.
fn switches(text: &mut String, rows: &[Row<'_>]) {
    let mut lines = String::new();
    for Row { step, bench, memtable, pair } in rows {
        let longest = pair.spillway.iter().filter_map(|record| record.switch_max_us).reduce(f64::max);
        if let Some(longest) = longest {
            let _ = writeln!(lines, "| {step}: {bench} | {memtable} | {longest:.0} |");
        }
    }
    if !lines.is_empty() {
        text.push_str(
            "\nThe longest that a writer was held up by a memtable switch, in \u{b5}s.\n\n\
             | step: benchmark | memtable | longest switch |\n|---|---|---|\n",
        );
        text.push_str(&lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(engine: &str, round: u32, ops_per_s: f64) -> Record {
        Record {
            engine: engine.to_owned(),
            version: engine.to_owned(),
            memtable: "skip_list".to_owned(),
            step: "fill".to_owned(),
            bench: "fillrandom".to_owned(),
            round,
            ops: 9,
            ops_per_s,
            wall_s: 1.0,
            idle_wall_s: Some(2.0),
            idle_cpu_us_per_op: Some(3.0),
            ..Record::default()
        }
    }

    #[test]
    fn medians_and_spreads_are_drawn() {
        let mut records = Vec::new();
        for (round, theirs, ours) in [(0, 100.0, 150.0), (1, 100.0, 50.0), (2, 200.0, 180.0)] {
            records.push(record("rocksdb", round, theirs));
            records.push(record("spillway", round, ours));
        }
        let text = draw("x.jsonl", &records);
        assert!(text.contains("| fill: fillrandom | skip_list | 9 | 100 | 150 | **1.50** | 0.50 - 1.50 |"), "{text}");
        assert!(text.contains("| fill: fillrandom | skip_list | 1.0 | 2.0 | 1.0 | 2.0 | 3.00 | 3.00 |"), "{text}");
        assert!(text.contains("Medians of 3 round(s)"), "{text}");
    }

    #[test]
    fn every_memtable_is_set_beside_the_same_rocksdb() {
        let vector = Record { memtable: "vector".to_owned(), switch_max_us: Some(7.0), ..record("spillway", 0, 300.0) };
        let text = draw("x.jsonl", &[record("rocksdb", 0, 100.0), record("spillway", 0, 150.0), vector]);
        assert!(text.contains("| fill: fillrandom | skip_list | 9 | 100 | 150 | **1.50** |"), "{text}");
        assert!(text.contains("| fill: fillrandom | vector | 9 | 100 | 300 | **3.00** |"), "{text}");
        assert!(text.contains("| fill: fillrandom | vector | 7 |\n"), "{text}");
    }
}
