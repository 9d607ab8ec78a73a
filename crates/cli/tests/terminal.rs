//! What a terminal is given: a pseudo-terminal is standard output.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the real file system as other programs do"
)]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;

use common::{Place, SPILLWAY};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// What a command writes to a terminal as its standard output.
fn shown(place: &Place, args: &[&str]) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let no_controlling_terminal = rustix::fs::OFlags::NOCTTY.bits() as i32;
    let theirs = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(no_controlling_terminal)
        .open(OsStr::from_bytes(name.as_bytes()))
        .unwrap();
    let mut command = place.command(SPILLWAY, args);
    let mut child = command.stdout(Stdio::from(theirs)).spawn().unwrap();
    drop(command); // and with it the other end
    let mut bytes = Vec::new();
    let _ = File::from(ours).read_to_end(&mut bytes); // a terminal without a program ends with an error
    assert!(child.wait().unwrap().success());
    String::from_utf8(bytes).unwrap().replace("\r\n", "\n")
}

#[test]
fn control_bytes_never_reach_a_terminal_and_pipes_get_every_byte() {
    let place = Place::new();
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], b"k\\x1b]0;\ta\\x1b[2J\\xff\\rb\n").ok();
    let key = "k\u{1b}]0;";
    for (args, expected) in [
        (&["scan"][..], "k\\x1b]0;\ta\\x1b[2J\\xff\\rb\n"),
        (&["scan", "--format", "csv"], "key,value\nk\\x1b]0;,\"a\\x1b[2J\\xff\\x0db\"\n"),
        (&["scan", "--format", "values"], "a\\x1b[2J\\xff\\x0db\n"),
        (&["scan", "--format", "ndjson"], "{\"key\":\"k\\u001b]0;\",\"value_hex\":\"611b5b324aff0d62\"}\n"),
        (&["get", key], "a\\x1b[2J\\xff\\x0db\n"),
    ] {
        assert_eq!(shown(&place, &[args, &["--db", "db"]].concat()), expected, "{args:?}");
    }
    place.spillway(&["families", "create", "f\u{1b}[2J", "--db", "db"]).ok();
    for args in [&["families", "list"][..], &["stats"]] {
        let shown = shown(&place, &[args, &["--db", "db"]].concat());
        assert!(shown.contains("f\\x1b[2J"), "{shown}");
    }
    let output = place.command(SPILLWAY, &["get", key, "--db", "db"]).output().unwrap();
    assert_eq!(output.stdout, b"a\x1b[2J\xff\rb\n");
}
