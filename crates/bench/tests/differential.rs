//! Random histories on our C library and RocksDB's, for some seconds: every call answers the same. `scripts/nightly.sh differential`
//! runs a million steps.

use std::path::Path;
use std::process::Command;

/// Of one history. Few, so that many begin.
const STEPS: &str = "400";

/// No history begins later.
const SECONDS: &str = "8";

#[test]
fn both_libraries_answer_alike() {
    let program = Path::new(env!("CARGO_BIN_EXE_differential"));
    let ours = program.with_file_name("librocksdb.so");
    let theirs = program.with_file_name("../rocksdb-11.8.1/librocksdbjni-linux64.so");
    for (library, remedy) in [(&ours, "cargo build -p spillway-db-capi"), (&theirs, "scripts/setup.sh compare")] {
        if !library.exists() {
            eprintln!("SKIPPED: {library:?} is not there; {remedy} makes it");
            return;
        }
    }
    let dir = tempfile::tempdir().unwrap();
    // Other histories with each commit, as the gate's other samples.
    let sample: u64 = std::env::var("SPILLWAY_SAMPLE").map_or(0, |text| text.parse().unwrap());
    let output = Command::new(program)
        .args(["--ours".as_ref(), ours.as_os_str(), "--theirs".as_ref(), theirs.as_os_str()])
        .args(["--dir".as_ref(), dir.path().join("work").as_os_str()])
        .args(["--seed", &(sample * 1000 + 1).to_string(), "--seeds", "1000"])
        .args(["--ops", STEPS, "--seconds", SECONDS, "--verbose"])
        .output()
        .unwrap();
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{said}{complained}", output.status);
    assert!(said.contains("0 with a difference"), "{said}");
}
