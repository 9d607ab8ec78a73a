//! `repair`: what is left of a database opens again, and what is lost is listed.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use common::{Place, files};

/// Two families, tables, and a log.
fn database() -> Place {
    let place = Place::new();
    let load = |input: &str, family: &str| {
        let args = ["load", "-", "--db", "db", "--format", "kv", "--family", family];
        place.spillway_reading(&args, input.as_bytes()).ok();
    };
    let lines: String = (0..2000).map(|i| format!("{i:05}\tvalue {i}\n")).collect();
    load(&lines, "default");
    place.spillway(&["families", "create", "second", "--db", "db"]).ok();
    load("x\ty\n", "second");
    place.spillway(&["compact", "--db", "db"]).ok();
    place.spillway(&["put", "00001", "in the log", "--db", "db"]).ok();
    place
}

fn contents(place: &Place) -> [String; 2] {
    ["default", "second"].map(|family| place.spillway(&["scan", "--db", "db", "--family", family]).ok())
}

#[test]
fn a_database_without_its_manifest_is_as_it_was() {
    let place = database();
    let before = contents(&place);
    std::fs::remove_file(place.only_file("db", "MANIFEST-")).unwrap();
    let refused = place.spillway(&["get", "00001", "--db", "db"]).fails();
    assert!(refused.contains("`spillway repair --db db`"), "{refused}");
    let told = place.spillway(&["repair", "db"]).ok();
    assert!(
        told.contains("MANIFEST: ")
            && told.contains("family \"second\": no tables; all that it holds is in logs")
            && told.contains("nothing of it is lost"),
        "{told}"
    );
    assert_eq!(contents(&place), before);
    assert!(place.spillway(&["check", "--db", "db"]).ok().ends_with("the database is whole\n"));
}

#[test]
fn what_can_be_read_of_a_damaged_table_is_kept_and_the_rest_listed() {
    let place = database();
    let before = contents(&place);
    let tables = files(&place.path("db")).into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "sst"));
    let (largest, mut bytes) = tables.max_by_key(|(_, bytes)| bytes.len()).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&largest, &bytes).unwrap();
    let ran = place.spillway(&["repair", "--db", "db"]);
    let name = largest.file_name().unwrap().to_str().unwrap();
    assert!(
        ran.code == Some(1) && ran.out.contains(&format!("lost: {name} of family \"default\", keys '00000' to '00")),
        "{ran:?}"
    );
    assert_eq!(std::fs::read(place.path(&format!("db/lost/{name}"))).unwrap(), bytes, "nothing is deleted");
    assert!(std::fs::read_to_string(place.path("db/lost/REPORT")).unwrap().contains(name));
    let after = contents(&place);
    assert!(after[0].lines().count() > 1000 && after[0].lines().all(|line| before[0].contains(line)), "{after:?}");
    assert_eq!(after[1], before[1]);
    assert!(place.spillway(&["check", "--db", "db"]).ok().ends_with("the database is whole\n"));
}

#[test]
fn logs_in_a_directory_that_only_the_manifest_knows_are_not_given_up() {
    let place = Place::new();
    let wal = place.path("wal");
    let wal_dir = format!("wal_dir={}", wal.display());
    place.spillway(&["put", "a", "1", "--db", "db", "--create", "--options", &wal_dir]).ok();
    std::fs::remove_file(place.only_file("db", "OPTIONS-")).unwrap();
    let logs = files(&wal);
    for args in [&["repair", "db"][..], &["check", "--db", "db"], &["get", "a", "--db", "db"]] {
        let refused = place.spillway(args).fails();
        assert!(refused.contains(&format!("open with {wal_dir}")), "{args:?}: {refused}");
    }
    assert_eq!(files(&wal), logs);
    let told = place.spillway(&["repair", "--db", "db", "--options", &wal_dir]);
    assert!(
        told.code == Some(1) && told.out.contains("OPTIONS file is missing") && !told.out.contains("in doubt"),
        "{told:?}"
    );
    assert_eq!(place.spillway(&["get", "a", "--db", "db"]).ok(), "1\n", "the repair has stored the directory");
}

/// A file of the user's has the name of the directory of repairs.
#[test]
fn a_file_named_lost_is_told_with_its_remedy() {
    let place = Place::new();
    place.spillway(&["put", "a", "1", "--db", "db", "--create"]).ok();
    place.write("db/lost", "and found");
    for args in
        [&["get", "a", "--db", "db"][..], &["put", "a", "2", "--db", "db"], &["check", "--db", "db"], &["repair", "db"]]
    {
        let refused = place.spillway(args).fails();
        assert!(refused.contains("move it away") && refused.contains("db/lost)"), "{args:?}: {refused}");
    }
    std::fs::rename(place.path("db/lost"), place.path("found")).unwrap();
    assert_eq!(place.spillway(&["get", "a", "--db", "db"]).ok(), "1\n");
}

