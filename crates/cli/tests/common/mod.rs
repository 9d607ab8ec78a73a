//! Running the binary, and RocksDB's.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(dead_code, reason = "each test file uses some of it")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const SPILLWAY: &str = env!("CARGO_BIN_EXE_spillway");

/// What a command did.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// Its standard output, where it succeeded and said nothing else, but for notes.
    #[track_caller]
    pub fn ok(self) -> String {
        let said: Vec<&str> = self.err.lines().filter(|line| !line.starts_with("note: ")).collect();
        assert_eq!((self.code, said.join("\n").as_str()), (Some(0), ""), "stdout: {}", self.out);
        self.out
    }

    /// Its standard error, where it failed as a command should: with 1, and without a panic.
    #[track_caller]
    pub fn fails(self) -> String {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert!(!self.err.contains("panicked"), "{self:?}");
        self.err
    }
}

/// A directory of its own, in which commands run.
pub struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub fn new() -> Place {
        Place { dir: tempfile::tempdir().expect("a temporary directory") }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("written");
    }

    pub fn command(&self, program: &str, args: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(args).current_dir(self.dir.path()).env_remove("SPILLWAY_DB");
        command
    }

    pub fn spillway(&self, args: &[&str]) -> Ran {
        run(self.command(SPILLWAY, args), b"")
    }

    pub fn spillway_reading(&self, args: &[&str], input: &[u8]) -> Ran {
        self.reading(SPILLWAY, args, input)
    }

    pub fn reading(&self, program: &str, args: &[&str], input: &[u8]) -> Ran {
        run(self.command(program, args), input)
    }

    /// RocksDB's command-line tool.
    pub fn ldb(&self, args: &[&str], input: &[u8]) -> Ran {
        self.reading("ldb", args, input)
    }

    /// A copy of a fixture directory.
    pub fn copy_of(&self, from: &Path, name: &str) {
        let to = self.path(name);
        std::fs::create_dir(&to).expect("made");
        for entry in std::fs::read_dir(from).expect("a fixture") {
            let entry = entry.expect("listed");
            std::fs::write(to.join(entry.file_name()), std::fs::read(entry.path()).expect("read")).expect("copied");
        }
    }

    /// The only file in a directory whose name holds `part`.
    pub fn only_file(&self, dir: &str, part: &str) -> PathBuf {
        let all = files(&self.path(dir)).into_iter().map(|(path, _)| path);
        let mut found = all.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(part)));
        let only = found.next().expect("a file of that name");
        assert_eq!(found.next(), None, "more than one {part}");
        only
    }

    /// Of numbered files the one with the largest number.
    pub fn newest_file(&self, dir: &str, part: &str) -> PathBuf {
        let all = files(&self.path(dir)).into_iter().map(|(path, _)| path);
        let named = all.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().contains(part)));
        named.max().expect("a file of that name")
    }
}

/// Files of a directory with their contents, by name.
pub fn files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let paths = std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("listed").path());
    let paths = paths.filter(|path| !path.is_dir());
    let mut files: Vec<_> = paths.map(|path| (path.clone(), std::fs::read(path).expect("read"))).collect();
    files.sort();
    files
}

/// Runs a command with this input.
pub fn run(mut command: Command, input: &[u8]) -> Ran {
    let program = command.get_program().to_string_lossy().into_owned();
    let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let hint = "cannot run it; ldb is in Debian's rocksdb-tools, which `make test` installs";
    let mut child = spawned.unwrap_or_else(|e| panic!("{program}: {hint}: {e}"));
    let mut stdin = child.stdin.take().expect("piped");
    let input = input.to_vec();
    std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(&input)); // a command that has read enough closes the pipe
        let output = child.wait_with_output().expect("ran");
        Ran {
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    })
}
