//! Reads whole databases in every way, and describes the first difference between two of them.

use std::collections::{BTreeMap, BTreeSet};

use crate::engine::{Db, Family, ReadOptions};
use crate::iterate::show;
use crate::ops::Key;
use crate::run::{Failure, differ};

/// Pairs of a family.
pub type Pairs = BTreeMap<Key, Vec<u8>>;

/// Pairs of each family, by name.
pub type Contents = BTreeMap<String, Pairs>;

/// Reads all families: forward, backward and key by key.
///
/// # Errors
/// The engine's; a difference between the ways.
pub fn read(db: &Db) -> Result<Contents, Failure> {
    let families = db.families();
    families.iter().map(|family| Ok((family.name().to_owned(), read_family(db, family)?))).collect()
}

fn read_family(db: &Db, family: &Family) -> Result<Pairs, Failure> {
    let mut iterator = db.iter(family, &ReadOptions::default())?;
    let (mut pairs, mut backward) = (Pairs::new(), Pairs::new());
    let mut valid = iterator.seek_to_first();
    while valid {
        pairs.insert(iterator.key().to_vec(), iterator.value().to_vec());
        valid = iterator.next();
    }
    iterator.status()?;
    valid = iterator.seek_to_last();
    while valid {
        backward.insert(iterator.key().to_vec(), iterator.value().to_vec());
        valid = iterator.prev();
    }
    iterator.status()?;
    if backward != pairs {
        return differ(format!("{}: the scans forward and backward differ", family.name()));
    }
    for (key, value) in &pairs {
        let found = db.get(family, key, &ReadOptions::default())?;
        if found.as_deref() != Some(value.as_slice()) {
            return differ(format!("{}: lookup and scan of {} differ", family.name(), show(key)));
        }
    }
    Ok(pairs)
}

/// The first family or key, of those for which `counts` holds, in which `found` is not as `expected`. `counts` gets no
/// key where a family as a whole is meant: one that is gone, or one too many.
pub fn difference(
    found: &Contents,
    expected: &Contents,
    counts: impl Fn(&str, Option<&[u8]>) -> bool,
) -> Option<String> {
    let none = Pairs::new();
    let names: BTreeSet<&String> = expected.keys().chain(found.keys()).collect();
    for name in names {
        let (held, wanted) = (found.get(name), expected.get(name));
        if held.is_some() != wanted.is_some() && counts(name, None) {
            let how = if held.is_some() { "one too many" } else { "gone" };
            return Some(format!("the family {name} is {how}"));
        }
        let counted = |key: &[u8]| counts(name, Some(key));
        let what = difference_of_pairs(held.unwrap_or(&none), wanted.unwrap_or(&none), counted);
        if let Some(what) = what {
            return Some(format!("{name} {what}"));
        }
    }
    None
}

fn difference_of_pairs(held: &Pairs, wanted: &Pairs, counts: impl Fn(&[u8]) -> bool) -> Option<String> {
    for (key, value) in wanted.iter().filter(|(key, _)| counts(key)) {
        match held.get(key) {
            Some(now) if now == value => {}
            Some(now) => return Some(format!("{}: {}, not {}", show(key), show(now), show(value))),
            None => return Some(format!("{} is gone: it was {}", show(key), show(value))),
        }
    }
    let (key, value) = held.iter().find(|(key, _)| !wanted.contains_key(*key) && counts(key))?;
    Some(format!("{} is one too many: {}", show(key), show(value)))
}
