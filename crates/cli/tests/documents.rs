//! The shell blocks of the documents run as they stand, each document's in one directory, in their order. `sh,no_run` marks
//! those that cannot: they build or test the repository. A `yaml` block that begins with `# NAME` is the file of that name.
//! /tmp, /var and the home directory lie in the test's own directory.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use common::{Place, SPILLWAY};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Folders whose documents count.
const FOLDERS: [&str; 3] = [".", "docs", "docs/format"];

/// Names of languages that are a shell's too: `sh` is the one to use.
const OTHER_SHELLS: [&str; 5] = ["bash", "shell", "console", "shellsession", "zsh"];

#[derive(Debug)]
struct Block {
    /// Of the line that opens it.
    line: usize,
    language: String,
    text: String,
}

fn blocks(document: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut is_open = false;
    for (line, text) in (1..).zip(document.lines()) {
        if let Some(language) = text.trim_start().strip_prefix("```") {
            if !is_open {
                found.push(Block { line, language: language.trim().to_owned(), text: String::new() });
            }
            is_open = !is_open;
        } else if is_open {
            let block = found.last_mut().unwrap();
            block.text += text;
            block.text.push('\n');
        }
    }
    assert!(!is_open, "a block is not closed: {found:?}");
    found
}

/// Runs the blocks of a document; how many, or what went wrong.
fn run(name: &str, document: &str) -> Result<usize, String> {
    let place = Place::new();
    let here = place.path("").display().to_string();
    for dir in ["bin", "home", "tmp", "var/lib", "work"] {
        std::fs::create_dir_all(place.path(dir)).unwrap();
    }
    std::os::unix::fs::symlink(SPILLWAY, place.path("bin/spillway")).unwrap();
    let moved = |text: &str| text.replace("/tmp/", &format!("{here}tmp/")).replace("/var/", &format!("{here}var/"));
    let (mut script, mut ran) = (String::new(), 0);
    for Block { line, language, text } in blocks(document) {
        let at = format!("{name}:{line}");
        match language.as_str() {
            "yaml" => {
                if let Some(file) = text.lines().next().and_then(|line| line.strip_prefix("# ")) {
                    place.write(&format!("work/{file}"), moved(&text));
                }
            }
            "sh" => {
                script += &format!("echo 'block at {at}' >&2\n{}", moved(&text));
                ran += 1;
            }
            other if OTHER_SHELLS.iter().any(|shell| other.starts_with(shell)) => {
                return Err(format!("{at}: shell blocks are marked sh, or sh,no_run, and not {other}"));
            }
            _ => {}
        }
    }
    // In one shell, as a reader has it: variables go on.
    bash(&place, &script).map(|()| ran)
}

fn bash(place: &Place, script: &str) -> Result<(), String> {
    let path = format!("{}:{}", place.path("bin").display(), std::env::var("PATH").unwrap());
    let mut command = place.command("bash", &["-euo", "pipefail", "-c", script]);
    command.current_dir(place.path("work")).env("PATH", path).env("HOME", place.path("home")).stdin(Stdio::null());
    let output = command.output().unwrap();
    if output.status.success() {
        return Ok(());
    }
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Err(format!("{}\n{out}\n{err}", output.status))
}

fn documents() -> Vec<PathBuf> {
    let of = |folder| std::fs::read_dir(Path::new(ROOT).join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<_> = FOLDERS.into_iter().flat_map(of).collect();
    all.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    all.sort();
    all
}

#[test]
fn every_shell_block_of_the_documents_runs_as_typed() {
    let mut ran = Vec::new();
    for path in documents() {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let count = run(&name, &std::fs::read_to_string(&path).unwrap()).unwrap_or_else(|error| panic!("{error}"));
        ran.push((name, count));
    }
    for expected in ["README.md", "cli.md", "configuration.md", "ingest.md", "operations.md"] {
        assert!(ran.iter().any(|(name, count)| name == expected && *count > 0), "no block of {expected} ran: {ran:?}");
    }
}

#[test]
fn a_block_that_fails_is_noticed() {
    let failing = "```sh\nspillway get nothing --db /tmp/none\necho on\n```\n";
    assert!(run("x.md", failing).unwrap_err().contains("x.md:1"));
    assert!(run("x.md", "```sh\nfalse | true\n```\n").is_err());
    assert!(run("x.md", "```bash\ntrue\n```\n").unwrap_err().contains("marked sh"));
    assert_eq!(run("x.md", "```sh,no_run\nfalse\n```\n```sh\ntest ! -e /tmp/spillway-documents\n```\n"), Ok(1));
}
