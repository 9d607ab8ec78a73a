//! `plan`: its figures beside those of a database.

mod common;

use common::Place;
use serde_json::Value;

fn plan(place: &Place, args: &[&str]) -> Value {
    let args = [&["plan", "--json"], args].concat();
    serde_json::from_str(&place.spillway(&args).ok()).expect("JSON")
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path} of {value}"))
}

/// Tables of a hundred thousand random entries, within a tenth of what `plan` says.
#[test]
fn what_is_planned_is_what_a_database_takes() {
    const ENTRIES: u64 = 100_000;
    let place = Place::new();
    let mut state = 1u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state ^ state >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
    };
    let mut lines = String::new();
    for _ in 0..ENTRIES {
        lines += &format!("{:016x}\t", random());
        (0..6).for_each(|_| lines += &format!("{:016x}", random()));
        lines += "\n";
    }
    place.write("data.kv", &lines);
    place
        .spillway(&["load", "data.kv", "--db", "db", "--format", "kv", "--options", "compression=kNoCompression"])
        .ok();
    place.spillway(&["compact", "--db", "db"]).ok();
    let stats: Value = serde_json::from_str(&place.spillway(&["stats", "--db", "db", "--json"]).ok()).expect("JSON");
    // FIFO keeps nothing beside what is live.
    let planned =
        plan(&place, &["--writes", "1000", "--keep", "100s", "--key", "16", "--value", "96", "--style", "fifo"]);
    let (tables, live) = (number(&stats, "/families/0/table_bytes"), number(&planned, "/disk/tables"));
    assert!((0.9..1.1).contains(&(live / tables)), "{tables} bytes of tables, planned: {live}");
}

#[test]
fn more_of_a_load_needs_more() {
    let place = Place::new();
    let small = plan(&place, &["--writes", "20K", "--entries", "10M"]);
    let large = plan(&place, &["--writes", "20K", "--entries", "1G"]);
    for figure in ["/disk_bytes", "/memory_bytes", "/written_per_byte", "/compaction_processors", "/levels"] {
        assert!(number(&large, figure) > number(&small, figure), "{figure}");
    }
    let written = number(&large, "/written_bytes_per_s") / number(&large, "/data_bytes_per_s");
    assert!((written - number(&large, "/written_per_byte")).abs() < 0.01, "{written}");
    let fifo = plan(&place, &["--writes", "20K", "--keep", "1d", "--style", "fifo"]);
    let universal = plan(&place, &["--writes", "20K", "--keep", "1d", "--style", "universal"]);
    let level = plan(&place, &["--writes", "20K", "--keep", "1d"]);
    assert_eq!(number(&fifo, "/entries"), 20_000.0 * 86_400.0);
    let writes = [&fifo, &universal, &level].map(|plan| number(plan, "/written_per_byte"));
    assert!(writes.is_sorted() && number(&universal, "/disk_bytes") > number(&level, "/disk_bytes"), "{writes:?}");
}

/// A database takes the options that are printed.
#[test]
fn the_options_can_be_given() {
    let place = Place::new();
    place.write("data.kv", "a\tb\n");
    for style in ["level", "universal", "fifo"] {
        let planned = plan(&place, &["--writes", "100", "--keep", "1h", "--style", style]);
        let options = planned["options"].as_str().expect("a text").to_owned();
        place.spillway(&["load", "data.kv", "--db", style, "--format", "kv", "--options", &options]).ok();
    }
}

#[test]
fn what_cannot_be_planned_is_refused() {
    let place = Place::new();
    for (args, status) in [
        (&["--writes", "1"][..], 2),
        (&["--entries", "1"], 2),
        (&["--writes", "0", "--entries", "1"], 2),
        (&["--writes", "1", "--keep", "1"], 2),
        (&["--writes", "1", "--entries", "1", "--ratio", "0"], 2),
        (&["--writes", "1", "--entries", "1", "--style", "fifo"], 1),
        (&["--writes", "1", "--entries", "1", "--key", "0"], 1),
        (&["--writes", "1", "--entries", "1", "--write-buffer", "1"], 1),
    ] {
        let ended = place.spillway(&[&["plan"], args].concat());
        assert_eq!(ended.code, Some(status), "{args:?}: {}", ended.err);
    }
}
