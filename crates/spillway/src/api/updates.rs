//! Changes out of the log, in their order.

use base::{Result, SeqNo};

use crate::api::db::Db;
use crate::wal::updates::{LogCursor, Update};

/// Following a database by its log.
impl Db {
    /// The number of the newest change that reads find. Each change takes the number after the one before it.
    pub fn latest_sequence_number(&self) -> SeqNo {
        self.shared().database.latest_sequence_number()
    }

    /// The batches in the log from the one with the change numbered `seq` on, in their order; 0 begins with the first one
    /// there is. A replica starts from a [checkpoint](Self::checkpoint), which returns its last number, and asks for the
    /// number after it.
    ///
    /// Logs are kept until their changes are in tables, and after that as long as
    /// [`wal_ttl_seconds`](crate::Options::wal_ttl_seconds) and [`wal_size_limit_mb`](crate::Options::wal_size_limit_mb)
    /// say.
    ///
    /// ```
    /// # fn main() -> spillway::Result<()> {
    /// # let db = spillway::Db::open_with("/db", &spillway::Options::in_memory())?;
    /// # let replica = spillway::Db::open_with("/replica", &spillway::Options::in_memory())?;
    /// db.put("key", "value")?;
    /// let mut updates = db.updates_since(1)?;
    /// for update in &mut updates {
    ///     replica.batch_from(update?.into_bytes())?.commit()?;
    /// }
    /// assert_eq!(replica.get("key")?.as_deref(), Some(&b"value"[..]));
    /// db.put("key", "another")?;
    /// assert_eq!(updates.next().transpose()?.map(|update| update.sequence_number().0), Some(2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument`: `seq` is beyond the next number to be written: another database's? `Closed`.
    pub fn updates_since(&self, seq: u64) -> Result<Updates> {
        self.shared().database.updates_since(SeqNo(seq), false).map(Updates)
    }
}

/// The batches in the log of a database. From [`Db::updates_since`].
///
/// `None` means that all was shown which reads of the database find; ask again for what is written later. Nothing is
/// left out: the next change that has a number and no batch in a log is an error of the kind
/// [`NotLogged`](crate::ErrorKind::NotLogged), and so is each call after it. Such changes are ingested tables, writes
/// without the log ([`disable_log`](crate::WriteOptions::disable_log)), and whatever was in logs that are deleted. It
/// holds up no writer, and no writer holds it up.
pub struct Updates(LogCursor);

impl Iterator for Updates {
    type Item = Result<Update>;

    fn next(&mut self) -> Option<Result<Update>> {
        self.0.read().transpose()
    }
}
