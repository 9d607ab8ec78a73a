//! What db_bench prints, and this program after it.

use crate::latency::Distributions;

/// A benchmark's line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub bench: String,
    pub us_per_op: f64,
    pub ops_per_s: f64,
    pub wall_s: f64,
    pub ops: u64,
    pub mb_per_s: f64,
    pub found: Option<u64>,
    pub switch_max_us: Option<f64>,
}

impl Line {
    /// Reads `name : 5.3 micros/op 189000 ops/sec 10.6 seconds 2000000 operations; 20.9 MB/s (5 of 9 found)`.
    pub fn parse(text: &str) -> Option<Line> {
        let (bench, rest) = text.split_once(" : ").or_else(|| text.split_once(": "))?;
        let words: Vec<&str> = rest.split_whitespace().collect();
        let before = |unit: &str| {
            let at = words.iter().position(|word| word.trim_end_matches(';') == unit)?;
            words.get(at.checked_sub(1)?).and_then(|number| number.parse::<f64>().ok())
        };
        let found = rest
            .split_once(" found")
            .and_then(|(head, _)| head.rsplit_once('('))
            .and_then(|(_, counts)| counts.split_once(" of ").and_then(|(found, _)| found.trim().parse().ok()));
        Some(Line {
            bench: bench.trim().to_owned(),
            us_per_op: before("micros/op")?,
            ops_per_s: before("ops/sec")?,
            wall_s: before("seconds")?,
            ops: before("operations")? as u64,
            mb_per_s: before("MB/s").unwrap_or_default(),
            found,
            switch_max_us: rest.split_once("longest memtable switch ").and_then(|(_, rest)| number(rest)),
        })
    }
}

/// The number that a text begins with.
fn number(text: &str) -> Option<f64> {
    text.split_whitespace().next()?.parse().ok()
}

/// Collects the distributions printed under a benchmark's line.
#[derive(Debug, Default)]
pub struct DistributionReader {
    operation: Option<String>,
    pub found: Distributions,
}

impl DistributionReader {
    pub fn read(&mut self, text: &str) {
        if let Some(operation) = text.strip_prefix("Microseconds per ") {
            self.operation = Some(operation.trim_end_matches(':').to_owned());
            return;
        }
        let Some(operation) = &self.operation else {
            return;
        };
        let after = |label: &str| -> Option<f64> {
            let mut words = text.split_whitespace().skip_while(|word| *word != label).skip(1);
            words.next()?.parse().ok()
        };
        let entry = self.found.entry(operation.clone()).or_default();
        if let Some(count) = after("Count:") {
            entry.count = count as u64;
        }
        for (label, figure) in [
            ("Max:", &mut entry.max_us),
            ("P50:", &mut entry.p50_us),
            ("P99:", &mut entry.p99_us),
            ("P99.9:", &mut entry.p999_us),
            ("P99.99:", &mut entry.p9999_us),
        ] {
            *figure = after(label).unwrap_or(*figure);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Distribution;

    #[test]
    fn benchmark_lines_are_read() {
        let line = Line::parse(
            "readrandom   :       0.453 micros/op 2187944 ops/sec 0.009 seconds 20000 operations;    0.2 MB/s (17 of 20000 found)",
        );
        let line = line.unwrap();
        assert_eq!((line.bench.as_str(), line.ops, line.found), ("readrandom", 20000, Some(17)));
        assert_eq!((line.us_per_op, line.ops_per_s, line.wall_s, line.mb_per_s), (0.453, 2187944.0, 0.009, 0.2));
        let switched =
            "fillseq : 1.0 micros/op 9 ops/sec 1.0 seconds 9 operations; (longest memtable switch 12.5 micros)";
        assert_eq!(Line::parse(switched).unwrap().switch_max_us, Some(12.5));
        let mixed = "readrandomwriterandom :       1.593 micros/op 627293 ops/sec 0.032 seconds 20000 operations; ( reads:18000 writes:2000 total:20000 found:18000)";
        assert_eq!(Line::parse(mixed).unwrap().bench, "readrandomwriterandom");
        for other in ["DB path: [/x]", "Level Files Size(MB)", "", "Count: 5 Average: 1.0  StdDev: 0.1"] {
            assert_eq!(Line::parse(other), None, "{other}");
        }
    }

    #[test]
    fn distributions_are_read() {
        let mut reader = DistributionReader::default();
        for text in [
            "Microseconds per read:",
            "Count: 20000 Average: 0.3386  StdDev: 1.28",
            "Min: 0  Median: 0.5036  Max: 121",
            "Percentiles: P50: 0.50 P75: 0.76 P99: 1.00 P99.9: 6.67 P99.99: 51.00",
            "[       0,       1 ]    19857  99.285%  99.285% ####",
        ] {
            reader.read(text);
        }
        let expected =
            Distribution { count: 20000, p50_us: 0.5, p99_us: 1.0, p999_us: 6.67, p9999_us: 51.0, max_us: 121.0 };
        assert_eq!(reader.found.get("read"), Some(&expected));
    }
}
