//! Every file-system call of a scripted life fails: once, or together with all later calls. In a short life it fails
//! in every way, in a long one in a part of the ways. `SPILLWAY_SAMPLE` rotates the part.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

use std::time::Duration;

use testkit::ingest::Way;
use testkit::random::sample;
use testkit::run::{Runner, run_and_look};
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

/// Faults applicable to an operation: an error before it, after it, or in the middle.
fn faults_of(operation: Operation) -> Vec<Fault> {
    let mut faults = vec![Fault::Error(FaultCode::Io), Fault::ErrorAfter(FaultCode::Io)];
    match operation {
        Operation::Read => faults.push(Fault::ShortRead),
        Operation::Write => faults.extend([Fault::ShortWrite(FaultCode::NoSpace), Fault::Error(FaultCode::NoSpace)]),
        Operation::Allocate | Operation::Create | Operation::CreateMapped => {
            faults.extend([Fault::Error(FaultCode::NoSpace), Fault::Error(FaultCode::TooManyFiles)]);
        }
        Operation::Open | Operation::OpenAppend => faults.push(Fault::Error(FaultCode::TooManyFiles)),
        // Blocks may be found only when they are written back, and a name may take one.
        Operation::Sync | Operation::SyncDir | Operation::Link | Operation::Rename => {
            faults.push(Fault::Error(FaultCode::NoSpace));
        }
        _ => {}
    }
    faults
}

/// Ways for a call to fail: once, or permanently.
fn ways_of(operation: Operation) -> Vec<(Fault, bool)> {
    faults_of(operation).into_iter().flat_map(|fault| [(fault, false), (fault, true)]).collect()
}

/// What part of the work a run does: every call fails, in every so manieth of its ways, beginning at another one with
/// each call.
#[derive(Clone, Copy)]
struct Turn {
    nth: usize,
    of: usize,
}

impl Turn {
    const ALL: Turn = Turn { nth: 0, of: 1 };

    fn has(self, call: u64, way: usize) -> bool {
        (call as usize + way) % self.of == self.nth
    }
}

fn fail_every_call(name: &'static str, profile: &'static str) {
    fail_calls(life(name, profile), Turn::ALL);
}

fn fail_calls(script: ops::Script, turn: Turn) {
    threads::within(LIMIT, move || {
        let (mut runs, mut fired) = (0u64, 0u64);
        for (operation, calls) in faults::count_calls(&script).unwrap() {
            let ways = ways_of(operation);
            assert!(ways.len() >= turn.of, "{operation:?}: some of its calls would not fail");
            for nth in 1..=calls {
                for (_, (fault, sticky)) in ways.iter().enumerate().filter(|(way, _)| turn.has(nth, *way)) {
                    let rule = Rule::new(*fault).on(operation).nth(nth);
                    let rule = if *sticky { rule.sticky() } else { rule };
                    let outcome = faults::run_with(&script, std::slice::from_ref(&rule));
                    let outcome = outcome.unwrap_or_else(|e| panic!("{}, {rule:?}: {e}\n{script}", script.profile));
                    runs += 1;
                    fired += u64::from(outcome.fired > 0);
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
    fail_calls(life("full.txt", "tiny"), turn(0, 2));
}

#[test]
fn a_full_life_whose_memtables_become_tables() {
    fail_calls(life("full.txt", "converted"), turn(1, 2));
}

#[test]
fn a_small_life_whose_memtables_are_written_out_as_tables() {
    fail_every_call("small.txt", "dumped");
}

/// `SPILLWAY_EFFORT=1` makes every call fail in each of its ways.
fn turn(nth: usize, of: usize) -> Turn {
    match std::env::var("SPILLWAY_EFFORT").as_deref() {
        Ok("1") => Turn::ALL,
        _ => Turn { nth: (nth + sample() as usize) % of, of },
    }
}

/// Every call of every life fails in a quarter of its ways, calls of commits, flushes and recoveries included. Ways are
/// I/O errors before or after the call, a full disk, and so on, once or permanently. The four lives together cover all
/// ways.
#[test]
fn lives_with_ingests() {
    let profiles = ["tiny", "queued", "vector", "static-levels"];
    for (nth, (way, profile)) in Way::ALL.into_iter().zip(profiles).enumerate() {
        let mut script = life("ingest.txt", profile);
        script.ingest_by(way);
        fail_calls(script, turn(nth, profiles.len()));
    }
}

/// Recovery queues the ingests again; its calls fail too.
#[test]
fn a_short_life_with_ingests_in_the_queue() {
    let script = life("queued.txt", "queued");
    let reopened = script.ops.iter().position(|op| matches!(op, ops::Op::Reopen)).unwrap();
    let before = ops::Script { ops: script.ops[..reopened].to_vec(), ..script.clone() };
    let queued = |runner: &Runner| runner.db().live_files().iter().filter(|file| file.is_queued).count();
    assert!(run_and_look(&before, queued).unwrap() >= 5, "recovery finds them in the log only");
    fail_calls(script, Turn::ALL);
}

/// Every call fails in a quarter of its ways: every way occurs, but not at every call.
#[test]
fn a_life_with_ingests_from_behind() {
    fail_calls(life("behind.txt", "tiny behind"), turn(0, 4));
}
