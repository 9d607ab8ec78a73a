//! What the engine counts of writers that wait because of an ingest.

use std::sync::Arc;
use std::time::Duration;

use base::{Error, Result};
use spillway::{Db, Family};

const LONGEST: &str = "spillway.ingest-longest-writer-wait-nanos";
const WINDOW: &str = "spillway.ingest-longest-window-nanos";

/// The longest that a writer waited because of an ingest since the database was opened, at the gate, at a latch, for the
/// commit lock or behind its numbers; and the longest that one can have waited for the last two.
///
/// # Errors
/// `InvalidArgument`: the database does not tell.
pub fn longest_wait_and_window(db: &Db, family: &Arc<Family>) -> Result<(Duration, Duration)> {
    let time = |property: &str| {
        let nanos = db.int_property(family, property).map(Duration::from_nanos);
        nanos.ok_or_else(|| Error::invalid_argument(format!("the database has no property {property}")))
    };
    Ok((time(LONGEST)?, time(WINDOW)?))
}
