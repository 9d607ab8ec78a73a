//! Ingesting tables, and loading by way of them.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use common::{Place, SPILLWAY, files};
use serde_json::Value;

/// A place with a database `db`, and tables made of these lines.
fn with_tables(lines: &[(&str, &str)]) -> Place {
    let place = Place::new();
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], b"a\told\nm\told\nz\told\n").ok();
    for (name, lines) in lines {
        let args = ["table", "build", "-", "--format", "kv", "--to", "tables", "--name", name];
        place.spillway_reading(&args, lines.as_bytes()).ok();
    }
    place
}

fn scan(place: &Place, db: &str) -> String {
    place.spillway(&["scan", "--db", db]).ok()
}

fn check(place: &Place, db: &str) {
    assert!(place.spillway(&["check", "--db", db]).ok().ends_with("the database is whole\n"));
}

const A: &str = "tables/a-000001.sst";
const B: &str = "tables/b-000001.sst";

#[test]
fn later_tables_are_newer_and_all_are_newer_than_the_database() {
    let place = with_tables(&[("a", "b\t1\nm\t1\n"), ("b", "m\t2\nn\t2\n")]);
    let before = files(&place.path("tables"));
    let said = place.spillway(&["ingest", A, B, "--db", "db"]).ok();
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("ingested 2 tables ("), "{said}");
    assert!(lines[1].starts_with("prepared in ") && lines[1].contains("other writers kept waiting for "), "{said}");
    assert_eq!(lines[2], "sequence numbers 4 to 5, above the memtable, which has some of these keys and was sealed");
    assert_eq!(scan(&place, "db"), "a\told\nb\t1\nm\t2\nn\t2\nz\told\n");
    assert_eq!(files(&place.path("tables")), before, "the files are the caller's still");
    let said = place.spillway(&["ingest", B, A, "--verify", "--mode", "flushable", "--db", "db"]).ok();
    assert!(said.contains("sequence numbers 6 to 7, under the memtable: it has none of these keys"), "{said}");
    assert_eq!(scan(&place, "db"), "a\told\nb\t1\nm\t1\nn\t2\nz\told\n");
    check(&place, "db");
}

#[test]
fn json_says_the_same_in_one_line() {
    let place = with_tables(&[("a", "b\t1\n")]);
    let line = place.spillway(&["ingest", A, "--json", "--db", "db"]).ok();
    let line: Value = serde_json::from_str(&line).unwrap();
    let size = std::fs::metadata(place.path(A)).unwrap().len();
    assert_eq!((&line["tables"], &line["bytes"]), (&1.into(), &size.into()));
    assert_eq!((&line["first_number"], &line["last_number"]), (&4.into(), &4.into()));
    assert_eq!((&line["families_under"], &line["families_above"]), (&1.into(), &0.into()));
    assert_eq!((&line["way"], &line["flushes"]), (&"queued".into(), &0.into()));
    let number = |name: &str| line[name].as_u64().unwrap();
    assert!(number("commit_us") > 0 && number("commit_lock_ns") > 0, "{line}");
    assert!(number("held_up_ns") > number("commit_lock_ns"), "{line}");
}

#[test]
fn other_modes_say_what_was_closed_and_for_how_long() {
    for (mode, way, closed) in [
        ("blocking", "blocking", "closed to all writers for "),
        ("flush-first", "flush-first", "closed to all writers for "),
        ("direct", "direct", "closed to writers of these keys for "),
        ("allow_write", "direct", "closed to writers of these keys for "),
    ] {
        let place = with_tables(&[("a", "m\t1\n"), ("b", "m\t2\n")]);
        let said = place.spillway(&["ingest", A, "--mode", mode, "--db", "db"]).ok();
        assert!(said.contains(closed) && !said.contains("other writers kept waiting for"), "{said}");
        place.spillway(&["put", "m", "between", "--db", "db"]).ok();
        let line: Value =
            serde_json::from_str(&place.spillway(&["ingest", B, "--mode", mode, "--json", "--db", "db"]).ok()).unwrap();
        let number = |name: &str| line[name].as_u64().unwrap();
        assert_eq!(line["way"], way);
        assert!(number("flushes") > 0 && number("waited_us") > 0 && number("placed_us") > 0, "{line}");
        assert!(number("waited_us") + number("sync_us") + number("placed_us") <= number("commit_us"), "{line}");
    }
}

