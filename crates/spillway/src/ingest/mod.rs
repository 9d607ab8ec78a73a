//! Ingesting finished tables: *prepare* checks files and brings them into the directory, *commit* makes them part of the
//! database as entries of the families' queues, and a flush of the way *link* gives each its level.
//!
//! Order comes from the place in the queue, never from exclusion (Q1): writers go on before, during and after.

mod api;
mod commit;
mod inspect;
pub(crate) mod link;
mod options;
pub(crate) mod overlap;
pub(crate) mod placement;
mod prepare;
pub(crate) mod queued;
pub(crate) mod record;

pub use api::IngestReport;
pub use options::{IngestMode, IngestOptions, IngestProgress, IngestRequest};
pub use prepare::PreparedIngest;
