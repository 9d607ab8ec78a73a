//! What is for terminals: progress on one line, which is gone in the end, and colours; and nothing of either elsewhere. Beside
//! them what shells and `man` are given.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::process::Stdio;

use common::{Place, SPILLWAY};

const ESCAPE: char = '\x1b';

/// A command on a terminal, made by util-linux's `script`: all that came to standard error, and whether it succeeded.
///
/// With colours, where the variables do not say otherwise.
fn on_terminal(place: &Place, arguments: &[&str], columns: u16, variables: &[(&str, &str)]) -> (String, bool) {
    let quoted: Vec<_> = [&[SPILLWAY], arguments].concat().iter().map(|word| format!("'{word}'")).collect();
    let line = format!("stty rows 24 cols {columns}; {} > out", quoted.join(" "));
    let mut command = place.command("script", &["--quiet", "--return", "--command", &line, "/dev/null"]);
    command.stdin(Stdio::null()).env("TERM", "xterm").env_remove("NO_COLOR").envs(variables.iter().copied());
    let output = command.output().expect("util-linux's script runs");
    (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success())
}

/// Characters that are seen, line by line as they were drawn over each other.
fn drawn(screen: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut characters = screen.chars();
    while let Some(character) = characters.next() {
        match character {
            ESCAPE => while characters.next().is_some_and(|c| !c.is_ascii_alphabetic()) {},
            '\r' => lines.push(String::new()),
            other => lines.last_mut().unwrap().push(other),
        }
    }
    lines
}

/// Commands that can take long, by the arguments that follow the database's.
const LONG: [&[&str]; 7] = [
    &["load", "big.csv", "--format", "csv", "--via", "ingest", "--memory", "4M"],
    &["load", "big.csv", "--format", "csv"],
    &["compact", "--force"],
    &["check"],
    &["backup", "create", "--dir", "backups"],
    &["checkpoint", "--to", "copy"],
    &["export", "--to", "rocksdb", "--copy"],
];

#[test]
fn progress_is_one_line_and_gone_in_the_end() {
    let row = |n: u32| format!("{n:07},{}\n", "x".repeat(40));
    let rows: String = (0..30_000).map(row).collect();
    for columns in [59, 60, 80, 120] {
        let place = Place::new();
        place.write("big.csv", &rows);
        let mut shown = 0;
        for arguments in LONG {
            let arguments = [arguments, &["--db", "db"]].concat();
            let (screen, succeeded) = on_terminal(&place, &arguments, columns, &[]);
            assert!(succeeded, "{arguments:?}: {screen}");
            assert!(!screen.contains('\n'), "{columns} columns, {arguments:?}: {screen:?}");
            let lines = drawn(&screen);
            let widest = lines.iter().map(|line| line.trim_end().chars().count()).max().unwrap();
            assert!(widest < usize::from(columns), "{columns} columns, {arguments:?}: {lines:?}");
            assert!(lines.last().unwrap().is_empty(), "{columns} columns, {arguments:?}: {screen:?}");
            shown += usize::from(lines.iter().any(|line| line.contains("records")));
        }
        assert_eq!(shown > 0, columns >= 60, "{columns} columns");
    }
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    let place = Place::new();
    place.spillway(&["put", "a", "1", "--create", "--db", "db"]).ok();
    let arguments = ["--log-level", "trace", "compact", "--db", "db"];
    let coloured = |variables: &[(&str, &str)]| {
        let (screen, _) = on_terminal(&place, &arguments, 59, variables);
        assert!(screen.contains("INFO") || screen.contains("DEBUG"), "nothing is said: {screen}");
        screen.contains(ESCAPE)
    };
    assert!(coloured(&[]), "a terminal has colours");
    assert!(!coloured(&[("NO_COLOR", "1")]) && !coloured(&[("TERM", "dumb")]));
    for arguments in
        [&arguments[..], &["--help"], &["load", "--help"], &["--no-such"], &["get", "a", "--db", "nowhere"]]
    {
        let ran = place.spillway(arguments);
        assert!(!ran.out.contains(ESCAPE) && !ran.err.contains(ESCAPE), "{arguments:?}: {ran:?}");
    }
}

#[test]
fn shells_and_man_are_given_what_they_read() {
    let place = Place::new();
    for (shell, words) in [("bash", "complete -F"), ("zsh", "#compdef spillway"), ("fish", "complete -c spillway")] {
        let script = place.spillway(&["completions", shell]).ok();
        assert!(script.contains(words) && script.contains("checkpoint") && script.contains("skip-bad"), "{shell}");
        place.write(shell, &script);
    }
    // As a user would: the words that may follow.
    let complete = "source ./bash; COMP_WORDS=(spillway chec); COMP_CWORD=1; _spillway spillway chec spillway; echo ${COMPREPLY[*]}";
    let bash = place.command("bash", &["-c", complete]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&bash.stdout), "check checkpoint\n", "{bash:?}");
    let page = place.spillway(&["man"]).ok();
    assert!(page.starts_with(".ie") || page.starts_with(".TH") || page.contains("\n.TH spillway 1"), "{page:.200}");
    place.spillway(&["man", "--to", "pages"]).ok();
    let pages = common::files(&place.path("pages"));
    let load = pages.iter().find(|(path, _)| path.ends_with("spillway-load.1")).unwrap();
    assert!(String::from_utf8_lossy(&load.1).contains("spillway load people.csv"));
    assert!(pages.iter().any(|(path, _)| path.ends_with("spillway-backup-create.1")));
}
