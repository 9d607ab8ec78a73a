//! The rescue oracle: random lives of databases, damage to their files, and every way out of it.
//!
//! Proven of each life, damage and way:
//! - What is read afterwards and not in doubt is what a plain open of the undamaged files reads. Where only the end of
//!   the last log is lost, it is a prefix of the acknowledged history. See [`verdict`].
//! - No value is read that was never written, in doubt or not.
//! - A repair brings back undoubted what the damage must leave. See [`least`].
//! - `check` says "whole" only of what a plain open reads right. A restore of a damaged backup fails, or is whole.
//! - Scans and lookups agree afterwards. A second repair finds and changes nothing.
//! - Nothing panics.
//!
//! A life is made of its seed alone: [`lives::script`] draws the script, [`Life::of`] runs it. A failure prints the seed,
//! the damage, the way, and a shorter script with which the same kind of damage fails in the same way.

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::ops::Script;
use crate::random::Random;
use crate::run::{Failure, panic_message};
use crate::shrink::shrink;

use self::damage::{Damage, Kind};
use self::lives::{Ending, Files, Life};
use self::verdict::{Fault, Wrong};
use self::ways::Way;

pub mod damage;
pub mod least;
pub mod lives;
pub mod reading;
pub mod verdict;
pub mod ways;

/// How many damages of a life are tried.
#[derive(Clone, Copy, Debug)]
pub enum Effort {
    /// So many, each of another kind, if the life has so many kinds.
    Kinds(usize),
    All,
}

/// What was tried, and what failed.
#[derive(Debug, Default)]
pub struct Tried {
    /// Lives by their endings.
    pub lives: BTreeMap<Ending, u64>,
    /// Trials at each place, and those that led to an open database.
    pub trials: BTreeMap<Place, (u64, u64)>,
    pub failures: Vec<Failing>,
}

/// Where a failure is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// The undamaged life fails.
    Life,
    Damaged(Kind, Way),
    Restore,
}

/// A failure.
#[derive(Clone, Debug)]
pub struct Failing {
    pub seed: u64,
    pub place: Place,
    pub fault: Fault,
    /// The damage, and what is wrong.
    pub what: String,
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, {:?}, ", self.seed, self.fault)?;
        match self.place {
            Place::Life => f.write_str("undamaged: ")?,
            Place::Damaged(_, way) => write!(f, "{way:?} after ")?,
            Place::Restore => f.write_str("restore: ")?,
        }
        f.write_str(&self.what)
    }
}

impl Tried {
    fn note(&mut self, seed: u64, place: Place, outcome: Result<bool, Wrong>) {
        let sum = self.trials.entry(place).or_default();
        (sum.0, sum.1) = (sum.0 + 1, sum.1 + u64::from(outcome == Ok(true)));
        let failing = |wrong: Wrong| Failing { seed, place, fault: wrong.fault, what: wrong.what };
        self.failures.extend(outcome.err().map(failing));
    }

    /// Adds what another thread tried.
    pub fn add(&mut self, other: Tried) {
        self.failures.extend(other.failures);
        for (ending, count) in other.lives {
            *self.lives.entry(ending).or_default() += count;
        }
        for (place, (count, opened)) in other.trials {
            let sum = self.trials.entry(place).or_default();
            (sum.0, sum.1) = (sum.0 + count, sum.1 + opened);
        }
    }
}

/// Tries the life of a seed.
pub fn try_seed(seed: u64, effort: Effort) -> Tried {
    let script = lives::script(seed);
    try_subject(seed, Subject::of(|| Life::of(seed, script), effort, None))
}

/// Tries a directory that RocksDB wrote. The seed draws places within files.
pub fn try_rocksdb(seed: u64, files: Files) -> Tried {
    try_subject(seed, Subject::of(|| Life::of_rocksdb(seed, files), Effort::All, None))
}

fn try_subject(seed: u64, subject: Result<Subject, Wrong>) -> Tried {
    let mut tried = Tried::default();
    match subject {
        Ok(subject) => {
            tried.lives.insert(subject.life.ending, 1);
            subject.places().for_each(|at| tried.note(seed, at.place(), subject.go(at)));
        }
        Err(wrong) => tried.note(seed, Place::Life, Err(wrong)),
    }
    tried
}

