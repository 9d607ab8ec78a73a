//! What `scan` writes and `load` reads: every format keeps every byte.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::process::Stdio;

use common::{Place, SPILLWAY};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Standard output, byte for byte.
fn scanned(place: &Place, args: &[&str]) -> Vec<u8> {
    let mut command = place.command(SPILLWAY, &[&["scan"], args].concat());
    let output = command.stderr(Stdio::inherit()).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

const WAYS: [(&[&str], &[&str]); 7] = [
    (&["--format", "kv"], &["--format", "kv"]),
    (&["--format", "kv", "--hex"], &["--format", "kv", "--hex"]),
    (&["--format", "csv"], &["--format", "csv", "--value", "value"]),
    (&["--format", "csv"], &["--format", "csv", "--key", "key", "--value", "value", "--via", "ingest"]),
    (&["--format", "csv", "--hex"], &["--format", "csv", "--value", "value", "--hex"]),
    (&["--format", "ndjson"], &["--format", "ndjson", "--key", "key", "--value", "value"]),
    (&["--format", "ndjson", "--hex"], &["--format", "ndjson", "--key", "key", "--value", "value"]),
];

/// Copies a database by a pipe, in every way, and compares all bytes.
fn check_copies(place: &Place, ways: &[(&[&str], &[&str])]) {
    let all = scanned(place, &["--db", "from", "--hex"]);
    for (i, (scan, load)) in ways.iter().enumerate() {
        let text = scanned(place, &[&["--db", "from"], *scan].concat());
        let to = format!("to{i}");
        place.spillway_reading(&[&["load", "-", "--db", to.as_str()], *load].concat(), &text).ok();
        let copied = scanned(place, &["--db", &to, "--hex"]);
        assert_eq!(String::from_utf8_lossy(&copied), String::from_utf8_lossy(&all), "{scan:?}");
        std::fs::remove_dir_all(place.path(&to)).unwrap();
    }
}

fn load_pairs(place: &Place, pairs: &[(Vec<u8>, Vec<u8>)]) {
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let lines: String = pairs.iter().map(|(key, value)| format!("{}\t{}\n", hex(key), hex(value))).collect();
    place.spillway_reading(&["load", "-", "--db", "from", "--format", "kv", "--hex"], lines.as_bytes()).ok();
}

#[test]
fn any_bytes_come_back_through_every_format() {
    let byte = || prop_oneof![any::<u8>(), prop::sample::select(b"\\\t\n\r\",x0\xef\xbb\xbf\x1f\x8b".to_vec())];
    let bytes = |from| prop::collection::vec(byte(), from..12);
    let pairs = prop::collection::vec((bytes(1), bytes(0)), 1..60);
    let mut runner = TestRunner::new(Config { cases: 2, failure_persistence: None, ..Config::default() });
    let copied = runner.run(&pairs, |pairs| {
        let place = Place::new();
        load_pairs(&place, &pairs);
        check_copies(&place, &WAYS);
        Ok(())
    });
    copied.unwrap();
}

/// What a file could be taken for at its beginning, and what ends lines and fields.
#[test]
fn keys_that_look_like_something_else_come_back() {
    let place = Place::new();
    let keys = ["\u{feff}mark", "BZh91AY&SY", "PAR1", "\u{1f}\u{8b}", "a\tb", "c\\td", "e\r", "f\n", "\"", "g,h", "\0"];
    for key in keys {
        let _ = std::fs::remove_dir_all(place.path("from"));
        load_pairs(&place, &[(key.into(), key.into())]);
        check_copies(&place, &WAYS[..1]);
        check_copies(&place, &WAYS[5..6]);
    }
    load_pairs(&place, &[(vec![], b"of the empty key".to_vec())]);
    check_copies(&place, &WAYS[..2]);
}

#[test]
fn formats_are_as_told() {
    let place = Place::new();
    let lines = b"a\\xff\tv\\nw\nb\tsay \"x\", y\n";
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], lines).ok();
    for (args, expected) in [
        (&["--format", "kv"][..], &lines[..]),
        (&["--format", "csv"], b"key,value\na\xff,\"v\nw\"\nb,\"say \"\"x\"\", y\"\n"),
        (&["--format", "csv", "--keys-only"], b"key\na\xff\nb\n"),
        (&["--format", "csv", "--hex", "--limit", "1"], b"key,value\n61ff,760a77\n"),
        (
            &["--format", "ndjson"],
            b"{\"key_hex\":\"61ff\",\"value\":\"v\\nw\"}\n{\"key\":\"b\",\"value\":\"say \\\"x\\\", y\"}\n",
        ),
        (&["--format", "ndjson", "--keys-only", "--prefix", "b"], b"{\"key\":\"b\"}\n"),
        (&["--format", "values"], b"v\nw\nsay \"x\", y\n"),
        (&["--format", "values", "--hex", "--limit", "1"], b"760a77\n"),
    ] {
        let found = scanned(&place, &[&["--db", "db"], args].concat());
        assert_eq!(String::from_utf8_lossy(&found), String::from_utf8_lossy(expected), "{args:?}");
    }
    let nothing = place.spillway(&["scan", "--db", "db", "--format", "values", "--keys-only"]).fails();
    assert!(nothing.contains("--keys-only leaves nothing"), "{nothing}");
}

/// Lines that were loaded whole are there again as they were.
#[test]
fn values_give_loaded_lines_back() {
    let place = Place::new();
    let csv = "1,\"Ada, Countess\"\n2,\"New\nYork\"\n3,c\n";
    place.write("in", format!("id,name\n{csv}"));
    place.spillway(&["load", "in", "--db", "csv", "--format", "csv"]).ok();
    assert_eq!(place.spillway(&["scan", "--db", "csv", "--format", "values"]).ok(), csv);
    let ndjson = "{\"k\":1, \"v\":[2]}\n{\"k\":2}\n";
    place.spillway_reading(&["load", "-", "--db", "json", "--format", "ndjson", "--key", "k"], ndjson.as_bytes()).ok();
    assert_eq!(place.spillway(&["scan", "--db", "json", "--format", "values"]).ok(), ndjson);
}

#[test]
fn backslashes_are_escapes_or_with_raw_themselves() {
    let place = Place::new();
    let load = ["load", "-", "--db", "db", "--format", "kv"];
    let refused = place.spillway_reading(&load, b"a\tC:\\dir\n").fails();
    assert!(refused.contains("-, line 1: \\dir begins with a backslash and is no escape"), "{refused}");
    assert!(refused.contains("--raw takes backslashes as they stand"), "{refused}");
    place.spillway_reading(&[&load[..], &["--raw"]].concat(), b"a\tC:\\dir\\x41\n").ok();
    assert_eq!(place.spillway(&["get", "a", "--db", "db"]).ok(), "C:\\dir\\x41\n");
}
