//! `include/rocksdb/c.h` says what the library has, no more and no less, and every dialect of C and C++ can read it.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use std::collections::BTreeSet;
use std::process::Command;

use common::{headers, library, library_dir, root, succeed};

/// The functions that the header declares, after the preprocessor.
fn declared() -> BTreeSet<String> {
    let header = headers().join("rocksdb/c.h");
    let text = succeed(Command::new("cc").args(["-E", "-P", "-x", "c"]).arg(header));
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '(');
    let called = words.filter_map(|word| word.split_once('(').map(|(name, _)| name));
    called.filter(|name| common::is_of_the_api(name)).map(str::to_owned).collect()
}

fn exported() -> BTreeSet<String> {
    let listed = succeed(Command::new("nm").args(["--dynamic", "--defined-only"]).arg(library()));
    let names = listed.lines().filter_map(|line| line.split_whitespace().last());
    names.filter(|name| common::is_of_the_api(name)).map(str::to_owned).collect()
}

#[test]
fn header_and_library_have_the_same_functions() {
    let (declared, exported) = (declared(), exported());
    assert!(exported.len() > 1000, "{} functions", exported.len());
    let undeclared: Vec<_> = exported.difference(&declared).collect();
    let missing: Vec<_> = declared.difference(&exported).collect();
    assert!(undeclared.is_empty() && missing.is_empty(), "undeclared: {undeclared:?}\nmissing: {missing:?}");
}

/// What RocksDB 11.8.1's library exports.
const ROCKSDBS: &str = include_str!("names/rocksdb-11.8.1.txt");

/// Which of its functions are missing here is a list in the documents, and their numbers are true. `UPDATE=1` writes the
/// list.
#[test]
fn what_is_missing_is_listed() {
    let ours = exported();
    let missing: Vec<&str> = ROCKSDBS.lines().filter(|name| !ours.contains(*name)).collect();
    let list = root().join("../../docs/missing-c-names.txt");
    let text = missing.join("\n") + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&list, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(list).unwrap(), text, "UPDATE=1 writes the list anew");
    let compat = std::fs::read_to_string(root().join("../../docs/compat.md")).unwrap();
    let (all, theirs) = (ours.len(), ROCKSDBS.lines().count());
    for said in [
        format!("exports {all} functions"),
        format!("{} of the {theirs} of RocksDB 11.8.1", theirs - missing.len()),
        format!("{} are missing", missing.len()),
    ] {
        assert!(compat.contains(&said), "docs/compat.md does not say \"{said}\"");
    }
}

#[test]
fn the_library_has_rocksdbs_name() {
    let said = succeed(Command::new("readelf").arg("--dynamic").arg(library()));
    assert!(said.contains("Library soname: [librocksdb.so.11]"), "{said}");
    // The build leaves that name beside the library, so that programs linked there run.
    for name in ["librocksdb.so.11", "librocksdb.so.11.1"] {
        let linked = std::fs::canonicalize(library_dir().join(name)).unwrap();
        assert_eq!(linked, std::fs::canonicalize(library()).unwrap(), "{name}");
    }
}

#[test]
fn the_header_is_clean_in_every_dialect() {
    let dir = tempfile::tempdir().unwrap();
    for (dialect, extension) in
        [("c89", "c"), ("c99", "c"), ("c11", "c"), ("c17", "c"), ("c++11", "cc"), ("c++20", "cc")]
    {
        let source = dir.path().join(format!("{}.{extension}", dialect.replace('+', "x")));
        let text = "#include \"rocksdb/c.h\"\nint main(void) { return rocksdb_options_create() == NULL; }\n";
        std::fs::write(&source, text).unwrap();
        let mut compiler = Command::new("cc");
        compiler.arg(format!("-std={dialect}")).args(["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]);
        succeed(compiler.arg("-I").arg(headers()).arg(source));
    }
}
