//! A family's queue: memtables, large batches and ingests to be flushed; their memory, spares and read views.
//! Keeps Q1, Q2, V1.

use std::sync::Arc;

use crate::core::Core;

pub(crate) mod due;
pub mod flushable;
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

/// Makes, charges and switches the families' memtables.
pub(crate) struct Memtables {
    core: Arc<Core>,
}

impl Memtables {
    pub fn new(core: Arc<Core>) -> Arc<Self> {
        Arc::new(Memtables { core })
    }
}
