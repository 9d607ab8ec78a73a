//! Readers that follow the database of another process.

use std::path::Path;

use base::Result;

use crate::api::Shared;
use crate::api::db::Db;
use crate::api::options::Options;
use crate::database::handle::Database;
use crate::open::follow::Lag;

/// Secondaries: readers that follow a database.
impl Db {
    /// Opens the database in `primary`, which another process, or this one, may have open for writing, to read it and to
    /// follow it. Shows it as of now, with all its families; [`try_catch_up_with_primary`](Self::try_catch_up_with_primary)
    /// shows what was logged since. The primary is not disturbed, and knows nothing of it. Files of this reader, such as its
    /// event log, are in `secondary`.
    ///
    /// Every table is kept open, so that the primary may delete it. Writes fail with
    /// [`ReadOnly`](crate::ErrorKind::ReadOnly), reads of a snapshot with [`Unsupported`](crate::ErrorKind::Unsupported): the
    /// primary's compactions drop what only a secondary's snapshot would show. Iterators go on showing what there was when
    /// they were made.
    ///
    /// ```
    /// # fn main() -> spillway::Result<()> {
    /// # let options = spillway::Options::in_memory();
    /// let db = spillway::Db::open_with("/db", &options)?;
    /// let reader = spillway::Db::open_as_secondary("/db", "/reader", &options)?;
    /// db.put("key", "value")?;
    /// assert_eq!(reader.get("key")?, None);
    /// reader.try_catch_up_with_primary()?;
    /// assert_eq!(reader.get("key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As of [`open_with`](Self::open_with) for reading only. `Busy`: the primary changed its files during every try.
    pub fn open_as_secondary(primary: impl AsRef<Path>, secondary: impl AsRef<Path>, options: &Options) -> Result<Db> {
        let (open, write) = options.resolve(primary.as_ref())?;
        let database = Database::open_as_secondary(primary, secondary, &open)?;
        Ok(Db::of(Shared::new(database, write)))
    }

    /// Shows everything that the primary has logged by now, in all families at once. The time it takes grows with what is
    /// new. A family that the primary creates is not shown; one that it drops stays as it was.
    ///
    /// # Errors
    /// `Unsupported`: not a secondary. `InvalidArgument`: another database, or an older state, is in the primary's place:
    /// open the secondary again. `Io`: it is gone. `Busy`: it changed its files during every try; try again. What reads
    /// show stays as it is then.
    pub fn try_catch_up_with_primary(&self) -> Result<()> {
        self.shared().database.try_catch_up_with_primary()
    }

    /// How far a secondary is behind. Reads the log records that it has not read. Also the properties
    /// `spillway.secondary-sequence-number` and `spillway.secondary-bytes-behind`.
    ///
    /// # Errors
    /// `Unsupported`: not a secondary. `Io`, `Corruption`: a log could not be read.
    pub fn lag(&self) -> Result<Lag> {
        self.shared().database.lag()
    }
}