#[test]
fn replace_removes_the_span_at_the_same_instant() {
    let place = with_tables(&[("a", "n\tnew\n")]);
    place.spillway(&["ingest", A, "--replace", "b..z", "--db", "db"]).ok();
    assert_eq!(scan(&place, "db"), "a\told\nn\tnew\nz\told\n");
    let said = place.spillway(&["ingest", "--replace", "6e..7b", "--hex", "--db", "db"]).ok();
    assert!(said.starts_with("removed what was in 6e..7b\nprepared in "), "{said}");
    assert_eq!(scan(&place, "db"), "a\told\n");
    check(&place, "db");
    for (args, what) in [
        (&["--replace", "b"][..], "say FROM..TO"),
        (&["--replace", "z..b"], "empty or inverted"),
        (&["--replace", "6..7", "--hex"], "odd number of hexadecimal digits"),
    ] {
        let error = place.spillway(&[&["ingest", A, "--db", "db"], args].concat()).fails();
        assert!(error.contains(what), "{error}");
    }
    assert_eq!(scan(&place, "db"), "a\told\n");
}

#[test]
fn a_span_that_can_be_read_in_two_ways_or_has_no_end_removes_nothing() {
    let place = Place::new();
    let there = ".c\t1\na\t2\na..b\t3\nb\t4\nb..c\t5\nz\t6\n";
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], there.as_bytes()).ok();
    for (span, what) in [
        ("a..b..c", "--hex"),
        ("a...c", "--hex"),
        ("a....c", "--hex"),
        ("....", "--hex"),
        ("b..", "the end is exclusive"),
        ("..", "the end is exclusive"),
    ] {
        let error = place.spillway(&["ingest", "--replace", span, "--db", "db"]).fails();
        assert!(error.contains(&format!("--replace {span:?}: ")) && error.contains(what), "{error}");
        assert_eq!(scan(&place, "db"), there, "{span}");
    }
    let error = place.spillway(&["ingest", "--replace", "62..0x", "--hex", "--db", "db"]).fails();
    assert!(error.contains("the end is exclusive"), "{error}");
    // "a..b" to "b..c"
    place.spillway(&["ingest", "--replace", "612e2e62..622e2e63", "--hex", "--db", "db"]).ok();
    assert_eq!(scan(&place, "db"), ".c\t1\na\t2\nb..c\t5\nz\t6\n");
    place.spillway(&["ingest", "--replace", "..b", "--db", "db"]).ok();
    assert_eq!(scan(&place, "db"), "b..c\t5\nz\t6\n", "from the first key on");
}

#[test]
fn moved_files_are_gone_and_linked_ones_stay() {
    use std::os::unix::fs::MetadataExt;
    let place = with_tables(&[("a", "b\t1\n"), ("b", "n\t2\n")]);
    let inode = std::fs::metadata(place.path(A)).unwrap().ino();
    place.spillway(&["ingest", A, "--move", "--no-copy", "--db", "db"]).ok();
    assert!(!place.path(A).exists());
    let has_inode = |path: &std::path::Path| std::fs::metadata(path).unwrap().ino() == inode;
    assert!(files(&place.path("db")).iter().any(|(path, _)| has_inode(path)), "it was not copied");
    place.spillway(&["ingest", B, "--link", "--db", "db"]).ok();
    assert_eq!(std::fs::metadata(place.path(B)).unwrap().nlink(), 2);
    assert_eq!(scan(&place, "db"), "a\told\nb\t1\nm\told\nn\t2\nz\told\n");
}

