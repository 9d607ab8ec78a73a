//! Commands where threads, descriptors or memory are short, as in a small container.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Place, Ran, SPILLWAY, run};

const RECORDS: usize = 200_000;

/// A place that everyone may write to, with records in `in`.
fn place() -> Place {
    let place = Place::new();
    std::fs::set_permissions(place.path(""), std::fs::Permissions::from_mode(0o777)).unwrap();
    place.write("in", (0..RECORDS).map(|n| format!("user{n}\tvalue {n}\n")).collect::<String>());
    place
}

/// A command within limits of bash's `ulimit`.
fn limited(place: &Place, limits: &str, args: &[&str]) -> Command {
    place.command("bash", &[&["-c", &format!("ulimit {limits}; exec \"$0\" \"$@\""), SPILLWAY], args].concat())
}

/// As a user without other processes: the limit of threads is one of a user, and none for root. `None` where this process
/// cannot become another user, or that one cannot run the command.
fn as_user(user: u32, mut command: Command) -> Option<Command> {
    command.uid(user).gid(user);
    let program = Command::new(SPILLWAY).arg("--version").uid(user).gid(user).output();
    program.is_ok_and(|ran| ran.status.success()).then_some(command)
}

/// Each thread's own heap would reserve 64 MiB of a limited address space, and then a plain allocation ends the process.
#[test]
fn loads_and_scans_go_on_in_a_small_address_space() {
    let place = Place::new();
    place.write("in", (0..600_000).map(|n| format!("user{n}\tvalue with some length {n}\n")).collect::<String>());
    for mib in [250, 300, 400] {
        for way in ["ingest", "puts"] {
            let db = &format!("{way} {mib}");
            let within = |args: &[&str]| run(limited(&place, &format!("-v {}", mib << 10), args), b"");
            let loaded = within(&["load", "in", "--format", "kv", "--db", db, "--via", way]);
            assert_eq!(loaded.code, Some(0), "{mib} MiB: {loaded:?}");
            let scanned = within(&["scan", db, "--count"]);
            assert!(scanned.out.starts_with("600,000 keys, "), "{mib} MiB: {scanned:?}");
        }
    }
}

#[test]
fn loads_and_repairs_go_on_where_threads_are_short() {
    let place = place();
    // The engine warns that it has one thread for all background work.
    let with = |threads: u32, args: &[&str]| -> Option<String> {
        let ran = run(as_user(54_321, limited(&place, &format!("-u {threads}"), args))?, b"");
        assert_eq!(ran.code, Some(0), "{args:?}: {ran:?}");
        Some(ran.out)
    };
    let load = ["load", "in", "--format", "kv", "--db"];
    let Some(ingested) = with(2, &[&load[..], &["a", "--via", "ingest"]].concat()) else { return };
    assert!(ingested.contains("with 200,000 different keys"), "{ingested}");
    with(2, &[&load[..], &["b"]].concat());
    with(2, &[&load[..], &["c", "--via", "ingest", "--memory", "1M"]].concat());
    with(1, &["table", "build", "in", "--format", "kv", "--to", "tables"]);
    for db in ["a", "b", "c"] {
        with(2, &["repair", db]);
        assert!(with(3, &["scan", db, "--count"]).is_some_and(|out| out.starts_with("200,000 keys, ")), "{db}");
    }
    let alone = as_user(54_321, limited(&place, "-u 1", &["compact", "a"]));
    let refused = run(alone.unwrap(), b"");
    assert!(refused.code == Some(0) || refused.err.contains("`ulimit -u`"), "{refused:?}");
}

/// The page is served, or the command fails.
fn serve(mut command: Command, what: &str) {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
    if let Some(address) = first.trim().strip_prefix("Look at http://") {
        let mut stream = TcpStream::connect(address.trim_end_matches('/')).unwrap();
        write!(stream, "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{what}: {answer}");
        child.kill().unwrap();
        child.wait().unwrap();
        return;
    }
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    Ran { code: output.status.code(), out: String::new(), err }.fails();
}

#[test]
fn a_page_that_lacks_threads_or_descriptors_is_served_or_an_error() {
    let place = place();
    let line = ["serve", "db", "--port", "0"];
    place.spillway(&["put", "k", "v", "--db", "db", "--create"]).ok();
    for descriptors in 4..24 {
        serve(limited(&place, &format!("-n {descriptors}"), &line), &format!("{descriptors} descriptors"));
    }
    let chown = |path: &Path| std::os::unix::fs::chown(path, Some(54_322), Some(54_322));
    if chown(&place.path("db")).is_err() {
        return; // root alone can give files away
    }
    common::files(&place.path("db")).iter().for_each(|(path, _)| chown(path).unwrap());
    for threads in 1..5 {
        let Some(command) = as_user(54_322, limited(&place, &format!("-u {threads}"), &line)) else { return };
        serve(command, &format!("{threads} threads"));
    }
}

/// Of what `ulimit -v` leaves a sort takes a quarter: 120 MB do not fit, and are sorted on disk.
#[test]
fn a_sort_takes_a_part_of_what_is_left_of_the_address_space() {
    let place = Place::new();
    let value = "x".repeat(1200);
    place.write("in", (0..100_000).map(|n| format!("user{n}\t{value}\n")).collect::<String>());
    let build = ["table", "build", "in", "--format", "kv", "--to", "tables"];
    let built = run(limited(&place, "-v 500000", &build), b"").ok();
    assert!(built.contains("runs on disk"), "{built}");
}
