//! `rocksdb_wal_iterator_t`: changes read from the WAL, in their order. Here a WAL is deleted once flushed, and not
//! kept for readers.

use super::Absent;
use crate::boundary::{fallible, handles, of_nothing};
use crate::database::Database;

const LOG_ITERATORS: Absent = Absent("iterators over the log");

/// An iterator, never made.
pub enum LogIterator {}

/// `rocksdb_wal_readoptions_t`, never made.
pub enum LogReadOptions {}

handles!(LogIterator, LogReadOptions);

fallible! {
    fn rocksdb_get_updates_since(
        _database: &Database,
        _sequence_number: u64,
        _options: Option<&LogReadOptions>,
    ) -> Option<Box<LogIterator>> {
        LOG_ITERATORS.refuse()
    }
}

of_nothing! { "iterators over the log";
    destroy {
        rocksdb_wal_iter_destroy
    }
    use {
        rocksdb_wal_iter_get_batch
        rocksdb_wal_iter_next
        rocksdb_wal_iter_status
        rocksdb_wal_iter_valid
    }
}
