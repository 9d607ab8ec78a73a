//! `make install`: what is installed is found by pkg-config, compiled against, linked and run.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use std::path::Path;
use std::process::Command;

use common::{library, root, source, succeed};

/// Installs the library that the tests have built.
fn install(prefix: &Path, destdir: &Path) {
    let mut install = Command::new(root().join("../../scripts/install.sh"));
    succeed(install.env("LIBROCKSDB", library()).env("PREFIX", prefix).env("DESTDIR", destdir));
}

fn sections(file: &Path) -> String {
    succeed(Command::new("readelf").args(["--sections", "--wide"]).arg(file))
}

#[test]
fn what_is_installed_is_found_compiled_linked_and_run() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = dir.path().join("usr");
    install(&prefix, Path::new(""));
    let lib = prefix.join("lib");
    let mut asked = Command::new("pkg-config");
    let flags = succeed(asked.env("PKG_CONFIG_PATH", lib.join("pkgconfig")).args(["--cflags", "--libs", "rocksdb"]));
    let program = dir.path().join("basics");
    let mut compiler = Command::new("cc");
    succeed(compiler.arg(source("basics")).args(flags.split_whitespace()).arg("-o").arg(&program));
    succeed(Command::new(&program).arg(dir.path()).env("LD_LIBRARY_PATH", &lib));

    // Programs that were linked elsewhere find it too, and debuggers find its symbols.
    for name in ["librocksdb.so", "librocksdb.so.11", "librocksdb.so.11.1"] {
        let target = std::fs::canonicalize(lib.join(name)).unwrap();
        assert_eq!(target.file_name().unwrap(), "librocksdb.so.11.1.0", "{name}");
    }
    let stripped = sections(&lib.join("librocksdb.so.11.1.0"));
    assert!(stripped.contains(".gnu_debuglink") && !stripped.contains(".debug_line"), "{stripped}");
    assert!(sections(&lib.join("librocksdb.so.11.1.0.debug")).contains(".debug_line"));
}

/// As packages are built: into a folder that is not where the files will lie.
#[test]
fn a_staged_installation_names_its_final_place() {
    let dir = tempfile::tempdir().unwrap();
    install(Path::new("/opt/spillway"), dir.path());
    let staged = dir.path().join("opt/spillway");
    let pc = std::fs::read_to_string(staged.join("lib/pkgconfig/rocksdb.pc")).unwrap();
    assert!(pc.contains("prefix=/opt/spillway\n") && !pc.contains(dir.path().to_str().unwrap()), "{pc}");
    assert!(staged.join("include/rocksdb/c.h").exists() && staged.join("include/rocksdb/c/database.h").exists());
}

/// Stands for the command, which another package builds: it says where its pages and completions go.
const COMMAND: &str = r#"
#include <stdio.h>
#include <string.h>
int main(int argc, char** argv) {
    char page[4096];
    FILE* out = stdout;
    if (argc == 4 && strcmp(argv[1], "man") == 0 && strcmp(argv[2], "--to") == 0) {
        snprintf(page, sizeof page, "%s/spillway.1", argv[3]);
        out = fopen(page, "w");
    }
    return out == NULL || fprintf(out, "%s of %s", argv[1], argv[2]) < 0;
}
"#;

#[test]
fn the_command_is_installed_with_its_manual_and_completions() {
    let dir = tempfile::tempdir().unwrap();
    let (text, command, prefix) = (dir.path().join("command.c"), dir.path().join("command"), dir.path().join("usr"));
    std::fs::write(&text, COMMAND).unwrap();
    succeed(Command::new("cc").arg("-g").arg(&text).arg("-o").arg(&command));
    let mut install = Command::new(root().join("../../scripts/install.sh"));
    install.env("LIBROCKSDB", library()).env("PREFIX", &prefix).env("DESTDIR", "").env("SPILLWAY", &command);
    assert!(succeed(&mut install).contains("ldconfig"), "the loader is not mentioned");
    let read = |path: &str| std::fs::read_to_string(prefix.join(path)).unwrap();
    assert_eq!(read("share/man/man1/spillway.1"), "man of --to");
    assert_eq!(read("share/bash-completion/completions/spillway"), "completions of bash");
    assert_eq!(read("share/zsh/site-functions/_spillway"), "completions of zsh");
    assert_eq!(read("share/fish/vendor_completions.d/spillway.fish"), "completions of fish");
    assert_eq!(succeed(Command::new(prefix.join("bin/spillway")).args(["runs", "here"])), "runs of here");
    assert!(!sections(&prefix.join("bin/spillway")).contains(".debug_info"));

    // Nothing is installed of what is not there.
    let nowhere = dir.path().join("nowhere");
    install.env("PREFIX", &nowhere).env("SPILLWAY", dir.path().join("none"));
    assert!(!install.output().unwrap().status.success() && !nowhere.exists());
}
