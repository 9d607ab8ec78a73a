//! Making tables from files of records.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use common::{Place, SPILLWAY, files};
use serde_json::Value;

/// What a database holds that takes in the tables of `tables`.
fn taken_in(place: &Place) -> String {
    place.spillway(&["load", "/dev/null", "--format", "kv", "--db", "db"]).ok();
    let tables: Vec<String> = files(&place.path("tables")).iter().map(|(path, _)| path.display().to_string()).collect();
    let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
    place.spillway(&[&["ingest", "--db", "db"], &tables[..]].concat()).ok();
    place.spillway(&["scan", "--hex", "--db", "db"]).ok()
}

/// What a database holds that the same files are loaded into by puts.
fn loaded(place: &Place, input: &[&str], args: &[&str]) -> String {
    for file in input {
        place.spillway(&[&["load", *file, "--db", "by-puts"], args].concat()).ok();
    }
    place.spillway(&["scan", "--hex", "--db", "by-puts"]).ok()
}

fn build(place: &Place, input: &[&str], args: &[&str]) -> String {
    place.spillway(&[&["table", "build"], input, &["--to", "tables"], args].concat()).ok()
}

fn names(dir: &Path) -> Vec<String> {
    let names = files(dir).into_iter().map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned());
    names.collect()
}

/// Lines of `kv`, out of order, many of them with a key that another has too.
fn lines(count: u32, seed: u32) -> String {
    let key = |i: u32| i.wrapping_mul(2_654_435_761).wrapping_add(seed) % (count * 2 / 3);
    (0..count).fold(String::new(), |mut text, i| {
        writeln!(text, "key{:06}\tvalue {i} of {seed} {}", key(i), "x".repeat(i as usize % 40)).unwrap();
        text
    })
}

#[test]
fn every_format_makes_the_tables_that_load_makes_a_database_of() {
    let csv = "id,name,town\n7,\"Ada, Countess\",London\n3,\"Grace \"\"G.\"\" Hopper\",\"New\nYork\"\n7,Ada,Paris\n";
    let ndjson = "{\"t\": 5, \"id\": \"b\"}\n\n{\"id\":\"a\",\"t\":10}\n{\"id\":\"b\",\"t\":5, \"again\":1}\n";
    for (input, args) in [
        (csv, &["--format", "csv"][..]),
        (csv, &["--format", "csv", "--key", "town,id", "--value", "name"]),
        ("b;1\na;2\n", &["--format", "csv", "--no-header", "--delimiter", ";", "--key", "2"]),
        ("k\tv\nb\t\"x\na\t1\n", &["--format", "tsv", "--key", "k"]),
        (ndjson, &["--format", "ndjson", "--key", "id,t"]),
        ("\u{feff}{\"id\": \"marked\"}\n", &["--format", "ndjson", "--key", "id"]),
        ("b\t2\r\na\t1\tx\nb\t3\n", &["--format", "kv"]),
        ("ff00\t0d0a\n6b\t\n00\t01\n", &["--format", "kv", "--hex"]),
    ] {
        let place = Place::new();
        place.write("in", input);
        build(&place, &["in"], args);
        assert_eq!(names(&place.path("tables")), ["table-000001.sst"]);
        let found = taken_in(&place);
        assert!(!found.is_empty());
        assert_eq!(found, loaded(&place, &["in"], args), "{args:?}");
    }
}

