//! The built library, and C programs built against it.
#![allow(dead_code, reason = "each test program uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Where the crate lies.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub fn headers() -> PathBuf {
    root().join("include")
}

/// The profile's folder of the target directory: that of the running test, whatever `CARGO_TARGET_DIR` says.
fn profile_dir() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    exe.parent().and_then(Path::parent).expect("target/PROFILE/deps/test").to_owned()
}

/// The folder with the shared library, built here with the tests' profile: Cargo builds none for tests. The workspace and
/// a test make the features those of `cargo test --workspace`; others would have every crate built again.
pub fn library_dir() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let dir = profile_dir();
        let mut build = Command::new(env!("CARGO"));
        build.args(["build", "--quiet", "--workspace", "--lib", "--test", "header", "--target-dir"]);
        build.arg(dir.parent().expect("a target directory")).current_dir(root());
        if dir.ends_with("release") {
            build.arg("--release");
        }
        let status = build.status().unwrap();
        assert!(status.success(), "the library was not built");
        dir
    })
}

pub fn library() -> PathBuf {
    library_dir().join("librocksdb.so")
}

/// Runs a command that must succeed; returns what it printed.
pub fn succeed(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

/// RocksDB's names, and our own beside them.
pub fn is_of_the_api(name: &str) -> bool {
    name.starts_with("rocksdb_") || name.starts_with("spillway_")
}

/// The C programs, by name.
pub const PROGRAMS: [&str; 30] = [
    "absent",
    "answers",
    "background",
    "backups",
    "basics",
    "batches",
    "eager_flush",
    "exports",
    "extend",
    "families",
    "files",
    "forked",
    "full_disk",
    "indexed",
    "locking",
    "options",
    "options_life",
    "prepared",
    "properties",
    "repair",
    "resources",
    "secondary",
    "silent",
    "tailing",
    "texts",
    "transactions",
    "ttl",
    "updates",
    "vectors",
    "walks",
];

pub fn source(name: &str) -> PathBuf {
    root().join("tests/c").join(format!("{name}.c"))
}

/// Builds a C program against the library, into `dir`. Further flags for the compiler come from `CAPI_TEST_CFLAGS`.
pub fn compile(name: &str, dir: &Path) -> PathBuf {
    let program = dir.join(name);
    let mut compiler = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".to_owned()));
    compiler.args(["-std=c11", "-g", "-Wall", "-Wextra", "-Werror", "-I"]).arg(headers());
    if let Ok(flags) = std::env::var("CAPI_TEST_CFLAGS") {
        compiler.args(flags.split_whitespace());
    }
    compiler.arg(source(name)).arg("-o").arg(&program);
    compiler.arg("-L").arg(library_dir()).arg("-lrocksdb");
    succeed(&mut compiler);
    program
}

/// A command for a program that finds the library under the name that it was linked with, where the build left that.
pub fn run(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env("LD_LIBRARY_PATH", library_dir());
    command
}
