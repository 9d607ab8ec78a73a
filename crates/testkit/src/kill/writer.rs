//! The process to be killed. It opens the database, reports the operations found, and continues from them on its
//! threads.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::engine::{Db, IngestProgress, ReadOptions, WriteBatch, WriteOptions};
use base::Result;
use vfs::{RealVfs, Vfs};

use super::Setting;
use super::progress::Progress;
use super::story::{FAMILIES, Operation, counter};
use crate::run;
use crate::tables::{self, Tables};
use crate::threads::start;

/// Operations of a thread before the process ends, if it is not killed.
const OPERATIONS_MAX: u64 = 200_000;

struct Writer {
    db: Db,
    vfs: Arc<dyn Vfs>,
    setting: Setting,
    progress: Progress,
    /// Directory of tables to ingest.
    tables: PathBuf,
}

/// Opens the database `db` below `place` and writes until the process is killed. Progress goes to the file `told`.
///
/// # Panics
/// Any failure; the parent then sees that the process ended by itself.
pub fn write_until_killed(place: &Path, told: &Path, setting: Setting) {
    let vfs: Arc<dyn Vfs> = RealVfs::new();
    let db = Db::open(place.join("db"), &setting.open_options(vfs.clone())).expect("opened");
    let found = (0..setting.threads).map(|thread| count(&db, thread).expect("read")).collect::<Vec<_>>();
    let progress = Progress::create(&*vfs, told).expect("made");
    progress.begin(&found).expect("told");
    let tables = place.join("tables");
    vfs.create_dir_all(&tables).expect("made");
    let writer = Arc::new(Writer { db, vfs, setting, progress, tables });
    let threads: Vec<_> = (0..)
        .zip(found)
        .map(|(thread, found)| {
            let writer = writer.clone();
            start(move || writer.write_on(thread, found).expect("written"))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("a thread's panic is told by its words"));
}

/// Number of a thread's operations in the database.
fn count(db: &Db, thread: u64) -> Result<u64> {
    let [first, ..] = FAMILIES;
    let family = db.family(first).expect("never dropped");
    let value = db.get(&family, &counter(thread), &ReadOptions::default())?;
    Ok(value.and_then(|value| value.first_chunk().copied()).map_or(0, u64::from_le_bytes))
}

impl Writer {
    fn write_on(&self, thread: u64, found: u64) -> Result<()> {
        let order = self.setting.profile.order.order();
        for n in found + 1..found + OPERATIONS_MAX {
            let operation = self.setting.story.operation(thread, n, &order);
            if operation.is_ingest() {
                self.ingest(thread, &operation)?;
            } else {
                self.write(&operation)?;
            }
            self.progress.acknowledge(thread, n)?;
            self.progress.record_converted(self.db.flushes().converted)?;
        }
        Ok(())
    }

    fn batch(&self, operation: &Operation) -> WriteBatch {
        let mut batch = WriteBatch::new();
        for change in &operation.ingest.batch {
            let family = self.db.family(&change.family).expect("never dropped");
            run::add(&mut batch, &family, &change.action);
        }
        batch
    }

    fn write(&self, operation: &Operation) -> Result<()> {
        let (sync, flush_after) = (operation.durability.sync, operation.durability.flush);
        self.db.write(&self.batch(operation), &WriteOptions { sync, flush_after, ..WriteOptions::default() })?;
        Ok(())
    }

    fn ingest(&self, thread: u64, operation: &Operation) -> Result<()> {
        let mut made = 0;
        let mut next_path = || {
            made += 1;
            self.tables.join(format!("{}-{thread}-{made}.sst", std::process::id()))
        };
        let (tables, requests) = Tables::make(&self.db, &self.vfs, &operation.ingest, &mut next_path)?;
        let options = tables::options(&operation.ingest);
        let prepared = self.db.prepare_ingest(&requests, &options, &IngestProgress::default())?;
        match operation.ingest.batch.is_empty() {
            true => self.db.commit_ingest(prepared)?,
            false => self.db.write_with_ingest(&self.batch(operation), prepared)?,
        };
        drop(tables);
        Ok(())
    }
}