#[test]
fn tiny_memory_spills_merges_in_passes_and_makes_the_same() {
    let place = Place::new();
    for (file, seed) in [("a", 1), ("b", 2), ("c", 3)] {
        place.write(file, lines(8_000, seed)); // 400 KiB each
    }
    let summary = build(&place, &["a", "b", "c"], &["--format", "kv", "--memory", "64K", "--target-size", "8K"]);
    let sorted = summary.lines().last().unwrap();
    assert!(sorted.starts_with("sorted in ") && sorted.contains(" runs on disk, merged in "), "{summary}");
    let passes = sorted.split("merged in ").nth(1).unwrap().split(' ').next().unwrap();
    assert!(passes.parse::<u32>().unwrap() >= 3, "{summary}");
    assert!(summary.contains(" records were replaced by later ones of the same key\n"), "{summary}");
    let small = names(&place.path("tables"));
    assert!(small.len() > 3, "{small:?}");
    let found = taken_in(&place);
    assert_eq!(
        found,
        loaded(&place, &["a", "b", "c"], &["--format", "kv"]),
        "of one key the last file's record counts"
    );

    let args = ["table", "build", "a", "b", "c", "--format", "kv", "--to", "tables", "--name", "in-memory"];
    let summary = place.spillway(&args).ok();
    assert!(!summary.contains("on disk"), "{summary}");
    assert!(summary.starts_with("made 1 table ("), "{summary}");
    let dump = |part: &str| {
        let tables = files(&place.path("tables")).into_iter().map(|(path, _)| path.display().to_string());
        let tables = tables.filter(|path| path.contains(part));
        tables.map(|path| place.spillway(&["table", "dump", &path, "--part", "entries"]).ok()).collect::<String>()
    };
    assert!(dump("table-") == dump("in-memory-"), "the tables of little memory hold what the one of much holds");
}

#[test]
fn tables_are_split_near_their_target_ascend_and_do_not_overlap() {
    let place = Place::new();
    place.write("in", lines(20_000, 7));
    let args = ["--format", "kv", "--target-size", "64K", "--name", "part", "--options", "compression=kNoCompression"];
    let json = build(&place, &["in"], &[&args[..], &["--json"]].concat());
    let mut lines: Vec<Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let whole = lines.pop().unwrap();
    let number = |line: &Value, name: &str| line[name].as_u64().unwrap();
    let on_disk = files(&place.path("tables"));
    assert!(lines.len() > 5 && whole["tables"] == lines.len() && on_disk.len() == lines.len(), "{json}");
    let mut last = String::new();
    for (i, (line, (path, bytes))) in lines.iter().zip(&on_disk).enumerate() {
        assert!(path.ends_with(format!("part-{:06}.sst", i + 1)), "{path:?}");
        assert!(path.ends_with(line["table"].as_str().unwrap()), "{line}");
        assert_eq!(number(line, "bytes"), bytes.len() as u64);
        assert!(bytes.len() < 72 << 10, "{line}");
        assert!(last.as_str() < line["smallest_hex"].as_str().unwrap(), "{line} begins before {last}");
        last = line["largest_hex"].as_str().unwrap().to_owned();
    }
    let sum = |name: &str| lines.iter().map(|line| number(line, name)).sum::<u64>();
    assert_eq!((sum("bytes"), sum("records")), (number(&whole, "bytes"), number(&whole, "records")));
    assert_eq!(number(&whole, "records_read"), 20_000);
    let large = on_disk.iter().filter(|(_, bytes)| bytes.len() > 56 << 10).count();
    assert!(large + 3 > on_disk.len(), "all but the last of each part are full: {large} of {}", on_disk.len());
}

#[test]
fn more_memory_than_any_machine_has_is_no_error() {
    let place = Place::new();
    place.write("in", "b\t2\na\t1\n");
    build(&place, &["in"], &["--format", "kv", "--memory", "64T"]);
    assert_eq!(taken_in(&place), "61\t31\n62\t32\n");
}

#[test]
fn malformed_records_are_named_by_file_and_line_and_nothing_is_left() {
    let place = Place::new();
    place.write("good", "a\t1\n");
    place.write("bad", "b\t2\nc\nd\t4\n");
    let args = ["table", "build", "good", "bad", "--format", "kv", "--to", "tables"];
    let error = place.spillway(&args).fails();
    assert_eq!(
        error,
        "error: bad, line 2: no tab between key and value; no tables were made\n\
         hint: --skip-bad passes over such records and counts them\n"
    );
    assert!(!place.path("tables").exists(), "a directory made for nothing is removed");
    let summary = place.spillway(&[&args[..], &["--skip-bad"]].concat()).ok();
    assert!(
        summary.ends_with("passed over 1 malformed record; the first: bad, line 2: no tab between key and value\n")
    );
    assert_eq!(taken_in(&place), "61\t31\n62\t32\n64\t34\n");
}