#[test]
fn what_cannot_be_ingested_is_named_and_the_database_is_as_it_was() {
    let place = with_tables(&[("a", "b\t1\n")]);
    let mut damaged = std::fs::read(place.path(A)).unwrap();
    let at = damaged.len() - 30;
    damaged[at] ^= 1; // in the footer
    place.write("damaged.sst", &damaged);
    place.write("short.sst", "no table");
    place.spillway(&["compact", "--db", "db"]).ok();
    let own = place.only_file("db", ".sst");
    place.write("of-a-database.sst", std::fs::read(&own).unwrap());
    let own = own.display().to_string();
    for (args, what) in [
        (&[A, "damaged.sst"][..], "damaged.sst"),
        (&["short.sst"], "short.sst"),
        (&["missing.sst"], "missing.sst"),
        (&[A, A], "named twice"),
        (&["tables"], "directory"),
        (&[&own], "own directory"),
        (&["of-a-database.sst"], "hint: --any-table turns allow_db_generated_files on"),
        (&[A, "--behind"], "hint: --options allow_ingest_behind=true opens the database with it"),
        (&["--replace", "a..b", "--bottommost-only"], "hint: --bottommost-only turns fail_if_not_bottommost_level on"),
        (&[A, "--no-copy"], "--no-copy goes with --move or --link"),
        (&[A, "--no-blocking-flush"], "--no-blocking-flush goes with --mode blocking, flush-first or direct"),
        (&[A, "--family", "other"], "there is no column family \"other\""),
    ] {
        let error = place.spillway(&[&["ingest", "--db", "db"], args].concat()).fails();
        assert!(error.contains(what), "{error}");
        assert!(!error.contains("spillway check"), "the database is not damaged: {error}");
        assert_eq!(scan(&place, "db"), "a\told\nm\told\nz\told\n");
    }
    check(&place, "db");
    assert!(place.spillway(&["ingest", A, "--db", "none"]).fails().contains("there is no database in none"));
    for args in [&["ingest", "--db", "db"][..], &["ingest", A, "--behind", "--mode", "flushable", "--db", "db"]] {
        let usage = place.spillway(args);
        assert_eq!(usage.code, Some(2), "{usage:?}");
    }
}

#[test]
fn a_table_of_a_database_is_taken_where_any_is_wanted() {
    let place = with_tables(&[]);
    place.spillway(&["compact", "--db", "db"]).ok();
    let own = std::fs::read(place.only_file("db", ".sst")).unwrap();
    place.write("of-a-database.sst", own);
    place.spillway(&["put", "m", "newer", "--db", "db"]).ok();
    let ingest = ["ingest", "of-a-database.sst", "--db", "db"];
    let error = place.spillway(&ingest).fails();
    assert!(error.contains("the table comes from a database"), "{error}");
    assert_eq!(scan(&place, "db"), "a\told\nm\tnewer\nz\told\n");
    let said = place.spillway(&[&ingest[..], &["--any-table"]].concat()).ok();
    assert!(said.starts_with("ingested 1 table ("), "{said}");
    assert_eq!(scan(&place, "db"), "a\told\nm\told\nz\told\n", "what is ingested is newer, whatever numbers it had");
    check(&place, "db");
}

#[test]
fn a_damaged_table_is_refused_or_its_readable_part_taken() {
    let place = with_tables(&[]);
    let lines: String = (0..5000).map(|key: u32| format!("k{key:05}\t{}\n", "v".repeat(100))).collect();
    let build = ["table", "build", "-", "--format", "kv", "--to", "tables", "--name", "a"];
    let options = ["--options", "compression=kNoCompression"];
    place.spillway_reading(&[&build[..], &options].concat(), lines.as_bytes()).ok();
    let mut damaged = std::fs::read(place.path(A)).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1; // one of more than a hundred data blocks
    place.write("damaged.sst", &damaged);
    let ingest = ["ingest", "damaged.sst", "--db", "db"];
    for flags in [&[][..], &["--verify"]] {
        let error = place.spillway(&[&ingest[..], flags].concat()).fails();
        assert!(error.contains("block checksum mismatch: stored") && error.contains("damaged.sst offset "), "{error}");
        assert!(error.contains("--skip-damaged"), "{error}");
        assert_eq!(scan(&place, "db"), "a\told\nm\told\nz\told\n");
    }
    place.copy_of(&place.path("db"), "other");
    let left = place.spillway(&["ingest", "damaged.sst", A, "--skip-damaged", "--move", "--db", "other"]);
    assert!(left.code == Some(1) && left.err.is_empty(), "{left:?}");
    let told = left.out.lines().find(|line| line.starts_with("left out: ")).unwrap();
    assert!(told.contains("damaged.sst offset ") && told.contains("keys from 'k0"), "{left:?}");
    assert!(left.out.contains("damaged: damaged.sst: 4,9") && left.out.contains(" of 5,000 could be read"), "{left:?}");
    assert!(left.out.ends_with("keys that were left out have what the database had of them before\n"), "{left:?}");
    assert!(place.path("damaged.sst").exists() && !place.path(A).exists() && !place.path("other/load.tmp").exists());
    assert_eq!(scan(&place, "other").lines().count(), 5003, "all of them: the other table is whole");
    let json = place.spillway(&["ingest", "damaged.sst", "--skip-damaged", "--json", "--db", "other"]);
    for flag in ["--json", "--verify"] {
        let args = ["ingest", "damaged.sst", "--skip-damaged", flag, "--db", "other"];
        let mut child = place.command(common::SPILLWAY, &args).stdout(std::process::Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(1), "{flag}: nobody reads what was left out");
    }
    let line: Value = serde_json::from_str(&json.out).unwrap();
    assert!(line["damaged"][0]["entries"].as_u64().unwrap() > 4900, "{line}");
    assert!(line["damaged"][0]["left_out"][0]["offset"].as_u64().is_some(), "{line}");
    check(&place, "other");
    place.write("none.sst", "no table at all");
    let error = place.spillway(&["ingest", "none.sst", "--skip-damaged", "--db", "db"]).fails();
    assert!(
        error.contains("nothing can be read of none.sst: file is too short (15 bytes) to be an sstable: "),
        "{error}"
    );
    assert!(error.contains("copy the file from where it came from, or build it again"), "{error}");
    let error = place.spillway(&["ingest", "none.sst", "--db", "db"]).fails();
    assert!(error.contains("it can read nothing of a table whose footer or index is damaged"), "{error}");
    place.spillway(&[&ingest[..], &["--no-verify"]].concat()).ok();
    assert_eq!(place.spillway(&["get", "k00000", "--db", "db"]).ok(), "v".repeat(100) + "\n");
    let error = place.spillway(&["scan", "--db", "db"]).fails();
    assert!(error.contains("block checksum mismatch"), "nobody looked: {error}");
}

