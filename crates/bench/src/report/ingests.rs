//! Tables and a picture of ingests.

use std::fmt::Write;

use crate::ingest::{IngestRecord, LoadRecord, NONE, OverlapRecord, WritersRecord};
use crate::medians::{in_order, median, spread};
use crate::plot::{Across, Panel, Plot, Series};

/// The modes whose figures are set in relation to each other.
const BLOCKING: &str = "blocking";
const FLUSHABLE: &str = "flushable";

/// Percentiles of a run, as they are named and found.
type Figure = fn(&WritersRecord) -> f64;
const PERCENTILES: [(&str, Figure); 4] = [
    ("p50", |record| record.p50_us),
    ("p99", |record| record.p99_us),
    ("p99.9", |record| record.p999_us),
    ("p99.99", |record| record.p9999_us),
];

/// The tables of one file, and under them its picture where there is one, whose file is called `picture`.
pub fn draw(name: &str, records: &[IngestRecord], picture: &str) -> String {
    let Some(setting) = records.first().map(IngestRecord::setting) else {
        return String::new();
    };
    let mut text = super::heading(name, setting);
    text.push_str(&tables(records));
    if plot(records).is_some() {
        let _ = writeln!(text, "\n![Latencies of writers beside ingests, by mode]({picture})");
    }
    text
}

/// A table for each kind of record and each set of conditions.
pub fn tables(records: &[IngestRecord]) -> String {
    let mut text = String::new();
    let overlaps = of_kind(records, |record| match record {
        IngestRecord::Overlap(record) => Some(record),
        _ => None,
    });
    for ((store, flags), cells) in in_order(overlaps, |r| (r.store.as_str(), r.setting.flags.as_str())) {
        overlap_table(&mut text, store, flags, &cells);
    }
    for ((tables, sync), runs) in loads_of_writers(records) {
        writers_table(&mut text, tables, sync, &runs);
    }
    let loads = of_kind(records, |record| match record {
        IngestRecord::Load(record) => Some(record),
        _ => None,
    });
    for (flags, runs) in in_order(loads, |record| record.setting.flags.as_str()) {
        load_table(&mut text, flags, &runs);
    }
    text
}

fn of_kind<'a, R>(records: &'a [IngestRecord], kind: impl Fn(&'a IngestRecord) -> Option<&'a R>) -> Vec<&'a R> {
    records.iter().filter_map(kind).collect()
}

/// Runs of writers by what was ingested under them, and whether they waited for the disk.
fn loads_of_writers(records: &[IngestRecord]) -> Vec<((&str, bool), Vec<&WritersRecord>)> {
    let runs = of_kind(records, |record| match record {
        IngestRecord::Writers(record) => Some(record),
        _ => None,
    });
    in_order(runs, |record| (record.tables.as_str(), record.sync))
}

/// Microseconds of a call in each mode, and what the flush of memtables costs with what was ingested and without.
fn overlap_table(text: &mut String, store: &str, flags: &str, cells: &[&OverlapRecord]) {
    let modes: Vec<&str> = in_order(cells.iter().copied(), |cell| cell.mode.as_str())
        .into_iter()
        .map(|(mode, _)| mode)
        .filter(|mode| *mode != NONE)
        .collect();
    let repeats = cells.first().map_or(0, |cell| cell.repeats);
    let _ = writeln!(
        text,
        "\nAn ingest over memtables that its table overlaps, in {store}: µs of the call, medians of {repeats}, `{flags}`:\n\n\
         | memtables | {} | flushable below blocking | its prepare + commit | flush without it | with it | more | prepare verifies |",
        modes.join(" | ")
    );
    let _ = writeln!(text, "|---|{}---|---|---|---|---|---|", "---|".repeat(modes.len()));
    for (memtables, of_count) in in_order(cells.iter().copied(), |cell| cell.memtables) {
        let of = |mode: &str| of_count.iter().find(|cell| cell.mode == mode);
        let cell = |mode: &&str| of(mode).map_or("-".to_owned(), |cell| format!("{:.1}", cell.ingest_us));
        let (blocking, flushable, none) = (of(BLOCKING), of(FLUSHABLE), of(NONE));
        let below = blocking.zip(flushable).map_or("-".to_owned(), |(blocking, flushable)| {
            format!("**{:.0} %**", 100.0 * (1.0 - flushable.ingest_us / blocking.ingest_us))
        });
        let halves = flushable.map_or("-".to_owned(), |cell| format!("{:.1} + {:.1}", cell.prepare_us, cell.commit_us));
        let flushes = none.zip(flushable).map_or("- | - | -".to_owned(), |(none, with)| {
            let more = 100.0 * (with.flush_us / none.flush_us - 1.0);
            format!("{:.1} | {:.1} | {more:+.0} %", none.flush_us, with.flush_us)
        });
        let verifies = of_count.iter().map(|cell| cell.verifies.as_str()).find(|what| !what.is_empty());
        let _ = writeln!(
            text,
            "| {memtables} | {} | {below} | {halves} | {flushes} | {} |",
            modes.iter().map(cell).collect::<Vec<_>>().join(" | "),
            verifies.unwrap_or("-")
        );
    }
}

