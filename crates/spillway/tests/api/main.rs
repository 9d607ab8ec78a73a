//! The public API: handles, batches, iteration, options. What the engine does behind it is tested elsewhere.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]

mod batches;
mod care;
mod closing;
mod expiry;
mod extending;
mod families;
mod iteration;
mod loading;
mod model;
mod second_runs;
mod stored_options;
mod transactions;

use spillway::{Db, Options};

/// A database in memory.
fn in_memory() -> Db {
    Db::open_with("/db", &Options::in_memory()).unwrap()
}

/// Keys of entries, as text.
fn keys(entries: impl Iterator<Item = spillway::Result<(spillway::Pinned, spillway::Pinned)>>) -> Vec<String> {
    entries.map(|entry| String::from_utf8(entry.unwrap().0.to_vec()).unwrap()).collect()
}
