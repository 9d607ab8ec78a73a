//! Tables of restarts after a kill, by images of memtables and by replaying the log.

use std::fmt::Write;

use crate::medians::{in_order, median, spread};
use crate::restart::RestartRecord;

/// What the others are set in relation to.
const REPLAY: &str = "replay";

/// The table of one file.
pub fn draw(name: &str, records: &[RestartRecord]) -> String {
    let Some(first) = records.first() else {
        return String::new();
    };
    format!("{}{}", super::heading(name, &first.setting), tables(records))
}

/// A table for each set of conditions.
pub fn tables(records: &[RestartRecord]) -> String {
    let mut text = String::new();
    for (flags, same) in in_order(records, |record| record.setting.flags.as_str()) {
        let _ = writeln!(
            text,
            "\n`{flags}`\n\n\
             | memtable | values in | MB of memtable | way | rounds | ms to open, median | lowest - highest | replay over it | CPU ms |\n\
             |---|---|---|---|---|---|---|---|---|"
        );
        // Memtables that are filled alike have sizes alike.
        for (side, of_side) in in_order(same, |r| (r.memtable.as_str(), r.values.as_str(), r.memtable_bytes >> 20)) {
            let ways = in_order(of_side, |record| record.way.as_str());
            let opened = |rounds: &[&RestartRecord]| median(rounds.iter().map(|record| record.open_ms).collect());
            let replay = ways.iter().find(|(way, _)| *way == REPLAY).and_then(|(_, rounds)| opened(rounds));
            for (way, rounds) in &ways {
                let open_ms = opened(rounds).unwrap_or_default();
                let (low, high) = spread(&rounds.iter().map(|record| record.open_ms).collect::<Vec<_>>());
                let cpu_ms = median(rounds.iter().map(|record| record.cpu_ms).collect()).unwrap_or_default();
                let bytes = rounds.first().map_or(0, |record| record.memtable_bytes);
                let ratio = replay.map(|replay| format!("**{:.1}**", replay / open_ms.max(f64::MIN_POSITIVE)));
                let _ = writeln!(
                    text,
                    "| {} | {} | {:.1} | {way} | {} | {open_ms:.2} | {low:.2} - {high:.2} | {} | {cpu_ms:.2} |",
                    side.0,
                    side.1,
                    bytes as f64 / 1e6,
                    rounds.len(),
                    ratio.unwrap_or_default()
                );
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_set_beside_replay() {
        let record = |way: &str, open_ms: f64| RestartRecord {
            way: way.to_owned(),
            memtable: "trie".to_owned(),
            values: "log".to_owned(),
            memtable_bytes: 1_500_000_000,
            open_ms,
            cpu_ms: open_ms / 2.0,
            ..RestartRecord::default()
        };
        let records = [record("image", 4.0), record("replay", 4000.0), record("image", 6.0)];
        let text = draw("x.jsonl", &records);
        assert!(
            text.contains("| trie | log | 1500.0 | image | 2 | 5.00 | 4.00 - 6.00 | **800.0** | 2.50 |\n"),
            "{text}"
        );
        assert!(text.contains("| replay | 1 | 4000.00 | 4000.00 - 4000.00 | **1.0** | 2000.00 |\n"), "{text}");
        assert!(tables(&records[..1]).contains("| 4.00 - 4.00 |  | 2.00 |\n"), "nothing to compare with");
    }
}
