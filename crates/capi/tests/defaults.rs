//! Defaults are RocksDB's: those of Debian's library, where it is installed.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use common::{headers, library, source, succeed};

const DEBIANS: &str = "/usr/lib/x86_64-linux-gnu/librocksdb.so.7.8";

/// Where RocksDB changed its mind after 7.8, and where Debian's build differs from others.
const OTHERWISE: [&str; 2] = [
    "rocksdb_options_level_compaction_dynamic_level_bytes", // true since 8.4
    "rocksdb_options_info_log_level",                       // more is logged in builds with assertions
];

fn defaults(program: &Path, library: &Path) -> BTreeMap<String, String> {
    let printed = succeed(Command::new(program).arg(library));
    let pairs = printed.lines().map(|line| line.split_once(' ').expect("a name and a number"));
    pairs.map(|(name, number)| (name.to_owned(), number.to_owned())).collect()
}

#[test]
fn defaults_are_rocksdbs() {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("defaults");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-Wall", "-I"]).arg(headers()).arg(source("defaults")).arg("-o").arg(&program);
    succeed(compiler.arg("-ldl"));
    let ours = defaults(&program, &library());
    assert!(ours.len() > 150, "{} options", ours.len());
    if !Path::new(DEBIANS).exists() {
        eprintln!("{DEBIANS} is not installed: defaults are not compared");
        return;
    }
    let theirs = defaults(&program, Path::new(DEBIANS));
    assert!(theirs.len() > 100, "{} options of RocksDB", theirs.len());
    let differing: Vec<_> = theirs.iter().filter(|(name, number)| ours.get(*name) != Some(number)).collect();
    let names: Vec<&str> = differing.iter().map(|(name, _)| name.as_str()).filter(|n| !OTHERWISE.contains(n)).collect();
    assert!(names.is_empty(), "other than RocksDB's: {differing:?}");
}
