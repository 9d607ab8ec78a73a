//! How long memtable switches held writers up, as the database's statistics tell.

use spillway::Db;
use spillway::metrics::{Distribution, Histogram};

/// The switches of a database so far.
pub struct Switches(Option<Distribution>);

impl Switches {
    /// Nothing is known where the database keeps no statistics.
    pub fn of(db: &Db) -> Self {
        Switches(db.statistics().map(|statistics| statistics.distribution(Histogram::MemtableSwitch)))
    }

    /// Microseconds of the longest since the database was opened, where there were any after `before`.
    pub fn longest_since(before: Switches, db: &Db) -> Option<f64> {
        let now = Switches::of(db).0?;
        let earlier = before.0.map_or(0, |times| times.count());
        (now.count() > earlier).then(|| now.max() as f64)
    }
}
