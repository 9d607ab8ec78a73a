//! Tables of memtables by themselves.

use std::fmt::Write;

use crate::medians::{in_order, median};
use crate::memtable::MemtableRecord;

/// RocksDB 11.9's skiplist in its `memtablerep_bench`, ten million entries of 17 bytes, one thread, on a machine of the kind
/// this project is measured on, but not in the same run: lowest and highest nanoseconds of an operation.
const ROCKSDB_INSERT_NS: (f64, f64) = (3600.0, 5300.0);
const ROCKSDB_LOOKUP_NS: (f64, f64) = (4900.0, 6900.0);
const ROCKSDB_BYTES_PER_ENTRY: f64 = 35.0;

/// Entries at which those were taken.
const ROCKSDB_ENTRIES: u64 = 10_000_000;

/// The tables of one file: one for each shape of keys under the same flags.
pub fn draw(name: &str, records: &[MemtableRecord]) -> String {
    let mut text = String::new();
    let Some(first) = records.first() else {
        return text;
    };
    let machine = &first.machine;
    let _ = writeln!(
        text,
        "\n### {name}\n\n{} ({} cores, {} GiB), Linux {}. Spillway at commit {}.",
        machine.cpu, machine.cores, machine.memory_gib, machine.kernel, first.commit
    );
    for ((keys, flags), of_shape) in in_order(records, |record| (record.keys.as_str(), record.flags.as_str())) {
        table(&mut text, keys, flags, &of_shape);
        beside_rocksdb(&mut text, keys, flags, &of_shape);
    }
    text
}

/// Nanoseconds of each benchmark on each memtable, with how many times as fast it is as on the first.
fn table(text: &mut String, keys: &str, flags: &str, records: &[&MemtableRecord]) {
    let rounds = records.iter().map(|record| record.round).max().unwrap_or_default() + 1;
    let memtables: Vec<&str> = in_order(records.iter().copied(), |record| record.memtable.as_str())
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let _ = writeln!(text, "\nKeys {keys}, medians of {rounds} round(s), `{flags}`:\n");
    let _ = writeln!(text, "| ns for each operation of a thread | threads | {} |", memtables.join(" | "));
    let _ = writeln!(text, "|---|---|{}", "---|".repeat(memtables.len()));
    for ((bench, threads), of_bench) in in_order(records.iter().copied(), |r| (r.bench.as_str(), r.threads)) {
        let of = |memtable: &str| median_of(&of_bench, memtable, |record| record.us_per_op * 1000.0);
        let base = memtables.first().and_then(|memtable| of(memtable));
        let cell = |memtable: &&str| match (of(memtable), base) {
            (Some(ns), Some(base)) if memtables.first() != Some(memtable) => format!("{ns:.1} ({:.2}x)", base / ns),
            (Some(ns), _) => format!("{ns:.1}"),
            (None, _) => "-".to_owned(),
        };
        let _ =
            writeln!(text, "| {bench} | {threads} | {} |", memtables.iter().map(cell).collect::<Vec<_>>().join(" | "));
    }
    let fills: Vec<&MemtableRecord> =
        records.iter().copied().filter(|record| record.rss_bytes_per_entry.is_some()).collect();
    for (row, figure) in [
        ("bytes/entry, by its own account", (|record| record.bytes_per_entry) as fn(&MemtableRecord) -> f64),
        ("bytes/entry, of resident memory", |record| record.rss_bytes_per_entry.unwrap_or_default()),
    ] {
        let cell =
            |memtable: &&str| median_of(&fills, memtable, figure).map_or("-".to_owned(), |bytes| format!("{bytes:.1}"));
        let _ = writeln!(text, "| {row} | | {} |", memtables.iter().map(cell).collect::<Vec<_>>().join(" | "));
    }
}

fn median_of(records: &[&MemtableRecord], memtable: &str, figure: impl Fn(&MemtableRecord) -> f64) -> Option<f64> {
    median(records.iter().filter(|record| record.memtable == memtable).map(|record| figure(record)).collect())
}