/// The shortest script found with which the seed's life fails at the same place by the same kind of fault, and how.
pub fn shortest(failing: &Failing) -> (Script, String) {
    let kind = match failing.place {
        Place::Damaged(kind, _) => Some(kind),
        Place::Life | Place::Restore => None,
    };
    let is_same = |wrong: Wrong| (wrong.fault == failing.fault).then_some(wrong.what);
    let fails = |script: &Script| {
        let life = || Life::of(failing.seed, script.clone());
        match Subject::of(life, Effort::All, kind) {
            Ok(subject) => {
                let mut same = subject.places().filter(|at| at.place() == failing.place);
                same.find_map(|at| subject.go(at).err().and_then(is_same))
            }
            Err(wrong) => (failing.place == Place::Life).then_some(wrong.what),
        }
    };
    shrink(&lives::script(failing.seed), fails)
}

/// A life and the damages to try.
struct Subject {
    life: Life,
    damages: Vec<Damage>,
    restores: u64,
}

/// A trial of a subject.
#[derive(Clone, Copy)]
enum At<'a> {
    Damaged(&'a Damage, Way),
    Restore(u64),
}

impl At<'_> {
    fn place(self) -> Place {
        match self {
            At::Damaged(damage, way) => Place::Damaged(damage.kind, way),
            At::Restore(_) => Place::Restore,
        }
    }
}

/// Restores of backups that are damaged, where all damages are tried.
const RESTORES: u64 = 12;

impl Subject {
    /// With `kind`, damages of this kind alone.
    fn of(life: impl FnOnce() -> Result<Life, Failure>, effort: Effort, kind: Option<Kind>) -> Result<Subject, Wrong> {
        let broken = |failure: Failure| Fault::Broken.of(failure.to_string());
        guarded(|| {
            let life = life().map_err(broken)?;
            let damages = damages(&life, effort, kind).map_err(broken)?;
            let restores = if matches!(effort, Effort::All) { RESTORES } else { 1 };
            Ok(Subject { life, damages, restores })
        })
    }

    fn places(&self) -> impl Iterator<Item = At<'_>> {
        let damaged = self.damages.iter().flat_map(|damage| Way::ALL.map(|way| At::Damaged(damage, way)));
        damaged.chain((0..self.restores).map(At::Restore))
    }

    fn go(&self, at: At<'_>) -> Result<bool, Wrong> {
        match at {
            At::Damaged(damage, way) => guarded(|| ways::go(&self.life, damage, way))
                .map_err(|wrong| wrong.fault.of(format!("{damage}: {}", wrong.what))),
            At::Restore(number) => {
                let mut random = Random::new(self.life.seed.wrapping_add(number << 32));
                guarded(|| ways::restore_damaged(&self.life, &mut random))
            }
        }
    }
}

/// A panic counts as a failure.
fn guarded<T>(work: impl FnOnce() -> Result<T, Wrong>) -> Result<T, Wrong> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => outcome,
        Err(panic) => Err(Fault::Broken.of(format!("panicked: {}", panic_message(&*panic)))),
    }
}

/// The damages to try. Those of a lesser effort are among all.
fn damages(life: &Life, effort: Effort, kind: Option<Kind>) -> Result<Vec<Damage>, Failure> {
    let mut random = Random::new(life.seed);
    let mut all = damage::all(life, &mut random)?;
    let of_stranger = [Kind::TableExchanged, Kind::LogExchanged, Kind::ManifestExchanged, Kind::Copy];
    if kind.is_none_or(|kind| of_stranger.contains(&kind)) {
        all.extend(damage::exchanges(life, &life.stranger()?));
    }
    let Effort::Kinds(count) = effort else {
        all.retain(|damage| kind.is_none_or(|kind| kind == damage.kind));
        return Ok(all);
    };
    let mut kinds: BTreeMap<Kind, Vec<Damage>> = BTreeMap::new();
    all.into_iter().for_each(|damage| kinds.entry(damage.kind).or_default().push(damage));
    let mut kinds: Vec<_> = kinds.into_values().collect();
    while kinds.len() > count {
        kinds.swap_remove(random.below(kinds.len() as u64) as usize);
    }
    Ok(kinds.iter().map(|damages| random.pick(damages).clone()).collect())
}
