//! Changes out of the log, in their order.

use base::Result;

use crate::updates::{LogCursor, Update};

/// The batches in the log of a database. From [`Db::updates_since`](crate::Db::updates_since).
///
/// `None` means that all was shown which reads of the database find; ask again for what is written later. Nothing is
/// left out: the next change that has a number and no batch in a log is an error of the kind
/// [`NotLogged`](crate::ErrorKind::NotLogged), and so is each call after it. Such changes are ingested tables, writes
/// without the log ([`disable_wal`](crate::WriteOptions::disable_wal)), and whatever was in logs that are deleted. It
/// holds up no writer, and no writer holds it up.
pub struct Updates(LogCursor);

impl Updates {
    pub(super) fn new(cursor: LogCursor) -> Self {
        Updates(cursor)
    }
}

impl Iterator for Updates {
    type Item = Result<Update>;

    fn next(&mut self) -> Option<Result<Update>> {
        self.0.read().transpose()
    }
}
