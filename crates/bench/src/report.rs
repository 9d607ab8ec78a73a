//! Draws the tables of the documentation from the kept figures, so that they cannot say anything else. Losses are
//! printed like wins.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use base::{Error, Result};
use vfs::{IfExists, IoClass, Vfs};

use crate::compare::{Distribution, Record};

const BEGIN: &str = "<!-- figures: begin (drawn by `spillway bench report`; do not edit) -->";
const END: &str = "<!-- figures: end -->";

const RESULTS_BYTES_MAX: u64 = 64 << 20;
const DOCUMENT_BYTES_MAX: u64 = 4 << 20;

/// Replaces the marked part of `document` by tables of what `results` holds; or only compares, where `check`.
///
/// # Errors
/// `InvalidArgument`: the document has no markers, a line of the results cannot be read, or `check` and they differ.
pub fn run(vfs: &Arc<dyn Vfs>, results: &Path, document: &Path, check: bool) -> Result<()> {
    let vfs = vfs.as_ref();
    let mut drawn = String::new();
    for name in vfs.read_dir(results)?.iter().filter(|name| name.ends_with(".jsonl")) {
        let path = results.join(name);
        let records = parse(&read_text(vfs, &path, RESULTS_BYTES_MAX)?).map_err(|e| e.at_path(&path))?;
        drawn.push_str(&draw(name, &records));
    }
    let old = read_text(vfs, document, DOCUMENT_BYTES_MAX)?;
    let new = replace(&old, &drawn).map_err(|e| e.at_path(document))?;
    if new == old {
        return Ok(());
    }
    if check {
        let message = "the figures differ from the results; run `spillway bench report`";
        return Err(Error::invalid_argument(message).at_path(document));
    }
    vfs.create(document, IfExists::Truncate)?.append(new.as_bytes(), IoClass::Other)
}

fn read_text(vfs: &dyn Vfs, path: &Path, max: u64) -> Result<String> {
    let bytes = vfs::read_all(vfs, path, max, IoClass::Other)?;
    String::from_utf8(bytes).map_err(|_| Error::invalid_argument("not text").at_path(path))
}

fn parse(text: &str) -> Result<Vec<Record>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|e| Error::invalid_argument(format!("line {}: {e}", at + 1)))
    };
    lines.map(read).collect()
}

fn replace(document: &str, drawn: &str) -> Result<String> {
    let parts = document.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) =
        parts.ok_or_else(|| Error::invalid_argument(format!("the markers {BEGIN} and {END} are missing")))?;
    Ok(format!("{before}{BEGIN}\n{drawn}{END}{after}"))
}

/// All rounds of a benchmark on both sides.
#[derive(Default)]
struct Pair<'a> {
    rocksdb: Vec<&'a Record>,
    spillway: Vec<&'a Record>,
}

impl<'a> Pair<'a> {
    fn add(&mut self, record: &'a Record) {
        match record.engine.as_str() {
            "rocksdb" => self.rocksdb.push(record),
            _ => self.spillway.push(record),
        }
    }

    /// The medians of a figure over the rounds, RocksDB's first.
    fn medians(&self, figure: impl Fn(&Record) -> Option<f64>) -> Option<(f64, f64)> {
        let median_of = |records: &[&Record]| median(records.iter().filter_map(|record| figure(record)).collect());
        Some((median_of(&self.rocksdb)?, median_of(&self.spillway)?))
    }
}

fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let (low, high) = (figures.get(figures.len().checked_sub(1)? / 2)?, figures.get(figures.len() / 2)?);
    Some((low + high) / 2.0)
}

fn draw(name: &str, records: &[Record]) -> String {
    let mut text = String::new();
    let Some(first) = records.first() else {
        return text;
    };
    conditions(&mut text, name, first, records);
    // In the order in which they ran.
    let mut order: Vec<(&str, &str)> = Vec::new();
    let mut pairs: BTreeMap<(&str, &str), Pair<'_>> = BTreeMap::new();
    for record in records {
        let key = (record.step.as_str(), record.bench.as_str());
        if !order.contains(&key) {
            order.push(key);
        }
        pairs.entry(key).or_default().add(record);
    }
    let rows: Vec<_> = order.into_iter().filter_map(|key| Some((key, pairs.get(&key)?))).collect();
    throughput(&mut text, &rows);
    to_idle(&mut text, &rows);
    times(&mut text, &rows);
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
    let mut steps: Vec<&str> = Vec::new();
    for record in records {
        if !steps.contains(&record.step.as_str()) {
            steps.push(&record.step);
            let _ = writeln!(text, "{}: {}", record.step, record.flags);
        }
    }
    text.push_str("```\n");
}