/// The memtable's flush gives the tables their levels, and finds no room for its table.
#[test]
fn what_was_left_out_is_listed_though_the_ingested_tables_could_not_be_placed() {
    let place = with_tables(&[("a", &(0..2000).map(|key| format!("k{key:05}\tnew\n")).collect::<String>())]);
    let value = |key: u128| key.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
    let lines: String = (0..9000).map(|key| format!("k{key:05}\t{:032x}{:032x}\n", value(key), !value(key))).collect();
    let options = "avoid_flush_during_shutdown=true;compression=kNoCompression";
    let load = ["load", "-", "--db", "db", "--format", "kv", "--options", options];
    assert_eq!(place.spillway_reading(&load, lines.as_bytes()).code, Some(0));
    let mut damaged = std::fs::read(place.path(A)).unwrap();
    damaged[100] ^= 1;
    place.write(A, &damaged);
    place.copy_of(&place.path("db"), "other");
    // No file grows beyond 256 KiB at most, and the signal for that is ignored.
    let limited = |args: &[&str], input: &str| {
        let script = "trap '' XFSZ; ulimit -f 256; exec \"$0\" \"$@\"";
        place.reading("sh", &[&["-c", script, SPILLWAY], args].concat(), input.as_bytes())
    };
    let told = limited(&["ingest", A, "--skip-damaged", "--db", "db"], "");
    assert!(told.code == Some(1) && told.err.contains("the tables are ingested, and safe in the log"), "{told:?}");
    assert!(told.out.contains("damaged: tables/a-000001.sst") && told.out.contains("left out: "), "{told:?}");
    let told = limited(
        &["load", "-", "--db", "other", "--format", "kv", "--via", "ingest", "--skip-bad"],
        "k00001\tnew\nbad\n",
    );
    assert!(told.code == Some(1) && told.err.contains("the tables are ingested, and safe in the log"), "{told:?}");
    assert!(told.out.contains("1 malformed record"), "{told:?}");
    assert!(scan(&place, "other").contains("k00001\tnew\n"));
}

