//! Crashes at every file-system operation of a script, each looked at under every policy: what a reopened image holds
//! must be the state after some prefix of the history, no shorter than what was promised to survive (D1, D2), with
//! batches whole across families (D3).
//!
//! The runs are deterministic, so that a script that is run again comes to the same operations. Each pass over the script
//! takes one image in every step: in pass n, at the nth operation of the step.
//!
//! Some images are looked at by a reader first, which must see what a recovery finds.
//!
//! Families whose names begin with `unlogged` are written without the log, and only so: after a crash each of them may
//! hold any state that it ever had.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use spillway::{Db, OpenOptions, ReadOptions};
use vfs::{CrashPolicy, MemoryVfs, Vfs};

use crate::iterate::show;
use crate::model::{Contents, Incarnation, Model, Point};
use crate::ops::{Op, Script};
use crate::parse;
use crate::profile::{self, Profile};
use crate::random::Random;
use crate::run::{DIR, Failure, Runner, differ};

pub(crate) type Names = BTreeMap<String, Incarnation>;

/// What was acknowledged at some moment.
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

/// One step of a life: the opening, or an operation of the script.
struct Span {
    /// The first file-system operation in it, and the first behind it.
    operations: (u64, u64),
    before: Acknowledged,
    after: Acknowledged,
}

/// A script that ran to its end without a crash, and what was promised when.
pub struct Life {
    script: Script,
    profile: Profile,
    seed: u64,
    spans: Vec<Span>,
    /// Of the whole life.
    history: Vec<Point>,
}

/// What may be found after a crash.
#[derive(Clone)]
pub(crate) struct Expectation<'a> {
    pub history: &'a [Point],
    /// The points of the history whose states are allowed.
    pub points: RangeInclusive<usize>,
    /// The sets of families that are allowed.
    pub names: Vec<&'a Names>,
}

/// Where a crash came, for messages.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// 0 is the opening, n the nth operation of the script.
    pub step: usize,
    pub operation: u64,
    pub policy: CrashPolicy,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "crash at file-system operation {} in step {}, {:?}", self.operation, self.step, self.policy)
    }
}

/// How much of a life to try.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Every so manieth operation; 1 for every one.
    pub stride: u64,
    /// Of the images, every so manieth is crashed a second time, in the midst of its recovery.
    pub second_crash_stride: u64,
}

/// Of the images, every so manieth is opened for reading only first.
const READ_ONLY_STRIDE: u64 = 5;

/// What is done to an image beside recovering it.
#[derive(Clone, Copy)]
struct Looks {
    crash_again: bool,
    read_only: bool,
}

/// What was tried.
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

    /// Crashes everywhere.
    ///
    /// # Errors
    /// The first crash after which the database is not what it should be.
    pub fn crash_everywhere(&self, effort: Effort) -> Result<Tried, String> {
        let mut tried = Tried::default();
        let longest = self.spans.iter().map(|span| span.operations.1 - span.operations.0).max().unwrap_or(0);
        for pass in 0..longest {
            // A write that is under way can be torn only as the crash happens; all other policies can be applied to an
            // image of the file system as it was.
            for policy in [CrashPolicy::ProcessKilled, CrashPolicy::TornAt512] {
                self.pass(pass, policy, effort, &mut tried)?;
            }
        }
        Ok(tried)
    }

    /// The operation of a step at which a pass crashes; strides are taken over the whole life's operations.
    fn target(&self, step: usize, pass: u64, effort: Effort) -> Option<u64> {
        let span = self.spans.get(step)?;
        let operation = span.operations.0 + pass;
        (operation < span.operations.1 && operation.is_multiple_of(effort.stride)).then_some(operation)
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

    /// Looks at an image taken as `place` says, and, where it is of a killed process, at what a power loss at the same
    /// moment would have left.
    fn look_at(&self, image: &Arc<MemoryVfs>, place: Place, effort: Effort, tried: &mut Tried) -> Result<(), String> {
        let mut images = vec![(place, image.clone())];
        if place.policy == CrashPolicy::ProcessKilled {
            let others = CrashPolicy::ALL.into_iter();
            for policy in others.filter(|p| !matches!(p, CrashPolicy::ProcessKilled | CrashPolicy::TornAt512)) {
                images.push((Place { policy, ..place }, image.crash_clone(place.operation, policy)));
            }
        }
        for (place, image) in images {
            let number = tried.recoveries + place.operation;
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
                // A power loss left a durable image, whose recovery must find the same, however often it is tried. After
                // a kill, what was not synced can still be lost.
                let span = self.spans.get(place.step).expect("crashes come inside a step");
                let points = match killed_both {
                    [false, _] | [true, true] => found..=found,
                    [true, false] => span.before.durable.min(durable_from)..=found,
                };
                let again = Expectation { points, ..expectation.clone() };
                crash_in_recovery(image, self.profile, (at, policy), &again)
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

/// The numbers of the database's files, by their names.
fn numbers(vfs: &Arc<MemoryVfs>) -> Result<BTreeMap<String, u64>, Failure> {
    let names = match vfs.read_dir(Path::new(DIR)) {
        Ok(names) => names,
        Err(e) if e.is_not_found() => Vec::new(),
        Err(e) => return Err(e.into()),
    };
    let number = |name: &String| name.trim_matches(|c: char| !c.is_ascii_digit()).parse().ok();
    Ok(names.iter().filter_map(|name| Some((name.clone(), number(name)?))).collect())
}

/// Opens the database and runs the script; `after` is called behind the opening (step 0) and every operation.
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

/// Opens what a crash left, and finds the point of the history that it holds. The runner's model stands there.
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
    settle(&mut runner, expected)?;
    runner.check()?;
    runner.compare_files()?;
    Ok(runner)
}

/// What a reader sees of each family; nothing where there is no database yet. It changes nothing.
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

/// Finds the allowed point that equals what the database holds, and sets the model to it.
fn settle(runner: &mut Runner, expected: &Expectation<'_>) -> Result<(), Failure> {
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

/// Whether the pairs are those, in whatever order.
fn same(held: &Pairs, contents: &Contents) -> bool {
    let is_same = |(key, value): &(Vec<u8>, Vec<u8>)| contents.get(key).is_some_and(|entry| **value == *entry.value);
    held.len() == contents.len() && held.iter().all(is_same)
}

/// Says where the state differs from the first and the last that are allowed.
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

/// Crashes at operation `at` of recovering `image`, and recovers what that leaves.
fn crash_in_recovery(
    image: &Arc<MemoryVfs>,
    profile: Profile,
    (at, policy): (u64, CrashPolicy),
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

/// What is written after a recovery. The values differ from all that scripts write.
const AFTERLIFE: &str = "
    put default after-recovery 1
    batch put default after-a 2; put default after-b 3; sync
    delete-range default k1 k2
    flush default
    ingest flushable linked; file default; put after-a 6; put after-c 1; file default; merge after-c 2
    merge default after-a 4 sync
    put default after-recovery 5";

/// Goes on writing after a recovery, then loses power: what was synced must be there, upon what was recovered.
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
