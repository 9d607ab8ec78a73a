//! The medians over the rounds, as a table of text.

use super::record::MemtableRecord;
use crate::medians::{in_order, median, spread};

/// A line for each benchmark on each memtable, in the order in which they first ran.
pub fn draw(records: &[MemtableRecord]) -> String {
    let mut text = format!(
        "\n{:<16} {:<20} {:>3} {:>10} {:>21} {:>11} {:>10} {:>11} {:>9}\n",
        "medians", "memtable", "thr", "ns/op", "lowest - highest", "CPU ns/op", "M ops/s", "bytes/entry", "vs first"
    );
    for (bench, of_bench) in in_order(records, |record| record.bench.as_str()) {
        let mut first = None;
        for (memtable, rounds) in in_order(of_bench, |record| record.memtable.as_str()) {
            let ns: Vec<f64> = rounds.iter().map(|record| record.us_per_op * 1000.0).collect();
            let (low, high) = spread(&ns);
            let ns = median(ns).unwrap_or_default();
            let of = |figure: fn(&MemtableRecord) -> f64| {
                median(rounds.iter().map(|record| figure(record)).collect()).unwrap_or_default()
            };
            let (rate, bytes) = (of(|record| record.ops_per_s / 1e6), of(|record| record.bytes_per_entry));
            let cpu = of(|record| record.cpu_us_per_op * 1000.0);
            let threads = rounds.first().map_or(0, |record| record.threads);
            let ratio = *first.get_or_insert(ns) / ns.max(f64::MIN_POSITIVE);
            text.push_str(&format!(
                "{bench:<16} {memtable:<20} {threads:>3} {ns:>10.1} {:>21} {cpu:>11.1} {rate:>10.3} {bytes:>11.1} {ratio:>8.2}x\n",
                format!("{low:.1} - {high:.1}")
            ));
        }
    }
    text
}
