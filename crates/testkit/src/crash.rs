//! Crashes at every file-system operation of a script, under every policy. A reopened image must hold the state after
//! some prefix of the history. The prefix includes everything durable (D1, D2) and has batches whole across families
//! (D3).
//!
//! Runs are deterministic: every run of a script makes the same file-system operations. Pass n over the script takes
//! one image in each step, at the step's nth operation.
//!
//! Some images are first opened read-only; the reader must see the state a recovery finds.
//!
//! Families with names beginning with `unlogged` are always written without the WAL. After a crash each may hold any of
//! its earlier states; with atomic flushes they all hold those of one point.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use crate::engine::{Db, OpenOptions, ReadOptions};
use vfs::{CrashPolicy, MemoryVfs, Vfs};

use crate::iterate::show;
use crate::model::{Contents, Incarnation, Model, Point};
use crate::ops::{Op, Script};
use crate::parse;
use crate::profile::{self, Profile};
use crate::random::Random;
use crate::run::{DIR, Failure, Runner, differ};

pub(crate) type Names = BTreeMap<String, Incarnation>;

/// Acknowledged state at one moment.
#[derive(Clone)]
struct Acknowledged {
    point: usize,
    durable: usize,
    names: Names,
}

impl Acknowledged {
    fn by(model: &Model) -> Self {
        Acknowledged { point: model.now(), durable: model.durable(), names: model.names().clone() }
    }
}

/// One step of a life: the open, or an operation of the script.
struct Span {
    /// File-system operations of the step: first, and first after it.
    operations: (u64, u64),
    before: Acknowledged,
    after: Acknowledged,
}

/// A script run to its end without a crash, with the acknowledged state at each step.
pub struct Life {
    script: Script,
    profile: Profile,
    seed: u64,
    spans: Vec<Span>,
    /// History of the whole life.
    history: Vec<Point>,
}

/// States allowed after a crash.
#[derive(Clone)]
pub(crate) struct Expectation<'a> {
    pub history: &'a [Point],
    /// Allowed points of the history.
    pub points: RangeInclusive<usize>,
    /// Allowed sets of families.
    pub names: Vec<&'a Names>,
}

/// Place of a crash, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// 0 is the open, n the nth operation of the script.
    pub step: usize,
    pub operation: u64,
    pub policy: CrashPolicy,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "crash at file-system operation {} in step {}, {:?}", self.operation, self.step, self.policy)
    }
}

/// Strides over the crashes to try.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Stride over file-system operations; 1 tries all.
    pub stride: u64,
    /// Stride over images; the selected ones crash again during recovery.
    pub second_crash_stride: u64,
    /// Offset of the strides.
    pub sample: u64,
}

impl Effort {
    /// All crashes.
    pub const ALL: Effort = Effort { stride: 1, second_crash_stride: 1, sample: 0 };

    fn has(self, operation: u64) -> bool {
        (operation + self.sample).is_multiple_of(self.stride)
    }
}

/// Stride over images; the selected ones are opened read-only first.
const READ_ONLY_STRIDE: u64 = 5;

/// Checks of an image besides its recovery.
#[derive(Clone, Copy)]
struct Looks {
    crash_again: bool,
    read_only: bool,
}

/// Counts of attempts.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tried {
    pub operations: u64,
    pub recoveries: u64,
}

impl Life {
    /// Runs the script once.
    ///
    /// # Errors
    /// The script fails even without a crash.
    pub fn record(script: &Script, seed: u64) -> Result<Life, String> {
        let profile = profile::by_name(&script.profile).ok_or_else(|| format!("no profile {}", script.profile))?;
        let vfs = MemoryVfs::new(seed);
        let mut spans = Vec::new();
        let mut last = (0, Acknowledged::by(&Model::default()));
        let runner = walk(&vfs, script, profile, |_, runner| {
            let after = Acknowledged::by(&runner.model);
            let operations = (last.0, vfs.operations());
            spans.push(Span { operations, before: last.1.clone(), after: after.clone() });
            last = (operations.1, after);
            Ok(())
        })
        .map_err(|(step, failure)| format!("without a crash, step {step}: {failure}"))?;
        let history = runner.model.history().to_vec();
        Ok(Life { script: script.clone(), profile, seed, spans, history })
    }

