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
use crate::run::panic_message;
use crate::shrink::shrink;

use self::damage::{Damage, Kind};
use self::lives::Life;
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
    /// The damage, and what is wrong.
    pub what: String,
}

impl fmt::Display for Failing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "seed {}, ", self.seed)?;
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
    let failing = |place, what| Failing { seed, place, what };
    let life = match guarded(|| Life::of(seed, script).map_err(|failure| failure.to_string())) {
        Ok(life) => life,
        Err(what) => {
            tried.failures.push(failing(Place::Life, what));
            return tried;
        }
    };
    let damages = match guarded(|| damages(&life, effort, &mut random)) {
        Ok(damages) => damages,
        Err(what) => {
            tried.failures.push(failing(Place::Life, format!("its damages are not found: {what}")));
            return tried;
        }
    };
    for damage in damages {
        for way in Way::ALL.into_iter().filter(|way| counts(Place::Damaged(damage.kind, *way))) {
            let outcome = guarded(|| ways::go(&life, &damage, way));
            let sum = tried.trials.entry((damage.kind, way)).or_default();
            (sum.0, sum.1) = (sum.0 + 1, sum.1 + u64::from(outcome == Ok(true)));
            if let Err(what) = outcome {
                let what = format!("{damage}: {what}");
                tried.failures.push(failing(Place::Damaged(damage.kind, way), what));
            }
        }
    }
    if counts(Place::Restore) {
        tried.restores += 1;
        let restored = guarded(|| ways::restore_damaged(&life, &mut random));
        tried.failures.extend(restored.err().map(|what| failing(Place::Restore, what)));
    }
    tried
}

/// A panic counts as a failure.
fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(outcome) => outcome,
        Err(panic) => Err(format!("panicked: {}", panic_message(&*panic))),
    }
}

/// The damages to try.
fn damages(life: &Life, effort: Effort, random: &mut Random) -> Result<Vec<Damage>, String> {
    let mut all = damage::all(life, random).map_err(|error| error.to_string())?;
    let stranger = life.stranger().map_err(|failure| failure.to_string())?;
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

/// The shortest script found for a seed whose life fails at the same place, and how.
pub fn shortest(failing: &Failing) -> (Script, String) {
    shrink(&lives::script(failing.seed), |script| {
        let tried = try_script(failing.seed, script.clone(), Effort::All, |place| place == failing.place);
        let same = tried.failures.into_iter().find(|other| other.place == failing.place);
        same.map(|failing| failing.to_string())
    })
}
