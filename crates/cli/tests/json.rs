//! `--json`: one line of JSON with the documented keys, and failures as JSON on standard error.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use common::{Place, Ran};
use serde_json::{Value, json};

const DOCUMENT: &str = include_str!("../../../docs/cli.md");

fn database() -> Place {
    let place = Place::new();
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], b"a\t1\nb\t22\n").ok();
    place.spillway(&["compact", "--db", "db"]).ok();
    place.spillway(&["put", "c", "333", "--db", "db"]).ok();
    place.spillway(&["families", "create", "archive", "--db", "db"]).ok();
    place
}

/// The only line.
#[track_caller]
fn only_line(text: &str) -> Value {
    assert_eq!(text.lines().count(), 1, "{text}");
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[track_caller]
fn answer(ran: Ran) -> Value {
    only_line(&ran.ok())
}

/// All keys of objects in it, at any depth, are in docs/cli.md.
#[track_caller]
fn is_documented(value: &Value) {
    match value {
        Value::Array(items) => items.iter().for_each(is_documented),
        Value::Object(fields) => {
            for (key, value) in fields {
                assert!(DOCUMENT.contains(&format!("`{key}`")), "docs/cli.md does not have `{key}`");
                // Its keys are names of options.
                if value.is_array() || !["options", "other_families"].contains(&key.as_str()) {
                    is_documented(value);
                }
            }
        }
        _ => {}
    }
}

#[test]
fn stats_are_numbers_by_family() {
    let place = database();
    let stats = answer(place.spillway(&["stats", "--db", "db", "--json"]));
    is_documented(&stats);
    assert_eq!(
        (&stats["database"], &stats["format"], &stats["last_number"]),
        (&json!("db"), &json!("spillway"), &json!(3))
    );
    let families = stats["families"].as_array().unwrap();
    assert_eq!(families.iter().map(|family| &family["name"]).collect::<Vec<_>>(), ["default", "archive"]);
    let default = &families[0];
    assert_eq!((&default["tables"], &default["entries_in_memory"]), (&json!(1), &json!(1)));
    assert_eq!((&default["merge_operator"], &default["levels"][6]["tables"]), (&Value::Null, &json!(1)));
    assert!(default["table_bytes"].as_u64().unwrap() > 0);
    let one = answer(place.spillway(&["stats", "--db", "db", "--family", "archive", "--json"]));
    assert_eq!(one["families"].as_array().unwrap().len(), 1);
    let property = |name: &str| answer(place.spillway(&["stats", "--db", "db", "--property", name, "--json"]));
    let number = property("rocksdb.estimate-num-keys");
    is_documented(&number);
    assert_eq!(number["families"], json!([{ "name": "default", "value": 3 }, { "name": "archive", "value": 0 }]));
    assert!(property("rocksdb.levelstats")["families"][0]["value"].as_str().unwrap().contains("Level"));
}

#[test]
fn a_check_tells_what_is_wrong_and_where() {
    let place = database();
    let whole = answer(place.spillway(&["check", "--db", "db", "--json"]));
    is_documented(&whole);
    assert_eq!((&whole["whole"], &whole["problems"], &whole["tables"]), (&json!(true), &json!([]), &json!(1)));
    let table = place.only_file("db", ".sst");
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[3] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let ran = place.spillway(&["check", "--db", "db", "--json"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""), "{ran:?}");
    let damaged = only_line(&ran.out);
    is_documented(&damaged);
    assert_eq!((&damaged["whole"], &damaged["problems_found"]), (&json!(false), &json!(1)), "{damaged}");
    let problem = &damaged["problems"][0];
    assert!(problem["file"].as_str().unwrap().ends_with(".sst") && problem["message"].is_string(), "{damaged}");
}

#[test]
fn a_repair_tells_what_is_lost() {
    let place = database();
    let whole = answer(place.spillway(&["repair", "db", "--json"]));
    is_documented(&whole);
    assert_eq!((&whole["lost_nothing"], &whole["lost"]), (&json!(true), &json!([])), "{whole}");
    assert_eq!(whole["last_number_unseen"], json!(false), "{whole}");
    let table = place.only_file("db", ".sst");
    std::fs::remove_file(table).unwrap();
    let ran = place.spillway(&["repair", "db", "--json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let damaged = only_line(&ran.out);
    is_documented(&damaged);
    let lost = &damaged["lost"][0];
    assert!(lost["table"].as_str().unwrap().ends_with(".sst") && lost["smallest_hex"] == json!("61"), "{damaged}");
}

#[test]
fn loads_and_scans_are_records() {
    let place = Place::new();
    let load = |via: &str, db: &str| {
        let input = "a\t1\nb\t22\nbad\na\t3\n".as_bytes();
        let arguments = ["load", "-", "--db", db, "--format", "kv", "--skip-bad", "--via", via, "--json"];
        answer(place.spillway_reading(&arguments, input))
    };
    for (via, db) in [("puts", "one"), ("ingest", "two")] {
        let loaded = load(via, db);
        is_documented(&loaded);
        assert_eq!(
            (&loaded["records"], &loaded["payload_bytes"], &loaded["malformed"]),
            (&json!(3), &json!(7), &json!(1))
        );
        assert_eq!(loaded.get("keys"), (via == "ingest").then_some(&json!(2)), "{loaded}");
        let scanned = place.spillway(&["scan", "--db", db, "--json"]).ok();
        let lines: Vec<Value> = scanned.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines, [json!({ "key": "a", "value": "3" }), json!({ "key": "b", "value": "22" })]);
        lines.iter().for_each(is_documented);
        let count = answer(place.spillway(&["scan", "--count", "--db", db, "--json"]));
        is_documented(&count);
        assert_eq!(count, json!({ "keys": 2, "key_bytes": 2, "value_bytes": 3 }));
    }
}

#[test]
fn families_and_options_are_lists() {
    let place = database();
    let families = answer(place.spillway(&["families", "list", "--db", "db", "--json"]));
    is_documented(&families);
    assert_eq!(families["families"], json!([{ "id": 0, "name": "default" }, { "id": 1, "name": "archive" }]));
    let options = answer(place.spillway(&["options", "write_buffer_size", "--json"]));
    is_documented(&options);
    let found = options["options"].as_array().unwrap().iter().find(|option| option["name"] == "write_buffer_size");
    let found = found.unwrap();
    assert_eq!((&found["group"], &found["default"]), (&json!("CFOptions"), &json!("67108864")));
    assert_eq!((&found["can_change_while_open"], &found["is_rocksdbs"]), (&json!(true), &json!(true)));
    assert_eq!(answer(place.spillway(&["options", "no_such", "--json"])), json!({ "options": [] }));
    place.write(
        "app.yaml",
        "databases:\n  users: { params: { path: dir, column_families: { default: { write_buffer_size: 64K } } } }\n",
    );
    let checked = answer(place.spillway(&["options", "check", "app.yaml", "--json"]));
    is_documented(&checked);
    let users = &checked["databases"][0];
    assert_eq!((&users["name"], &users["path"], &users["read_only"]), (&json!("users"), &json!("dir"), &json!(false)));
    assert_eq!(users["families"][0], json!({ "name": "default", "options": { "write_buffer_size": "65536" } }));
}

#[test]
fn backups_have_numbers_and_times() {
    let place = database();
    let backup = |args: &[&str]| {
        place
            .spillway(&[&["backup", "--json", "--dir", "backups"][..1], args, &["--dir", "backups", "--json"]].concat())
    };
    assert_eq!(answer(backup(&["create", "--db", "db"])), json!({ "created": 1, "earlier_report": null }));
    assert_eq!(answer(backup(&["create", "--db", "db"])), json!({ "created": 2, "earlier_report": null }));
    let listed = answer(backup(&["list"]));
    is_documented(&listed);
    assert_eq!(listed["backups"].as_array().unwrap().len(), 2);
    assert_eq!((&listed["backups"][1]["id"], &listed["damaged"]), (&json!(2), &json!([])));
    assert!(listed["backups"][0]["unix_time_s"].as_u64().unwrap() > 1_700_000_000);
    let verified = answer(backup(&["verify"]));
    is_documented(&verified);
    assert_eq!(verified["backups"][0], json!({ "id": 1, "whole": true, "error": null }));
    assert_eq!(answer(backup(&["restore", "--to", "restored"])), json!({ "restored": 2 }));
    std::fs::remove_file(place.path("backups/private/2/CURRENT")).unwrap();
    for command in ["list", "verify"] {
        let ran = backup(&[command]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""), "{ran:?}");
        let told = only_line(&ran.out);
        is_documented(&told);
        assert!(told.to_string().contains("CURRENT"), "{told}");
    }
    assert_eq!(answer(backup(&["delete", "2"])), json!({ "deleted": 1 }));
    assert_eq!(answer(backup(&["purge", "--keep", "0"])), json!({ "deleted": 1 }));
}

#[test]
fn failures_are_json_too_and_alone_on_standard_error() {
    let place = Place::new();
    for command in [&["stats"][..], &["check"], &["families", "list"], &["ingest", "x.sst"]] {
        let ran = place.spillway(&[command, &["--db", "nowhere", "--json"]].concat());
        assert_eq!((ran.code, ran.out.as_str()), (Some(1), ""), "{ran:?}");
        let told = only_line(&ran.err);
        is_documented(&told);
        assert_eq!(told["status"], json!(1), "{ran:?}");
        assert!(told["error"].is_string(), "{ran:?}");
    }
}
