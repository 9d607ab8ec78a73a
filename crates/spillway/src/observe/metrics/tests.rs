use std::collections::{BTreeMap, BTreeSet};

use vfs::RealVfs;

use crate::internal::{Database, FamilyOptions, OpenOptions, ReadOptions, WriteOptions};
use crate::observe::{Observation, ObservedBy, ObservedHistogram, ObservedTrace, ObservedWrites, WriteGate};

const HOSTILE: &str = "a \"b\"\n\\{x=\u{7}} # EOF";

fn text(statistics: bool) -> String {
    // Where jobs run inline there is no sample.
    let (dir, vfs) = (tempfile::tempdir().expect("made"), RealVfs::new());
    let mut options = OpenOptions { vfs, ..OpenOptions::create_if_missing() };
    (options.db.statistics, options.db.create_missing_column_families) = (statistics, true);
    options.db.db_write_buffer_size = 8 << 20;
    let db = Database::open(dir.path(), &options.family(HOSTILE, FamilyOptions::default())).expect("opened");
    let family = db.family(HOSTILE).expect("there");
    for key in 0..100u32 {
        db.put(&family, &key.to_be_bytes(), b"value", &WriteOptions { sync: key == 7, ..Default::default() })
            .expect("put");
    }
    db.flush(&[&family]).expect("flushed");
    db.get(&family, &[0; 4], &ReadOptions::default()).expect("read");
    let _snapshot = db.snapshot();
    db.observe().to_metrics()
}

/// A sample's name, labels and value, as OpenMetrics' grammar has them.
fn sample(line: &str) -> (String, Vec<(String, String)>, f64) {
    let name_end = line.find(['{', ' ']).expect("a name");
    let (name, mut rest) = line.split_at(name_end);
    let mut labels = Vec::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, value) = rest.split_once("=\"").expect("a label");
            let (mut text, mut chars) = (String::new(), value.char_indices());
            let end = loop {
                match chars.next().expect("an end of the label") {
                    (_, '\\') => match chars.next().expect("an escape").1 {
                        'n' => text.push('\n'),
                        other => text.push(other),
                    },
                    (at, '"') => break at,
                    (_, other) => text.push(other),
                }
            };
            labels.push((label.to_owned(), text));
            rest = value[end + 1..].trim_start_matches(',');
        }
        rest = &rest[1..];
    }
    let value = rest.split(" # ").next().expect("one at least");
    (name.to_owned(), labels, value.trim().parse().expect("a number"))
}

/// Prometheus' rules for this form: heads once and before their samples, samples together, no sample twice, counters end
/// in `_total` and are not negative, buckets grow.
#[test]
fn the_text_is_openmetrics() {
    check(&text(false), &["spillway_sampled_get_duration_seconds_count", "spillway_sampled_lookups_total"]);
    let counted =
        ["spillway_write_duration_seconds_count", "rocksdb_db_write_seconds_count", "spillway_log_syncs_total"];
    check(&text(true), &counted);
}

fn check(text: &str, names: &[&str]) {
    assert!(text.ends_with("\n# EOF\n") && text.lines().filter(|line| *line == "# EOF").count() == 1);
    let (mut heads, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let (mut head, mut buckets) = ((String::new(), String::new()), BTreeMap::new());
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            let (name, kind) = kind.split_once(' ').expect("a kind");
            assert!(heads.insert(name.to_owned()), "{name} twice");
            head = (name.to_owned(), kind.to_owned());
        } else if let Some(unit) = line.strip_prefix("# UNIT ") {
            let (name, unit) = unit.split_once(' ').expect("a unit");
            assert!(name == head.0 && name.ends_with(unit), "{line}");
        } else if !line.starts_with("# HELP ") {
            let (name, labels, value) = sample(line);
            let suffixes: &[&str] = match head.1.as_str() {
                "counter" => &["_total"],
                "info" => &["_info"],
                "histogram" => &["_bucket", "_count", "_sum"],
                _ => &[""],
            };
            assert!(suffixes.iter().any(|suffix| format!("{}{suffix}", head.0) == name), "{line} under {head:?}");
            assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && value >= 0.0, "{line}");
            if let Some((le, rest)) = labels.split_last().filter(|((label, _), _)| label == "le") {
                let before = buckets.insert((name.clone(), rest.to_vec()), value).unwrap_or(0.0);
                assert!(value >= before && (le.1 == "+Inf" || le.1.parse::<f64>().is_ok()), "{line}");
            }
            assert!(seen.insert((name, labels)), "{line} twice");
        }
    }
    let of_family = |name: &str| (name.to_owned(), vec![("family".to_owned(), HOSTILE.to_owned())]);
    assert!(seen.contains(&of_family("spillway_memtable_bytes")), "its name comes back unharmed");
    for name in names {
        assert!(seen.iter().any(|(found, _)| found == name), "{name}");
    }
}

