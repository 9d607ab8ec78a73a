use super::*;

fn record(lib: &str, workload: &str, round: u32, figure: f64) -> SideRecord {
    SideRecord {
        lib: lib.to_owned(),
        version: format!("{lib} 1"),
        workload: workload.to_owned(),
        round,
        figure,
        cpu_us_per_op: figure / 10.0,
        user_bytes: 100,
        storage_bytes: 250,
        ..SideRecord::default()
    }
}

/// Ahead in fills, behind in reads, and further behind in restarts.
fn records() -> Vec<SideRecord> {
    let mut records = Vec::new();
    for (round, ours) in [(0, 300.0), (1, 200.0), (2, 400.0)] {
        records.extend([record("old", "fill", round, 100.0), record("new", "fill", round, ours)]);
        records.extend([record("old", "read", round, 100.0), record("new", "read", round, 80.0)]);
        let restart = |lib, ms| SideRecord { unit: Unit::MsToOpen, ..record(lib, "restart", round, ms) };
        records.extend([restart("new", 40.0), restart("old", 10.0)]);
    }
    records
}

#[test]
fn what_is_behind_stands_first() {
    let text = tables(&records());
    let rows: Vec<&str> = text.lines().filter(|line| line.contains("**")).collect();
    assert_eq!(
        rows,
        [
            "| restart | ms to open | 10.0 | 40.0 | **0.25** | 0.25 - 0.25 | 4.00 |",
            "| read | ops/s | 100.0 | 80.0 | **0.80** | 0.80 - 0.80 | 0.80 |",
            "| fill | ops/s | 100.0 | 300.0 | **3.00** | 2.00 - 4.00 | 3.00 |",
        ]
    );
    assert!(text.contains("medians of 3 round(s)") && text.contains("new (new 1)"), "{text}");
    assert!(text.contains("| fill | 0.00 / 0.00 |  | 10.00 / 30.00 |  | 2.50 / 2.50 | 0.00 / 0.00 |"), "{text}");
}

#[test]
fn times_are_drawn_of_what_was_timed() {
    let mut timed = record("new", "read", 0, 1.0);
    timed.latency.insert("seek".to_owned(), Distribution { p50_us: 1.5, max_us: 9.0, ..Distribution::default() });
    let text = tables(&[record("old", "read", 0, 1.0), timed]);
    assert!(text.contains("| read | seek | - / 1.5 | - / 0.0 | - / 0.0 | - / 0.0 | - / 9.0 |"), "{text}");
}

#[test]
fn ratios_and_ingests_become_pictures() {
    let mut all = records();
    assert_eq!(pictures("x", &all).len(), 1);
    let windows = vec![Window::default(), Window { at_s: 0.5, max_us: 7.0, ..Window::default() }];
    let ingests = vec![crate::sides::Ingested { at_s: 0.25, took_ms: 1.0 }];
    let mode = "default".to_owned();
    all.push(SideRecord { windows, ingests, mode, ..record("new", "ingest", 0, 5.0) });
    let drawn = pictures("x", &all);
    assert_eq!(drawn.iter().map(|picture| picture.name.as_str()).collect::<Vec<_>>(), ["x.svg", "x-ingest.svg"]);
    assert!(drawn[0].svg.contains("restart (ms to open)") && drawn[0].svg.contains(">0.25<"));
    assert!(drawn[1].svg.contains("new, default") && drawn[1].svg.contains("stroke-dasharray=\"2 3\""));
    let text = draw("x.jsonl", &all, &drawn);
    assert!(text.contains("(x.svg)") && text.contains("(x-ingest.svg)"), "{text}");
    assert_eq!(draw("x.jsonl", &[], &[]), "");
}
