//! Builds of tables that are killed, and what the next build makes of what they left.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use common::{Place, SPILLWAY};

const BUILD: [&str; 6] = ["table", "build", "-", "--format", "kv", "--to"];

/// A build that waits for more records, and the directory in which it makes its tables.
struct Waiting {
    child: Child,
    stdin: ChildStdin,
    staging: PathBuf,
}

impl Waiting {
    /// The command reads standard input, and its tables go to `tables`.
    fn begin(place: &Place, mut command: Command) -> Waiting {
        let before = staged(place);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"a\t1\n").unwrap();
        let staging = loop {
            let new = staged(place).into_iter().find(|dir| !before.contains(dir) && dir.join("LOCK").exists());
            if let Some(new) = new {
                break new;
            }
            assert_eq!(child.try_wait().unwrap(), None);
            std::thread::sleep(Duration::from_millis(2));
        };
        std::thread::sleep(Duration::from_millis(50)); // it has locked it, and reads
        Waiting { child, stdin, staging }
    }

    /// The end of its records.
    fn end(self) -> (Option<i32>, String) {
        drop(self.stdin);
        let output = self.child.wait_with_output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }

    fn signal(&self, place: &Place, signal: &str) {
        assert!(place.command("kill", &[signal, &self.child.id().to_string()]).status().unwrap().success());
    }
}

/// Directories of builds in `tables`.
fn staged(place: &Place) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(place.path("tables")).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.file_name().unwrap().to_string_lossy().starts_with(".spillway-tables-"));
    paths
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// What a build that was killed (SIGKILL) while it read leaves: its directory.
fn killed(place: &Place) -> PathBuf {
    let args = [&BUILD[..], &["tables", "--name", "killed"]].concat();
    let mut build = Waiting::begin(place, place.command(SPILLWAY, &args));
    build.child.kill().unwrap();
    build.child.wait().unwrap();
    assert!(build.staging.join("LOCK").exists());
    build.staging
}

/// Builds into `tables`; returns how it ended and what it said on standard error.
fn build(place: &Place, name: &str) -> (Option<i32>, String) {
    let ran = place.spillway_reading(&[&BUILD[..], &["tables", "--name", name]].concat(), b"new\t1\n");
    (ran.code, ran.err)
}

#[test]
fn what_a_build_killed_while_it_read_left_is_removed_by_the_next() {
    let place = Place::new();
    killed(&place);
    assert_eq!(build(&place, "table"), (Some(0), String::new()), "there was nothing of it but a lock");
    assert_eq!(names(&place.path("tables")), ["table-000001.sst"]);
    let left = killed(&place);
    std::fs::write(left.join("000-000001.sst"), "half a table").unwrap();
    std::fs::write(left.join("000-000002.sst"), "half").unwrap();
    let note = "note: removed 2 files (16 B) that an interrupted build left in tables\n";
    assert_eq!(build(&place, "other"), (Some(0), note.to_owned()));
    assert_eq!(names(&place.path("tables")), ["other-000001.sst", "table-000001.sst"]);
}

/// A build that was killed when it had given some of three tables their names.
fn killed_in_mid_publish(named: usize) -> Place {
    let place = Place::new();
    let left = killed(&place);
    for nth in 1..=3 {
        let staged = left.join(format!("000-{nth:06}.sst"));
        std::fs::write(&staged, format!("table {nth}")).unwrap();
        if nth <= named {
            std::fs::hard_link(&staged, place.path(&format!("tables/table-{nth:06}.sst"))).unwrap();
        }
    }
    // These are others', whatever their names.
    std::fs::write(place.path("tables/mine-000001.sst"), "mine").unwrap();
    std::fs::hard_link(left.join("000-000001.sst"), place.path("tables/kept by hand")).unwrap();
    place
}

#[test]
fn a_part_of_a_killed_builds_tables_is_removed_by_the_next() {
    for (named, also) in [
        (0, ""),
        (1, ", and the names that 1 of its tables had already (tables/table-000001.sst, ...)"),
        (2, ", and the names that 2 of its tables had already (tables/table-000001.sst, ...)"),
    ] {
        let place = killed_in_mid_publish(named);
        let note = format!("note: removed 3 files (21 B) that an interrupted build left in tables{also}\n");
        assert_eq!(build(&place, "table"), (Some(0), note));
        assert_eq!(names(&place.path("tables")), ["kept by hand", "mine-000001.sst", "table-000001.sst"]);
        let table = std::fs::read(place.path("tables/table-000001.sst")).unwrap();
        assert!(!table.starts_with(b"table"), "it is the new one");
    }
}

#[test]
fn a_part_of_a_builds_tables_is_not_ingested() {
    for named in 1..=3 {
        let place = killed_in_mid_publish(named);
        place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], b"a\t1\n").ok();
        let error =
            place.spillway(&["ingest", "tables/mine-000001.sst", "tables/table-000001.sst", "--db", "db"]).fails();
        let part = "error: tables/table-000001.sst is one of the tables of a build that has not named all of them";
        assert_eq!(error.starts_with(part), named < 3, "{error}");
        assert!(named < 3 || error.contains("mine-000001.sst"), "it is no table: {error}");
    }
}

