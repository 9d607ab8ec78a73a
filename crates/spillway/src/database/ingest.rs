//! Ingesting through the database handle.

use std::path::PathBuf;
use std::sync::Arc;

use base::Result;

use crate::batch::WriteBatch;
use crate::core::family::Family;
use crate::database::handle::Database;
use crate::ingest::{IngestOptions, IngestProgress, IngestReport, IngestRequest, PreparedIngest};

impl Database {
    /// Makes tables part of a family: [`prepare_ingest`](Self::prepare_ingest) and
    /// [`commit_ingest`](Self::commit_ingest) in one. They are visible, whole and durable when the call returns. In
    /// mode [`IngestMode::Flushable`](crate::internal::IngestMode) no writer waits for them.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use spillway::internal::{Database, IngestOptions, OpenOptions, ReadOptions, TableWriter};
    ///
    /// let file = dir.path().join("new.sst");
    /// let db = Database::open(dir.path().join("db"), &OpenOptions::create_if_missing())?;
    /// let family = db.default_family();
    /// let mut table = TableWriter::create(spillway::internal::vfs::RealVfs::new(), &file, &family.options())?;
    /// table.put(b"apple", b"green")?;
    /// table.put(b"pear", b"yellow")?;
    /// table.finish()?;
    /// db.ingest(&family, &[file], &IngestOptions::default())?;
    /// assert_eq!(db.get(&family, b"pear", &ReadOptions::default())?.as_deref(), Some(&b"yellow"[..]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As the two; the database is as it was.
    pub fn ingest(&self, family: &Arc<Family>, files: &[PathBuf], options: &IngestOptions) -> Result<IngestReport> {
        let request = IngestRequest::new(family.clone(), files.to_vec());
        self.ingest_all(&[request], options)
    }

    /// As [`ingest`](Self::ingest), for several families and with excises, at one instant.
    pub fn ingest_all(&self, requests: &[IngestRequest], options: &IngestOptions) -> Result<IngestReport> {
        let prepared = self.prepare_ingest(requests, options, &IngestProgress::default())?;
        self.commit_ingest(prepared)
    }

    /// Brings files into the database's directory and checks them. Nothing is visible yet; dropping the result removes
    /// the files. Any number of threads can prepare at once; `progress` can be watched, and cancelled.
    ///
    /// # Errors
    /// `InvalidArgument`: a file is no table, or one the family cannot take. `Corruption`: a damaged one. `Closed`:
    /// cancelled. The error names the file.
    pub fn prepare_ingest(
        &self,
        requests: &[IngestRequest],
        options: &IngestOptions,
        progress: &IngestProgress,
    ) -> Result<PreparedIngest> {
        let (core, start) = (self.core(), self.core().context.vfs.now());
        let _noting = core.context.noting();
        let mut prepared = self.engine().ingester.prepare_ingest(requests, options, progress)?;
        prepared.took = core.context.vfs.now().saturating_sub(start);
        Ok(prepared)
    }

    /// Makes a prepared ingest part of the database. Earlier snapshots do not see it (but see
    /// [`IngestOptions::ingest_behind`]).
    ///
    /// # Errors
    /// `Closed`: nothing was done. `InvalidArgument`: nothing was done; a file has changed since it was prepared, or the
    /// options forbid a step the ingest needs. `Busy`: nothing was done; it would have waited. `ReadOnly`: the database takes
    /// no writes; if it failed meanwhile, the ingest may be there after a reopen. `Io`, `NoSpace`: the WAL or the MANIFEST
    /// failed; the database takes no more writes.
    pub fn commit_ingest(&self, prepared: PreparedIngest) -> Result<IngestReport> {
        let _noting = self.core().context.noting();
        self.engine().ingester.commit_ingest(prepared, None)
    }

    /// As [`commit_ingest`](Self::commit_ingest), atomically with a batch ordered after the tables.
    pub fn write_with_ingest(&self, batch: &WriteBatch, prepared: PreparedIngest) -> Result<IngestReport> {
        let _noting = self.core().context.noting();
        self.engine().ingester.commit_ingest(prepared, Some(batch))
    }
}
