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
