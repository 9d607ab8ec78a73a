//! The rescue oracle: random lives of databases, damage to their files, and every way out of it.
//!
//! Proven of each life, damage and way:
//! - What is read afterwards and not in doubt is what a plain open of the undamaged files reads. Where only the end of
//!   the last log is lost, it is a prefix of the acknowledged history. See [`verdict`].
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
use self::lives::Life;
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
    pub lives: u64,
    /// Trials of each kind and way, and those that led to an open database.
    pub trials: BTreeMap<(Kind, Way), (u64, u64)>,
    pub restores: u64,
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
    /// Adds what another thread tried.
    pub fn add(&mut self, other: Tried) {
        self.lives += other.lives;
        self.restores += other.restores;
        self.failures.extend(other.failures);
        for (place, (count, opened)) in other.trials {
            let sum = self.trials.entry(place).or_default();
            (sum.0, sum.1) = (sum.0 + count, sum.1 + opened);
        }
    }

    pub fn trials(&self) -> u64 {
        self.restores + self.trials.values().map(|(count, _)| count).sum::<u64>()
    }
}

/// Tries the life of a seed.
pub fn try_seed(seed: u64, effort: Effort) -> Tried {
    try_script(seed, lives::script(seed), effort, |_| true)
}

/// Tries a script's life at those places for which `counts` holds.
fn try_script(seed: u64, script: Script, effort: Effort, counts: impl Fn(Place) -> bool) -> Tried {
    let mut tried = Tried { lives: 1, ..Tried::default() };
    let mut random = Random::new(seed);
    let failing = |place, wrong: Wrong| Failing { seed, place, fault: wrong.fault, what: wrong.what };
    let made = guarded(|| {
        let life = Life::of(seed, script).map_err(|failure| Fault::Broken.of(failure.to_string()))?;
        let damages = damages(&life, effort, &mut random).map_err(|failure| Fault::Broken.of(failure.to_string()))?;
        Ok((life, damages))
    });
    let (life, damages) = match made {
        Ok(made) => made,
        Err(wrong) => {
            tried.failures.push(failing(Place::Life, wrong));
            return tried;
        }
    };
    for damage in damages {
        for way in Way::ALL.into_iter().filter(|way| counts(Place::Damaged(damage.kind, *way))) {
            let outcome = guarded(|| ways::go(&life, &damage, way));
            let sum = tried.trials.entry((damage.kind, way)).or_default();
            (sum.0, sum.1) = (sum.0 + 1, sum.1 + u64::from(outcome == Ok(true)));
            if let Err(wrong) = outcome {
                let wrong = wrong.fault.of(format!("{damage}: {}", wrong.what));
                tried.failures.push(failing(Place::Damaged(damage.kind, way), wrong));
            }
        }
    }
    if counts(Place::Restore) {
        tried.restores += 1;
        let restored = guarded(|| ways::restore_damaged(&life, &mut random));
        tried.failures.extend(restored.err().map(|wrong| failing(Place::Restore, wrong)));
    }
    tried
}

/// A panic counts as a failure.
fn guarded<T>(work: impl FnOnce() -> Result<T, Wrong>) -> Result<T, Wrong> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => outcome,
        Err(panic) => Err(Fault::Broken.of(format!("panicked: {}", panic_message(&*panic)))),
    }
}

/// The damages to try.
fn damages(life: &Life, effort: Effort, random: &mut Random) -> Result<Vec<Damage>, Failure> {
    let mut all = damage::all(life, random)?;
    let stranger = life.stranger()?;
    all.extend(damage::exchange(life, &stranger, random));
    let Effort::Kinds(count) = effort else { return Ok(all) };
    let mut kinds: BTreeMap<Kind, Vec<Damage>> = BTreeMap::new();
    all.into_iter().for_each(|damage| kinds.entry(damage.kind).or_default().push(damage));
    let mut kinds: Vec<_> = kinds.into_values().collect();
    while kinds.len() > count {
        kinds.swap_remove(random.below(kinds.len() as u64) as usize);
    }
    Ok(kinds.iter().map(|damages| random.pick(damages).clone()).collect())
}

/// The shortest script found with which the seed's life fails at the same place by the same kind of fault, and how.
pub fn shortest(failing: &Failing) -> (Script, String) {
    shrink(&lives::script(failing.seed), |script| {
        let tried = try_script(failing.seed, script.clone(), Effort::All, |place| place == failing.place);
        let is_same = |other: &Failing| other.place == failing.place && other.fault == failing.fault;
        let same = tried.failures.into_iter().find(is_same);
        same.map(|failing| failing.to_string())
    })
}