    /// File-system operations of the whole life.
    pub fn operations(&self) -> u64 {
        self.spans.last().map_or(0, |span| span.operations.1)
    }

    /// Crashes at every operation, subject to `effort`.
    ///
    /// # Errors
    /// The first crash with a wrong state after it.
    pub fn crash_everywhere(&self, effort: Effort) -> Result<Tried, String> {
        let mut tried = Tried::default();
        let longest = self.spans.iter().map(|span| span.operations.1 - span.operations.0).max().unwrap_or(0);
        for pass in 0..longest {
            // A write in progress can be torn only at the crash itself. All other policies apply to an image taken
            // earlier.
            for policy in [CrashPolicy::ProcessKilled, CrashPolicy::TornAt512] {
                self.pass(pass, policy, effort, &mut tried)?;
            }
        }
        Ok(tried)
    }

    /// The operation of a step to crash at in a pass. Strides count over the operations of the whole life.
    fn target(&self, step: usize, pass: u64, effort: Effort) -> Option<u64> {
        let span = self.spans.get(step)?;
        let operation = span.operations.0 + pass;
        (operation < span.operations.1 && effort.has(operation)).then_some(operation)
    }

    fn pass(&self, pass: u64, policy: CrashPolicy, effort: Effort, tried: &mut Tried) -> Result<(), String> {
        let steps: Vec<usize> =
            (0..self.spans.len()).filter(|&step| self.target(step, pass, effort).is_some()).collect();
        let Some(&last_step) = steps.last() else { return Ok(()) };
        let vfs = MemoryVfs::new(self.seed);
        let arm = |step: usize| {
            if let Some(operation) = self.target(step, pass, effort) {
                vfs.crash_at(operation, self.seed ^ operation, policy);
            }
        };
        arm(0);
        let mut outcome = Ok(());
        let walked = walk(&vfs, &self.script, self.profile, |step, _| {
            if let Some(image) = vfs.take_crash_image() {
                let operation = self.target(step, pass, effort).unwrap_or_default();
                tried.operations += 1;
                outcome = self.look_at(&image, Place { step, operation, policy }, effort, tried);
            }
            arm(step + 1);
            if step >= last_step || outcome.is_err() { Err(Failure::Difference(String::new())) } else { Ok(()) }
        });
        drop(walked); // ended by the last image, or by the first failure
        outcome
    }

    /// Checks the image taken at `place`. For a killed process, also checks the images of a power loss at the same
    /// moment.
    fn look_at(&self, image: &Arc<MemoryVfs>, place: Place, effort: Effort, tried: &mut Tried) -> Result<(), String> {
        let mut images = vec![(place, image.clone())];
        if place.policy == CrashPolicy::ProcessKilled {
            let others = CrashPolicy::ALL.into_iter();
            for policy in others.filter(|p| !matches!(p, CrashPolicy::ProcessKilled | CrashPolicy::TornAt512)) {
                images.push((Place { policy, ..place }, image.crash_clone(place.operation, policy)));
            }
        }
        for (place, image) in images {
            let number = tried.recoveries + place.operation + effort.sample;
            let looks = Looks {
                crash_again: number.is_multiple_of(effort.second_crash_stride),
                read_only: number.is_multiple_of(READ_ONLY_STRIDE),
            };
            tried.recoveries += 1;
            self.recover_from(&image, place, looks).map_err(|failure| {
                let op = place.step.checked_sub(1).and_then(|index| self.script.ops.get(index));
                let op = op.map_or_else(|| "open".to_owned(), Op::to_string);
                format!("{place} ({op}): {failure}\n{}", self.script_through(place.step))
            })?;
        }
        Ok(())
    }

