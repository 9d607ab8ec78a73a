//! Ingesting through the database handle.

use std::path::PathBuf;
use std::sync::Arc;

use base::Result;

use crate::api::db::Db;
use crate::commit::batch::WriteBatch;
use crate::core::family::Family;
use crate::ingest::{IngestOptions, IngestProgress, IngestReport, IngestRequest, PreparedIngest};

impl Db {
    /// Makes tables part of a family: [`prepare_ingest`](Self::prepare_ingest) and [`commit_ingest`](Self::commit_ingest)
    /// in one. They are visible, whole and durable when the call returns. No writer waits for them, but in other modes than
    /// [`IngestMode::Flushable`](crate::IngestMode).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// use spillway::{Db, IngestOptions, OpenOptions, ReadOptions, TableWriter};
    ///
    /// let file = dir.path().join("new.sst");
    /// let db = Db::open(dir.path().join("db"), &OpenOptions::create_if_missing())?;
    /// let family = db.default_family();
    /// let mut table = TableWriter::create(spillway::vfs::RealVfs::new(), &file, &family.options())?;
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

    /// As [`ingest`](Self::ingest), of several families, with excises: all of it at one instant.
    pub fn ingest_all(&self, requests: &[IngestRequest], options: &IngestOptions) -> Result<IngestReport> {
        let prepared = self.prepare_ingest(requests, options, &IngestProgress::default())?;
        self.commit_ingest(prepared)
    }

    /// Brings files into the database's directory and checks them. Nothing is visible yet, and nothing stays if what is
    /// returned is dropped. Any number of threads can prepare at once; `progress` can be watched, and cancelled.
    ///
    /// # Errors
    /// `InvalidArgument`: a file is no table that the family can take. `Corruption`: a damaged one. `Closed`: cancelled.
    /// The error names the file.
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

    /// Makes what was prepared part of the database. Snapshots taken before do not see it (but see
    /// [`IngestOptions::ingest_behind`]).
    ///
    /// # Errors
    /// `Closed`, `ReadOnly`: nothing was done. `InvalidArgument`: nor was it; a file has changed since it was prepared, or
    /// the options forbid what the ingest would take. `Busy`: nor was it; it would have had to wait. `Io`, `NoSpace`: the
    /// log or the MANIFEST failed; the database takes no more writes.
    pub fn commit_ingest(&self, prepared: PreparedIngest) -> Result<IngestReport> {
        let _noting = self.core().context.noting();
        self.engine().ingester.commit_ingest(prepared, None)
    }

    /// As [`commit_ingest`](Self::commit_ingest), atomically with a batch, which counts as written after the tables.
    pub fn write_with_ingest(&self, batch: &WriteBatch, prepared: PreparedIngest) -> Result<IngestReport> {
        let _noting = self.core().context.noting();
        self.engine().ingester.commit_ingest(prepared, Some(batch))
    }
}
