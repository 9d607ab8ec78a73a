//! Loading files of every format, good and bad.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use common::Place;

fn loaded(format: &[&str], input: &str) -> String {
    let place = Place::new();
    place.write("in", input);
    let args = [&["load", "in", "--db", "db", "--format"], format].concat();
    let summary = place.spillway(&args).ok();
    assert!(summary.starts_with("loaded "), "{summary}");
    place.spillway(&["scan", "--db", "db"]).ok()
}

fn refused(format: &[&str], input: &str) -> String {
    let place = Place::new();
    place.write("in", input);
    place.spillway(&[&["load", "in", "--db", "db", "--format"], format].concat()).fails()
}

const PEOPLE: &str = "id,name,town\n7,\"Ada, Countess\",London\n3,\"Grace \"\"G.\"\" Hopper\",\"New\nYork\"\n";

#[test]
fn csv_keeps_the_row_as_the_value() {
    let expected = "3\t3,\"Grace \"\"G.\"\" Hopper\",\"New\\nYork\"\n7\t7,\"Ada, Countess\",London\n";
    assert_eq!(loaded(&["csv"], PEOPLE), expected);
    assert_eq!(loaded(&["csv", "--key", "id"], PEOPLE), expected);
    assert_eq!(loaded(&["csv", "--key", "1"], PEOPLE), expected);
}

#[test]
fn csv_columns_are_chosen_by_name_and_number() {
    let by_name = loaded(&["csv", "--key", "town,id", "--key-separator", ":", "--value", "name"], PEOPLE);
    assert_eq!(by_name, "London:7\tAda, Countess\nNew\\nYork:3\tGrace \"G.\" Hopper\n");
    let by_number =
        loaded(&["csv", "--no-header", "--delimiter", ";", "--key", "2", "--value", "3,1"], "a;b;c\nd;e;f\n");
    assert_eq!(by_number, "b\tc;a\ne\tf;d\n");
}

#[test]
fn csv_that_ends_within_quotes_is_refused_by_line() {
    for (rows, line) in [("id,name\n1,a\n2,\"b\n3,c\n4,d\n", 3), ("id,\"name\n1,a\n", 1), ("id\n\"1\n2\n3", 2)] {
        let error = refused(&["csv"], rows);
        let expected =
            format!("in, line {line}: the quote that is opened here is not closed before the end of the file");
        assert!(error.contains(&expected), "{error}");
    }
    assert_eq!(loaded(&["csv", "--value", "name"], "id,name\n1,a\n2,\"b\nc\""), "1\ta\n2\tb\\nc\n");
}

#[test]
fn tsv_knows_no_quotes() {
    assert_eq!(loaded(&["tsv", "--key", "k"], "k\tv\na\t\"x\n"), "a\ta\\t\"x\n");
}

#[test]
fn ndjson_keys_are_fields() {
    let input = "{\"t\": 5, \"id\": \"b\"}\n\n{\"id\":\"a\",\"t\":10}\n";
    let expected = "a/10\t{\"id\":\"a\",\"t\":10}\nb/5\t{\"t\": 5, \"id\": \"b\"}\n";
    assert_eq!(loaded(&["ndjson", "--key", "id,t"], input), expected);
}