#[test]
fn no_writer_waits_for_a_flush_where_that_is_forbidden() {
    let place = with_tables(&[("a", "m\t1\n"), ("b", "b\t2\n")]);
    let ingest = |table: &str, mode: &str| {
        place.spillway(&["ingest", table, "--mode", mode, "--no-blocking-flush", "--json", "--db", "db"])
    };
    let flushes = |line: String| serde_json::from_str::<Value>(&line).unwrap()["flushes"].as_u64().unwrap();
    let error = ingest(A, "blocking").fails();
    assert!(error.contains("External file requires flush"), "what was loaded is in a memtable again: {error}");
    assert!(error.contains("hint: --no-blocking-flush turns allow_blocking_flush off"), "{error}");
    assert_eq!(scan(&place, "db"), "a\told\nm\told\nz\told\n");
    assert_eq!(flushes(ingest(B, "blocking").ok()), 0, "none is needed");
    assert!(flushes(ingest(A, "flush-first").ok()) > 0, "that flush comes while writers go on");
    assert_eq!(scan(&place, "db"), "a\told\nb\t2\nm\t1\nz\told\n");
    check(&place, "db");
}

/// Ctrl-C while files are copied and read through. It is sent again, later or sooner, where it came too late.
#[test]
fn an_interrupted_ingest_leaves_everything_as_it_was() {
    let place = with_tables(&[]);
    let value = "v".repeat(1000);
    let lines = (0..48_000).fold(String::new(), |mut text, key| {
        writeln!(text, "k{key:08}\t{value}").unwrap();
        text
    });
    let options = ["--target-size", "8M", "--options", "compression=kNoCompression"];
    let build = ["table", "build", "-", "--format", "kv", "--to", "tables"];
    place.spillway_reading(&[&build[..], &options].concat(), lines.as_bytes()).ok();
    let seen = || (tables_of(&place), scan(&place, "db"), files(&place.path("tables")));
    for delay_ms in [0, 10, 40, 80, 20, 0, 5, 0, 0, 0] {
        place.spillway(&["compact", "--db", "db"]).ok();
        let before = seen();
        let (code, error) = interrupt_ingest(&place, &before.2, Duration::from_millis(delay_ms));
        check(&place, "db");
        if code == Some(0) {
            continue;
        }
        assert_eq!((code, error.as_str()), (Some(130), "error: interrupted: nothing was ingested\n"));
        assert!(seen() == before, "{delay_ms} ms");
        let said = place.spillway(&["check", "--db", "db"]).ok();
        assert!(!said.contains("nothing refers to"), "{said}");
        return;
    }
    panic!("no signal came before the commit");
}

