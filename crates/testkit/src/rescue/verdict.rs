//! What a rescue may claim. Whatever is not in doubt is as the undamaged database has it.
//!
//! | damage | a plain open, and `check` that says "whole" |
//! |---|---|
//! | end of the last log, beyond what other files prove | a prefix of the acknowledged history |
//! | every MANIFEST and copy | the undamaged contents; families without keys may be gone or back |
//! | any other | the undamaged contents |
//!
//! An error is always right for a damaged file.

use base::UserOrder;

use crate::engine::{Doubt, RepairReport};
use crate::iterate::show;

use super::damage::{Damage, Kind};
use super::least::{Least, least};
use super::lives::{Ending, Life};
use super::reading::{Contents, difference};

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    pub fault: Fault,
    pub what: String,
}

/// Kind of what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A claim that is not so.
    Refuted,
    /// A doubt of what could have been known.
    DoubtsTooMuch,
    /// A rescue that fails, or leaves what does not open or disagrees with itself; a panic.
    Broken,
}

impl Fault {
    pub fn of(self, what: impl Into<String>) -> Wrong {
        Wrong { fault: self, what: what.into() }
    }
}

/// What a rescue says of what it brought back.
#[derive(Clone, Debug)]
pub enum Claim {
    Report(Box<RepairReport>),
    Doubts(Vec<Doubt>),
}

impl Claim {
    /// A plain open doubts nothing.
    pub const NONE: Claim = Claim::Doubts(Vec::new());

    /// Whether a key is in doubt; `None`: whether anything of the family is.
    fn doubts(&self, family: &str, key: Option<&[u8]>, order: &UserOrder) -> bool {
        match (self, key) {
            (Claim::Report(report), Some(key)) => report.is_in_doubt(family, key, order),
            (Claim::Report(report), None) => {
                let is_of = |name: &Option<String>| name.as_ref().is_none_or(|name| name == family);
                report.earlier.is_some()
                    || report.lost.iter().any(|lost| is_of(&lost.family))
                    || report.doubts.iter().any(|doubt| !doubt.of_prepared && is_of(&doubt.family))
            }
            (Claim::Doubts(doubts), Some(key)) => doubts.iter().any(|doubt| doubt.covers(family, key, order)),
            (Claim::Doubts(doubts), None) => {
                let is_of = |name: &Option<String>| name.as_ref().is_none_or(|name| name == family);
                doubts.iter().any(|doubt| !doubt.of_prepared && is_of(&doubt.family))
            }
        }
    }

    fn doubts_nothing(&self) -> bool {
        match self {
            Claim::Report(report) => report.lost_no_key(),
            Claim::Doubts(doubts) => doubts.is_empty(),
        }
    }
}

/// Judges what is read after a rescue.
///
/// # Errors
/// The claim that the model refutes.
pub fn judge_claim(life: &Life, damage: &Damage, claim: &Claim, found: &Contents) -> Result<(), Wrong> {
    let order = life.order();
    let knows_families = damage.kind != Kind::EveryManifestLost;
    let counts =
        |family: &str, key: Option<&[u8]>| (key.is_some() || knows_families) && !claim.doubts(family, key, &order);
    let Some(what) = difference(found, &life.reference, counts) else { return Ok(()) };
    if damage.kind == Kind::LastLog {
        let is_prefix = life.point_of(|family, key| counts(family, Some(key)), found).is_some();
        if is_prefix || !life.has_prefixes() {
            return Ok(());
        }
        return Err(Fault::Refuted.of(format!("no prefix of the history; against the last state: {what}")));
    }
    Err(Fault::Refuted.of(what))
}

/// Judges each value, in doubt or not: it was once written. Keys that were ever merged do not count.
///
/// # Errors
/// The value that nobody wrote.
pub fn judge_values(life: &Life, found: &Contents) -> Result<(), Wrong> {
    if life.ending == Ending::Rocksdb {
        return Ok(());
    }
    for (family, pairs) in found {
        let strange = pairs.iter().find(|(key, value)| !life.ever_held(key, value));
        if let Some((key, value)) = strange {
            let what = format!("{family} {}: {}, which nobody wrote", show(key), show(value));
            return Err(Fault::Refuted.of(what));
        }
    }
    Ok(())
}

