//! Checkpoints: a copy of the database at one instant in another directory, made while writes go on.
//!
//! Tables and complete logs are immutable, so they are linked. The current log is copied through its published end,
//! since a link would grow with the original. Files are pinned until linked or copied (Q3). Only unlogged writes are
//! flushed. Keeps D2 and D3: the copy is a prefix of the history. It has the database's id, as in RocksDB.

use base::name;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::options::{DbOptions, FamilyOptions, ini, whole};
use base::{Error, FileNumber, Result, SeqNo};
use wal::FILE_HEADER_BYTES;

use crate::background::staging::Staging;
use crate::core::context::Context;
use crate::core::family::Family;
use crate::core::install::Installer;
use crate::core::lost::Lost;
use crate::core::{Core, FamilyState};
use crate::flush::group::Flusher;
use crate::log_files::logs::ActiveLog;
use crate::version::edit::{LOG_DIR_OF_COPY, LogEnd, WalRange};
use crate::version::file_name::{self, FileType};
use crate::version::log_life::LogLife;
use crate::version::manifest::ManifestWriter;
use crate::version::snapshot::ManifestSnapshot;
use crate::version::table_file::TableFile;

/// The OPTIONS text of a copy with this id and the file's number, and with its logs in its own directory.
pub(crate) fn describe_options(
    context: &Context,
    families: &[Arc<Family>],
    db_id: &str,
    number: FileNumber,
    audience: ini::Audience,
) -> String {
    let mut options = DbOptions::clone(&context.options_now.load());
    options.wal_dir.clear();
    let families: Vec<(&str, Arc<FamilyOptions>)> = families.iter().map(|f| (f.name(), f.options())).collect();
    let families: Vec<(&str, &FamilyOptions)> = families.iter().map(|(name, f)| (*name, &**f)).collect();
    whole::of_database(&ini::write(&options, &families, audience), db_id, number.0)
}

/// The database at one instant, pinned.
pub(crate) struct Capture {
    /// Its `log_ends` cover the logs below without an end record.
    pub snapshot: ManifestSnapshot,
    /// Tables of the versions, and ingested tables still without a level.
    tables: Vec<Arc<TableFile>>,
    /// The number of the copy's MANIFEST.
    pub manifest: FileNumber,
    /// Complete logs and large-batch files.
    older_logs: Vec<(FileNumber, Arc<LogLife>)>,
    /// The current log and its captured length in bytes.
    current: Option<(FileNumber, Arc<LogLife>, u64)>,
    pub families: Vec<Arc<Family>>,
}

/// A captured file, pinned.
pub(crate) struct CapturedFile {
    pub path: PathBuf,
    pub content: Content,
}

/// A captured file's kind, and whether it can change.
pub(crate) enum Content {
    /// Immutable.
    Table(Arc<TableFile>),
    /// Immutable, except that closing the log truncates its trailing zeros.
    CompleteLog(FileType, FileNumber),
    /// The first `bytes` are captured and immutable.
    GrowingLog { number: FileNumber, bytes: u64 },
}

impl Capture {
    /// Logs needed only by values in tables. They are no longer written.
    fn logs_of_values(&self) -> BTreeSet<FileNumber> {
        let current = self.current.iter().map(|(number, ..)| *number);
        let others: BTreeSet<FileNumber> = self.older_logs.iter().map(|(number, _)| *number).chain(current).collect();
        let shares = self.tables.iter().flat_map(|table| &table.meta.value_logs);
        shares.map(|share| share.log).filter(|log| !others.contains(log)).collect()
    }
}

/// Makes copies of an open database.
pub(crate) struct Copier<'a> {
    pub core: &'a Core,
    pub installer: &'a Installer,
    pub flusher: &'a Flusher,
}