#[test]
fn wrong_calls_say_what_to_do_and_nothing_is_overwritten() {
    let place = Place::new();
    place.write("in", "a\t1\n");
    let call = |args: &[&str]| place.spillway(&[&["table", "build", "in", "--format", "kv"], args].concat());
    call(&["--to", "tables"]).ok();
    let before = files(&place.path("tables"));
    let there = call(&["--to", "tables"]).fails();
    assert!(there.contains("there are tables of that name already (tables/table-000001.sst)"), "{there}");
    assert_eq!(files(&place.path("tables")), before);
    call(&["--to", "tables", "--name", "other"]).ok();
    assert_eq!(names(&place.path("tables")), ["other-000001.sst", "table-000001.sst"]);

    for (args, what) in [
        (&["--to", "x", "--name", "a/b"][..], "has no / in it"),
        (&["--to", "x", "--memory", "1K"], "--memory is at least 64.00 KiB"),
        (&["--to", "x", "--target-size", "1"], "--target-size is at least 4.00 KiB"),
        (&["--to", "x", "--for", "nowhere"], "there is no database in nowhere"),
        (&["--to", "x", "--family", "other"], "there are no options of a column family \"other\""),
        (&["--to", "x", "--options", "compresion=kZSTD"], "compression"),
        (&["--to", "x", "--tmp", "nowhere", "--memory", "64K"], ""),
        (&["--to", "in"], "in"),
    ] {
        if what.is_empty() {
            place.write("in", lines(5_000, 1));
        }
        let error = call(args).fails();
        assert!(error.starts_with("error: ") && error.contains(what), "{args:?}: {error}");
        assert!(!place.path("x").exists(), "{args:?}");
    }
    let empty = place.spillway(&["table", "build", "/dev/null", "--format", "kv", "--to", "x"]).ok();
    assert!(empty.starts_with("made 0 tables (0 B) of 0 records "), "{empty}");
    let twice = ["table", "build", "-", "in", "-", "--format", "kv", "--to", "y"];
    let twice = place.spillway_reading(&twice, b"a\t1\n").fails();
    assert!(twice.contains("- is named twice") && !place.path("y").exists(), "{twice}");
    let missing = place.spillway(&["table", "build", "in", "missing", "--format", "kv", "--to", "y"]).fails();
    assert!(missing.contains("missing") && !place.path("y").exists(), "{missing}");
}

#[test]
fn tables_have_the_options_that_are_asked_for_or_those_of_a_database() {
    let place = Place::new();
    let options = "comparator=rocksdb.ReverseBytewiseComparator;compression=kZSTD";
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv", "--options", options], b"m\told\n").ok();
    place.write("in", "a\t1\nz\t2\nm\tnew\n");
    let args = ["table", "build", "in", "--format", "kv", "--to", "tables"];
    place.spillway(&[&args[..], &["--for", "db"]].concat()).ok();
    let table = place.only_file("tables", "table-").display().to_string();
    let properties = place.spillway(&["table", "dump", &table, "--part", "properties"]).ok();
    assert!(properties.contains("rocksdb.ReverseBytewiseComparator") && properties.contains("ZSTD"), "{properties}");
    place.spillway(&["ingest", &table, "--db", "db"]).ok();
    assert_eq!(place.spillway(&["scan", "--db", "db"]).ok(), "z\t2\nm\tnew\na\t1\n");

    place.spillway(&[&args[..], &["--name", "up", "--options", "compression=kLZ4Compression"]].concat()).ok();
    let table = place.only_file("tables", "up-").display().to_string();
    assert!(place.spillway(&["table", "dump", &table, "--part", "properties"]).ok().contains("LZ4"));
    let error = place.spillway(&["ingest", &table, "--db", "db"]).fails();
    assert!(error.contains("up-000001.sst") && error.contains("ReverseBytewiseComparator"), "{error}");
}

