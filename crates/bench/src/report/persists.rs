//! Tables of batches that were written and flushed at once.

use std::fmt::Write;

use crate::medians::{in_order, median, spread};
use crate::persist::PersistRecord;

/// The table of one file: a line for each side.
pub fn draw(name: &str, records: &[PersistRecord]) -> String {
    let mut text = String::new();
    let Some(first) = records.first() else {
        return text;
    };
    let machine = &first.machine;
    let _ = writeln!(
        text,
        "\n### {name}\n\n{} ({} cores, {} GiB), Linux {}, {}. Spillway at commit {}. `{}`\n\n\
         | memtable + way | batches | ms blocked, median | lowest - highest | first over it | write, median | flush, median |\n\
         |---|---|---|---|---|---|---|",
        machine.cpu, machine.cores, machine.memory_gib, machine.kernel, machine.file_system, first.commit, first.flags
    );
    let mut base = None;
    for (side, batches) in in_order(records, PersistRecord::side) {
        let of = |figure: fn(&PersistRecord) -> f64| batches.iter().map(|record| figure(record)).collect::<Vec<f64>>();
        let (low, high) = spread(&of(|record| record.blocked_ms));
        let median_of = |figure| median(of(figure)).unwrap_or_default();
        let blocked = median_of(|record| record.blocked_ms);
        let ratio = *base.get_or_insert(blocked) / blocked.max(f64::MIN_POSITIVE);
        let (write, flush) = (median_of(|record| record.write_ms), median_of(|record| record.flush_ms));
        let _ = writeln!(
            text,
            "| {side} | {} | {blocked:.1} | {low:.1} - {high:.1} | **{ratio:.2}** | {write:.1} | {flush:.1} |",
            batches.len()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_are_set_beside_the_first() {
        let record = |memtable: &str, blocked_ms: f64| PersistRecord {
            memtable: memtable.to_owned(),
            way: "flush".to_owned(),
            blocked_ms,
            write_ms: 1.0,
            flush_ms: blocked_ms - 1.0,
            ..PersistRecord::default()
        };
        let records: Vec<PersistRecord> =
            [("a", 30.0), ("b", 10.0), ("a", 20.0), ("b", 8.0)].map(|(memtable, ms)| record(memtable, ms)).into();
        let text = draw("x.jsonl", &records);
        assert!(text.contains("| a+flush | 2 | 25.0 | 20.0 - 30.0 | **1.00** | 1.0 | 24.0 |\n"), "{text}");
        assert!(text.contains("| b+flush | 2 | 9.0 | 8.0 - 10.0 | **2.78** | 1.0 | 8.0 |\n"), "{text}");
    }
}