#[test]
fn there_must_be_something_to_repair() {
    let place = Place::new();
    assert!(place.spillway(&["repair", "nowhere"]).fails().contains("no directory"));
    std::fs::create_dir(place.path("empty")).unwrap();
    assert!(place.spillway(&["repair", "empty"]).fails().contains("no database to repair"));
    std::fs::create_dir(place.path("loose")).unwrap();
    place.write("loose/000007.sst", "no table");
    assert!(place.spillway(&["put", "a", "b", "--create", "--db", "loose"]).fails().contains("CURRENT is missing"));
    for dir in ["empty", "loose"] {
        assert!(place.spillway(&["put", "a", "b", "--db", dir]).fails().contains(dir));
        assert!(!place.path(dir).join("LOCK").exists() && !place.path(dir).join("LOG").exists(), "{dir}");
    }
}

/// Tables of a database that was loaded with this compression.
fn compressed(compression: &str) -> Place {
    let place = Place::new();
    let lines: String = (0..20_000).map(|i| format!("{i:05}\tthe same value again and again {}\n", i % 7)).collect();
    let options = format!("compression={compression}");
    let load = ["load", "-", "--db", "db", "--format", "kv", "--options", &options];
    place.spillway_reading(&load, lines.as_bytes()).ok();
    place.spillway(&["compact", "--db", "db"]).ok();
    place
}

#[test]
fn a_salvaged_table_is_compressed_as_the_damaged_one_was() {
    let place = compressed("kZSTD");
    let table = place.only_file("db", ".sst");
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&table, &bytes).unwrap();
    assert_eq!(place.spillway(&["repair", "db"]).code, Some(1));
    let names = std::fs::read_dir(place.path("db")).unwrap().map(|entry| entry.unwrap().path());
    let salvaged = names.filter(|path| path.extension().is_some_and(|extension| extension == "sst"));
    let salvaged: u64 = salvaged.map(|path| std::fs::metadata(path).unwrap().len()).sum();
    assert!(salvaged > 0 && salvaged < 2 * bytes.len() as u64, "{salvaged} bytes of {}", bytes.len());
}

#[test]
fn a_user_reads_sentences_of_the_engine() {
    let place = database();
    let log = place.newest_file("db", ".splog");
    let mut bytes = std::fs::read(&log).unwrap();
    let at = bytes.windows(10).position(|part| part == b"in the log").unwrap();
    bytes[at] ^= 1;
    std::fs::write(&log, &bytes).unwrap();
    let salvage = ["put", "k", "v", "--options", "wal_recovery_mode=kSkipAnyCorruptedRecords", "--db", "db"];
    for ran in [place.spillway(&salvage), place.spillway(&["repair", "db"])] {
        for line in ran.err.lines() {
            let is_told = ["warning: ", "error: ", "note: ", "hint: "].iter().any(|label| line.starts_with(label));
            assert!(is_told && !line.contains(" WARN "), "{ran:?}");
        }
    }
}

/// Damage of a log's last record: alone, or with all behind it, the end record among them.
#[test]
fn a_doubt_names_where_the_damage_begins_and_counts_it_once() {
    for has_end in [true, false] {
        let place = Place::new();
        for round in ["a", "b"] {
            let lines: String = (1..4).map(|n| format!("{round}{n}\tvalue {n}\n")).collect();
            let load = ["load", "-", "--db", "db", "--format", "kv", "--batch", "1"];
            place.spillway_reading(&load, lines.as_bytes()).ok();
        }
        let log = place.path("db/000004.splog");
        let dumped = place.spillway(&["log", "dump", log.to_str().unwrap()]).ok();
        let last = dumped.lines().filter_map(|line| Some(line.split_once(": batch")?.0)).next_back().unwrap();
        let mut bytes = std::fs::read(&log).unwrap();
        let at = bytes.windows(7).position(|part| part == b"value 3").unwrap();
        let end = if has_end { at + 1 } else { bytes.len() };
        bytes[at..end].fill(0);
        std::fs::write(&log, &bytes).unwrap();
        let refused = place.spillway(&["put", "k", "v", "--db", "db"]).fails();
        assert!(refused.contains("wal_recovery_mode=kSkipAnyCorruptedRecords"), "{refused}");
        place.spillway(&["put", "k", "v", "--options", "wal_recovery_mode=kSkipAnyCorruptedRecords", "--db", "db"]);
        let through = if has_end { ", up to its end record" } else { "" };
        let expected = format!("in doubt: every family: log 000004 is damaged from byte {last} on{through}\n");
        assert_eq!(std::fs::read_to_string(place.path("db/lost/REPORT")).unwrap(), expected);
    }
}

#[test]
fn a_repair_is_of_one_directory_only() {
    let place = Place::new();
    place.spillway(&["put", "k", "v", "--db", "one", "--create"]).ok();
    for other in [["--db", "two"], ["--config", "two.json"]] {
        let ran = place.spillway(&[&["repair", "one"][..], &other].concat());
        assert!(ran.code == Some(2) && ran.err.contains("cannot be used with"), "{ran:?}");
    }
    place.spillway(&["repair", "--db", "one"]).ok();
}

/// Nobody reads the report to its end.
#[test]
fn losses_have_their_status_behind_a_closed_pipe() {
    let place = database();
    let table = place.newest_file("db", ".sst");
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&table, &bytes).unwrap();
    for args in [&["check", "--json", "--db", "db"][..], &["repair", "--json", "db"]] {
        let mut child = place.command(common::SPILLWAY, args).stdout(std::process::Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        assert_eq!(child.wait().unwrap().code(), Some(1), "{args:?}");
    }
}