/// The tables are many and small, so that naming them takes its time.
#[test]
fn a_build_killed_while_it_names_its_tables_leaves_none_or_all() {
    let place = Place::new();
    place.write("in", (0..100_000).map(|key| format!("{key:08}\tvalue of {key}\n")).collect::<String>());
    let args = ["table", "build", "in", "--format", "kv", "--to", "tables", "--name", "killed", "--target-size", "4K"];
    let mut child = place.command(SPILLWAY, &args).stdout(Stdio::null()).spawn().unwrap();
    let is_named = |name: &String| name.starts_with("killed-");
    let named = || {
        std::fs::read_dir(place.path("tables"))
            .map_or(0, |_| names(&place.path("tables")).iter().filter(|n| is_named(n)).count())
    };
    while named() == 0 && child.try_wait().unwrap().is_none() {}
    child.kill().unwrap();
    child.wait().unwrap();
    let (before, (code, said)) = (named(), build(&place, "next"));
    assert_eq!((code, staged(&place)), (Some(0), Vec::new()), "{said}");
    let part = format!("and the names that {before} of its tables had already");
    let left = if said.replace(',', "").contains(&part) { 0 } else { before };
    assert!(left == 0 || said.is_empty() || said.contains("all of its tables have their names"), "{before}: {said}");
    assert_eq!(named(), left, "{said}");
}

#[test]
fn all_of_a_killed_builds_tables_stay() {
    let place = killed_in_mid_publish(3);
    let (code, error) = build(&place, "table");
    let note = "note: removed 3 files (21 B) that an interrupted build left in tables; all of its tables have their names \
                (tables/table-000001.sst, ...) and stay\nerror: there are tables of that name already";
    assert!(code == Some(1) && error.starts_with(note), "{error}");
    assert_eq!(build(&place, "other"), (Some(0), String::new()));
    let all = ["kept by hand", "mine-000001.sst", "other-000001.sst"];
    assert_eq!(names(&place.path("tables"))[..3], all);
    for nth in 1..=3 {
        assert_eq!(
            std::fs::read(place.path(&format!("tables/table-{nth:06}.sst"))).unwrap(),
            format!("table {nth}").into_bytes()
        );
    }
}

#[test]
fn a_build_that_lives_is_left_alone() {
    let place = Place::new();
    let first = Waiting::begin(&place, place.command(SPILLWAY, &[&BUILD[..], &["tables", "--name", "first"]].concat()));
    let begun = first.staging.join("000-000001.sst-begun");
    std::fs::write(&begun, "begun").unwrap();
    assert_eq!(build(&place, "second"), (Some(0), String::new()));
    assert!(begun.exists());
    assert_eq!(first.end(), (Some(0), String::new()));
    assert_eq!(names(&place.path("tables")), ["first-000001.sst", "second-000001.sst"]);
}

#[test]
fn what_may_be_anothers_is_named_and_not_touched() {
    let place = Place::new();
    let left = killed(&place);
    let elsewhere = place.path("elsewhere");
    std::fs::rename(&left, &elsewhere).unwrap();
    std::fs::write(elsewhere.join("000-000001.sst"), "a table").unwrap();
    std::os::unix::fs::symlink(&elsewhere, &left).unwrap();
    assert_eq!(build(&place, "a"), (Some(0), String::new()), "a link to a directory is none");
    let unlocked = place.path("tables/.spillway-tables-0123456789abcdef");
    std::fs::create_dir(&unlocked).unwrap();
    std::fs::write(unlocked.join("000-000001.sst"), "a table").unwrap();
    let warning = "warning: tables/.spillway-tables-0123456789abcdef has no lock that tells whether a build is at work in \
                   it: delete it if none is running\n";
    assert_eq!(build(&place, "b"), (Some(0), warning.to_owned()));
    std::os::unix::fs::symlink(elsewhere.join("LOCK"), unlocked.join("LOCK")).unwrap();
    assert_eq!(build(&place, "c"), (Some(0), warning.to_owned()), "a link is no lock");
    assert_eq!(names(&elsewhere), ["000-000001.sst", "LOCK"]);
    assert_eq!(names(&unlocked), ["000-000001.sst", "LOCK"]);
}

/// The terminal is closed. `env` makes sure of what the tests were started with.
#[test]
fn a_hangup_ends_a_build_without_a_trace_unless_it_is_ignored() {
    for (handling, code, said) in [
        ("--default-signal=HUP", Some(130), "error: interrupted: no tables were made\n"),
        ("--ignore-signal=HUP", Some(0), ""),
    ] {
        let place = Place::new();
        let build =
            Waiting::begin(&place, place.command("env", &[&[handling, SPILLWAY], &BUILD[..], &["tables"]].concat()));
        build.signal(&place, "-HUP");
        build.signal(&place, "-HUP"); // the shell tells of a terminal that is closed, and then the kernel
        if code == Some(0) {
            std::thread::sleep(Duration::from_millis(200)); // between two looks at signals there is half of that
            assert_eq!(build.end(), (code, said.to_owned()));
            assert_eq!(names(&place.path("tables")), ["table-000001.sst"]);
            continue;
        }
        let output = build.child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), &*String::from_utf8_lossy(&output.stderr)), (code, said));
        assert!(!place.path("tables").exists());
        drop(build.stdin);
    }
}