/// An exemplar stands behind the value of the bucket that its own value falls into; its labels are at most 128 characters.
#[test]
fn a_slow_write_with_a_trace_is_an_exemplar_of_its_bucket() {
    let trace =
        |trace_id: &str, micros, unix_time_us| ObservedTrace { trace_id: trace_id.into(), micros, unix_time_us };
    let mut writes = ObservedWrites { latency_us: Some(ObservedHistogram::default()), ..Default::default() };
    writes.traces = vec![
        trace("earlier", 66_000, 1_520_879_606_000_000),
        trace("4bf92f3577b34da6a3ce929d0e0e4736", 67_000, 1_520_879_607_789_000),
        trace(&"f".repeat(121), 1_000_000, 1_520_879_607_000_000),
        trace(&"e".repeat(120), 90_000_000, 1_520_879_608_000_000),
    ];
    let seen = Observation { writes: Some(writes), ..Default::default() };
    let text = seen.to_metrics();
    let found: Vec<_> = text.lines().filter(|line| line.contains(" # {")).collect();
    let [slow, slowest] = found.as_slice() else { panic!("{found:?}") };
    let exemplar = "0 # {trace_id=\"4bf92f3577b34da6a3ce929d0e0e4736\"} 0.067 1520879607.789";
    assert!(slow.starts_with("spillway_write_duration_seconds_bucket{le=\"") && slow.ends_with(exemplar), "{slow}");
    let le: f64 = sample(slow).1[0].1.parse().expect("a limit");
    assert!((0.067..0.15).contains(&le), "{slow}");
    let last = format!("le=\"+Inf\"}} 0 # {{trace_id=\"{}\"}} 90 1520879608", "e".repeat(120));
    assert!(slowest.ends_with(&last), "{slowest}");
}

#[test]
fn a_reader_tells_nothing_of_the_gate_of_writers() {
    let mut seen = Observation::default();
    seen.health.gate = WriteGate::Refused;
    for (by, is_told) in [(ObservedBy::Writer, true), (ObservedBy::Reader, false), (ObservedBy::Secondary, false)] {
        seen.process.observed_by = by;
        assert_eq!(seen.to_metrics().contains("spillway_write_gate"), is_told, "{by:?}");
    }
}

/// Every metric that the dashboard for Grafana names is there.
#[test]
#[allow(clippy::disallowed_methods, reason = "tests read the repository as other programs do")]
fn the_dashboard_names_what_exists() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/grafana/spillway.json");
    let (dashboard, text) = (std::fs::read_to_string(path).expect("there"), text(true));
    let names: BTreeSet<_> = text.lines().filter(|line| !line.starts_with('#')).map(|line| sample(line).0).collect();
    let expressions = dashboard.lines().filter_map(|line| line.trim().strip_prefix("\"expr\": "));
    let words = expressions.flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
    let named: BTreeSet<_> =
        words.filter(|word| word.starts_with("spillway_") || word.starts_with("rocksdb_")).collect();
    let gate = "spillway_write_gate"; // also a label
    let missing: Vec<_> = named.iter().filter(|name| **name != gate && !names.contains(**name)).collect();
    assert!(missing.is_empty() && named.len() >= 20, "{missing:?} of {}", named.len());
}