    fn script_through(&self, step: usize) -> Script {
        Script { profile: self.script.profile.clone(), ops: self.script.ops.iter().take(step).cloned().collect() }
    }

    fn expectation(&self, place: Place) -> Expectation<'_> {
        let span = self.spans.get(place.step).expect("crashes come inside a step");
        let lower = if place.policy == CrashPolicy::ProcessKilled { span.before.point } else { span.before.durable };
        Expectation {
            history: &self.history,
            points: lower..=span.after.point,
            names: vec![&span.before.names, &span.after.names],
        }
    }

    fn recover_from(&self, image: &Arc<MemoryVfs>, place: Place, looks: Looks) -> Result<(), Failure> {
        let shown = if looks.read_only { shown_to_a_reader(image, self.profile)? } else { BTreeMap::new() };
        let expectation = self.expectation(place);
        let copy = image.crash_clone(place.operation, CrashPolicy::ProcessKilled);
        let start = copy.operations();
        let before = numbers(&copy)?;
        let runner = recover(&copy, self.profile, &expectation)?;
        let (found, recovery) = (runner.model.now(), start..copy.operations());
        for (name, pairs) in &shown {
            if !same(pairs, &runner.model.contents(name)) {
                return differ(format!("a reader saw in {name} what the recovery did not find"));
            }
        }
        if looks.crash_again {
            let mut random = Random::new(place.operation);
            for _ in 0..3 {
                let at = recovery.start + random.below((recovery.end - recovery.start).max(1));
                let policy = *random.pick(&CrashPolicy::ALL);
                let durable_from = *expectation.points.start();
                let killed_both = [place.policy, policy].map(|p| p == CrashPolicy::ProcessKilled);
                // A power loss leaves a durable image: every recovery of it must find the same. After a kill, unsynced
                // writes can still be lost.
                let span = self.spans.get(place.step).expect("crashes come inside a step");
                let points = match killed_both {
                    [false, _] | [true, true] => found..=found,
                    [true, false] => span.before.durable.min(durable_from)..=found,
                };
                let again = Expectation { points, ..expectation.clone() };
                crash_in_recovery(image, self.profile, at, policy, &again)
                    .map_err(|e| e.context(&format!("a second crash at operation {at} of the recovery, {policy:?}")))?;
            }
        }
        go_on(runner, &copy, self.profile, place.operation)?;
        let (last, fresh) = (before.values().max().copied().unwrap_or(0), numbers(&copy)?);
        match fresh.iter().find(|(name, number)| !before.contains_key(*name) && **number <= last) {
            Some((name, _)) => differ(format!("{name} was made after a recovery that saw a file of number {last}")),
            None => Ok(()),
        }
    }
}

/// File numbers of the database's files, by name.
fn numbers(vfs: &Arc<MemoryVfs>) -> Result<BTreeMap<String, u64>, Failure> {
    let names = match vfs.read_dir(Path::new(DIR)) {
        Ok(names) => names,
        Err(e) if e.is_not_found() => Vec::new(),
        Err(e) => return Err(e.into()),
    };
    let number = |name: &String| name.trim_matches(|c: char| !c.is_ascii_digit()).parse().ok();
    Ok(names.iter().filter_map(|name| Some((name.clone(), number(name)?))).collect())
}

/// Opens the database and runs the script; calls `after` after the open (step 0) and after every operation.
fn walk(
    vfs: &Arc<MemoryVfs>,
    script: &Script,
    profile: Profile,
    mut after: impl FnMut(usize, &Runner) -> Result<(), Failure>,
) -> Result<Runner, (usize, Failure)> {
    let mut runner = Runner::open(vfs.clone(), profile, Model::default()).map_err(|e| (0, e.into()))?;
    after(0, &runner).map_err(|e| (0, e))?;
    for (index, op) in script.ops.iter().enumerate() {
        let step = index + 1;
        runner.step(op).and_then(|()| after(step, &runner)).map_err(|e| (step, e))?;
    }
    Ok(runner)
}

