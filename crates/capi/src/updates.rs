//! `rocksdb_wal_iterator_t`: changes out of the WAL, in their order.

use std::ffi::c_uchar;

use spillway::internal::{LogCursor, SeqNo, Update};

use crate::batch::Batch;
use crate::boundary::argument::Out;
use crate::boundary::settings::settings;
use crate::boundary::{export, fallible, handles};
use crate::database::Database;
use crate::failure::Failure;
use crate::kept::{Kept, keeps_numbers};

/// An iterator, at a batch, at the end, or failed. At the end `next` looks for what was written since.
pub struct LogIterator {
    cursor: LogCursor,
    batch: Option<Update>,
    failed: Option<Failure>,
}

/// `rocksdb_wal_readoptions_t`. Checksums are always verified.
#[derive(Default)]
pub struct LogReadOptions {
    kept: Kept,
}

handles!(LogIterator, LogReadOptions);

keeps_numbers!(LogReadOptions);

settings! { LogReadOptions, "rocksdb_wal_readoptions_";
    verify_checksums: c_uchar = 1;
}

impl LogIterator {
    pub fn advance(&mut self) {
        (self.batch, self.failed) = match self.cursor.read() {
            Ok(batch) => (batch, None),
            Err(error) => (None, Some(error.into())),
        };
    }

    /// The batch that it is at.
    pub fn batch(&self) -> Option<&Update> {
        self.batch.as_ref()
    }

    /// # Errors
    /// That of the last step.
    pub fn status(&self) -> Result<(), Failure> {
        self.failed.clone().map_or(Ok(()), Err)
    }
}

impl Database {
    /// The first batch is the one with the number. If its log is gone, it is the first one left, as in RocksDB: the
    /// caller compares the numbers.
    pub fn updates_since(&self, number: u64) -> Result<Box<LogIterator>, Failure> {
        if number > self.db.latest_sequence_number().0 {
            return Err(Failure::not_found("Requested sequence not yet written in the db"));
        }
        let cursor = self.db.updates_since(SeqNo(number), true)?;
        let mut iterator = Box::new(LogIterator { cursor, batch: None, failed: None });
        iterator.advance();
        Ok(iterator)
    }
}

fallible! {
    /// See [`Database::updates_since`].
    fn rocksdb_get_updates_since(
        database: &Database,
        sequence_number: u64,
        _options: Option<&LogReadOptions>,
    ) -> Box<LogIterator> {
        database.updates_since(sequence_number)
    }

    fn rocksdb_wal_iter_status(iter: &LogIterator) {
        iter.status()
    }
}

export! {
    fn rocksdb_wal_iter_destroy(iter: Option<Box<LogIterator>>) {
        drop(iter);
    }

    fn rocksdb_wal_iter_next(iter: &mut LogIterator) {
        iter.advance();
    }

    fn rocksdb_wal_iter_valid(wal_iterator: &LogIterator) -> bool {
        wal_iterator.batch.is_some()
    }

    /// A copy of the batch, for the caller to destroy. An empty one, and number 0, if the iterator is not valid.
    fn rocksdb_wal_iter_get_batch(iter: &LogIterator, seq: Out<u64>) -> Box<Batch> {
        seq.set(iter.batch.as_ref().map_or(0, |batch| batch.sequence_number().0));
        Batch::of_bytes(iter.batch.as_ref().map(|batch| batch.as_bytes().to_vec()))
    }

    fn rocksdb_wal_readoptions_create() -> Box<LogReadOptions> {
        Box::default()
    }

    fn rocksdb_wal_readoptions_destroy(options: Option<Box<LogReadOptions>>) {
        drop(options);
    }
}