/// Judges whether a repair brings back what the damage must leave.
///
/// # Errors
/// The doubt that is too much.
pub fn judge_least(life: &Life, damage: &Damage, claim: &Claim) -> Result<(), Wrong> {
    let order = life.order();
    let spans = match least(life, damage) {
        Least::All if claim.doubts_nothing() => return Ok(()),
        Least::All => return Err(Fault::DoubtsTooMuch.of("it doubts, and could have known everything")),
        Least::Nothing => return Ok(()),
        Least::Outside(spans) => spans,
    };
    for (family, pairs) in &life.reference {
        let is_outside = |key: &[u8]| !spans.iter().any(|span| span.holds(family, key, &order));
        let too_much = pairs.keys().find(|key| is_outside(key) && claim.doubts(family, Some(key), &order));
        if let Some(key) = too_much {
            let what = format!("it doubts {family} {}, and could have known it", key.escape_ascii());
            return Err(Fault::DoubtsTooMuch.of(what));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;
    use crate::random::Random;
    use crate::rescue::damage;
    use crate::rescue::ways::{self, Way};

    /// A life that ends by a kill.
    fn life() -> Life {
        let script = parse::script("put default a 1\nflush default\nput default b 1\nput default c 1").unwrap();
        let mut lives = (0..).map(|seed| Life::of(seed, script.clone()).unwrap_or_else(|failure| panic!("{failure}")));
        lives.find(|life| life.ending == Ending::Killed).unwrap()
    }

    fn damage(life: &Life, kind: Kind) -> Damage {
        let mut all = damage::all(life, &mut Random::new(1)).unwrap().into_iter();
        all.find(|damage| damage.kind == kind).unwrap()
    }

    fn without(life: &Life, key: &[u8]) -> Contents {
        let mut contents = life.reference.clone();
        contents.get_mut("default").unwrap().remove(key);
        contents
    }

    #[test]
    fn lost_key_is_refuted_unless_it_is_doubted() {
        let life = life();
        let damage = damage(&life, Kind::Current);
        let doubt = |key: &[u8]| Claim::Doubts(vec![Doubt::of_keys("default", (key.to_vec(), key.to_vec()), "why")]);
        let fault = |claim: &Claim| judge_claim(&life, &damage, claim, &without(&life, b"b")).map_err(|e| e.fault);
        assert_eq!(fault(&Claim::NONE), Err(Fault::Refuted));
        assert_eq!(fault(&doubt(b"a")), Err(Fault::Refuted));
        assert_eq!(fault(&doubt(b"b")), Ok(()));
    }

    #[test]
    fn value_that_nobody_put_is_refuted() {
        let life = life();
        let mut found = life.reference.clone();
        assert_eq!(judge_values(&life, &found), Ok(()));
        found.get_mut("default").unwrap().insert(b"b".to_vec(), b"2".to_vec());
        assert_eq!(judge_values(&life, &found).map_err(|wrong| wrong.fault), Err(Fault::Refuted));
    }

    #[test]
    fn lost_end_of_the_last_log_leaves_a_prefix() {
        let life = life();
        let damage = damage(&life, Kind::LastLog);
        let fault = |key: &[u8]| judge_claim(&life, &damage, &Claim::NONE, &without(&life, key)).map_err(|e| e.fault);
        assert_eq!(fault(b"c"), Ok(()));
        assert_eq!(fault(b"b"), Err(Fault::Refuted), "a hole");
    }

    #[test]
    fn doubt_is_too_much_where_everything_can_be_known() {
        let life = life();
        let fault = |kind| {
            let claim = Claim::Doubts(vec![Doubt::of_family("default", "why")]);
            judge_least(&life, &damage(&life, kind), &claim).map_err(|wrong| wrong.fault)
        };
        assert_eq!(fault(Kind::Current), Err(Fault::DoubtsTooMuch));
        assert_eq!(fault(Kind::TableLost), Err(Fault::DoubtsTooMuch), "b and c are outside the table");
        assert_eq!(fault(Kind::EveryManifestLost), Ok(()));
    }

    /// The MANIFEST is younger than the only log, and a prepared ingest left a table that nothing names.
    #[test]
    fn table_that_nothing_names_may_be_of_a_lost_manifest() {
        let flushed = "put default a 1\nflush default\n".repeat(12);
        let script = format!("profile vector\n{flushed}prepare p flushable; file default; put d 1");
        let script = parse::script(&script).unwrap();
        let mut lives = (0..).map(|seed| Life::of(seed, script.clone()).unwrap_or_else(|failure| panic!("{failure}")));
        let life = lives.find(|life| life.ending == Ending::Killed).unwrap();
        let damage = damage(&life, Kind::Current);
        assert_eq!(ways::go(&life, &damage, Way::Repair), Ok(true));
    }
}