/// Opens a crashed image and finds its point of the history. The runner's model is rewound to the point.
pub(crate) fn recover(vfs: &Arc<MemoryVfs>, profile: Profile, expected: &Expectation<'_>) -> Result<Runner, Failure> {
    let as_vfs: Arc<dyn Vfs> = vfs.clone();
    let found: BTreeSet<String> = match Db::list_families(Path::new(DIR), &as_vfs) {
        Ok(names) => names.into_iter().collect(),
        Err(e) if e.is_not_found() => BTreeSet::from(["default".to_owned()]), // not created yet
        Err(e) => return Err(e.into()),
    };
    let Some(names) = expected.names.iter().find(|names| names.keys().eq(found.iter())) else {
        let allowed: Vec<_> = expected.names.iter().map(|names| names.keys().collect::<Vec<_>>()).collect();
        return differ(format!("the families are {found:?}, and may be {allowed:?}"));
    };
    let mut model = Model::at(expected.history, (*names).clone());
    model.rewind(*expected.points.end());
    let mut runner = Runner::open(as_vfs, profile, model)?;
    settle(&mut runner, expected, profile.is_atomic())?;
    runner.check()?;
    runner.compare_files()?;
    Ok(runner)
}

/// Contents of each family in a read-only open, which must change nothing. Empty if there is no database yet.
fn shown_to_a_reader(image: &Arc<MemoryVfs>, profile: Profile) -> Result<BTreeMap<String, Pairs>, Failure> {
    let vfs: Arc<dyn Vfs> = image.clone();
    let names = match Db::list_families(Path::new(DIR), &vfs) {
        Ok(names) => names,
        Err(e) if e.is_not_found() => return Ok(BTreeMap::new()),
        Err(e) => return Err(e.into()),
    };
    let files = image.read_dir(Path::new(DIR))?;
    let options = OpenOptions { read_only: true, ..profile.open_options(vfs, &names) };
    let db = Db::open(DIR, &options)?;
    let shown = names.iter().map(|name| Ok((name.clone(), read_all(&db, name)?))).collect::<Result<_, Failure>>()?;
    db.close()?;
    match image.read_dir(Path::new(DIR))? == files {
        true => Ok(shown),
        false => differ("a reader changed the directory"),
    }
}