/// Latencies of writers in each mode, and beside the run without ingests of the same round.
fn writers_table(text: &mut String, tables: &str, sync: bool, runs: &[&WritersRecord]) {
    let Some(first) = runs.first() else { return };
    let rounds = runs.iter().map(|run| run.round).max().unwrap_or_default() + 1;
    let _ = writeln!(
        text,
        "\n{} writers, {} writes/s, {}; tables: {tables}. µs from the intended start, medians of {rounds} round(s), the longest of \
         all{}; `{}`:\n\n\
         | mode | ingests | p50 | p99 | p99.9 | p99.99 | longest | p99.9 / without, by round | longest wait because of an ingest | \
         ingest p50 | longest | CPU |\n|---|---|---|---|---|---|---|---|---|---|---|---|",
        first.writers,
        first.rate,
        if sync { "synced" } else { "not synced" },
        stolen(runs),
        first.setting.flags
    );
    for (mode, of_mode) in in_order(runs.iter().copied(), |run| run.mode.as_str()) {
        let of = |figure: Figure| of_mode.iter().map(|run| figure(run)).collect::<Vec<f64>>();
        let middle = |figure| median(of(figure)).unwrap_or_default();
        let highest = |figure| spread(&of(figure)).1;
        let percentiles = PERCENTILES.map(|(_, figure)| format!("{:.1}", middle(figure))).join(" | ");
        let (waited, call, longest_call) = if mode == NONE {
            ("-".to_owned(), "-".to_owned(), "-".to_owned())
        } else {
            let shown = |us: f64| format!("{us:.1}");
            let waited = longest_wait(highest(|run| run.ingest_wait_max_us), highest(|run| run.ingest_window_max_us));
            (waited, shown(middle(|run| run.ingest_p50_us)), shown(highest(|run| run.ingest_max_us)))
        };
        let _ = writeln!(
            text,
            "| {mode} | {:.0} | {percentiles} | {:.1} | {} | {waited} | {call} | {longest_call} | {:.0} % |",
            middle(|run| run.ingests as f64),
            highest(|run| run.max_us),
            beside_none(&of_mode, runs),
            middle(|run| run.cpu_percent)
        );
    }
}

/// What of the processors the host took, where a run tells.
fn stolen(runs: &[&WritersRecord]) -> String {
    let most = runs.iter().map(|run| run.stolen_percent).fold(0.0, f64::max);
    let repeats: u32 = runs.iter().map(|run| run.repeats).sum();
    if most == 0.0 && repeats == 0 {
        return String::new();
    }
    format!(
        "; the machine's host took {most:.1} % of the processors at the most, and runs in which it took more were made again, {repeats} of them"
    )
}

/// In microseconds, with what it could have been where that is known.
fn longest_wait(waited_us: f64, window_us: f64) -> String {
    if window_us > 0.0 { format!("{waited_us:.1} (window {window_us:.1})") } else { format!("{waited_us:.1}") }
}

