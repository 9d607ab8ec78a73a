//! Ingesting finished tables. *Prepare* checks files and brings them into the directory. *Commit* enqueues them in the
//! families' queues and makes them part of the database. The flush way *link* gives each table its level.
//!
//! Order comes from the place in the queue, never from exclusion (Q1): writers go on before, during and after. Modes
//! excluding writers for a while (`way`) end in the same queue and the same link.

mod behind;
mod bring;
mod commit;
mod inspect;
mod layers;
mod levels;
mod options;
mod overlap;
mod prepare;
mod progress;
mod report;
mod rewrite;
pub(crate) mod source;
pub mod table_writer;

pub use crate::order::stall::IngestWaitReport;
pub(crate) use commit::Ingester;
pub use levels::NOT_BOTTOMMOST;
pub use options::{FileChecksum, IngestMode, IngestOptions, IngestRequest};
pub use prepare::PreparedIngest;
pub(crate) use prepare::RunningPrepare;
pub use progress::IngestProgress;
pub use report::{IngestReport, IngestWay};