impl Copier<'_> {
    /// See [`Database::checkpoint`](crate::internal::Database::checkpoint).
    pub fn checkpoint(&self, dir: &Path) -> Result<SeqNo> {
        let core = self.core;
        self.check_copied()?;
        let staging = Staging::begin(core.context.vfs.clone(), dir, "checkpoint")?;
        self.flush_what_no_log_has()?;
        let mut capture = self.capture()?;
        LOG_DIR_OF_COPY.clone_into(&mut capture.snapshot.log_dir);
        capture.snapshot.home.clear();
        self.fill_checkpoint(&staging, &capture)?;
        staging.commit()?;
        Ok(capture.snapshot.last_seq)
    }

    /// Checks that a copy may be made.
    ///
    /// # Errors
    /// `InvalidArgument`: a repair was cut off. `ReadOnly`, `Closed`. The file system's.
    pub(crate) fn check_copied(&self) -> Result<()> {
        self.core.check_writable()?;
        Lost::new(&*self.core.context.vfs, &self.core.context.dir).check_copied(None)
    }

    /// Flushes memtables with unlogged writes: only tables can carry those into a copy.
    pub(crate) fn flush_what_no_log_has(&self) -> Result<()> {
        let families: Vec<_> = self.core.families.load().iter().filter(|f| f.has_unlogged_writes()).cloned().collect();
        self.flusher.flush_families(&families.iter().collect::<Vec<_>>())
    }

    /// Holds the manifest lock between capturing versions and taking the log's end: no table or family is added or
    /// removed in between.
    pub(crate) fn capture(&self) -> Result<Capture> {
        let manifest = self.installer.manifest.lock();
        let closed = || Error::closed("the database is closed");
        manifest.as_ref().ok_or_else(closed)?;
        let number = self.core.context.numbers.take();
        // Ends before pins: a log may be released in between, but a pinned log never lacks its end.
        let mut log_ends = self.core.logs.recovered_ends();
        let (mut pins, current) = {
            let commit = self.core.commit.lock();
            if commit.closed {
                return Err(closed());
            }
            (self.core.logs.pin_all(), commit.log.clone())
        };
        let mut snapshot = self.installer.manifest_snapshot(Vec::new());
        snapshot.options_file = Some(number); // as the copy names its own
        let families = self.core.families.load().iter().cloned().collect();
        let end_offset = self.published_end_of(current.as_deref())?;
        snapshot.last_seq = self.core.pipeline.visible();
        let mut late = self.large_batches_beside(&pins);
        // Read after the log's end, so no ingest before the end is missing. Linking takes the manifest lock, so none
        // was linked since.
        let tables: Vec<Arc<TableFile>> =
            self.core.state.lock().families.values().flat_map(FamilyState::tables).cloned().collect();
        let leaves_values = |table: &Arc<TableFile>| !table.meta.value_logs.is_empty();
        let has_values_in_logs = tables.iter().any(leaves_values);
        if !has_values_in_logs && self.core.is_all_in_tables() {
            pins.clear();
            late.clear();
        }
        drop(manifest);
        log_ends.iter_mut().for_each(|end| end.on_disk = true); // synced with the current log's end
        log_ends.retain(|end| end.is_all_in_tables() || pins.iter().any(|(pinned, _)| *pinned == end.log));
        let at = pins.iter().position(|(pinned, _)| current.as_ref().is_some_and(|log| *pinned == log.number()));
        let life = at.map(|at| pins.split_off(at)).and_then(|of_current| of_current.into_iter().next());
        // An empty log marks older logs as unneeded by recovery; they may be kept for their values.
        let is_wanted = end_offset > FILE_HEADER_BYTES || has_values_in_logs;
        let current = life.filter(|_| is_wanted).map(|(number, life)| (number, life, end_offset));
        if let Some((log, _, end_offset)) = current {
            log_ends.push(LogEnd { log, end_offset, last_seq: snapshot.last_seq, on_disk: true });
        }
        snapshot.wal_range = range_of(&pins, current.as_ref().map(|(number, ..)| *number));
        snapshot.log_frontiers = None; // the ends tell
        (snapshot.log_dir, snapshot.home) = Default::default(); // logs are copied beside the tables
        pins.extend(late);
        snapshot.log_ends = log_ends;
        let mut capture = Capture { snapshot, tables, manifest: number, older_logs: pins, current, families };
        // Without a range recovery would replay logs that are there for their values only.
        let of_values = capture.logs_of_values().last().copied().map(WalRange::none_through);
        capture.snapshot.wal_range = capture.snapshot.wal_range.or(of_values);
        Ok(capture)
    }

    /// Large-batch files created after `pins`: the current log may commit some before its end is taken. Releasing them
    /// takes the manifest lock, so none is gone.
    fn large_batches_beside(&self, pins: &[(FileNumber, Arc<LogLife>)]) -> Vec<(FileNumber, Arc<LogLife>)> {
        let mut late = self.core.logs.pin_all();
        late.retain(|(number, life)| {
            life.file().file_type == FileType::LargeBatch && !pins.iter().any(|(pinned, _)| pinned == number)
        });
        late
    }

    /// Returns the published bytes of the current log, after all older logs are published. Syncs everything up to
    /// there.
    fn published_end_of(&self, log: Option<&ActiveLog>) -> Result<u64> {
        let mut published = self.core.pipeline.published_log();
        while log.is_some_and(|log| published < log.base()) {
            // Writers are still copying into the previous log's reserved space: takes microseconds.
            self.core.check_writable()?;
            self.core.context.vfs.sleep(Duration::from_micros(50));
            published = self.core.pipeline.published_log();
        }
        self.core
            .logs
            .sync_through(published, || self.core.pipeline.published_log())
            .inspect_err(|e| self.core.fail(e))?;
        Ok(log.map_or(0, |log| (published - log.base()).min(log.file.tail())))
    }

    /// The files a copy needs, except OPTIONS, IDENTITY, MANIFEST and CURRENT.
    pub(crate) fn files_of(&self, capture: &Capture) -> Vec<CapturedFile> {
        // Virtual tables may share a file.
        let tables: BTreeMap<FileNumber, &Arc<TableFile>> =
            capture.tables.iter().map(|table| (table.meta.physical_number(), table)).collect();
        let tables = tables.into_iter().map(|(number, table)| CapturedFile {
            path: self.core.context.table_path(number),
            content: Content::Table(table.clone()),
        });
        let complete = |kind, number| CapturedFile {
            path: self.core.path_of(kind, number),
            content: Content::CompleteLog(kind, number),
        };
        let of_values = capture.logs_of_values().into_iter().map(|number| complete(FileType::Log, number));
        let older = capture.older_logs.iter().map(|(number, life)| complete(life.file().file_type, *number));
        let current = capture.current.iter().map(|(number, _, bytes)| CapturedFile {
            path: self.core.path_of(FileType::Log, *number),
            content: Content::GrowingLog { number: *number, bytes: *bytes },
        });
        tables.chain(of_values).chain(older).chain(current).collect()
    }

    fn fill_checkpoint(&self, staging: &Staging, capture: &Capture) -> Result<()> {
        for file in self.files_of(capture) {
            match file.content {
                Content::Table(table) => {
                    table.open()?; // checks the footer, not the blocks
                    staging.link_or_copy(&file.path)?;
                }
                Content::CompleteLog(..) => staging.link_or_copy(&file.path)?,
                Content::GrowingLog { bytes, .. } => staging.copy(&file.path, Some(bytes))?,
            }
        }
        let (id, audience) = (&self.core.context.db_id, ini::Audience::Spillway);
        let options = self.describe_options(&capture.families, id, capture.manifest, audience);
        staging.write(&file_name::format(FileType::Options, capture.manifest), &name::bytes(&options))?;
        let identity = capture.snapshot.db_id.as_deref().unwrap_or_default();
        staging.write(&file_name::format(FileType::Identity, FileNumber(0)), identity.as_bytes())?;
        let limit = self.core.context.options.max_manifest_file_size;
        let vfs = self.core.context.vfs.clone();
        ManifestWriter::create(vfs, staging.dir(), capture.manifest, &capture.snapshot, limit).map(drop)
    }

    /// The OPTIONS text of a copy, with its logs in its own directory.
    pub(crate) fn describe_options(
        &self,
        families: &[Arc<Family>],
        db_id: &str,
        number: FileNumber,
        audience: ini::Audience,
    ) -> String {
        describe_options(&self.core.context, families, db_id, number, audience)
    }
}

/// The live WAL range of the older logs, oldest first, and the current one. `None` without logs.
fn range_of(older: &[(FileNumber, Arc<LogLife>)], current: Option<FileNumber>) -> Option<WalRange> {
    let older = older.iter().filter(|(_, life)| life.file().file_type == FileType::Log).map(|(number, _)| *number);
    let mut range = older.chain(current);
    let oldest = range.next()?;
    Some(WalRange { oldest, newest: range.last().or(Some(oldest)) })
}