/// p99.9 over that of the run without ingests in the same round: the median, the lowest and the highest.
fn beside_none(of_mode: &[&WritersRecord], runs: &[&WritersRecord]) -> String {
    let none_of = |round| runs.iter().find(|run| run.mode == NONE && run.round == round);
    let ratio = |run: &&WritersRecord| Some(run.p999_us / none_of(run.round)?.p999_us);
    let ratios: Vec<f64> = of_mode.iter().filter(|run| run.mode != NONE).filter_map(ratio).collect();
    let (low, high) = spread(&ratios);
    median(ratios).map_or("-".to_owned(), |middle| format!("**{middle:.2}** ({low:.2} - {high:.2})"))
}

fn load_table(text: &mut String, flags: &str, runs: &[&LoadRecord]) {
    let Some(first) = runs.first() else { return };
    let rounds = runs.iter().map(|run| run.round).max().unwrap_or_default() + 1;
    let _ = writeln!(
        text,
        "\n{} rows, {:.0} MB of keys and values in random order, from the start of the command to its end, medians of {rounds} \
         round(s), `{flags}`:\n\n\
         | command | seconds | lowest - highest | rows/s | MB/s | first over it | CPU s |\n|---|---|---|---|---|---|---|",
        first.rows,
        first.bytes as f64 / 1e6
    );
    let mut base = None;
    for (way, of_way) in in_order(runs.iter().copied(), |run| run.way.as_str()) {
        let of = |figure: fn(&LoadRecord) -> f64| of_way.iter().map(|run| figure(run)).collect::<Vec<f64>>();
        let middle = |figure| median(of(figure)).unwrap_or_default();
        let seconds = middle(|run| run.seconds);
        let (low, high) = spread(&of(|run| run.seconds));
        let _ = writeln!(
            text,
            "| {way} | {seconds:.2} | {low:.2} - {high:.2} | {:.0} | {:.1} | **{:.2}** | {:.2} |",
            middle(|run| run.rows_per_s),
            middle(|run| run.mb_per_s),
            *base.get_or_insert(seconds) / seconds,
            middle(|run| run.cpu_s)
        );
    }
}

/// Latencies of writers by mode; a panel for each load. `None` where no writers ran.
pub fn plot(records: &[IngestRecord]) -> Option<Plot> {
    let loads = loads_of_writers(records);
    let first = *loads.first()?.1.first()?;
    let rounds = loads.iter().flat_map(|(_, runs)| runs).map(|run| run.round).max().unwrap_or_default() + 1;
    let panels = loads.iter().map(|((tables, sync), runs)| panel(tables, *sync, runs)).collect();
    let machine = &first.setting.machine;
    let categories = PERCENTILES.iter().map(|(name, _)| (*name).to_owned()).chain(["longest".to_owned()]).collect();
    Some(Plot {
        title: "Writes beside ingests, by mode of the ingest".to_owned(),
        x_label: "percentile of all writes".to_owned(),
        y_label: "latency (logarithmic)".to_owned(),
        across: Across::Categories(categories),
        panels,
        caption: vec![
            format!(
                "From each write's intended start. Medians of {rounds} round(s), the longest of all; none: the same writers without \
                 ingests. {} writers. {}",
                first.writers, first.setting.flags
            ),
            format!(
                "{} ({} cores, {} GiB), Linux {}, {}. Spillway at commit {}.",
                machine.cpu,
                machine.cores,
                machine.memory_gib,
                machine.kernel,
                machine.file_system,
                first.setting.commit
            ),
        ],
    })
}

fn panel(tables: &str, sync: bool, runs: &[&WritersRecord]) -> Panel {
    let rate = runs.first().map_or(0, |run| run.rate);
    let sync = if sync { "synced" } else { "not synced" };
    let series = in_order(runs.iter().copied(), |run| run.mode.as_str()).into_iter().map(|(mode, of_mode)| {
        let of = |figure: Figure| of_mode.iter().map(|run| figure(run)).collect::<Vec<f64>>();
        let percentiles = PERCENTILES.iter().map(|(_, figure)| median(of(*figure)).unwrap_or_default());
        let values = percentiles.chain([spread(&of(|run| run.max_us)).1]).collect();
        Series { name: mode.to_owned(), values }
    });
    Panel { title: format!("{tables} tables, {rate} writes/s, {sync}"), series: series.collect(), marks: Vec::new() }
}

#[cfg(test)]
#[path = "ingests_tests.rs"]
mod tests;
