//! Reads whole databases in every way, and describes the first difference between two of them.

use std::collections::BTreeMap;

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

/// The first family or key, of those for which `counts` holds, in which `found` is not as `expected`.
pub fn difference(
    found: &Contents,
    expected: &Contents,
    counts: impl Fn(&str, Option<&[u8]>) -> bool,
) -> Option<String> {
    for (family, pairs) in expected {
        let Some(held) = found.get(family) else {
            let is_counted = counts(family, None) && pairs.keys().all(|key| counts(family, Some(key)));
            match is_counted {
                true => return Some(format!("the family {family} is gone")),
                false => continue,
            }
        };
        for (key, value) in pairs.iter().filter(|(key, _)| counts(family, Some(key))) {
            match held.get(key) {
                Some(now) if now == value => {}
                Some(now) => return Some(format!("{family} {}: {}, not {}", show(key), show(now), show(value))),
                None => return Some(format!("{family} {} is gone: it was {}", show(key), show(value))),
            }
        }
    }
    for (family, pairs) in found {
        let Some(expected) = expected.get(family) else {
            match counts(family, None) {
                true => return Some(format!("the family {family} is one too many")),
                false => continue,
            }
        };
        let extra = pairs.iter().find(|(key, _)| !expected.contains_key(*key) && counts(family, Some(key)));
        if let Some((key, value)) = extra {
            return Some(format!("{family} {} is one too many: {}", show(key), show(value)));
        }
    }
    None
}
