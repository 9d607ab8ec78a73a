//! `metrics` and `advise`: of files, and attached to a live database.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use common::Place;
use spillway::internal::{Database, OpenOptions, WriteOptions};

#[test]
fn files_and_a_live_process_are_told_apart() {
    let place = Place::new();
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], b"a\t1\nb\t22\n").ok();
    let text = place.spillway(&["metrics", "--db", "db"]).ok();
    assert!(text.contains("observed_by=\"reader\"") && text.ends_with("# EOF\n"), "{text}");
    assert!(!text.contains("spillway_writes_total"), "files know of no writes");

    let mut options = OpenOptions::default();
    options.db.observe_socket = true;
    let db = Database::open(place.path("db"), &options).unwrap();
    db.put(&db.default_family(), b"c", b"333", &WriteOptions::default()).unwrap();
    let text = place.spillway(&["metrics", "--db", "db"]).ok();
    assert!(text.contains("observed_by=\"writer\"") && text.contains("\nspillway_writes_total 1\n"), "{text}");
    let advice = place.spillway(&["advise", "--db", "db", "--seconds", "1"]).ok();
    assert!(
        advice.starts_with("note: not-measured: ") && advice.contains("statistics: false -> true (at the next open)"),
        "{advice}"
    );
    let json = place.spillway(&["advise", "--db", "db", "--json"]).ok();
    assert!(
        json.starts_with(r#"{"observed_by":"writer","advice":[{"severity":"note","rule":"not-measured""#),
        "{json}"
    );
    db.close().unwrap();
    assert_eq!(place.spillway(&["advise", "--db", "db"]).ok(), "nothing to advise\n");
    assert!(place.spillway(&["metrics", "--db", "nowhere"]).fails().contains("no database"));
}