#[test]
fn rocksdb_takes_the_tables_in() {
    let place = Place::new();
    place.write("in", lines(5_000, 3));
    for (name, options) in [
        ("plain", "compression=kNoCompression"),
        ("filtered", "compression=kSnappyCompression;block_based_table_factory={filter_policy=bloomfilter:10:false}"),
        ("zstd", "compression=kZSTD;block_based_table_factory={index_type=kTwoLevelIndexSearch;block_size=512}"),
    ] {
        let args = ["table", "build", "in", "--format", "kv", "--to", "tables", "--name", name, "--options", options];
        place.spillway(&args).ok();
        let table = place.only_file("tables", name).display().to_string();
        let file = format!("--file={table}");
        let verified = place.command("sst_dump", &[&file, "--command=verify"]).output().unwrap();
        assert!(verified.status.success(), "{name}: {}", String::from_utf8_lossy(&verified.stderr));
        let db = format!("--db={name}-db");
        assert_eq!(place.ldb(&[&db, "--create_if_missing", "put", "key000007", "older"], b"").code, Some(0));
        let taken = place.ldb(&[&db, "ingest_extern_sst", &table], b"");
        assert_eq!(taken.code, Some(0), "{taken:?}");
        let theirs = place.ldb(&[&db, "scan"], b"").out.replace(" : ", "\t");
        let ours = loaded_text(&place, name);
        assert!(theirs == ours && !ours.contains("older"), "{name}: {} bytes, {} bytes", theirs.len(), ours.len());
    }
}

fn loaded_text(place: &Place, db: &str) -> String {
    place.spillway(&["load", "in", "--format", "kv", "--db", db]).ok();
    place.spillway(&["scan", "--db", db]).ok()
}

/// Ctrl-C while the records are read.
#[test]
fn an_interrupted_build_leaves_nothing() {
    let place = Place::new();
    let args = ["table", "build", "-", "--format", "kv", "--to", "tables", "--memory", "64K"];
    let mut child = place.command(SPILLWAY, &args).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(lines(20_000, 1).as_bytes()).unwrap();
    assert!(!files_below(&place.path("tables")).is_empty(), "it has begun");
    let pid = child.id().to_string();
    assert!(place.command("kill", &["-INT", &pid]).status().unwrap().success());
    std::thread::sleep(Duration::from_millis(50));
    while stdin.write_all(lines(20_000, 2).as_bytes()).is_ok() {} // until it has ended
    let output = child.wait_with_output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*error), (Some(130), "error: interrupted: no tables were made\n"));
    assert!(!place.path("tables").exists(), "{:?}", files_below(&place.path("tables")));
}

/// Ctrl-C while a pipe has nothing more to read, but is not at its end; or while it has few records, and ends then.
#[test]
fn an_interrupted_build_of_an_idle_pipe_ends_at_once() {
    for via in ["table build", "load"] {
        for ends in [false, true] {
            let place = Place::new();
            let args = match via {
                "load" => &["load", "-", "--format", "kv", "--db", "db", "--via", "ingest"][..],
                _ => &["table", "build", "-", "--format", "kv", "--to", "new/tables"],
            };
            let mut child = place.command(SPILLWAY, args).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(lines(3, 1).as_bytes()).unwrap();
            let staged = if via == "load" { "db/load.tmp" } else { "new/tables" };
            while files_below(&place.path(staged)).is_empty() && !(via == "load" && place.path(staged).exists()) {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(Duration::from_millis(50)); // it has read what there is
            assert!(place.command("kill", &["-INT", &child.id().to_string()]).status().unwrap().success());
            if ends {
                drop(stdin.write_all(b"last\tone\n"));
                drop(stdin);
            }
            let output = child.wait_with_output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            let so = if via == "load" { "nothing was loaded" } else { "no tables were made" };
            assert_eq!((output.status.code(), &*error), (Some(130), &*format!("error: interrupted: {so}\n")));
            assert!(!place.path(staged).exists() && !place.path("new").exists(), "{via} {ends}");
        }
    }
}

fn files_below(dir: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(dir).map_or_else(|_| Vec::new(), |entries| entries.map(|entry| entry.unwrap().path()).collect())
}