/// As floating-point numbers, the first two would be equal.
#[test]
fn ndjson_numbers_and_names_are_keys_as_they_stand() {
    let rows = [
        ("12345678901234567890123.50", r#"{"k":12345678901234567890123.50}"#),
        ("123456789012345678901", r#"{"k" : 123456789012345678901 }"#),
        ("123456789012345678902", r#"{"k":123456789012345678902}"#),
        ("1e3", r#"{"k":1e3}"#),
        ("false", r#"{"k":false}"#),
        ("\u{e9}\"", r#"{"\u006b":"\u00e9\""}"#),
        ("last", r#"{"k":1,"k":"last"}"#),
    ];
    for (key, line) in rows {
        let place = Place::new();
        let args = ["load", "-", "--db", "d", "--format", "ndjson", "--key", "k"];
        place.spillway_reading(&args, line.as_bytes()).ok();
        assert_eq!(place.spillway(&["get", "--db", "d", key]).ok(), format!("{line}\n"), "{key}");
    }
    let input: String = rows.iter().map(|(_, line)| format!("{line}\n")).collect();
    assert_eq!(loaded(&["ndjson", "--key", "k"], &input).lines().count(), rows.len());
}

#[test]
fn kv_lines_and_what_scan_prints_in_hex_come_back() {
    assert_eq!(loaded(&["kv"], "b\t2\r\na\t1\tx\n"), "a\t1\\tx\nb\t2\n");
    let place = Place::new();
    place.spillway_reading(&["load", "-", "--db", "a", "--format", "kv", "--hex"], b"00ff\t0d0a\n6b\t\n").ok();
    let hex = place.spillway(&["scan", "--db", "a", "--hex"]).ok();
    assert_eq!(hex, "00ff\t0d0a\n6b\t\n");
    place.spillway_reading(&["load", "-", "--db", "b", "--format", "kv", "--hex"], hex.as_bytes()).ok();
    assert_eq!(place.spillway(&["scan", "--db", "b", "--hex"]).ok(), hex);
    assert_eq!(place.spillway(&["scan", "--db", "b"]).ok(), "\\x00\\xff\t\\r\\n\nk\t\n");
}

#[test]
fn malformed_records_are_named_by_line_and_can_be_passed_over() {
    for (format, input, line, what) in [
        (&["csv"][..], "a,b\n1,2\n3\n", 3, "the row has 1 field, the first one has 2"),
        (&["csv", "--no-header"], "1,2\n,3\n", 2, "the key is empty"),
        (&["ndjson", "--key", "k"], "{\"k\":1}\n{\"k\":\n", 2, "not JSON: "),
        (&["ndjson", "--key", "k"], "{\"k\":1}\n[]\n", 2, "not a JSON object"),
        (&["ndjson", "--key", "k"], "{\"k\":1}\n{\"j\":1}\n", 2, "the object has no field \"k\""),
        (&["ndjson", "--key", "k"], "{\"k\":1}\n{\"k\":{}}\n", 2, "the field \"k\" is neither text nor a number"),
        (&["kv"], "a\tb\nc\n", 2, "no tab between key and value"),
        (&["kv", "--hex"], "aa\tbb\nc\tdd\n", 2, "\"c\" has an odd number of hexadecimal digits"),
        (&["kv", "--hex"], "aa\tbb\ncc\txy\n", 2, "\"xy\" holds something else than hexadecimal digits"),
    ] {
        let error = refused(format, input);
        assert!(error.starts_with(&format!("error: in, line {line}: {what}")), "{error}");
        assert!(
            error.contains("; 1 record is loaded; --skip 1 goes on from there\nhint: --skip-bad passes"),
            "{error}"
        );

        let place = Place::new();
        place.write("in", input);
        let args = [&["load", "in", "--db", "db", "--skip-bad", "--format"], format].concat();
        let summary = place.spillway(&args).ok();
        assert!(summary.starts_with("loaded 1 record "), "{summary}");
        assert!(
            summary.contains(&format!("passed over 1 malformed record; the first: in, line {line}: {what}")),
            "{summary}"
        );
        assert_eq!(place.spillway(&["scan", "--db", "db", "--keys-only"]).ok().lines().count(), 1);
    }
}

#[test]
fn wrong_calls_say_what_to_do() {
    assert_eq!(
        refused(&["csv", "--key", "nmae"], PEOPLE),
        "error: in: there is no column \"nmae\"; the first row names: id, name, town\n"
    );
    let numbers = "error: \"name\" is no number of a column; without a header they are 1, 2, ...\n";
    assert_eq!(refused(&["csv", "--no-header", "--key", "name"], PEOPLE), numbers);
    assert!(refused(&["ndjson"], "{}").contains("needs --key"));
    assert!(refused(&["kv", "--delimiter", ","], "").contains("--delimiter does not go with --format kv"));
    assert!(refused(&["csv", "--delimiter", "é"], "").contains("one ASCII character"));
    for (format, flag) in [
        (&["kv", "--no-header"][..], "--no-header"),
        (&["kv", "--header"], "--header"),
        (&["ndjson", "--key", "k", "--no-header"], "--no-header"),
        (&["ndjson", "--key", "k", "--header"], "--header"),
        (&["kv", "--key-separator", "/"], "--key-separator"),
        (&["kv", "--key", "k"], "--key"),
        (&["tsv", "--delimiter", ","], "--delimiter"),
        (&["ndjson", "--key", "k", "--hex"], "--hex"),
        (&["tsv", "--raw"], "--raw"),
        (&["kv", "--value", "v"], "--value"),
    ] {
        let error = refused(format, "");
        assert!(error.starts_with(&format!("error: {flag} does not go with --format {}", format[0])), "{error}");
    }
    let place = Place::new();
    let missing = place.spillway(&["load", "missing.csv", "--db", "db", "--format", "csv"]).fails();
    assert!(missing.contains("cannot open for reading (missing.csv): No such file or directory"), "{missing}");
    assert!(!place.path("db").exists(), "no database is made for a file that is not there");
    let folder = place.spillway(&["load", ".", "--db", "db", "--format", "csv"]).fails();
    assert!(folder.contains("is a directory"), "{folder}");
    place.write("in", "a\tb\n");
    let none = place.spillway(&["load", "in", "--db", "db", "--format", "kv", "--no-create"]).fails();
    assert!(none.contains("there is no database in db"), "{none}");
    let bad_option = ["load", "in", "--db", "db", "--format", "kv", "--options", "write_bufer_size=1M"];
    let unknown = place.spillway(&bad_option).fails();
    assert!(unknown.contains("write_buffer_size"), "the nearest name is told: {unknown}");
}

#[test]
fn options_given_at_the_load_stay_with_the_database() {
    let place = Place::new();
    place.write("in", "a\tb\n");
    place.write("given.json", r#"{"CFOptions": {"default": {"write_buffer_size": 8388608}}}"#);
    let json = ["load", "in", "--db", "db", "--format", "kv", "--options", "given.json"];
    place.spillway(&json).ok();
    place.spillway(&["put", "c", "d", "--db", "db", "--options", "level0_file_num_compaction_trigger=7"]).ok();
    let stored = std::fs::read_to_string(place.newest_file("db", "OPTIONS-")).unwrap();
    assert!(stored.contains("write_buffer_size=8388608"), "{stored}");
    assert!(stored.contains("level0_file_num_compaction_trigger=7"), "{stored}");
}

/// Loads a file by its name, and what was told of its form.
fn recognised(name: &str, more: &[&str], input: &str) -> (String, String) {
    let place = Place::new();
    place.write(name, input);
    let ran = place.spillway(&[&["load", name, "--db", "db"], more].concat());
    assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
    (place.spillway(&["scan", "db"]).ok(), ran.err)
}

#[test]
fn formats_are_recognised_by_names_and_first_lines_and_told() {
    let rows = "7\t7,Ada\n9\t9,Grace\n";
    let semicolons = "7\t7;Ada\n9\t9;Grace\n";
    for (name, input, scanned, told) in [
        ("in.csv", "id,name\n7,Ada\n9,Grace\n", rows, "csv with ',' between fields; the first row names the columns"),
        ("in.CSV", "id;name\n7;Ada\n9;Grace\n", semicolons, "csv with ';' between fields"),
        ("in", "id,name\n7,Ada\n9,Grace\n", rows, "the key is the column \"id\""),
        ("in.txt", "\n\n7,Ada\n9,Grace\n", rows, "the first row is a record (--header"),
        ("in.csv", "\"a,b\"|c\n7|Ada\n", "7\t7|Ada\n", "csv with '|' between fields"),
        ("in.tsv", "id\tname\n7\tAda\n", "7\t7\\tAda\n", "tsv; the first row names the columns"),
        ("in", "id\tname\ttown\n7\tAda\tLondon\n", "7\t7\\tAda\\tLondon\n", "tsv"),
        ("in.kv", "7\tAda\n", "7\tAda\n", "kv; the key is what stands first"),
    ] {
        let (found, said) = recognised(name, &[], input);
        assert_eq!(found, scanned, "{name}: {said}");
        assert!(said.starts_with(&format!("note: {name} is read as ")) && said.contains(told), "{said}");
    }
    for name in ["in", "in.json", "in.jsonl", "in.ndjson"] {
        let (found, said) = recognised(name, &["--key", "id"], "{\"id\":7}\n");
        assert_eq!(found, "7\t{\"id\":7}\n");
        assert!(said.contains("is read as ndjson; the key is \"id\""), "{said}");
    }
    // Keys by name say that there is a row of names, and a given format stays what it is.
    assert_eq!(recognised("in.csv", &["--key", "1984"], "1984,x\n7,a\n").0, "7\t7,a\n");
    assert_eq!(recognised("in.csv", &["--key", "year"], "2,year\n7,a\n").0, "a\t7,a\n");
    assert_eq!(recognised("in", &["--format", "csv"], "7,a\n8,b\n"), ("8\t8,b\n".into(), String::new()));
    assert_eq!(recognised("in", &["--format", "csv", "--no-header"], "a;b\n").0, "a;b\ta;b\n");
}

#[test]
fn what_cannot_be_recognised_is_refused_with_the_words_to_say() {
    let place = Place::new();
    for (name, input, remedy) in [
        ("in", "a\tb\n", "--format kv if"),
        ("in", "word\n", "say --format csv, tsv, ndjson or kv"),
        ("in.json", "[{\"id\":1},{\"id\":2}]\n", "`jq -c '.[]' in.json | spillway"),
        ("in", "[\n{\"id\":1}\n]\n", "`jq -c '.[]' in | spillway"),
        ("in.json", "{\n\"id\":1\n}\n", "`jq -c . in.json | spillway"),
    ] {
        place.write(name, input);
        let refused = place.spillway(&["load", name, "--db", "db", "--key", "id"]).fails();
        assert!(refused.contains(remedy), "{name}: {refused}");
        assert!(!place.path("db").exists());
    }
}

#[test]
fn a_load_that_fails_at_its_first_record_leaves_no_database() {
    let place = Place::new();
    for (format, input) in [("ndjson", "7\n{\"id\":1}\n"), ("csv", "id,name\n1\n"), ("kv", "nothing\n")] {
        place.write("in", input);
        for more in [&[][..], &["--via", "ingest"], &["--skip", "5"]] {
            let key: &[&str] = if format == "ndjson" { &["--key", "id"] } else { &[] };
            let args = [&["load", "in", "--db", "db", "--format", format], key, more].concat();
            let failed = place.spillway(&args).fails();
            assert!(failed.contains("nothing was loaded"), "{failed}");
            assert!(!place.path("db").exists(), "{args:?}");
        }
    }
    let bad = place.spillway(&["load", "in", "--db", "db", "--format", "kv", "--skip-bad"]).fails();
    assert!(bad.contains("there is no good record") && !place.path("db").exists(), "{bad}");
}

#[test]
fn keys_that_come_again_are_counted_with_what_the_key_is() {
    let place = Place::new();
    place.write("in.csv", "town,name\nParis,a\nRome,b\nParis,c\nParis,d\n");
    for via in ["puts", "ingest"] {
        let loaded = place.spillway(&["load", "in.csv", "--db", via, "--via", via]).ok();
        let told = "2 records had the key of an earlier one, and replaced it; the key is the column \"town\"\n";
        assert!(loaded.contains(told), "{loaded}");
        let loaded = place.spillway(&["load", "in.csv", "--db", via, "--via", via, "--key", "name"]).ok();
        assert!(!loaded.contains("earlier"), "{loaded}");
    }
}

#[test]
fn keys_of_several_columns_are_not_those_of_other_columns() {
    let told = refused(&["csv", "--key", "a,b"], "a,b\nx,y/z\nx/y,z\n");
    assert!(told.contains("line 3") && told.contains("--key-separator TEXT"), "{told}");
    assert_eq!(loaded(&["csv", "--key", "a,b", "--value", "a"], "a,b\nx,y/z\n"), "x/y/z\tx\n", "the last part is free");
    let straddling = ["csv", "--key", "a,b", "--key-separator", "::"];
    assert!(refused(&straddling, "a,b\nx:,y\n").contains("--key-separator TEXT"));
    let fields = refused(&["ndjson", "--key", "a,b"], "{\"a\":\"x/y\",\"b\":1}\n");
    assert!(fields.contains("--key-separator TEXT"), "{fields}");
    assert_eq!(loaded(&["csv", "--key", "a,b", "--key-separator", "", "--value", "a"], "a,b\nx/,y\n"), "x/y\tx/\n");
}
