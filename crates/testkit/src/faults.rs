//! Scripts on a failing file system. Reads show every acknowledged write. A reopening without faults finds all of them;
//! a reopening after a power loss finds the synced ones (D1, D2, D4). After a failed sync the file system reports
//! success but does nothing, so an engine that retries the sync loses acknowledged writes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use vfs::{CrashPolicy, FaultVfs, MemoryVfs, Operation, Rule};

use crate::crash::{Expectation, Names, recover};
use crate::model::{Model, Point};
use crate::ops::{Change, Op, Script};
use crate::profile::{self, Profile};
use crate::run::{Failure, Runner, panic_message};

/// Outcome of a run with faults.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Injected faults.
    pub fired: u64,
    /// Operations with an error.
    pub errors: u64,
}

/// Counts the script's calls of each file-system operation.
///
/// # Errors
/// The script fails even without a fault.
pub fn count_calls(script: &Script) -> Result<Vec<(Operation, u64)>, String> {
    let vfs = FaultVfs::new(MemoryVfs::new(1));
    let profile = profile::by_name(&script.profile).ok_or_else(|| format!("no profile {}", script.profile))?;
    let mut life = Life::default();
    life.run(&vfs, profile, script)?;
    match life.errors {
        0 => Ok(Operation::ALL.into_iter().map(|operation| (operation, vfs.calls(operation))).collect()),
        _ => Err("the script fails without faults".to_owned()),
    }
}

/// Runs the script under `rules`, then reopens without them, also after a power loss.
///
/// # Errors
/// An acknowledged write is missing, or the engine panicked.
pub fn run_with(script: &Script, rules: &[Rule]) -> Result<Outcome, String> {
    let profile = profile::by_name(&script.profile).ok_or_else(|| format!("no profile {}", script.profile))?;
    let memory = MemoryVfs::new(1);
    let faulty = FaultVfs::new(memory.clone());
    for rule in rules {
        faulty.inject(rule.clone());
    }
    let mut life = Life::default();
    life.run(&faulty, profile, script)?;
    let power_lost = memory.crash_clone(1, CrashPolicy::NothingUnsyncedKept);
    life.reopen(&memory, profile, life.model.now()).map_err(|failure| format!("reopened: {failure}"))?;
    let durable = life.model.durable();
    life.reopen(&power_lost, profile, durable).map_err(|failure| format!("reopened after a power loss: {failure}"))?;
    Ok(Outcome { fired: faulty.fired(), errors: life.errors })
}

/// State of a database with failed operations.
#[derive(Default)]
struct Life {
    model: Model,
    errors: u64,
    /// Points of failed writes: such a write may be found later if nothing was acknowledged since.
    uncertain: Vec<Point>,
    /// Possible sets of families: a failed creation or drop may have taken effect.
    names: Vec<Names>,
}

impl Life {
    /// Runs the script to its end, or until the database cannot be opened again.
    fn run(&mut self, vfs: &Arc<FaultVfs>, profile: Profile, script: &Script) -> Result<(), String> {
        let caught = catch_unwind(AssertUnwindSafe(|| Runner::open(vfs.clone(), profile, Model::default())));
        let opened = caught.map_err(|panic| format!("opening panicked: {}", panic_message(&*panic)))?;
        let Ok(mut runner) = opened else {
            self.errors += 1;
            return Ok(());
        };
        for (index, op) in script.ops.iter().enumerate() {
            // A later open may show failed operations; the final reopening checks this.
            match op {
                Op::Reopen | Op::ReadOnly { closed: true } if self.errors > 0 => break,
                Op::ReadOnly { closed: false } if self.errors > 0 => continue,
                _ => {}
            }
            let stepped = catch_unwind(AssertUnwindSafe(|| self.step(&mut runner, op)));
            let stepped = stepped.map_err(|panic| Failure::Difference(format!("panicked: {}", panic_message(&*panic))));
            stepped.and_then(|result| result).map_err(|e| format!("operation {} ({op}): {e}", index + 1))?;
            if !runner.is_open() {
                break;
            }
        }
        let ended = catch_unwind(AssertUnwindSafe(|| runner.abandon()));
        self.model = ended.map_err(|panic| format!("closing panicked: {}", panic_message(&*panic)))?;
        Ok(())
    }

