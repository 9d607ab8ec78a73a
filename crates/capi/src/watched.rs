//! The open databases of a shared handle: a file manager, memory consumers.

use std::sync::{Arc, Weak};

use spillway::internal::Database as Db;

/// Open databases.
#[derive(Clone, Default)]
pub struct Watched(Vec<Weak<Db>>);

impl Watched {
    pub fn add(&mut self, db: &Arc<Db>) {
        self.0.retain(|known| known.strong_count() > 0);
        self.0.push(Arc::downgrade(db));
    }

    /// Those still open.
    pub fn open(&self) -> impl Iterator<Item = Arc<Db>> {
        self.0.iter().filter_map(Weak::upgrade)
    }

    /// The sum of a property over all families.
    pub fn sum(&self, property: &str) -> u64 {
        let of =
            |db: Arc<Db>| -> u64 { db.families().iter().filter_map(|family| db.int_property(family, property)).sum() };
        self.open().map(of).sum()
    }
}
