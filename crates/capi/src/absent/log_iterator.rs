//! `rocksdb_wal_iterator_t`: changes out of the log, in their order. The log of a database here is let go of as soon as it
//! is flushed, and keeps nothing for readers.

use super::Absent;
use crate::boundary::{fallible, handles, of_nothing};
use crate::database::Database;

const LOG_ITERATORS: Absent = Absent("iterators over the log");

/// An iterator, of which there is none.
pub enum LogIterator {}

/// `rocksdb_wal_readoptions_t`, of which there is none either.
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