/// The same conditions as RocksDB's figures above, as ratios to the lowest of them.
fn beside_rocksdb(text: &mut String, keys: &str, flags: &str, records: &[&MemtableRecord]) {
    let alike = |record: &&&MemtableRecord| {
        record.threads == 1
            && record.entries == ROCKSDB_ENTRIES
            && ["fillrandom", "readrandom"].contains(&record.bench.as_str())
    };
    let alike: Vec<&MemtableRecord> = records.iter().filter(alike).copied().collect();
    let same_flags = ["--item_size=0 ", "--batch_size=1 ", "--populate=false "].iter().all(|flag| flags.contains(flag));
    if keys != "le8" || !same_flags || alike.is_empty() {
        return;
    }
    let (insert, lookup) = (ROCKSDB_INSERT_NS, ROCKSDB_LOOKUP_NS);
    let _ = writeln!(
        text,
        "\nBeside RocksDB 11.9's skiplist in `memtablerep_bench` (another run: insert {:.1} - {:.1} µs, lookup {:.1} - {:.1} µs, about \
         {ROCKSDB_BYTES_PER_ENTRY} bytes/entry); the ratios are to the lower figures.\n\n\
         | memtable | insert ns | RocksDB / it | lookup ns | RocksDB / it | bytes/entry | RocksDB / it |\n|---|---|---|---|---|---|---|",
        insert.0 / 1000.0,
        insert.1 / 1000.0,
        lookup.0 / 1000.0,
        lookup.1 / 1000.0,
    );
    for (memtable, rounds) in in_order(alike, |record| record.memtable.as_str()) {
        let (fills, reads): (Vec<&MemtableRecord>, Vec<&MemtableRecord>) =
            rounds.into_iter().partition(|record| record.bench == "fillrandom");
        let ns = |records: &[&MemtableRecord]| median_of(records, memtable, |record| record.us_per_op * 1000.0);
        let cells = |figure: Option<f64>, theirs: f64| {
            figure.map_or("- | -".to_owned(), |ours| format!("{ours:.1} | **{:.1}**", theirs / ours))
        };
        let _ = writeln!(
            text,
            "| {memtable} | {} | {} | {} |",
            cells(ns(&fills), insert.0),
            cells(ns(&reads), lookup.0),
            cells(median_of(&fills, memtable, |record| record.bytes_per_entry), ROCKSDB_BYTES_PER_ENTRY)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(bench: &str, memtable: &str, round: u32, ns: f64) -> MemtableRecord {
        MemtableRecord {
            bench: bench.to_owned(),
            memtable: memtable.to_owned(),
            keys: "le8".to_owned(),
            threads: 1,
            entries: ROCKSDB_ENTRIES,
            us_per_op: ns / 1000.0,
            bytes_per_entry: 40.0,
            rss_bytes_per_entry: (bench == "fillrandom").then_some(41.0),
            round,
            flags: "--item_size=0 --batch_size=1 --populate=false ".to_owned(),
            ..MemtableRecord::default()
        }
    }

    #[test]
    fn medians_stand_beside_the_first_memtables() {
        let mut records = Vec::new();
        for (round, list, trie) in [(0, 2000.0, 100.0), (1, 2400.0, 120.0), (2, 2200.0, 600.0)] {
            records.push(record("fillrandom", "skip_list", round, list));
            records.push(record("fillrandom", "trie", round, trie));
        }
        records.push(record("readrandom", "skip_list", 0, 2450.0));
        let text = draw("x.jsonl", &records);
        assert!(text.contains("| ns for each operation of a thread | threads | skip_list | trie |\n"), "{text}");
        assert!(text.contains("| fillrandom | 1 | 2200.0 | 120.0 (18.33x) |\n"), "{text}");
        assert!(text.contains("| readrandom | 1 | 2450.0 | - |\n"), "{text}");
        assert!(text.contains("account | | 40.0 | 40.0 |\n") && text.contains("memory | | 41.0 | 41.0 |\n"), "{text}");
        assert!(text.contains("| trie | 120.0 | **30.0** | - | - | 40.0 | **0.9** |\n"), "{text}");
        assert!(text.contains("| skip_list | 2200.0 | **1.6** | 2450.0 | **2.0** | 40.0 | **0.9** |\n"), "{text}");
    }

    #[test]
    fn other_conditions_are_not_set_beside_rocksdb() {
        let other = MemtableRecord { keys: "uuid".to_owned(), ..record("fillrandom", "trie", 0, 1.0) };
        let fewer = MemtableRecord { entries: 7, ..record("fillrandom", "trie", 0, 1.0) };
        assert!(!draw("x.jsonl", &[other, fewer]).contains("RocksDB"));
    }
}
