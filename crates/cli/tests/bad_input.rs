//! Files that are not what they should be, and loads that end early: what is told, what is kept, and how to go on.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the real file system as other programs do"
)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use common::{Place, SPILLWAY};

fn keys(place: &Place, db: &str) -> Vec<String> {
    let scanned = place.spillway(&["scan", "--db", db, "--keys-only"]).ok();
    scanned.lines().map(str::to_owned).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    encoder.include_checksum(true).unwrap(); // as the command zstd does
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const CSV: [&str; 4] = ["load", "in", "--format", "csv"];

/// The quote of line 4 is not closed in 3 MiB, of which 64 KiB are looked at.
#[test]
fn an_unclosed_quote_is_bounded_named_and_passed_over() {
    let place = Place::new();
    let rows: String = (4..150_000).map(|i| format!("{i},a row that is whole\n")).collect();
    place.write("in", format!("id,name\n1,a\n2,b\n3,\"x\n{rows}"));
    let load = [&CSV[..], &["--db", "db", "--max-record", "64K", "--via", "ingest"]].concat();
    let error = place.spillway(&load).fails();
    let told = "error: in, line 4: the quote that is opened here is not closed within 64.00 KiB (--max-record BYTES)";
    assert!(error.starts_with(told), "{error}");
    assert!(error.contains("; nothing was loaded\nhint: --skip-bad passes over such records"), "{error}");
    let said = place.spillway(&[&load[..], &["--skip-bad"]].concat()).ok();
    assert!(said.starts_with("loaded 149,998 records "), "{said}");
    assert!(said.contains("passed over 1 malformed record; the first: in, line 4: the quote"), "{said}");
    assert_eq!(place.spillway(&["get", "4", "--db", "db"]).ok(), "4,a row that is whole\n");
}

/// Where quotes come later, the unclosed one ends at the first of them, and what lies between looks like a field.
#[test]
fn a_quote_that_another_fields_quote_closes_is_unclosed() {
    for end in ["\n", "\r\n"] {
        let place = Place::new();
        let rows = ["id,name", "1,\"two", "lines\"", "2,\"x", "3,c", "4,\"Ada, Countess\"", "5,e", ""].join(end);
        place.write("in", rows);
        let error = place.spillway(&[&CSV[..], &["--db", "db"]].concat()).fails();
        let told = "error: in, line 4: the quote that is opened here is not closed but by a quote within another field; \
                    1 record is loaded; --skip 1 goes on from there\n";
        assert!(error.starts_with(told), "{error}");
        place.spillway(&[&CSV[..], &["--db", "db", "--skip-bad", "--skip", "1"]].concat()).ok();
        assert_eq!(keys(&place, "db"), ["1", "3", "4", "5"], "{end:?}");
        let two = place.spillway(&["scan", "--db", "db", "--prefix", "1", "--format", "values"]).ok();
        assert_eq!(two, format!("1,\"two{end}lines\"\n"));
    }
}

#[test]
fn lines_are_counted_as_editors_count_them() {
    let rows = ["id,name", "", "1,\"a", "", "b\"", "2,c", "3"];
    for (end, compress) in [("\n", false), ("\r\n", false), ("\r", false), ("\r\n", true)] {
        let place = Place::new();
        let text = rows.map(|row| format!("{row}{end}")).concat();
        place.write("in", if compress { gzip(text.as_bytes()) } else { text.into_bytes() });
        let error = place.spillway(&[&CSV[..], &["--db", "db"]].concat()).fails();
        assert!(error.starts_with("error: in, line 7: the row has 1 field, the first one has 2"), "{end:?} {error}");
    }
    let place = Place::new();
    place.write("in", "id,name\n1,\"a\nb\",c\n2,d\n");
    let error = place.spillway(&[&CSV[..], &["--db", "db"]].concat()).fails();
    assert!(error.starts_with("error: in, line 2: the row, down to line 3, has 3 fields"), "{error}");
}

#[test]
fn records_longer_than_the_limit_are_named_and_passed_over() {
    let place = Place::new();
    let long = "x".repeat(300 << 10);
    for (format, text) in [
        (&["csv", "--no-header"][..], format!("1,a\n2,{long}\n3,b\n")),
        (&["csv", "--no-header"], format!("1,a\n2,\"{long}\"\n3,b\n")),
        (&["kv"], format!("1\ta\n2\t{long}\n3\tb\n")),
        (&["ndjson", "--key", "k"], format!("{{\"k\":1}}\n{{\"k\":2,\"v\":\"{long}\"}}\n{{\"k\":3}}\n")),
    ] {
        place.write("in", text);
        let load = [&["load", "in", "--db", "db", "--max-record", "64K", "--format"], format].concat();
        let error = place.spillway(&load).fails();
        assert!(error.contains("in, line 2: ") && error.contains("64.00 KiB (--max-record BYTES"), "{error}");
        place.spillway(&[&load[..], &["--skip-bad"]].concat()).ok();
        assert_eq!(keys(&place, "db"), ["1", "3"], "{format:?}");
        std::fs::remove_dir_all(place.path("db")).unwrap();
    }
}

#[test]
fn keys_that_no_table_holds_are_named_and_passed_over() {
    let place = Place::new();
    let long = "x".repeat(17 << 20);
    for (format, text) in [
        (&["csv", "--no-header"][..], format!("1,a\n{long},b\n3,c\n")),
        (&["kv"], format!("1\ta\n{long}\tb\n3\tc\n")),
        (&["ndjson", "--key", "k"], format!("{{\"k\":1}}\n{{\"k\":\"{long}\"}}\n{{\"k\":3}}\n")),
    ] {
        place.write("in", text);
        for via in ["puts", "ingest"] {
            let load = [&["load", "in", "--db", "db", "--via", via, "--format"], format].concat();
            let error = place.spillway(&load).fails();
            assert!(error.contains("in, line 2: key ") && error.contains("is too long"), "{error}");
            place.spillway(&[&load[..], &["--skip-bad"]].concat()).ok();
            assert_eq!(keys(&place, "db"), ["1", "3"], "{format:?} {via}");
            std::fs::remove_dir_all(place.path("db")).unwrap();
        }
    }
}

/// The header of the second would be a record, or a record of it would pass for a header.
#[test]
fn files_of_another_form_than_the_first_are_told() {
    let place = Place::new();
    place.write("names.csv", "id,name\n1,a\n2,b\n");
    place.write("rows.csv", "3,c\n4,d\n");
    place.write("other.csv", "id,town\n5,e\n");
    place.write("tabs.tsv", "id\tname\n3\tc\n");
    place.write("semicolons.csv", "id;name\n3;c\n");
    place.write("objects.ndjson", "{\"id\":7}\n");
    place.write("empty.csv", "");
    for (files, more, what) in [
        (["names.csv", "rows.csv"], &["--value", "2"][..], "rows.csv has a first row that is a record"),
        (["names.csv", "rows.csv"], &[], "--header or --no-header"),
        (["names.csv", "rows.csv"], &["--format", "csv", "--value", "2"], "rows.csv, line 1: the first row names 3, c"),
        (["rows.csv", "names.csv"], &["--value", "2"], "names.csv has a first row that names the columns"),
        (["names.csv", "other.csv"], &["--value", "2"], "names id, town; the first file's names id, name"),
        (["names.csv", "tabs.tsv"], &[], "tabs.tsv looks like tsv, and the first file like csv: say --format"),
        (["names.csv", "objects.ndjson"], &["--key", "1"], "objects.ndjson looks like ndjson"),
        (["names.csv", "semicolons.csv"], &[], "semicolons.csv has ';' between its fields, and the first file ','"),
    ] {
        for command in [&["load", "--db", "db"][..], &["table", "build", "--to", "tables"]] {
            let error = place.spillway(&[command, &files, more].concat()).fails();
            assert!(error.contains(what), "{files:?} {more:?}: {error}");
            std::fs::remove_dir_all(place.path("db")).ok();
        }
    }
    for (files, more) in [
        (&["names.csv", "rows.csv"][..], &["--no-header"][..]),
        (&["names.csv", "other.csv"], &["--value", "id"]),
        (&["rows.csv", "rows.csv"], &[]),
    ] {
        let loaded = place.spillway(&[&["load", "--db", "db"], files, more].concat());
        assert_eq!(loaded.code, Some(0), "{files:?} {more:?}: {loaded:?}");
    }
    place.spillway(&["load", "empty.csv", "rows.csv", "--no-header", "--db", "empty"]).ok();
    place.spillway(&["load", "rows.csv", "empty.csv", "--no-header", "--db", "empty"]).ok();
}

#[test]
fn compressed_files_are_read_by_what_they_hold() {
    let text = "\u{feff}id,name\n1,a\n2,b\n".as_bytes();
    let (first, second) = text.split_at(9);
    let skippable = [&b"\x50\x2a\x4d\x18\x03\0\0\0abc"[..], &zstd(text)].concat();
    for bytes in [text.to_vec(), gzip(text), [gzip(first), gzip(second)].concat(), zstd(text), skippable] {
        let place = Place::new();
        place.write("in", &bytes);
        let load = ["load", "--format", "csv", "--key", "id"];
        place.spillway(&[&load[..], &["in", "--db", "file"]].concat()).ok();
        place.spillway_reading(&[&load[..], &["-", "--db", "pipe", "--via", "ingest"]].concat(), &bytes).ok();
        for db in ["file", "pipe"] {
            assert_eq!(place.spillway(&["scan", "--db", db]).ok(), "1\t1,a\n2\t2,b\n");
        }
    }
}

#[test]
fn compressed_data_that_ends_early_or_is_damaged_says_where() {
    let text: String = (0..40_000).map(|i: u64| format!("{i},{:x}\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    for (bytes, name) in [(gzip(text.as_bytes()), "gzip"), (zstd(text.as_bytes()), "Zstandard")] {
        let place = Place::new();
        let load = ["load", "in", "--format", "csv", "--no-header", "--db", "db"];
        let cut = &bytes[..bytes.len() / 2];
        place.write("in", cut);
        let error = place.spillway(&load).fails();
        let (before, after) =
            error.split_once(&format!(": the {name} data ends too early: the file is cut off")).unwrap();
        let line: u64 = before.strip_prefix("error: in, line ").unwrap().parse().unwrap();
        assert!(line > 1000, "{error}");
        let count = keys(&place, "db").len() as u64;
        assert_eq!(count, line - 1, "everything before it is loaded");
        let skip = format!("--skip {count} goes on from there");
        assert!(after.contains("get the file again\n") && after.contains(&skip), "{error}");

        let mut damaged = bytes.clone();
        damaged[bytes.len() - 4..].fill(0xff); // of the checksum or the size

        place.write("in", damaged);
        let error = place.spillway(&load).fails();
        assert!(error.contains(&format!("the {name} data is damaged, here or before: ")), "{error}");
        place.write("in", &bytes[..9]);
        let error = place.spillway(&load).fails();
        assert!(error.contains(&format!("in, line 1: the {name} data ends too early")), "{error}");
    }
    let place = Place::new();
    place.write("in", gzip(&zstd(b"a\t1\n")));
    let error = place.spillway(&["load", "in", "--format", "kv", "--db", "db"]).fails();
    assert!(error.contains("in is compressed twice") && !place.path("db").exists(), "{error}");
}

#[test]
fn other_encodings_are_refused_with_the_command_that_converts_them() {
    let utf16: Vec<u8> = "\u{feff}id,name\n1,a\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (bytes, command) in [
        (&utf16[..], "iconv -f UTF-16 -t UTF-8 in |"),
        (&utf16[2..], "iconv -f UTF-16LE -t UTF-8 in |"),
        (&gzip(&utf16), "iconv -f UTF-16 -t UTF-8 in |"),
        (b"BZh91AY&SY\x8f\x1d\0\0", "bzip2 -dc in |"),
    ] {
        let place = Place::new();
        place.write("in", bytes);
        for via in ["puts", "ingest"] {
            let error = place.spillway(&[&CSV[..], &["--db", "db", "--via", via]].concat()).fails();
            assert!(error.contains(command), "{error}");
            assert!(!place.path("db").exists(), "no database is made for it");
        }
    }
}

#[test]
fn several_files_are_one_load_each_with_its_header() {
    for via in ["puts", "ingest"] {
        let place = Place::new();
        place.write("a.csv", "id,name\n1,a\n2,b\n");
        place.write("b.csv.gz", gzip(b"id,name\n2,newer\n3,c\n"));
        let load = ["load", "a.csv", "b.csv.gz", "-", "--format", "csv", "--db", "db", "--via", via];
        let said = place.spillway_reading(&load, b"id,name\n4,d\n").ok();
        assert!(said.starts_with("loaded 5 records "), "{said}");
        assert_eq!(place.spillway(&["scan", "--db", "db"]).ok(), "1\t1,a\n2\t2,newer\n3\t3,c\n4\t4,d\n");
        let twice = place.spillway_reading(&["load", "-", "-", "--format", "kv", "--db", "x"], b"").fails();
        assert!(twice.contains("- is named twice"), "{twice}");

        place.write("b.csv", "name,id\nd,4\n");
        let other = ["load", "a.csv", "b.csv", "--format", "csv", "--db", "x", "--via", via];
        let error = place.spillway(&other).fails();
        assert!(error.starts_with("error: b.csv, line 1: the first row names name, id; the first file's"), "{error}");
        assert!(error.contains("Say --value with the columns"), "{error}");
        place.spillway(&[&other[..], &["--key", "id", "--value", "name"]].concat()).ok();
        assert_eq!(place.spillway(&["scan", "--db", "x"]).ok(), "1\ta\n2\tb\n4\td\n");

        place.write("b.csv", "id,name\n5,e\n6\n");
        let error = place.spillway(&[&other[..], &["--key", "id"]].concat()).fails();
        assert!(error.starts_with("error: b.csv, line 3: the row has 1 field"), "{error}");
    }
}

#[test]
fn a_load_goes_on_behind_what_is_loaded() {
    let place = Place::new();
    let rows: String = (0..3_000).map(|i| format!("{i:04}\t{i}\n")).collect();
    place.write("in", rows.replace("2500\t2500", "2500"));
    let load = ["load", "in", "--format", "kv", "--db", "db"];
    let error = place.spillway(&load).fails();
    let told =
        "error: in, line 2501: no tab between key and value; 2,500 records are loaded; --skip 2500 goes on from there";
    assert!(error.starts_with(told), "{error}");
    place.write("in", rows);
    let said = place.spillway(&[&load[..], &["--skip", "2500", "--acks"]].concat()).ok();
    assert!(said.starts_with("acknowledged 3000\nloaded 500 records "), "{said}");
    assert_eq!(keys(&place, "db").len(), 3000);
    let error = place.spillway(&[&load[..], &["--skip", "3001"]].concat()).fails();
    assert!(error.contains("--skip 3001 passes over more than there is: the input has 3,000 records"), "{error}");
}

#[test]
fn nothing_good_is_a_failure() {
    for args in [
        &["load", "in", "--db", "db"][..],
        &["load", "in", "--db", "db", "--via", "ingest"],
        &["table", "build", "in", "--to", "tables"],
    ] {
        let place = Place::new();
        place.write("in", "a\nb\n");
        let error = place.spillway(&[args, &["--format", "kv", "--skip-bad"]].concat()).fails();
        let told =
            "there is no good record, and 2 records malformed; the first: in, line 1: no tab between key and value";
        assert!(error.contains(told), "{error}");
        assert!(!place.path("tables").exists());
        place.write("in", "");
        place.spillway(&[args, &["--format", "kv", "--skip-bad"]].concat()).ok();
    }
}

/// Ctrl-C, and SIGTERM, while the pipe is idle: what came before is written, though no batch was full.
#[test]
fn an_interrupted_load_says_what_is_loaded() {
    for signal in ["-INT", "-TERM"] {
        let place = Place::new();
        let args = ["load", "-", "--format", "kv", "--db", "db", "--batch", "2", "--acks"];
        let mut command = place.command(SPILLWAY, &args);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"a\t1\nb\t2\nc\t3\n").unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "acknowledged 2\n");
        assert!(place.command("kill", &[signal, &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        let told = "error: interrupted: 3 records are loaded; --skip 3 goes on from there\n";
        assert_eq!((output.status.code(), &*error), (Some(130), told));
        assert_eq!(keys(&place, "db"), ["a", "b", "c"]);
    }
}

#[test]
fn a_load_whose_answers_nobody_reads_fails() {
    let place = Place::new();
    let args = ["load", "-", "--format", "kv", "--db", "db", "--batch", "1", "--acks"];
    let mut command = place.command(SPILLWAY, &args);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let _ = child.stdin.take().unwrap().write_all(b"a\t1\nb\t2\n");
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("cannot write to standard output") && error.contains("1 record is loaded"), "{error}");
}

#[test]
fn files_of_other_kinds_say_what_to_do() {
    let place = Place::new();
    std::fs::create_dir(place.path("dir")).unwrap();
    let load =
        |file: &str, more: &[&str]| place.spillway(&[&["load", file, "--format", "csv", "--db", "db"], more].concat());
    let dir = load("dir", &[]).fails();
    assert!(
        dir.contains("is a directory, not a file of records; name the files in it") && dir.contains("dir"),
        "{dir}"
    );
    place.write("empty", "");
    let empty = load("empty", &[]).fails();
    assert!(empty.contains("empty is empty: there is no row that names the columns (--no-header"), "{empty}");
    place.write("marked", "\u{feff}");
    assert!(load("marked", &[]).fails().contains("marked is empty"));
    place.write("twice", "id,name,id\n1,a,2\n");
    let twice = load("twice", &["--key", "id"]).fails();
    assert!(twice.contains("twice: the columns 1 and 3 are both named \"id\"; say which one by its number"), "{twice}");
    let missing = load("twice", &["--key", "4"]).fails();
    assert!(missing.contains("twice: there is no column \"4\"; the first row names: id, name, id"), "{missing}");
    assert!(!place.path("db").exists(), "nothing is made for any of them");
    load("twice", &["--key", "3"]).ok();
    assert_eq!(keys(&place, "db"), ["2"]);

    assert!(place.command("mkfifo", &["pipe"]).status().unwrap().success());
    let mut child = place
        .command(SPILLWAY, &["load", "pipe", "--format", "kv", "--db", "piped"])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut pipe = std::fs::OpenOptions::new().write(true).open(place.path("pipe")).unwrap();
    pipe.write_all(b"a\t1\n").unwrap();
    drop(pipe);
    assert!(child.wait().unwrap().success());
    assert_eq!(keys(&place, "piped"), ["a"]);
}

/// A pipe that nobody writes to: one Ctrl-C is enough.
#[test]
fn a_pipe_without_a_writer_can_be_interrupted() {
    let place = Place::new();
    assert!(place.command("mkfifo", &["pipe"]).status().unwrap().success());
    let mut command = place.command(SPILLWAY, &["load", "pipe", "--format", "kv", "--db", "db"]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let caught = |line: &str| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok();
    let catches = |line: &str| caught(line).is_some_and(|signals| signals & 2 != 0); // SIGINT's bit
    while !std::fs::read_to_string(&status).unwrap().lines().any(catches) {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(place.command("kill", &["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*error), (Some(130), "error: interrupted: nothing was loaded\n"));
}

#[test]
fn control_bytes_of_an_input_are_escapes_in_messages() {
    let place = Place::new();
    place.write("in\u{1b}[2J", "id\u{1b}[31m,name\n1,a\n");
    let error = place.spillway(&["load", "in\u{1b}[2J", "--format", "csv", "--key", "x", "--db", "db"]).fails();
    assert!(!error.contains('\u{1b}') && error.contains("in\\x1b[2J") && error.contains("id\\x1b[31m"), "{error}");
    place.write("in", "\u{1b}c\tzz\n");
    let error = place.spillway(&["load", "in", "--format", "kv", "--hex", "--db", "db"]).fails();
    assert!(!error.contains('\u{1b}') && error.contains("\"\\x1bc\""), "{error}");
}

#[test]
fn ingest_makes_the_database_where_it_is_told_to() {
    let place = Place::new();
    place.write("in", "a\t1\n");
    place.spillway(&["table", "build", "in", "--format", "kv", "--to", "tables"]).ok();
    let ingest = ["ingest", "tables/table-000001.sst", "--db", "db"];
    let error = place.spillway(&ingest).fails();
    assert!(error.contains("there is no database in db; `load` makes one, and so do `put` and `ingest` with --create"));
    let missing = place.spillway(&["ingest", "nowhere.sst", "--db", "db", "--create"]).fails();
    assert!(missing.contains("nowhere.sst") && !place.path("db").exists(), "{missing}");
    place.spillway(&[&ingest[..], &["--create"]].concat()).ok();
    assert_eq!(keys(&place, "db"), ["a"]);
}