/// Ingests the tables, and sends SIGINT so long after the first one shows in the database's directory.
fn interrupt_ingest(place: &Place, tables: &[(PathBuf, Vec<u8>)], delay: Duration) -> (Option<i32>, String) {
    let before = tables_of(place);
    let tables: Vec<String> = tables.iter().map(|(path, _)| path.display().to_string()).collect();
    let tables: Vec<&str> = tables.iter().map(String::as_str).collect();
    let mut command = place.command(SPILLWAY, &[&["ingest", "--verify", "--db", "db"], &tables[..]].concat());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    while tables_of(place).len() == before.len() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it brought anything in");
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::sleep(delay);
    // It can have ended by now, but until it is waited for its number is nobody else's.
    assert!(place.command("kill", &["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// The tables in the database's directory, by name, and their sizes.
fn tables_of(place: &Place) -> BTreeMap<String, u64> {
    let entries = std::fs::read_dir(place.path("db")).unwrap().map(Result::unwrap);
    // What goes in the meantime is not there.
    let sizes = entries.filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.metadata().ok()?.len())));
    sizes.filter(|(name, _)| name.ends_with(".sst")).collect()
}

#[test]
fn ingested_tables_have_their_levels_when_the_command_ends() {
    let place = with_tables(&[("a", "b\t1\nm\t1\n")]);
    let placed = |db: &str| {
        let line = place.spillway(&["stats", "--json", "--db", db]).ok();
        let stats: Value = serde_json::from_str(&line).unwrap();
        (stats["families"][0]["tables"].as_u64().unwrap(), stats["families"][0]["entries_in_memory"].as_u64().unwrap())
    };
    place.write("in", "a\t1\nb\t2\n");
    place.spillway(&["load", "in", "--format", "kv", "--db", "loaded", "--via", "ingest"]).ok();
    assert_eq!(placed("loaded"), (1, 0));
    place.spillway(&["ingest", A, "--db", "db"]).ok();
    assert!(placed("db").0 > 0 && placed("db").1 == 0, "{:?}", placed("db"));
}

/// `load` by both ways, in every format, over what is there already: the same database.
#[test]
fn load_by_way_of_tables_makes_the_database_that_puts_make() {
    let csv: String = (0..3000).map(|i: u32| format!("{},name {i},town {}\n", i * 7919 % 2000, i % 9)).collect();
    let csv = format!("id,name,town\n{csv}");
    let ndjson: String = (0..500).map(|i: u32| format!("{{\"k\": {}, \"v\": {i}}}\n", i * 31 % 400)).collect();
    for (name, input, args) in [
        ("csv", csv.as_str(), &["--format", "csv", "--key", "town,id", "--value", "name"][..]),
        ("ndjson", &ndjson, &["--format", "ndjson", "--key", "k"]),
        ("kv", "m\t1\nb\t2\nm\t3\n", &["--format", "kv"]),
        ("empty", "", &["--format", "kv"]),
    ] {
        let place = Place::new();
        place.write("in", input);
        for (db, via) in [("puts", &[][..]), ("tables", &["--via", "ingest", "--memory", "64K", "--target-size", "8K"])]
        {
            let old = ["load", "-", "--format", "kv", "--db", db];
            place.spillway_reading(&old, b"m\told\nname\told\ntown 1/7\told\n").ok();
            let said = place.spillway(&[&["load", "in", "--db", db], args, via].concat()).ok();
            assert!(said.starts_with("loaded "), "{said}");
            check(&place, db);
        }
        assert_eq!(scan(&place, "puts"), scan(&place, "tables"), "{name}");
        let left: Vec<_> = files_and_dirs(&place).into_iter().filter(|name| name.contains("load")).collect();
        assert_eq!(left, Vec::<String>::new());
    }
}

fn files_and_dirs(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path("tables")).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn a_load_by_way_of_tables_is_whole_or_not_there() {
    let place = Place::new();
    place.write("bad", "a\t1\nb\n");
    let args = ["load", "bad", "--format", "kv", "--db", "db", "--via", "ingest"];
    let error = place.spillway(&args).fails();
    assert!(error.starts_with("error: bad, line 2: no tab between key and value; nothing was loaded"), "{error}");
    assert_eq!(scan(&place, "db"), "");
    assert!(!place.path("db/load.tmp").exists());
    // What a load that was killed left is removed by the next one.
    std::fs::create_dir(place.path("db/load.tmp")).unwrap();
    place.write("db/load.tmp/000-000001.sst", "half a table");
    let said = place.spillway(&[&args[..], &["--skip-bad"]].concat()).ok();
    assert!(said.contains("ingested 1 table (") && said.contains("passed over 1 malformed record"), "{said}");
    assert_eq!(scan(&place, "db"), "a\t1\n");
    assert!(!place.path("db/load.tmp").exists());
}

#[test]
fn what_a_killed_load_left_is_told_and_removed() {
    let place = with_tables(&[]);
    let leave = || {
        std::fs::create_dir(place.path("db/load.tmp")).unwrap();
        place.write("db/load.tmp/000-000001.sst", "half a table");
    };
    leave();
    let said = place.spillway(&["check", "--db", "db"]).ok();
    assert!(
        said.contains("note: 1 file that nothing refers to") && said.ends_with("the database is whole\n"),
        "{said}"
    );
    place.spillway(&["put", "k", "v", "--db", "db"]).ok();
    assert!(!place.path("db/load.tmp").exists());
    leave();
    place.spillway(&["destroy", "--db", "db", "--yes"]).ok();
    assert!(!place.path("db").exists());
}

#[test]
fn options_of_the_other_way_are_refused() {
    let place = Place::new();
    place.write("in", "a\t1\n");
    for (args, what) in [
        (&["--memory", "1G"][..], "--memory goes with --via ingest only"),
        (&["--target-size", "1G", "--via", "puts"], "--target-size goes with --via ingest only"),
        (&["--via", "ingest", "--batch", "7"], "--batch goes with --via puts only"),
        (&["--via", "ingest", "--acks"], "--acks goes with --via puts only"),
        (&["--via", "ingest", "--sync"], "--sync goes with --via puts only"),
        (&["--via", "ingest", "--memory", "1K"], "--memory is at least 64.00 KiB"),
        (&["--via", "ingest", "--target-size", "0"], "--target-size is at least 4.00 KiB"),
    ] {
        let error = place.spillway(&[&["load", "in", "--format", "kv", "--db", "db"], args].concat()).fails();
        assert!(error.contains(what), "{error}");
        assert!(!place.path("db").exists());
    }
}
