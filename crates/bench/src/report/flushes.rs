//! Tables of flushes, in each way that a memtable becomes a table.

use std::fmt::Write;

use crate::flush::{CHECKSUM, FLUSH, FlushRecord, megabytes};
use crate::medians::{in_order, median, spread};

/// What the others are set in relation to.
const REWRITE: &str = "rewrite";

/// The tables of one file.
pub fn draw(name: &str, records: &[FlushRecord]) -> String {
    let Some(first) = records.first() else {
        return String::new();
    };
    format!("{}{}", super::heading(name, &first.setting), tables(records))
}

/// A table for each amount and each size of values.
pub fn tables(records: &[FlushRecord]) -> String {
    let mut text = String::new();
    let sized = in_order(records, |record| (record.bytes, record.value_size, record.setting.flags.as_str()));
    for ((bytes, value_size, flags), sized) in sized {
        let _ = writeln!(
            text,
            "\n**{:.1} MB of keys and values, {value_size} B a value** (`{flags}`)\n\n\
             | memtable | values in | way | rounds | CPU ms, median | lowest - highest | rewrite over it | without checksums | wall ms | \
             MB written (log + table) | of rewrite's | MB more held | peak of memtable |\n\
             |---|---|---|---|---|---|---|---|---|---|---|---|---|",
            megabytes(bytes)
        );
        let rows = in_order(sized.iter().copied(), |r| {
            (r.memtable.as_str(), r.values.as_str(), r.way.as_str(), r.part.as_str())
        });
        for (_, rounds) in &rows {
            let _ = writeln!(text, "{}", row(rounds, &sized));
        }
    }
    text
}

/// The medians of the rounds of one way, beside those of the rewrite of the same memtable.
fn row(rounds: &[&FlushRecord], all: &[&FlushRecord]) -> String {
    let Some(first) = rounds.first() else {
        return String::new();
    };
    let of = |part: &str, way: &str, values: Option<&str>, figure: fn(&FlushRecord) -> f64| {
        let same = |r: &&&FlushRecord| {
            r.part == part && r.way == way && r.memtable == first.memtable && values.is_none_or(|v| r.values == v)
        };
        median(all.iter().filter(same).map(|record| figure(record)).collect())
    };
    let median_of =
        |figure: fn(&FlushRecord) -> f64| median(rounds.iter().map(|r| figure(r)).collect()).unwrap_or_default();
    let (low, high) = spread(&rounds.iter().map(|record| record.cpu_ms).collect::<Vec<_>>());
    let (cpu, wall) = (median_of(|record| record.cpu_ms), median_of(|record| record.wall_ms));
    let way = if first.part == CHECKSUM { "its checksum pass" } else { &first.way };
    let head =
        format!("| {} | {} | {way} | {} | {cpu:.3} | {low:.3} - {high:.3}", first.memtable, first.values, rounds.len());
    if first.part == CHECKSUM {
        return format!("{head} | | | {wall:.3} | | | | |");
    }
    let over = |base: Option<f64>, figure: f64| match base {
        Some(base) if figure > 0.0 => format!("{:.2}", base / figure),
        _ => String::new(),
    };
    let rewrite = of(FLUSH, REWRITE, None, |record| record.cpu_ms);
    let pass = of(CHECKSUM, &first.way, Some(&first.values), |record| record.cpu_ms);
    let without = pass.map(|pass| over(rewrite, cpu - pass)).unwrap_or_default();
    let written = median_of(|record| record.written_bytes as f64);
    let rewritten = of(FLUSH, REWRITE, None, |record| record.written_bytes as f64);
    let share =
        rewritten.filter(|bytes| *bytes > 0.0).map(|bytes| format!("{:.2}", written / bytes)).unwrap_or_default();
    let (log, table) = (median_of(|record| record.log_bytes as f64), median_of(|record| record.table_bytes as f64));
    format!(
        "{head} | **{}** | {without} | {wall:.3} | {:.1} ({:.1} + {:.1}) | **{share}** | {} |",
        over(rewrite, cpu),
        written / 1e6,
        log / 1e6,
        table / 1e6,
        memory(rounds)
    )
}

/// What was held beyond what was held when the flush began, and the memtable with that in relation to the memtable; the
/// cells are empty where the system does not tell.
fn memory(rounds: &[&FlushRecord]) -> String {
    let growth = median(rounds.iter().filter_map(|record| record.growth_bytes).map(|bytes| bytes as f64).collect());
    let memtable = median(rounds.iter().map(|record| record.memtable_bytes as f64).collect());
    match (growth, memtable) {
        (Some(growth), Some(memtable)) if memtable > 0.0 => {
            format!("{:.1} | {:.2}", growth / 1e6, (memtable + growth) / memtable)
        }
        _ => " | ".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(part: &str, way: &str, cpu_ms: f64) -> FlushRecord {
        FlushRecord {
            part: part.to_owned(),
            way: way.to_owned(),
            memtable: "trie".to_owned(),
            values: "memtable".to_owned(),
            bytes: 64_000_000,
            cpu_ms,
            wall_ms: 2.0 * cpu_ms,
            memtable_bytes: 80_000_000,
            log_bytes: 70_000_000,
            table_bytes: 30_000_000,
            written_bytes: 100_000_000,
            growth_bytes: Some(8_000_000),
            ..FlushRecord::default()
        }
    }

    #[test]
    fn ways_are_set_beside_the_rewrite_with_checksums_and_without() {
        let mut converted = record(FLUSH, "convert", 10.0);
        converted.written_bytes = 50_000_000;
        let records =
            [record(FLUSH, REWRITE, 150.0), record(FLUSH, REWRITE, 250.0), converted, record(CHECKSUM, "convert", 6.0)];
        let text = draw("x.jsonl", &records);
        assert!(text.contains("### x.jsonl") && text.contains("64.0 MB of keys and values"), "{text}");
        let rewrite = "| trie | memtable | rewrite | 2 | 200.000 | 150.000 - 250.000 | **1.00** |  | 400.000 | \
                       100.0 (70.0 + 30.0) | **1.00** | 8.0 | 1.10 |\n";
        assert!(text.contains(rewrite), "{text}");
        assert!(text.contains("| convert | 1 | 10.000 | 10.000 - 10.000 | **20.00** | 50.00 | 20.000 |"), "{text}");
        assert!(text.contains("| **0.50** | 8.0 | 1.10 |\n"), "{text}");
        assert!(text.contains("| its checksum pass | 1 | 6.000 | 6.000 - 6.000 | | | 12.000 |"), "{text}");
    }

    #[test]
    fn what_is_not_known_is_left_empty() {
        let unknown = FlushRecord { growth_bytes: None, ..record(FLUSH, "dump", 1.0) };
        let text = tables(&[unknown]);
        assert!(text.contains("| 1.000 - 1.000 | **** |  | 2.000 | 100.0 (70.0 + 30.0) | **** |  |  |\n"), "{text}");
        assert!(draw("x.jsonl", &[]).is_empty());
    }
}
