//! What the engine counts of writers that wait because of an ingest.

use std::sync::Arc;
use std::time::Duration;

use base::{Error, Result};
use spillway::{Db, Family};

const LONGEST: &str = "spillway.ingest-longest-writer-wait-nanos";

/// The longest that any writer can have waited because of an ingest since the database was opened: at the gate, at a latch,
/// or for the commit lock.
///
/// # Errors
/// `InvalidArgument`: the database does not tell.
pub fn longest_wait(db: &Db, family: &Arc<Family>) -> Result<Duration> {
    let nanos = db.int_property(family, LONGEST);
    nanos
        .map(Duration::from_nanos)
        .ok_or_else(|| Error::invalid_argument(format!("the database has no property {LONGEST}")))
}