type Row<'a, 'b> = ((&'a str, &'a str), &'b Pair<'a>);

fn throughput(text: &mut String, rows: &[Row<'_, '_>]) {
    text.push_str(
        "\n| step: benchmark | operations | RocksDB ops/s | Spillway ops/s | Spillway / RocksDB | lowest - highest by round \
         | RocksDB CPU µs/op | Spillway CPU µs/op |\n|---|---|---|---|---|---|---|---|\n",
    );
    for ((step, bench), pair) in rows {
        let Some((theirs, ours)) = pair.medians(|record| Some(record.ops_per_s)) else {
            continue;
        };
        let (cpu_theirs, cpu_ours) = pair.medians(|record| Some(record.cpu_us_per_op)).unwrap_or_default();
        let (low, high) = spread(pair);
        let ops = pair.spillway.first().map_or(0, |record| record.ops);
        let _ = writeln!(
            text,
            "| {step}: {bench} | {ops} | {theirs:.0} | {ours:.0} | **{:.2}** | {low:.2} - {high:.2} | {cpu_theirs:.2} | {cpu_ours:.2} |",
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

fn to_idle(text: &mut String, rows: &[Row<'_, '_>]) {
    let mut lines = String::new();
    for ((step, bench), pair) in rows {
        let figures = (
            pair.medians(|record| record.idle_wall_s),
            pair.medians(|record| Some(record.wall_s)),
            pair.medians(|record| record.idle_cpu_us_per_op),
        );
        if let (Some((idle_theirs, idle_ours)), Some((theirs, ours)), Some((cpu_theirs, cpu_ours))) = figures {
            let _ = writeln!(
                lines,
                "| {step}: {bench} | {theirs:.1} | {idle_theirs:.1} | {ours:.1} | {idle_ours:.1} | {cpu_theirs:.2} | {cpu_ours:.2} |"
            );
        }
    }
    if !lines.is_empty() {
        text.push_str(
            "\nTo the last acknowledgement, and to the end of flushes and compactions; CPU is that of all threads to that end.\n\n\
             | step: benchmark | RocksDB s, acknowledged | idle | Spillway s, acknowledged | idle | RocksDB CPU µs/op | Spillway CPU µs/op |\n\
             |---|---|---|---|---|---|---|\n",
        );
        text.push_str(&lines);
    }
}

fn times(text: &mut String, rows: &[Row<'_, '_>]) {
    text.push_str(
        "\nTimes of single operations in µs, RocksDB / Spillway. RocksDB's come from coarse buckets of whole microseconds.\n\n\
         | step: benchmark | of | p50 | p99 | p99.9 | p99.99 | longest |\n|---|---|---|---|---|---|---|\n",
    );
    for ((step, bench), pair) in rows {
        for kind in ["read", "write", "seek"] {
            let cell = |figure: fn(&Distribution) -> f64| {
                let medians = pair.medians(|record| record.latency.get(kind).map(figure));
                medians.map(|(theirs, ours)| format!("{theirs:.1} / {ours:.1}"))
            };
            let cells =
                [cell(|d| d.p50_us), cell(|d| d.p99_us), cell(|d| d.p999_us), cell(|d| d.p9999_us), cell(|d| d.max_us)];
            if let Some(cells) = cells.into_iter().collect::<Option<Vec<String>>>() {
                let _ = writeln!(text, "| {step}: {bench} | {kind} | {} |", cells.join(" | "));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(engine: &str, round: u32, ops_per_s: f64) -> Record {
        Record {
            engine: engine.to_owned(),
            version: engine.to_owned(),
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
        assert!(text.contains("| fill: fillrandom | 9 | 100 | 150 | **1.50** | 0.50 - 1.50 |"), "{text}");
        assert!(text.contains("| fill: fillrandom | 1.0 | 2.0 | 1.0 | 2.0 | 3.00 | 3.00 |"), "{text}");
        assert!(text.contains("Medians of 3 round(s)"), "{text}");
    }

    #[test]
    fn only_the_marked_part_is_replaced() {
        let document = format!("before\n{BEGIN}\nold\n{END}\nafter\n");
        let new = replace(&document, "new\n").unwrap();
        assert_eq!(new, format!("before\n{BEGIN}\nnew\n{END}\nafter\n"));
        assert!(replace("no markers", "new\n").is_err());
    }

    #[test]
    fn lines_that_are_no_records_are_named() {
        let line = serde_json::to_string(&record("rocksdb", 0, 1.0)).unwrap();
        assert_eq!(parse(&format!("{line}\n\n{line}\n")).unwrap().len(), 2);
        assert!(parse(&format!("{line}\n{{}}")).unwrap_err().to_string().contains("line 2"));
    }
}
