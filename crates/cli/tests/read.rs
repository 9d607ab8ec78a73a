//! Reading and writing keys, families, wrong calls, and two processes at one database.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use common::{Place, SPILLWAY, files};

/// A database `db` with the keys a, b, ba, c.
fn small() -> Place {
    let place = Place::new();
    let input = b"a\t1\nb\t2\nba\t3\nc\t4\n";
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], input).ok();
    place
}

#[test]
fn an_interrupted_scan_says_how_far_it_came() {
    let place = Place::new();
    let lines: String = (0..100_000).map(|n| format!("key{n:06}\tvalue\n")).collect();
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], lines.as_bytes()).ok();
    for signal in ["-INT", "-TERM"] {
        let mut scan = place.command(SPILLWAY, &["scan", "db"]);
        let mut scan = scan.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(scan.stdout.take().unwrap());
        out.read_line(&mut String::new()).unwrap();
        assert!(place.command("kill", &[signal, &scan.id().to_string()]).status().unwrap().success());
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        let ended = scan.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.code() == Some(130) && told.contains("keys were printed"), "{signal}: {told}");
        assert!(rest.ends_with('\n') && rest.lines().count() < 99_999);
    }
}

#[test]
fn scan_shows_what_is_asked_for() {
    let place = small();
    for (args, expected) in [
        (&[][..], "a\t1\nb\t2\nba\t3\nc\t4\n"),
        (&["--from", "b", "--to", "c"], "b\t2\nba\t3\n"),
        (&["--prefix", "b"], "b\t2\nba\t3\n"),
        (&["--prefix", "b", "--from", "ba", "--to", "bb"], "ba\t3\n"),
        (&["--prefix", "b", "--to", "a"], ""),
        (&["--limit", "1"], "a\t1\n"),
        (&["--limit", "0"], ""),
        (&["--reverse", "--keys-only"], "c\nba\nb\na\n"),
        (&["--reverse", "--prefix", "b", "--limit", "1"], "ba\t3\n"),
        (&["--hex", "--from", "62", "--to", "0x63"], "62\t32\n6261\t33\n"),
        (&["--count"], "4 keys, 5 B of keys, 4 B of values\n"),
        (&["--count", "--prefix", "ba"], "1 key, 2 B of keys, 1 B of values\n"),
        (&["--count", "--limit", "2"], "2 keys, 2 B of keys, 2 B of values\n"),
    ] {
        assert_eq!(place.spillway(&[&["scan", "--db", "db"], args].concat()).ok(), expected, "{args:?}");
    }
}

#[test]
fn keys_are_put_read_and_deleted() {
    let place = small();
    place.spillway(&["put", "d", "vier", "--db", "db"]).ok();
    place.spillway(&["put", "0xff00", "0x0a", "--hex", "--db", "db"]).ok();
    assert_eq!(place.spillway(&["get", "d", "--db", "db"]).ok(), "vier\n");
    assert_eq!(place.spillway(&["get", "ff00", "--hex", "--db", "db"]).ok(), "0a\n");
    place.spillway(&["delete", "d", "--db", "db"]).ok();
    place.spillway(&["delete", "never-there", "--db", "db"]).ok();
    assert_eq!(place.spillway(&["get", "d", "--db", "db"]).fails(), "error: there is no key d\n");
    place.spillway(&["delete", "a", "--until", "c", "--db", "db"]).ok();
    assert_eq!(place.spillway(&["scan", "--db", "db", "--hex"]).ok(), "63\t34\nff00\t0a\n");
}

#[test]
fn every_command_tells_what_a_salvage_left_in_doubt() {
    let salvaging = ["--db", "db", "--options", "wal_recovery_mode=kSkipAnyCorruptedRecords"];
    let commands: [&[&str]; 6] = [
        &["get", "d"],
        &["put", "e", "5"],
        &["scan"],
        &["stats"],
        &["checkpoint", "--to", "copy"],
        &["export", "--to", "copy"],
    ];
    for command in commands {
        let place = Place::new();
        for (key, first) in [("c", true), ("d", false)] {
            let create = if first { &["--create"][..] } else { &[] };
            place.spillway(&[&["put", key, "4", "--db", "db"], create].concat()).ok();
        }
        let oldest = files(&place.path("db")).into_iter().find(|(path, _)| path.extension() == Some("splog".as_ref()));
        std::fs::remove_file(oldest.expect("each put left a log").0).unwrap();
        let ran = place.spillway(&[command, &salvaging[..]].concat());
        assert!(ran.err.contains("warning: recovery left in doubt: every family: log 0"), "{command:?}: {ran:?}");
        assert_eq!(ran.code, Some(1), "{command:?}: {ran:?}");
        if command[0] == "get" {
            assert_eq!(ran.out, "4\n");
        }
        let again = place.spillway(&["scan", "--db", "db"]);
        let changes = matches!(command[0], "put" | "checkpoint" | "export");
        assert_eq!(again.code == Some(0), changes, "a writer leaves a whole database: {again:?}");
    }
}

#[test]
fn the_database_can_be_named_by_the_environment() {
    let place = small();
    let output = place.command(SPILLWAY, &["get", "c"]).env("SPILLWAY_DB", place.path("db")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "4\n");
}

