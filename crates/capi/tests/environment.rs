//! Options from the environment of a process (docs/configuration.md), over those of a C program that knows nothing of
//! them.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use std::path::Path;

use common::{compile, run, succeed};

const DOCUMENT: &str = "
CFOptions:
  store: { memtable_factory: { class: trie }, write_buffer_size: 1M }
  more: { num_levels: 4 }
DBOptions: { few: { max_open_files: 100 } }
databases:
  store: { params: { db_options: few, cf_options: store, dyna_cf_opt: more } }
";

/// What the newest options file of the database has.
fn stored(db: &Path) -> String {
    let files = std::fs::read_dir(db).unwrap().map(|entry| entry.unwrap().path());
    let newest = files.filter(|path| path.to_string_lossy().contains("OPTIONS-")).max().unwrap();
    std::fs::read_to_string(newest).unwrap()
}

#[test]
fn document_configures_a_program_that_does_not_know_it() {
    let dir = tempfile::tempdir().unwrap();
    let (program, document) = (compile("environment", dir.path()), dir.path().join("app.yaml"));
    std::fs::write(&document, DOCUMENT).unwrap();
    let mut command = run(&program);
    command.arg(dir.path()).env("SPILLWAY_CONFIG", &document).env("SPILLWAY_OPTIONS", "max_background_jobs=3");
    assert_eq!(succeed(&mut command), "opened\nopened\nok environment\n");
    let db = dir.path().join("store");
    let text = stored(&db);
    for line in ["max_open_files=100", "max_background_jobs=3", "write_buffer_size=1048576", "memtable_factory=trie"] {
        assert!(text.contains(&format!("  {line}\n")), "{line}:\n{text}");
    }
    let log = first_log(&db);
    let told = format!("SPILLWAY_CONFIG={}, database `store` and SPILLWAY_OPTIONS changed of ", document.display());
    for what in [
        "DBOptions: max_open_files=100;max_background_jobs=3",
        "CFOptions \"default\": write_buffer_size=1048576;memtable_factory=trie",
        "CFOptions \"later\": num_levels=4",
    ] {
        assert!(log.contains(&format!("{told}{what}")), "{what}:\n{log}");
    }
}

/// The event log of the first open.
fn first_log(db: &Path) -> String {
    let files = std::fs::read_dir(db).unwrap().map(|entry| entry.unwrap().path());
    let oldest = files.filter(|path| path.to_string_lossy().contains("LOG.old")).min().expect("opened twice");
    std::fs::read_to_string(oldest).unwrap()
}

#[test]
fn mistake_in_the_environment_fails_each_open() {
    let dir = tempfile::tempdir().unwrap();
    let (program, document) = (compile("environment", dir.path()), dir.path().join("app.yaml"));
    std::fs::write(&document, DOCUMENT.replace("num_levels", "num_level")).unwrap();
    let printed = succeed(run(&program).arg(dir.path()).env("SPILLWAY_CONFIG", &document));
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!((lines.len(), lines[0]), (3, lines[1]), "{printed}");
    for part in [
        "app.yaml",
        "line 4, column 11: CFOptions.more.num_level",
        "did you mean `num_levels`?",
        "unset SPILLWAY_CONFIG",
    ] {
        assert!(lines[0].contains(part), "{printed}");
    }
    let printed = succeed(run(&program).arg(dir.path()).env("SPILLWAY_OPTIONS", "num_level=3"));
    assert!(printed.contains("SPILLWAY_OPTIONS") && printed.contains("did you mean `num_levels`?"), "{printed}");
    assert!(!dir.path().join("store/CURRENT").exists());
}
