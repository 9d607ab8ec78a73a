//! Bulk loads: tables written outside the database, then made part of it at once.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use base::Result;

use crate::api::batch::Batch;
use crate::api::db::Db;
use crate::api::family::Family;
use crate::api::options::IngestOptions;
use crate::ingest::table_writer::{TableWriter as EngineTableWriter, WrittenTable};
use crate::ingest::{IngestProgress, IngestReport, IngestRequest, PreparedIngest as EnginePreparedIngest};
use crate::ttl::Times;

impl Family {
    /// Begins a table at `path` to be ingested into this family. No file may exist there.
    ///
    /// # Errors
    /// `InvalidArgument`: the file exists. `Io`, `NoSpace`.
    pub fn table_writer(&self, path: impl AsRef<Path>) -> Result<TableWriter> {
        let vfs = self.shared.database.vfs().clone();
        let inner = EngineTableWriter::create(vfs, path, &self.inner.options())?;
        Ok(TableWriter { inner, times: self.times.clone() })
    }

    /// Makes tables part of the family: visible, whole and durable when the call returns. Writers do not wait for them. If
    /// the family's values expire, tables of its own [`table_writer`](Self::table_writer) have the times at which they were
    /// written; other tables are copied, with the time of the ingest.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// # let db = spillway::Db::open(dir.path().join("db"))?;
    /// let file = dir.path().join("new.sst");
    /// let mut table = db.default_family().table_writer(&file)?;
    /// table.put("apple", "green")?;
    /// table.put("pear", "yellow")?;
    /// table.finish()?;
    /// db.default_family().ingest([file])?;
    /// assert_eq!(db.get("pear")?.as_deref(), Some(b"yellow".as_slice()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As of [`Db::prepare_ingest`] and [`PreparedIngest::commit`]; the database is as it was.
    pub fn ingest<P: AsRef<Path>>(&self, files: impl IntoIterator<Item = P>) -> Result<IngestReport> {
        self.ingest_with(files, &IngestOptions::new())
    }

    /// As [`ingest`](Self::ingest), with options.
    pub fn ingest_with<P: AsRef<Path>>(
        &self,
        files: impl IntoIterator<Item = P>,
        options: &IngestOptions,
    ) -> Result<IngestReport> {
        let files = IngestFiles::new(self, files);
        self.db().prepare_ingest([files], options, &IngestProgress::default())?.commit()
    }
}

impl Db {
    /// Brings tables into the database's directory and checks them. Nothing is visible before
    /// [`commit`](PreparedIngest::commit), which takes microseconds and makes all of it visible at one instant; dropping
    /// the result removes the tables. Any number of threads can prepare at once. `progress` can be watched and cancelled
    /// from another thread.
    ///
    /// # Errors
    /// `InvalidArgument`: a file is no table, or one that the family cannot take; or the options contradict each other.
    /// `Corruption`: a damaged one. `Closed`: cancelled, or the database was closed. `Io`, `NoSpace`. The error names the
    /// file.
    pub fn prepare_ingest(
        &self,
        files: impl IntoIterator<Item = IngestFiles>,
        options: &IngestOptions,
        progress: &IngestProgress,
    ) -> Result<PreparedIngest> {
        let requests: Vec<IngestRequest> = files.into_iter().map(|files| files.0).collect();
        let inner = self.shared().database.prepare_ingest(&requests, &options.0, progress)?;
        Ok(PreparedIngest { inner, db: self.clone() })
    }
}

/// Tables to ingest into one family.
#[derive(Clone)]
#[must_use = "files are ingested by a call"]
pub struct IngestFiles(IngestRequest);

impl IngestFiles {
    /// Tables of a family. If keys of two of them overlap, the later file is newer.
    pub fn new<P: AsRef<Path>>(family: &impl AsRef<Family>, files: impl IntoIterator<Item = P>) -> Self {
        let files: Vec<PathBuf> = files.into_iter().map(|file| file.as_ref().to_owned()).collect();
        IngestFiles(IngestRequest::new(family.as_ref().inner.clone(), files))
    }

