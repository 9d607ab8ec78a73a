use super::*;

fn overlap(mode: &str, memtables: usize, ingest_us: f64, flush_us: f64) -> IngestRecord {
    IngestRecord::Overlap(OverlapRecord {
        mode: mode.to_owned(),
        store: "memory".to_owned(),
        memtables,
        ingest_us,
        flush_us,
        prepare_us: ingest_us / 2.0,
        commit_us: ingest_us / 2.0,
        verifies: if mode == NONE { String::new() } else { "the ends".to_owned() },
        repeats: 3,
        ..OverlapRecord::default()
    })
}

fn writers(mode: &str, round: u32, p999_us: f64, max_us: f64) -> IngestRecord {
    IngestRecord::Writers(WritersRecord {
        mode: mode.to_owned(),
        tables: "small".to_owned(),
        writers: 2,
        rate: 20_000,
        ingests: 100,
        p50_us: 1.0,
        p99_us: 10.0,
        p999_us,
        p9999_us: 2.0 * p999_us,
        max_us,
        ingest_wait_max_us: p999_us / 10.0,
        round,
        ..WritersRecord::default()
    })
}

#[test]
fn a_call_stands_beside_blocking_and_a_flush_beside_one_without() {
    let records = [
        overlap(NONE, 3, 0.0, 200.0),
        overlap(BLOCKING, 3, 1000.0, 1.0),
        overlap(FLUSHABLE, 3, 80.0, 210.0),
        overlap(FLUSHABLE, 4, 90.0, 300.0),
    ];
    let text = draw("x.jsonl", &records, "x.svg");
    assert!(text.contains("| memtables | blocking | flushable | flushable below blocking |"), "{text}");
    assert!(
        text.contains("| 3 | 1000.0 | 80.0 | **92 %** | 40.0 + 40.0 | 200.0 | 210.0 | +5 % | the ends |\n"),
        "{text}"
    );
    assert!(text.contains("| 4 | - | 90.0 | - | 45.0 + 45.0 | - | - | - | the ends |\n"), "{text}");
    assert!(!text.contains("x.svg"), "there is nothing to picture");
}

#[test]
fn writers_stand_beside_those_without_ingests_in_the_same_round() {
    let mut records = Vec::new();
    for (round, none, flushable) in [(0, 100.0, 110.0), (1, 200.0, 200.0), (2, 100.0, 150.0)] {
        records.push(writers(NONE, round, none, 900.0));
        records.push(writers(FLUSHABLE, round, flushable, 500.0 + f64::from(round)));
    }
    let text = draw("x.jsonl", &records, "x.svg");
    assert!(text.contains("| none | 100 | 1.0 | 10.0 | 100.0 | 200.0 | 900.0 | - | - |"), "{text}");
    assert!(
        text.contains("| flushable | 100 | 1.0 | 10.0 | 150.0 | 300.0 | 502.0 | **1.10** (1.00 - 1.50) | 20.0 |"),
        "{text}"
    );
    assert!(text.contains("(x.svg)"), "{text}");
    let plot = plot(&records).unwrap();
    let percentiles = ["p50", "p99", "p99.9", "p99.99", "longest"].map(str::to_owned).into();
    assert_eq!(plot.across, crate::plot::Across::Categories(percentiles));
    let [panel] = &plot.panels[..] else { panic!("{plot:?}") };
    assert!(panel.title == "small tables, 20000 writes/s, not synced" && plot.caption[0].contains("3 round(s)"));
    let [none, flushable] = &panel.series[..] else { panic!("{plot:?}") };
    assert_eq!(none.values, [1.0, 10.0, 100.0, 200.0, 900.0]);
    assert_eq!(flushable.values, [1.0, 10.0, 150.0, 300.0, 502.0]);
}

#[test]
fn loads_stand_beside_the_first() {
    let load = |way: &str, seconds: f64| {
        IngestRecord::Load(LoadRecord {
            way: way.to_owned(),
            rows: 1000,
            bytes: 116_000,
            seconds,
            rows_per_s: 1000.0 / seconds,
            mb_per_s: 0.116 / seconds,
            cpu_s: 0.5,
            ..LoadRecord::default()
        })
    };
    let text = tables(&[load("load", 2.0), load("load --via ingest", 0.5)]);
    assert!(text.contains("| load | 2.00 | 2.00 - 2.00 | 500 | 0.1 | **1.00** | 0.50 |\n"), "{text}");
    assert!(text.contains("| load --via ingest | 0.50 | 0.50 - 0.50 | 2000 | 0.2 | **4.00** | 0.50 |\n"), "{text}");
}
