//! Every call of the file system fails once, in every way, during a scripted life; and from every call on, all do.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::time::Duration;

use testkit::ingest::Way;
use testkit::{faults, ops, parse, threads};
use vfs::{Fault, FaultCode, Operation, Rule};

const LIMIT: Duration = Duration::from_secs(600);

fn life(name: &str, profile: &str) -> ops::Script {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lives").join(name);
    let mut script = parse::script(&std::fs::read_to_string(path).unwrap()).unwrap();
    script.profile = profile.to_owned();
    // A file that cannot be removed stays until the next open, and is no failure then.
    script.ops.retain(|op| !matches!(op, ops::Op::Abandon(_)));
    script
}

/// What can be made of a call: an error before it, after it, in the middle of it.
fn faults_of(operation: Operation) -> Vec<Fault> {
    let mut faults = vec![Fault::Error(FaultCode::Io), Fault::ErrorAfter(FaultCode::Io)];
    match operation {
        Operation::Read => faults.push(Fault::ShortRead),
        Operation::Write => faults.extend([Fault::ShortWrite(FaultCode::NoSpace), Fault::Error(FaultCode::NoSpace)]),
        Operation::Allocate | Operation::Create | Operation::CreateMapped => {
            faults.extend([Fault::Error(FaultCode::NoSpace), Fault::Error(FaultCode::TooManyFiles)]);
        }
        Operation::Open | Operation::OpenAppend => faults.push(Fault::Error(FaultCode::TooManyFiles)),
        _ => {}
    }
    faults
}

fn fail_every_call(name: &'static str, profile: &'static str) {
    fail_calls(life(name, profile), 1);
}

/// Every so manieth call of each operation fails.
fn fail_calls(script: ops::Script, stride: usize) {
    threads::within(LIMIT, move || {
        let (mut runs, mut fired) = (0u64, 0u64);
        for (at, (operation, calls)) in faults::count_calls(&script).unwrap().into_iter().enumerate() {
            for nth in (1 + (at % stride) as u64..=calls).step_by(stride) {
                for fault in faults_of(operation) {
                    for sticky in [false, true] {
                        let rule = Rule::new(fault).on(operation).nth(nth);
                        let rule = if sticky { rule.sticky() } else { rule };
                        let outcome = faults::run_with(&script, std::slice::from_ref(&rule));
                        let outcome = outcome.unwrap_or_else(|e| panic!("{}, {rule:?}: {e}\n{script}", script.profile));
                        runs += 1;
                        fired += u64::from(outcome.fired > 0);
                    }
                }
            }
        }
        println!("{}: {runs} runs", script.profile);
        assert!(fired * 10 > runs * 9, "only {fired} of {runs} faults came about");
    });
}

#[test]
fn a_small_life_with_mapped_logs() {
    fail_every_call("small.txt", "static-levels");
}

#[test]
fn a_small_life_with_written_logs() {
    fail_every_call("small.txt", "vector");
}

#[test]
fn a_full_life() {
    fail_every_call("full.txt", "tiny");
}

#[test]
fn a_full_life_whose_memtables_become_tables() {
    fail_every_call("full.txt", "converted");
}

#[test]
fn a_small_life_whose_memtables_are_written_out_as_tables() {
    fail_every_call("small.txt", "dumped");
}

/// `SPILLWAY_EFFORT=1` has every call fail.
#[test]
fn lives_with_ingests() {
    let stride = if std::env::var("SPILLWAY_EFFORT").as_deref() == Ok("1") { 1 } else { 7 };
    let profiles = ["tiny", "queued", "vector", "static-levels"];
    for (way, profile) in Way::ALL.into_iter().zip(profiles) {
        let mut script = life("ingest.txt", profile);
        script.ingest_by(way);
        fail_calls(script, stride);
    }
    fail_calls(life("behind.txt", "tiny behind"), 2 * stride - 1);
}
