//! What RocksDB answers to wrong calls, ours begins with: programs match its words. `scripts/wrong-calls.sh` writes the
//! table's first two columns: the call, and RocksDB's answer. The third is how ours begins where it differs, the fourth why.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use common::{compile, run, succeed};

const TABLE: &str = include_str!("names/wrong-calls-11.8.1.tsv");

/// An error begins with `expected`; `ok` and values are equal to it.
fn agrees(ours: &str, expected: &str) -> bool {
    if expected.contains(": ") { ours.starts_with(expected.trim_end()) } else { ours == expected }
}

fn difference(row: &str, answer: &str) -> Option<String> {
    let columns: Vec<&str> = row.split('\t').collect();
    let [call, theirs, ours, reason] = columns.try_into().unwrap_or_else(|_| panic!("not four columns: {row}"));
    assert_eq!(ours.is_empty(), reason.is_empty(), "an answer of ours goes with a reason: {row}");
    let (named, answer) = answer.split_once('\t').unwrap();
    assert_eq!(named, call, "the program's calls and the table's are others: scripts/wrong-calls.sh");
    if ours.is_empty() {
        return (!agrees(answer, theirs)).then(|| format!("{call}\n  RocksDB: {theirs}\n  ours:    {answer}"));
    }
    if agrees(answer, theirs) {
        return Some(format!("{call}\n  agrees with RocksDB: its exception can go"));
    }
    (!agrees(answer, ours)).then(|| format!("{call}\n  in the table: {ours}\n  ours:         {answer}"))
}

#[test]
fn answers_to_wrong_calls_begin_as_rocksdbs() {
    let dir = tempfile::tempdir().unwrap();
    let program = compile("wrong_calls", dir.path());
    let made = dir.path().join("made");
    std::fs::create_dir(&made).unwrap();
    let answers = succeed(run(&program).arg(&made));
    assert_eq!(answers.lines().count(), TABLE.lines().count(), "not one answer for each row: scripts/wrong-calls.sh");
    let different: Vec<String> =
        TABLE.lines().zip(answers.lines()).filter_map(|(row, answer)| difference(row, answer)).collect();
    assert!(different.is_empty(), "{} of {}:\n{}", different.len(), TABLE.lines().count(), different.join("\n"));
}