/// Of commands that take no other words.
#[test]
fn the_directory_alone_names_the_database() {
    let place = small();
    for command in ["check", "stats", "scan", "metrics", "advise", "compact", "repair"] {
        let ran = place.spillway(&[command, "db"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let twice = place.spillway(&[command, "db", "--db", "db"]);
        assert!(twice.code == Some(2) && twice.err.contains("cannot be used with"), "{twice:?}");
    }
    assert_eq!(place.spillway(&["scan", "db"]).ok(), place.spillway(&["scan", "--db", "db"]).ok());
    place.spillway(&["top", "db", "--count", "1"]).ok();
    place.spillway(&["checkpoint", "db", "--to", "copy"]).ok();
    place.spillway(&["export", "db", "--to", "exported"]).ok();
    place.spillway(&["destroy", "copy", "--yes"]).ok();
    assert!(!place.path("copy").exists() && place.path("db").exists());
}

/// `/dev/full` takes nothing.
#[test]
fn help_that_cannot_be_written_is_a_failure() {
    let place = small();
    let to = |end: &str, args: &[&str]| {
        let exec = format!("exec \"$0\" \"$@\" {end}");
        place.reading("sh", &[&["-c", &exec, SPILLWAY], args].concat(), b"")
    };
    let bench = ["bench", "db", "--num=10", "--benchmarks=fillseq", "--db=bench"];
    for args in [
        &["--help"][..],
        &["scan", "--help"],
        &["help"],
        &["--version"],
        &["scan", "db"],
        &["stats", "db"],
        &["bench", "--help"],
        &["bench", "db", "--help"],
        &bench,
        &["completions", "bash"],
    ] {
        assert!(to("> /dev/full", args).fails().contains("No space left"), "{args:?}");
        for closed in [">&-", "1< /dev/null"] {
            assert!(to(closed, args).fails().contains("standard output: Bad file descriptor"), "{args:?} {closed}");
        }
        let unread = ["-o", "pipefail", "-c", "\"$0\" \"$@\" | true", SPILLWAY];
        let unread = place.reading("bash", &[&unread[..], args].concat(), b"");
        assert!(!unread.err.contains("Broken pipe") && !unread.err.contains("panicked"), "{args:?}: {unread:?}");
    }
    for end in [">&-", "> /dev/null"] {
        assert_eq!(to(end, &["put", "k", "v", "--db", "db"]).code, Some(0), "nothing is printed");
    }
    let help = place.spillway(&["--help"]).ok();
    assert_eq!(place.spillway(&["help", "--help"]).ok(), help);
    let wrong = place.spillway(&["scan", "--no-such-flag"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn families_come_and_go() {
    let place = small();
    assert_eq!(place.spillway(&["families", "list", "--db", "db"]).ok(), "default\n");
    let create = ["families", "create", "old", "--with", "compression=kZSTD", "--db", "db"];
    place.spillway(&create).ok();
    place.spillway(&["put", "x", "y", "--family", "old", "--db", "db"]).ok();
    assert_eq!(place.spillway(&["scan", "--family", "old", "--db", "db"]).ok(), "x\ty\n");
    assert_eq!(place.spillway(&["families", "list", "--db", "db"]).ok(), "default\nold\n");
    assert!(place.spillway(&create).fails().contains("already exists"));
    let missing = place.spillway(&["get", "x", "--family", "new", "--db", "db"]).fails();
    assert_eq!(missing, "error: there is no column family \"new\"; there are: default, old\n");
    place.spillway(&["families", "drop", "old", "--db", "db"]).ok();
    assert_eq!(place.spillway(&["families", "list", "--db", "db"]).ok(), "default\n");
    let default = place.spillway(&["families", "drop", "default", "--db", "db"]).fails();
    assert!(default.contains("Can't drop default column family"), "{default}");
    // Names are bytes.
    let called = |args: &[&[u8]]| {
        let mut command = place.command(SPILLWAY, &[]);
        let ran = command.args(args.iter().map(|arg| std::ffi::OsStr::from_bytes(arg))).args(["--db", "db"]).output();
        let ran = ran.expect("run");
        assert!(ran.status.success(), "{ran:?}");
        ran.stdout
    };
    called(&[b"families", b"create", b"\xff \xc3"]);
    called(&[b"put", b"k", b"v", b"--family", b"\xff \xc3"]);
    assert_eq!(called(&[b"scan", b"--family", b"\xff \xc3"]), b"k\tv\n");
    assert_eq!(called(&[b"families", b"list"]), b"default\n\xff \xc3\n");
    called(&[b"families", b"drop", b"\xff \xc3"]);
}

#[test]
fn wrong_calls_say_what_to_do() {
    let place = small();
    let nowhere =
        "error: there is no database in nowhere; `load` makes one, and so do `put` and `ingest` with --create\n";
    for command in [&["get", "a"][..], &["scan"], &["stats"], &["put", "a", "b"], &["delete", "a"], &["compact"]] {
        assert_eq!(place.spillway(&[command, &["--db", "nowhere"]].concat()).fails(), nowhere, "{command:?}");
        assert!(!place.path("nowhere").exists(), "{command:?} made a directory");
    }
    let odd = place.spillway(&["get", "abc", "--hex", "--db", "db"]).fails();
    assert_eq!(odd, "error: \"abc\" has an odd number of hexadecimal digits; each byte takes two\n");
    assert!(place.spillway(&["scan", "--from", "xy", "--hex", "--db", "db"]).fails().contains("hexadecimal digits"));
    assert!(place.spillway(&["checkpoint", "--to", "db", "--db", "db"]).fails().contains("Directory exists"));
    assert!(
        place.spillway(&["stats", "--property", "rocksdb.nope", "--db", "db"]).fails().contains("rocksdb.levelstats")
    );
    let usage = place.spillway(&["get"]);
    assert_eq!(usage.code, Some(2), "a call that is no call at all: {usage:?}");
    std::fs::write(place.path("db/CURRENT"), "MANIFEST-000002/../../x\n").unwrap();
    let current = place.spillway(&["get", "a", "--db", "db"]).fails();
    assert!(current.contains("CURRENT") && current.contains("hint: `spillway check --db db`"), "{current}");
}

#[test]
fn destroying_wants_to_be_meant() {
    let place = small();
    assert!(place.spillway(&["destroy", "--db", "db"]).fails().contains("say --yes"));
    assert_eq!(place.spillway(&["get", "a", "--db", "db"]).ok(), "1\n");
    place.spillway(&["destroy", "--db", "db", "--yes"]).ok();
    assert!(!place.path("db").exists());
    assert!(place.spillway(&["destroy", "--db", "db", "--yes"]).fails().contains("there is no database in db"));
}

#[test]
fn what_lost_current_can_be_destroyed_and_tables_alone_cannot() {
    let place = small();
    std::fs::remove_file(place.path("db/CURRENT")).unwrap();
    assert!(place.spillway(&["destroy", "--db", "db"]).fails().contains("say --yes"));
    place.spillway(&["destroy", "--db", "db", "--yes"]).ok();
    assert!(!place.path("db").exists());
    std::fs::create_dir(place.path("tables")).unwrap();
    place.write("tables/000001.sst", "a table");
    let refused = place.spillway(&["destroy", "--db", "tables", "--yes"]).fails();
    assert!(refused.contains("there is no database in tables") && place.path("tables/000001.sst").exists());
}

#[test]
fn logs_elsewhere_that_stay_are_told_of() {
    let place = Place::new();
    place.spillway(&["put", "a", "1", "--create", "--db", "db", "--options", "wal_dir=logs"]).ok();
    let told = place.spillway(&["destroy", "--db", "db", "--yes"]);
    assert!(told.code == Some(0) && told.err.contains("note: the logs in logs, its wal_dir, stay"), "{told:?}");
    assert!(!files(&place.path("logs")).is_empty());
}

#[test]
fn a_reader_that_has_seen_enough_ends_it_quietly() {
    let place = Place::new();
    let input: String = (0..200_000).map(|i| format!("{i}\tvalue\n")).collect();
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], input.as_bytes()).ok();
    let log = place.only_file("db", ".splog");
    for args in [&["scan", "--db", "db"][..], &["log", "dump", log.to_str().unwrap()]] {
        let mut child = place.command(SPILLWAY, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap(); // and closes the pipe
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        assert_eq!((child.wait().unwrap().code(), errors.as_str()), (Some(0), ""), "{args:?}");
    }
}

#[test]
fn a_database_that_is_open_elsewhere_can_be_read_and_not_written() {
    let place = small();
    let load = ["load", "-", "--db", "db", "--format", "kv", "--acks", "--batch", "1"];
    let mut holder = place.command(SPILLWAY, &load).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = holder.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"held\tyes\n").unwrap();
    let mut acknowledged = String::new();
    BufReader::new(holder.stdout.take().unwrap()).read_line(&mut acknowledged).unwrap();
    assert_eq!(acknowledged, "acknowledged 1\n");
    let busy = place.spillway(&["put", "x", "y", "--db", "db"]).fails();
    assert!(busy.contains("another process has the database open: close it there first"), "{busy}");
    let before = files(&place.path("db")).len();
    assert_eq!(place.spillway(&["get", "a", "--db", "db"]).ok(), "1\n");
    assert!(place.spillway(&["check", "--db", "db"]).ok().ends_with("the database is whole\n"));
    assert_eq!(files(&place.path("db")).len(), before, "readers make no files");
    drop(stdin);
    assert!(holder.wait().unwrap().success());
    assert_eq!(place.spillway(&["get", "held", "--db", "db"]).ok(), "yes\n");
}

#[test]
fn a_link_leads_to_a_database() {
    let place = Place::new();
    place.spillway(&["put", "a", "1", "--db", "db", "--create"]).ok();
    std::os::unix::fs::symlink(place.path("db"), place.path("link")).unwrap();
    place.spillway(&["put", "b", "2", "--db", "link"]).ok();
    assert_eq!(place.spillway(&["scan", "--db", "db"]).ok(), "a\t1\nb\t2\n");
}
