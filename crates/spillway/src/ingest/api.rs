//! Ingesting through the database handle.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::{Result, SeqNo};

use super::options::{IngestOptions, IngestProgress, IngestRequest};
use super::prepare::PreparedIngest;
use crate::db::Db;
use crate::family::Family;
use crate::write::batch::WriteBatch;

/// What an ingest did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngestReport {
    /// The numbers that it took, those of the batch that came along included. Both zero where there was nothing.
    pub first: SeqNo,
    pub last: SeqNo,
    /// Tables that became part of the database.
    pub tables: usize,
    pub bytes: u64,
    /// Families in which nothing of it was in the mutable memtable, so that it went under it.
    pub under: usize,
    /// Families in which a fresh memtable took over above it.
    pub above: usize,
    /// Time of the commit, the log's sync included.
    pub committed_in: Duration,
    /// Time under the commit lock: the longest that it can have held up a writer.
    pub locked_for: Duration,
}

impl Db {
    /// Makes tables part of a family: [`prepare_ingest`](Self::prepare_ingest) and [`commit_ingest`](Self::commit_ingest)
    /// in one. They are visible, whole and durable when the call returns. Nobody waits for anything but their bytes.
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
        let request = IngestRequest { family: family.clone(), files: files.to_vec(), excise: None };
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
        self.core().prepare_ingest(requests, options, progress)
    }

    /// Makes what was prepared part of the database. Snapshots taken before do not see it.
    ///
    /// # Errors
    /// `Closed`, `ReadOnly`: nothing was done. `Io`: the log failed; the database takes no more writes.
    pub fn commit_ingest(&self, prepared: PreparedIngest) -> Result<IngestReport> {
        self.core().commit_ingest(prepared, None)
    }

    /// As [`commit_ingest`](Self::commit_ingest), atomically with a batch, which counts as written after the tables.
    pub fn write_with_ingest(&self, batch: &WriteBatch, prepared: PreparedIngest) -> Result<IngestReport> {
        self.core().commit_ingest(prepared, Some(batch))
    }
}
