//! The shell blocks of the documents run as they stand, each document's in one directory, in their order. `sh,no_run` marks
//! those that cannot: they build or test the repository. A `yaml` block that begins with `# NAME` is the file of that name.
//! /tmp, /var and the home directory lie in the test's own directory.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeSet;
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

/// What the guide says of limits and defaults, and the line of the code that makes it so. Who changes one finds the other.
const SAID: [(&str, &str, &str); 15] = [
    (
        "| a key, an end of a range deletion | 16 MiB less 8 bytes |",
        "base/src/limits.rs",
        "KEY_BYTES_MAX: usize = (16 << 20) - TRAILER_BYTES",
    ),
    (
        "| a key and its value or operand together | 4032 MiB less 8 bytes: ",
        "base/src/limits.rs",
        "ENTRY_BYTES_MAX: usize = (4032 << 20) - TRAILER_BYTES",
    ),
    (
        "| what merge operands become | no limit for reads; above what a table can hold, tables keep the operands apart",
        "base/src/limits.rs",
        "ENTRY_BYTES_MAX",
    ),
    ("| a batch | 4 GiB - 1 bytes, ", "spillway/src/batch/mod.rs", "BATCH_BYTES_MAX: u64 = wal::PAYLOAD_BYTES_MAX"),
    ("| a batch | 4 GiB - 1 bytes, ", "wal/src/format.rs", "PAYLOAD_BYTES_MAX: u64 = u32::MAX as u64"),
    ("| sequence numbers | 2^56 - 1; ", "base/src/key.rs", "MAX: SeqNo = SeqNo((1 << 56) - 1)"),
    ("| levels | 64 |", "spillway/src/version/version.rs", "LEVELS_MAX: usize = 64"),
    ("| levels | 64 |", "base/src/options/family.rs", "num_levels: usize = 7, within(1.0, 64.0)"),
    (
        "| `write_buffer_size` | 64 KiB to 1 TiB |",
        "base/src/options/family.rs",
        "write_buffer_size: usize = 64 << 20, within(65536.0, 1099511627776.0)",
    ),
    (
        "| `log_file_bytes` | 64 KiB to 16 GiB; ",
        "base/src/options/db.rs",
        "log_file_bytes: u64 = 64 * MIB, within(65536.0, 17179869184.0)",
    ),
    (
        "| `block_size` | 64 bytes to 16 MiB |",
        "base/src/options/table.rs",
        "block_size: usize = 4096, within(64.0, 16777216.0)",
    ),
    (
        "| writes in flight | 256 |",
        "spillway/src/order/pipeline.rs",
        "IN_FLIGHT_MAX: usize = if cfg!(loom) { 2 } else { 256 }",
    ),
    (
        "older writes: 256 are under way",
        "spillway/src/order/pipeline.rs",
        "IN_FLIGHT_MAX: usize = if cfg!(loom) { 2 } else { 256 }",
    ),
    (
        "Threads start when there is work and end\nafter 60 idle seconds",
        "spillway/src/background/env.rs",
        "IDLE_MAX: Duration = Duration::from_secs(60)",
    ),
    ("256 MiB at the most", "spillway/src/core/reserve.rs", "LARGEST_BYTES_MAX: u64 = 256 << 20"),
];

#[test]
fn limits_and_defaults_of_the_guide_are_those_of_the_code() {
    let read = |path: &str| std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
    let guide = read("docs/guide.md");
    for (said, file, code) in SAID {
        assert!(guide.contains(said), "docs/guide.md does not say: {said}");
        let made = read(&format!("crates/{file}"));
        assert!(made.contains(code), "crates/{file} has no longer: {code}. Change docs/guide.md, which says: {said}");
    }
    let (_, limits) = guide.split_once("## Limits\n").unwrap();
    for row in limits.lines().filter(|line| line.starts_with("| ")).skip(1) {
        assert!(SAID.iter().any(|(said, ..)| row.starts_with(said)), "no line of the code stands for: {row}");
    }
}

#[test]
fn every_kind_of_error_has_a_row_in_the_guide() {
    let read = |path: &str| std::fs::read_to_string(Path::new(ROOT).join(path)).unwrap();
    let (guide, code) = (read("docs/guide.md"), read("crates/base/src/error.rs"));
    let (_, kinds) = code.split_once("pub enum ErrorKind {\n").unwrap();
    let (kinds, _) = kinds.split_once("\n}\n").unwrap();
    let kinds: BTreeSet<_> = kinds.lines().filter_map(|line| line.trim().strip_suffix(',')).collect();
    let (_, rows) = guide.split_once("| kind | means | do |\n|---|---|---|\n").unwrap();
    let rows = rows.lines().take_while(|line| line.starts_with("| `"));
    let told: BTreeSet<_> = rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect();
    assert_eq!(told, kinds);
}

#[test]
fn a_block_that_fails_is_noticed() {
    let failing = "```sh\nspillway get nothing --db /tmp/none\necho on\n```\n";
    assert!(run("x.md", failing).unwrap_err().contains("x.md:1"));
    assert!(run("x.md", "```sh\nfalse | true\n```\n").is_err());
    assert!(run("x.md", "```bash\ntrue\n```\n").unwrap_err().contains("marked sh"));
    assert_eq!(run("x.md", "```sh,no_run\nfalse\n```\n```sh\ntest ! -e /tmp/spillway-documents\n```\n"), Ok(1));
}
