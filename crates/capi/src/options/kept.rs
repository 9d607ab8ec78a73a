//! Values of options that have no effect here: they are kept, so that a caller who asks gets what was set, and warned
//! about once, as options files are.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use spillway::options::known;

use super::number::{CNumber, Field, Number};

/// The values that one handle keeps, by the names that C has for them.
#[derive(Clone, Default)]
pub struct Kept(BTreeMap<&'static str, Number>);

impl Kept {
    pub fn get<C: CNumber>(&self, name: &str, default: C) -> C {
        self.0.get(name).map_or(default, |&number| C::of(number))
    }

    /// Keeps a value that differs from what happens anyway, which is `default`.
    pub fn set<C: CNumber>(&mut self, name: &'static str, value: C, default: C) {
        let number = value.number();
        if number == default.number() {
            self.0.remove(name);
            return;
        }
        self.0.insert(name, number);
        if !is_rocksdbs_default(name, number) {
            warn(name, &number.text(false));
        }
    }

    /// Sets an option of ours; what it cannot have is kept beside it.
    pub fn set_field<C: CNumber>(&mut self, name: &'static str, field: &mut impl Field, value: C) {
        let number = value.number();
        if field.take(number) {
            self.0.remove(name);
        } else {
            self.0.insert(name, number);
            warn(name, &number.text(false));
        }
    }

    pub fn field<C: CNumber>(&self, name: &str, field: &impl Field) -> C {
        C::of(self.0.get(name).copied().unwrap_or_else(|| field.number()))
    }
}

/// Whether some version of RocksDB has that default, so that nobody needs to hear of it.
fn is_rocksdbs_default(name: &str, number: Number) -> bool {
    let mut rows = [known::DB, known::FAMILY, known::TABLE].into_iter().flatten();
    rows.find(|row| row.name == name)
        .is_some_and(|row| row.is_default(&number.text(true)) || row.is_default(&number.text(false)))
}

/// Says once for each name that an option has no effect.
pub fn warn(name: &'static str, value: &str) {
    static SAID: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    if SAID.lock().insert(name) {
        tracing::warn!("option `{name}={value}` of RocksDB has no effect here");
    }
}