    /// First removes all keys from `range.start` up to, not including, `range.end`, at the same instant: the tables
    /// replace the range.
    pub fn replacing<K: AsRef<[u8]>>(mut self, range: Range<K>) -> Self {
        self.0.excise = Some((range.start.as_ref().to_vec(), range.end.as_ref().to_vec()));
        self
    }
}

/// Tables that are ready to become part of the database. Dropping it removes them; the caller's files stay.
#[must_use = "dropped, the tables are removed again"]
pub struct PreparedIngest {
    inner: EnginePreparedIngest,
    db: Db,
}

impl PreparedIngest {
    /// Makes the tables part of the database. Snapshots taken before do not see them.
    ///
    /// # Errors
    /// `InvalidArgument`: a file has changed since it was prepared, or the options forbid a step that is needed. `Busy`:
    /// it would have waited. `Closed`. Nothing was done then. `ReadOnly`, `Io`, `NoSpace`: the log or the MANIFEST failed;
    /// after a reopen the ingest may be there.
    pub fn commit(self) -> Result<IngestReport> {
        self.db.shared().database.commit_ingest(self.inner)
    }

    /// As [`commit`](Self::commit), atomically with a batch, whose changes are newer than the tables.
    ///
    /// # Errors
    /// Also those of [`Batch::commit`].
    pub fn commit_with_batch(self, batch: Batch) -> Result<IngestReport> {
        let (changes, _) = batch.into_changes()?;
        self.db.shared().database.write_with_ingest(&changes, self.inner)
    }

    /// Number of tables.
    pub fn files(&self) -> usize {
        self.inner.files()
    }

    /// Bytes of the tables.
    pub fn bytes(&self) -> u64 {
        self.inner.bytes()
    }
}

impl fmt::Debug for PreparedIngest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedIngest").field("files", &self.files()).field("bytes", &self.bytes()).finish()
    }
}

/// Writes a table to be ingested: [`Family::table_writer`]. Keys ascend strictly in the family's order. Dropped before
/// [`finish`](Self::finish), it removes its file.
///
/// # Errors
/// Of adding: `InvalidArgument`: the key is not above the last one, or the entry is too large; the table is unchanged.
/// `Io`, `NoSpace`: the table cannot be finished any more.
#[must_use = "a table is there once it is finished"]
pub struct TableWriter {
    inner: EngineTableWriter,
    /// If the family's values have stamps.
    times: Option<Times>,
}

impl TableWriter {
    /// Adds a key with its value. Errors as of [`TableWriter`].
    pub fn put(&mut self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.inner.put(key.as_ref(), &Times::stored(self.times.as_ref(), value.as_ref()))
    }

    /// Adds a deletion of a key, for what the database has under the table. Errors as of [`TableWriter`].
    pub fn delete(&mut self, key: impl AsRef<[u8]>) -> Result<()> {
        self.inner.delete(key.as_ref())
    }

    /// Adds a key with an operand of the family's merge operator. Errors as of [`TableWriter`].
    pub fn merge(&mut self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        self.inner.merge(key.as_ref(), &Times::stored(self.times.as_ref(), operand.as_ref()))
    }

    /// Adds a deletion of all keys from `range.start` up to, not including, `range.end`, for what the database has under
    /// the table. Errors as of [`TableWriter`].
    pub fn delete_range<K: AsRef<[u8]>>(&mut self, range: Range<K>) -> Result<()> {
        self.inner.delete_range(range.start.as_ref(), range.end.as_ref())
    }

    /// Ends the table and syncs it.
    ///
    /// # Errors
    /// `InvalidArgument`: nothing was added. `Io`, `NoSpace`. The file is removed.
    pub fn finish(self) -> Result<WrittenTable> {
        self.inner.finish()
    }
}
