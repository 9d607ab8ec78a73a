//! A doubt: keys whose values a rescue cannot prove. Repair, salvage and `best_efforts_recovery` report in doubts.

use std::fmt;

use base::{UserOrder, name};
use parking_lot::Mutex;

/// Keys whose values, after a rescue, may not be the ones last written.
///
/// A rescue doubts a key if the remaining files allow a history in which its answer is wrong. All other keys have their
/// last durable values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Doubt {
    /// The family's name; `None` for every family.
    pub family: Option<String>,
    /// The first and the last doubted user key, in the family's order; `None` for every key.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
    /// The unknown fact, and the assumption made.
    pub why: String,
    /// Not the keys are in doubt, but which transactions are prepared: one may be missing, or have ended.
    pub of_prepared: bool,
}

impl Doubt {
    /// Doubts every key of every family.
    pub fn of_all(why: impl Into<String>) -> Doubt {
        Doubt { why: why.into(), ..Doubt::default() }
    }

    /// Doubts which transactions are prepared.
    pub fn of_prepared(why: impl Into<String>) -> Doubt {
        Doubt { why: why.into(), of_prepared: true, ..Doubt::default() }
    }

    /// Doubts every key of one family.
    pub fn of_family(family: impl Into<String>, why: impl Into<String>) -> Doubt {
        Doubt { family: Some(family.into()), ..Doubt::of_all(why) }
    }

    /// Doubts the keys of one family from the first to the last one of `keys`.
    pub fn of_keys(family: impl Into<String>, keys: (Vec<u8>, Vec<u8>), why: impl Into<String>) -> Doubt {
        Doubt { keys: Some(keys), ..Doubt::of_family(family, why) }
    }

    /// Whether the doubt concerns `key` of `family`, whose order is `order`.
    pub fn covers(&self, family: &str, key: &[u8], order: &UserOrder) -> bool {
        let of_family = self.family.as_ref().is_none_or(|name| name == family);
        !self.of_prepared && of_family && self.keys.as_ref().is_none_or(|keys| is_within(keys, key, order))
    }
}

pub(crate) fn is_within(keys: &(Vec<u8>, Vec<u8>), key: &[u8], order: &UserOrder) -> bool {
    order.compare(&keys.0, key).is_le() && order.compare(key, &keys.1).is_le()
}

/// Without a line end: `family "x", keys 'a' to 'b': why`, or `prepared transactions: why`.
impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.family {
            Some(family) => write!(f, "family {}", name::quoted(family))?,
            None if self.of_prepared => f.write_str("prepared transactions")?,
            None => f.write_str("every family")?,
        }
        if let Some((from, through)) = &self.keys {
            write!(f, ", keys '{}' to '{}'", from.escape_ascii(), through.escape_ascii())?;
        }
        write!(f, ": {}", self.why)
    }
}

/// Doubts kept, at most: about a megabyte. With more, every key is in doubt.
const DOUBTS_MAX: usize = 1000;

/// The longest key kept. Beyond, the whole family is in doubt.
const KEY_BYTES_MAX: usize = 64 << 10;

/// The doubts of an open database's recovery. A leaf lock.
#[derive(Default)]
pub(crate) struct Doubts(Mutex<Vec<Doubt>>);

impl Doubts {
    pub fn add(&self, mut doubt: Doubt) {
        if doubt.keys.as_ref().is_some_and(|(from, through)| from.len().max(through.len()) > KEY_BYTES_MAX) {
            doubt.keys = None;
        }
        let mut doubts = self.0.lock();
        if doubts.contains(&doubt) {
            return;
        }
        if doubts.len() >= DOUBTS_MAX {
            *doubts = vec![Doubt::of_all(format!("more than {DOUBTS_MAX} parts are lost or damaged"))];
        }
        doubts.push(doubt);
    }

    pub fn all(&self) -> Vec<Doubt> {
        self.0.lock().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubts_are_bounded_and_lose_no_key() {
        let doubts = Doubts::default();
        doubts.add(Doubt::of_keys("f", (vec![b'k'; KEY_BYTES_MAX + 1], vec![b'z']), "long"));
        assert!(doubts.all()[0].covers("f", b"a", &UserOrder::Bytewise));
        let numbered = |n: usize| Doubt::of_keys("f", (n.to_be_bytes().to_vec(), n.to_be_bytes().to_vec()), "one");
        (0..DOUBTS_MAX - 1).for_each(|n| doubts.add(numbered(n)));
        doubts.add(numbered(0));
        assert_eq!(doubts.all().len(), DOUBTS_MAX, "the same doubt counts once");
        (DOUBTS_MAX..3 * DOUBTS_MAX).for_each(|n| doubts.add(numbered(n)));
        let all = doubts.all();
        let is_covered = |n: usize| all.iter().any(|doubt| doubt.covers("f", &n.to_be_bytes(), &UserOrder::Bytewise));
        assert!(all.len() <= DOUBTS_MAX && (0..3 * DOUBTS_MAX).all(is_covered));
    }
}
