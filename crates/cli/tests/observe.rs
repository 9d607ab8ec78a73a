//! `metrics` and `advise`: of files, and attached to a live database.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use common::Place;
use spillway::internal::{Database, OpenOptions, WriteOptions};

#[test]
fn files_and_a_live_process_are_told_apart() {
    let place = Place::new();
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], b"a\t1\nb\t22\n").ok();
    let text = place.spillway(&["metrics", "db"]).ok();
    assert!(text.contains("observed_by=\"reader\"") && text.ends_with("# EOF\n"), "{text}");
    assert!(!text.contains("spillway_write_gate"), "a closed database is well");
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

/// The older form has four kinds of metrics; heads have the names of their samples.
#[test]
fn the_textfile_collector_gets_its_own_form() {
    let place = Place::new();
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], b"a\t1\n").ok();
    let mut options = OpenOptions::default();
    (options.db.observe_socket, options.db.statistics) = (true, true);
    let db = Database::open(place.path("db"), &options).unwrap();
    db.put(&db.default_family(), b"c", b"333", &WriteOptions::default()).unwrap();
    let text = place.spillway(&["metrics", "db", "--format", "prometheus"]).ok();
    assert!(!text.contains("# UNIT") && !text.contains("# EOF") && !text.contains(" # {"), "{text}");
    let mut head = String::new();
    for line in text.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").map(|rest| rest.split_once(' ').unwrap()) {
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            head = name.to_owned();
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.starts_with(&format!("{head} ")), "{line}");
        } else {
            let name = line.split(['{', ' ']).next().unwrap();
            let of_buckets = ["_bucket", "_count", "_sum"].iter().any(|end| name.strip_suffix(end) == Some(&head));
            assert!(name == head || of_buckets, "{line} under {head}");
        }
    }
    for line in
        ["spillway_writes_total 1", "# TYPE spillway_info gauge", "spillway_write_gate{spillway_write_gate=\"free\"} 1"]
    {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
}

#[test]
fn options_in_force_are_shown_of_files_and_of_a_process() {
    let place = Place::new();
    place.spillway(&["put", "k", "v", "--db", "db", "--create", "--options", "write_buffer_size=1M"]).ok();
    let stored = place.spillway(&["options", "show", "db"]).ok();
    let line = "family \"default\"\n  write_buffer_size = 1 MiB (default 64 MiB; changes at run time)\n";
    assert_eq!(stored, line);
    // Those that a reader opens with other values, too.
    place.spillway(&["put", "k", "v", "--db", "db", "--options", "max_open_files=100;db_log_dir=logs"]).ok();
    let stored = place.spillway(&["options", "show", "db"]).ok();
    for line in ["max_open_files = 100 (default -1; changes at run time)", "db_log_dir = logs (default nothing; "] {
        assert!(stored.starts_with("database\n") && stored.contains(&format!("\n  {line}")), "{stored}");
    }
    assert!(stored.ends_with(line), "{stored}");
    let json = place.spillway(&["options", "show", "--db", "db", "--json"]).ok();
    assert!(json.contains(r#""name":"max_open_files","value":"100","default":"-1","is_mutable":true"#), "{json}");
    let mut options = OpenOptions::default();
    (options.db.observe_socket, options.db.max_background_jobs) = (true, 7);
    let db = Database::open(place.path("db"), &options).unwrap();
    let live = place.spillway(&["options", "show", "db"]).ok();
    assert!(
        live.contains("database\n") && live.contains("  max_background_jobs = 7 (default 2; changes at run time)\n"),
        "{live}"
    );
    let json = place.spillway(&["options", "show", "--db", "db", "--json"]).ok();
    assert!(
        json.starts_with(r#"{"observed_by":"writer","options":["#) && json.contains(r#""name":"max_background_jobs""#),
        "{json}"
    );
    db.close().unwrap();
}

#[test]
fn a_token_that_everybody_can_read_is_told() {
    let place = Place::new();
    place.write("token", "short");
    place.spillway(&["put", "k", "v", "--db", "db", "--create"]).ok();
    for (mode, is_told) in [(0o644, true), (0o600, false)] {
        std::fs::set_permissions(place.path("token"), std::fs::Permissions::from_mode(mode)).unwrap();
        let refused = place.spillway(&["serve", "db", "--port", "0", "--token-file", "token"]).fails();
        assert_eq!(refused.contains("every user of this machine can read the token: chmod 600 token"), is_told);
    }
}

/// A process that ends and comes again, while `top` looks.
#[test]
fn top_goes_on_with_the_next_process() {
    let place = Place::new();
    let mut options = OpenOptions::create_if_missing();
    options.db.observe_socket = true;
    let open = || Database::open(place.path("db"), &options).unwrap();
    let first = open();
    let mut top = place.command(common::SPILLWAY, &["top", "db", "--json", "--interval", "0.1"]);
    let mut top = top.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    let mut said = BufReader::new(top.stderr.take().unwrap()).lines().map(|line| line.unwrap());
    lines.next().unwrap();
    first.close().unwrap();
    drop(first);
    assert!(said.any(|line| line.starts_with("note: ") && line.ends_with("waiting for the next process")));
    let second = open();
    second.put(&second.default_family(), b"only", b"now", &WriteOptions::default()).unwrap();
    assert!(lines.any(|line| line.contains(r#""writes":{"writes":1,"#)));
    top.kill().unwrap();
    top.wait().unwrap();
    let ended = place.spillway(&["top", "elsewhere", "--count", "1"]).fails();
    assert!(ended.contains("no database"), "{ended}");
}