/// Finds the allowed point equal to the database's contents and rewinds the model to it.
fn settle(runner: &mut Runner, expected: &Expectation<'_>, agree: bool) -> Result<(), Failure> {
    let names = runner.model.names().clone();
    let mut unlogged = Vec::new();
    let mut logged = Vec::new();
    for (name, incarnation) in names {
        let held = read_all(runner.db(), &name)?;
        if name.starts_with("unlogged") {
            unlogged.push((incarnation, held))
        } else {
            logged.push((name, incarnation, held))
        }
    }
    let equals = |point: usize| {
        let state = expected.history.get(point).map(|point| &point.state);
        let state = state.expect("points are of the history");
        logged.iter().all(|(_, incarnation, held)| same(held, &state.contents(*incarnation)))
    };
    let Some(point) = expected.points.clone().rev().find(|&point| equals(point)) else {
        return differ(no_prefix(expected, &logged));
    };
    runner.model.rewind(point);
    if agree {
        let holds = |point: &Point| unlogged.iter().all(|(id, held)| same(held, &point.state.contents(*id)));
        if !expected.history.iter().any(holds) {
            return differ("the unlogged families are of different points, though they are flushed together");
        }
    }
    for (incarnation, held) in unlogged {
        let had = expected.history.iter().map(|point| point.state.contents(incarnation));
        match had.into_iter().find(|contents| same(&held, contents)) {
            Some(contents) => runner.model.adopt(incarnation, contents),
            None => return differ("an unlogged family holds what it never held"),
        }
    }
    Ok(())
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn read_all(db: &Db, name: &str) -> Result<Pairs, Failure> {
    let Some(family) = db.family(name) else { return differ(format!("the family {name} is not there")) };
    let mut iterator = db.iter(&family, &ReadOptions::default())?;
    let mut pairs = Pairs::new();
    let mut valid = iterator.seek_to_first();
    while valid {
        pairs.push((iterator.key().to_vec(), iterator.value().to_vec()));
        valid = iterator.next();
    }
    iterator.status()?;
    Ok(pairs)
}

/// Whether `held` equals `contents`, in any order.
fn same(held: &Pairs, contents: &Contents) -> bool {
    let is_same = |(key, value): &(Vec<u8>, Vec<u8>)| contents.get(key).is_some_and(|entry| **value == *entry.value);
    held.len() == contents.len() && held.iter().all(is_same)
}

/// Describes the difference between the state and the first and last allowed points.
fn no_prefix(expected: &Expectation<'_>, logged: &[(String, Incarnation, Pairs)]) -> String {
    let (first, last) = (*expected.points.start(), *expected.points.end());
    let mut what = format!("the state is none of those after writes {first} to {last}");
    let elsewhere = expected
        .history
        .iter()
        .position(|point| logged.iter().all(|(_, incarnation, held)| same(held, &point.state.contents(*incarnation))));
    match elsewhere {
        Some(point) => what.push_str(&format!("; it is the one after write {point}")),
        None => what.push_str("; it is that after no prefix of the writes"),
    }
    for (name, incarnation, held) in logged {
        for point in [first, last] {
            let Some(state) = expected.history.get(point).map(|point| &point.state) else { continue };
            let contents = state.contents(*incarnation);
            let held: BTreeMap<_, _> = held.iter().map(|(key, value)| (key, value)).collect();
            let lost = contents.iter().find(|(key, entry)| held.get(key).is_none_or(|value| **value != *entry.value));
            let extra = held.keys().find(|key| !contents.contains_key(**key));
            let lost = lost.map(|(key, _)| format!(", {} is missing or another", show(key))).unwrap_or_default();
            let extra = extra.map(|key| format!(", {} is extra", show(key))).unwrap_or_default();
            what.push_str(&format!("\n  {name} against write {point}: {} keys{lost}{extra}", held.len()));
        }
    }
    what
}

/// Crashes at operation `at` of the recovery of `image`, and recovers again.
fn crash_in_recovery(
    image: &Arc<MemoryVfs>,
    profile: Profile,
    at: u64,
    policy: CrashPolicy,
    expected: &Expectation<'_>,
) -> Result<(), Failure> {
    let copy = image.crash_clone(at, CrashPolicy::ProcessKilled);
    copy.crash_at(at, at, policy);
    let opened = recover(&copy, profile, &Expectation { points: 0..=*expected.points.end(), ..expected.clone() });
    drop(opened?.abandon());
    match copy.take_crash_image() {
        Some(second) => recover(&second, profile, expected).map(drop),
        None => Ok(()), // the recovery had fewer operations
    }
}

/// Operations after a recovery. Their values differ from those of all scripts.
const AFTERLIFE: &str = "
    put default after-recovery 1
    batch put default after-a 2; put default after-b 3; sync
    delete-range default k1 k2
    flush default
    ingest flushable linked; file default; put after-a 6; put after-c 1; file default; merge after-c 2
    merge default after-a 4 sync
    put default after-recovery 5";

/// Writes after a recovery, then loses power: the recovered state and the synced writes must be there.
fn go_on(mut runner: Runner, vfs: &Arc<MemoryVfs>, profile: Profile, seed: u64) -> Result<(), Failure> {
    let afterlife = parse::script(AFTERLIFE).expect("it can be read").arranged(&profile.order.order());
    for op in &afterlife.ops {
        runner.step(op).map_err(|e| e.context(&format!("after the recovery, {op}")))?;
    }
    let after = vfs.crash_clone(seed, CrashPolicy::NothingUnsyncedKept);
    let model = runner.abandon();
    let names = model.names().clone();
    let expected = Expectation { history: model.history(), points: model.durable()..=model.now(), names: vec![&names] };
    recover(&after, profile, &expected).map(drop).map_err(|e| e.context("power lost after the recovery"))
}