    fn step(&mut self, runner: &mut Runner, op: &Op) -> Result<(), Failure> {
        let before = (runner.model.now(), runner.model.names().clone());
        match runner.step(op) {
            Ok(()) => {
                if runner.model.now() > before.0 {
                    self.uncertain.clear();
                }
                if *runner.model.names() != before.1 {
                    self.names.clear();
                }
                Ok(())
            }
            Err(Failure::Engine(_)) => {
                self.errors += 1;
                if runner.is_open() { self.after_error(runner, op) } else { Ok(()) }
            }
            Err(difference) => Err(difference),
        }
    }

    /// Determines the effect of a failed operation.
    fn after_error(&mut self, runner: &mut Runner, op: &Op) -> Result<(), Failure> {
        match op {
            Op::Single(change, _) => self.after_failed_changes(runner, std::slice::from_ref(change)),
            Op::Batch(changes, _) => self.after_failed_changes(runner, changes),
            Op::Ingest(_) | Op::Commit(_) => match runner.attempted.take() {
                Some(ingest) => self.after_failed_write(runner, runner.model.after_ingest(&ingest)),
                None => Ok(()),
            },
            Op::Create(name) | Op::Drop(name) => {
                let mut there = runner.model.clone();
                there.drop(name);
                self.names.push(there.names().clone());
                there.create(name);
                self.names.push(there.names().clone());
                self.names.push(runner.model.names().clone());
                match (runner.db().family(name).is_some(), runner.model.family(name)) {
                    (true, None) => runner.model.create(name),
                    (false, Some(_)) => runner.model.drop(name),
                    _ => {}
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn after_failed_changes(&mut self, runner: &mut Runner, changes: &[Change]) -> Result<(), Failure> {
        let point = runner.model.after(&runner.model.applicable(changes));
        self.after_failed_write(runner, point)
    }

    /// A failed write, leading to `point`, is either invisible or, if only its sync failed, visible as a whole.
    fn after_failed_write(&mut self, runner: &mut Runner, point: Point) -> Result<(), Failure> {
        let without = match runner.check() {
            Ok(()) => {
                self.uncertain.push(point);
                return Ok(());
            }
            Err(failure) => failure,
        };
        runner.model.push(point.clone());
        match (runner.check(), without) {
            (Ok(()), _) => Ok(()),
            (Err(Failure::Engine(_)), _) | (_, Failure::Engine(_)) => {
                runner.model.rewind(runner.model.now() - 1); // undecided for now
                self.uncertain.push(point);
                Ok(())
            }
            (Err(_), without) => Err(without.context("after a failed write")),
        }
    }

    /// Opens the current state; it must hold at least the history through point `least`.
    fn reopen(&self, vfs: &Arc<MemoryVfs>, profile: Profile, least: usize) -> Result<(), Failure> {
        let mut names = vec![self.model.names()];
        names.extend(&self.names);
        let now = self.model.now();
        let expected = Expectation { history: self.model.history(), points: least..=now, names: names.clone() };
        let copy = || vfs.crash_clone(1, CrashPolicy::ProcessKilled);
        let first = match recover(&copy(), profile, &expected) {
            Ok(runner) => return go_on(runner),
            Err(failure) => failure,
        };
        for point in &self.uncertain {
            let mut history = self.model.history().to_vec();
            history.push(point.clone());
            let expected = Expectation { history: &history, points: now + 1..=now + 1, names: names.clone() };
            if let Ok(runner) = recover(&copy(), profile, &expected) {
                return go_on(runner);
            }
        }
        Err(first)
    }
}

/// Checks that the reopened database takes writes.
fn go_on(mut runner: Runner) -> Result<(), Failure> {
    for line in ["put default after-faults 1 sync", "flush default", "check"] {
        runner.step(&crate::parse::op(line).expect("it can be read"))?;
    }
    Ok(())
}
