//! Bulk loads from a runtime.

use std::path::{Path, PathBuf};

use base::Result;

use crate::api::batch::Batch;
use crate::api::family::Family;
use crate::api::ingest::{IngestFiles, PreparedIngest};
use crate::api::options::IngestOptions;
use crate::api::tokio::db::AsyncDb;
use crate::api::tokio::family::AsyncFamily;
use crate::api::tokio::pool::Lane;
use crate::ingest::{IngestProgress, IngestReport};

/// Bulk loads. Tables are written in [`AsyncDb::run`], by a [`TableWriter`](crate::TableWriter).
impl AsyncFamily {
    /// As [`Family::ingest`]. A dropped future cancels the ingest, unless it has been committed.
    pub async fn ingest<P: AsRef<Path>>(&self, files: impl IntoIterator<Item = P>) -> Result<IngestReport> {
        self.ingest_with(files, &IngestOptions::new()).await
    }

    /// As [`Family::ingest_with`]. A dropped future cancels the ingest, unless it has been
    /// committed.
    pub async fn ingest_with<P: AsRef<Path>>(
        &self,
        files: impl IntoIterator<Item = P>,
        options: &IngestOptions,
    ) -> Result<IngestReport> {
        let files: Vec<PathBuf> = files.into_iter().map(|file| file.as_ref().to_owned()).collect();
        let (files, options) = (IngestFiles::new(self.family(), files), options.clone());
        let progress = IngestProgress::default();
        let cancel = CancelOnDrop::new(&progress);
        let ingest = move |family: &Family| family.db().prepare_ingest([files], &options, &progress)?.commit();
        cancel.unless_done(self.run(Lane::Other, ingest)).await
    }
}

/// Bulk loads in two steps.
impl AsyncDb {
    /// As [`Db::prepare_ingest`](crate::Db::prepare_ingest). A dropped future cancels the preparation.
    pub async fn prepare_ingest(
        &self,
        files: impl IntoIterator<Item = IngestFiles>,
        options: &IngestOptions,
        progress: &IngestProgress,
    ) -> Result<PreparedIngest> {
        let (files, options): (Vec<IngestFiles>, _) = (files.into_iter().collect(), options.clone());
        let (cancel, progress) = (CancelOnDrop::new(progress), progress.clone());
        cancel.unless_done(self.run(move |db| db.prepare_ingest(files, &options, &progress))).await
    }

    /// As [`PreparedIngest::commit`].
    pub async fn commit_ingest(&self, prepared: PreparedIngest) -> Result<IngestReport> {
        self.run(move |_| prepared.commit()).await
    }

    /// As [`PreparedIngest::commit_with_batch`].
    pub async fn commit_ingest_with_batch(&self, prepared: PreparedIngest, batch: Batch) -> Result<IngestReport> {
        self.run(move |_| prepared.commit_with_batch(batch)).await
    }
}

/// Cancels an ingest whose future is dropped.
struct CancelOnDrop(Option<IngestProgress>);

impl CancelOnDrop {
    fn new(progress: &IngestProgress) -> Self {
        CancelOnDrop(Some(progress.clone()))
    }

    /// Runs a step of the ingest. Once it is done, a prepared ingest can be committed.
    async fn unless_done<T>(mut self, step: impl Future<Output = T>) -> T {
        let done = step.await;
        self.0 = None;
        done
    }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        if let Some(progress) = &self.0 {
            progress.cancel();
        }
    }
}
