//! Values of options without effect here, or invalid for one of Spillway's options: kept so that getters return them.
//! Values of a database and its families are stored with the options themselves, as for option strings: the open notes
//! them in the event log, or refuses them.

pub mod number;

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;

use self::number::Number;

/// Storage for the numbers of a handle's setters and getters, by C's names.
pub trait Keeps {
    /// Keeps a value of an option without effect; `default` is RocksDB's.
    fn keep(&mut self, name: &'static str, number: Number, default: Number);

    /// Notes a set option of Spillway's; `taken` if it has the value as given.
    fn keep_field(&mut self, name: &'static str, number: Number, taken: bool);

    fn kept(&self, name: &'static str) -> Option<Number>;
}

/// A handle's values that no database takes over. Calls given the handle note them.
#[derive(Clone, Debug, Default)]
pub struct Kept(BTreeMap<&'static str, Number>);

impl Kept {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes over the other's numbers.
    pub fn add(&mut self, other: &Kept) {
        self.0.extend(other.iter());
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

/// Handles with a field `kept`, each with numbers of its own.
macro_rules! keeps_numbers {
    ($($Handle:ty),+ $(,)?) => {$(
        impl $crate::kept::Keeps for $Handle {
            fn keep(
                &mut self,
                name: &'static str,
                number: $crate::kept::number::Number,
                default: $crate::kept::number::Number,
            ) {
                self.kept.keep(name, number, default);
            }

            fn keep_field(&mut self, name: &'static str, number: $crate::kept::number::Number, taken: bool) {
                self.kept.keep_field(name, number, taken);
            }

            fn kept(&self, name: &'static str) -> Option<$crate::kept::number::Number> {
                self.kept.kept(name)
            }
        }
    )+};
}

pub(crate) use keeps_numbers;

/// Warns of an option without effect, once per name, outside any database's event log.
pub fn warn(name: &'static str, value: &str) {
    static SAID: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    if SAID.lock().insert(name) {
        tracing::warn!("option `{name}={value}` of RocksDB has no effect here");
    }
}
