//! A family's queue: memtables and what else waits for a flush, their memory, spares, and the views readers hold.

pub mod flushable;
pub mod held;
pub mod images;
pub(crate) mod ingest;
pub(crate) mod ingest_record;
pub mod memory;
pub mod rebased;
pub(crate) mod restored;
pub(crate) mod room;
pub(crate) mod spare;
pub(crate) mod staged;
pub(crate) mod switch;
pub mod view;
