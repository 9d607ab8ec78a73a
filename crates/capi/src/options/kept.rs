//! Values of options that have no effect here, or that an option of ours cannot have: they are kept, so that a caller who
//! asks gets what was set. Those of a database and its families lie with the options themselves, where option strings put
//! theirs too: opening a database tells of them in the event log, or refuses them.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use super::number::Number;

/// What setters and getters of a handle keep numbers in, by the names that C has for them.
pub trait Keeps {
    /// Keeps a value of an option that has no effect; `default` is RocksDB's.
    fn keep(&mut self, name: &'static str, number: Number, default: Number);

    /// Notes what was set of an option of ours: whether it was `taken` as it is.
    fn keep_field(&mut self, name: &'static str, number: Number, taken: bool);

    fn kept(&self, name: &'static str) -> Option<Number>;
}

/// The values of a handle that no database takes over. Calls that are given the handle tell of them.
#[derive(Clone, Debug, Default)]
pub struct Kept(BTreeMap<&'static str, Number>);

impl Kept {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&'static str, Number)> {
        self.0.iter().map(|(name, number)| (*name, *number))
    }
}

impl Keeps for Kept {
    fn keep(&mut self, name: &'static str, number: Number, default: Number) {
        if number == default {
            self.0.remove(name);
            return;
        }
        self.0.insert(name, number);
        warn(name, &number.text(false));
    }

    fn keep_field(&mut self, name: &'static str, number: Number, taken: bool) {
        if taken {
            self.0.remove(name);
        } else {
            self.0.insert(name, number);
            warn(name, &number.text(false));
        }
    }

    fn kept(&self, name: &'static str) -> Option<Number> {
        self.0.get(name).copied()
    }
}

/// Handles whose field `kept` keeps numbers for themselves alone.
macro_rules! keeps_numbers {
    ($($Handle:ty),+ $(,)?) => {$(
        impl $crate::options::kept::Keeps for $Handle {
            fn keep(
                &mut self,
                name: &'static str,
                number: $crate::options::number::Number,
                default: $crate::options::number::Number,
            ) {
                self.kept.keep(name, number, default);
            }

            fn keep_field(&mut self, name: &'static str, number: $crate::options::number::Number, taken: bool) {
                self.kept.keep_field(name, number, taken);
            }

            fn kept(&self, name: &'static str) -> Option<$crate::options::number::Number> {
                self.kept.kept(name)
            }
        }
    )+};
}

pub(crate) use keeps_numbers;

/// Says once for each name that something has no effect which no database hears of.
pub fn warn(name: &'static str, value: &str) {
    static SAID: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    if SAID.lock().insert(name) {
        tracing::warn!("option `{name}={value}` of RocksDB has no effect here");
    }
}
