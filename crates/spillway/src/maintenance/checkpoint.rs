//! Checkpoints: another directory that is the database as it was at one instant, made while writes go on.
//!
//! Tables and complete logs never change again, so they are linked; the log that is being written is copied through the
//! end of what is published, since a link to it would grow with the original. What is linked or copied is pinned
//! meanwhile (Q3). Nothing is flushed, except writes that went to no log. Keeps D2 and D3: the copy is a prefix of the
//! history. It has the database's id, as with RocksDB.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::options::{DbOptions, FamilyOptions, ini};
use base::{Error, FileNumber, Result, SeqNo};
use log::FILE_HEADER_BYTES;
use vfs::Vfs;

use crate::api::db::{OpenOptions, OtherFamilies};
use crate::background::staging::Staging;
use crate::core::family::Family;
use crate::core::install::Installer;
use crate::core::{Core, FamilyState};
use crate::flush::group::Flusher;
use crate::open::{Beside, copy_beside};
use crate::version::edit::{LOG_DIR_OF_COPY, LogEnd, LogRow};
use crate::version::file_name::{self, FileType};
use crate::version::log_life::LogLife;
use crate::version::manifest::ManifestWriter;
use crate::version::snapshot::ManifestSnapshot;
use crate::version::table_file::TableFile;
use crate::wal::logs::ActiveLog;

/// See [`Db::checkpoint_beside`](crate::Db::checkpoint_beside).
pub(crate) fn checkpoint_beside(dir: &Path, options: &OpenOptions, to: &Path) -> Result<SeqNo> {
    let mut options = OpenOptions { read_only: true, bear_damage: false, ..options.clone() };
    if matches!(options.other_families, OtherFamilies::Refuse) {
        options.other_families = OtherFamilies::OpenWith(Box::default()); // none is left out
    }
    let mut made = None;
    let last = copy_beside(dir, &options, |found| {
        made = None; // what an attempt before left is removed first
        made = Some(stage_beside(found, to)?);
        Ok(())
    })?;
    made.map_or(Ok(()), Staging::commit)?;
    Ok(last)
}

/// Links tables first: they may go at any time. Of a log what was read of it is copied.
fn stage_beside(found: &Beside<'_>, to: &Path) -> Result<Staging> {
    let context = found.context;
    let staging = Staging::begin(context.vfs.clone(), to)?;
    found.tables.iter().try_for_each(|number| staging.link_or_copy(&context.table_path(*number)))?;
    for (kind, number, bytes) in &found.logs {
        let path = context.log_dir().join(file_name::format(*kind, *number));
        match bytes {
            Some(bytes) => staging.copy(&path, Some(*bytes))?,
            None => staging.link_or_copy(&path)?,
        }
    }
    let options = describe_options(&context.options, &found.families, ini::Audience::Spillway);
    staging.write(&file_name::format(FileType::Options, found.manifest), options.as_bytes())?;
    let identity = found.snapshot.db_id.as_deref().unwrap_or_default();
    staging.write(&file_name::format(FileType::Identity, FileNumber(0)), identity.as_bytes())?;
    let limit = context.options.max_manifest_file_size;
    ManifestWriter::create(context.vfs.clone(), staging.dir(), found.manifest, &found.snapshot, limit)?;
    Ok(staging)
}

/// The text of the options file for a copy of the database, whose logs lie in its directory itself.
fn describe_options(options: &DbOptions, families: &[Arc<Family>], audience: ini::Audience) -> String {
    let mut options = options.clone();
    options.wal_dir.clear();
    let families: Vec<(&str, Arc<FamilyOptions>)> = families.iter().map(|f| (f.name(), f.options())).collect();
    let families: Vec<(&str, &FamilyOptions)> = families.iter().map(|(name, f)| (*name, &**f)).collect();
    ini::write(&options, &families, audience)
}

/// The database at one instant, pinned.
pub(crate) struct Capture {
    /// Its log ends are those of the logs below, where they do not end by themselves.
    pub snapshot: ManifestSnapshot,
    /// Those of the versions, and those that the logs name: ingested, and without a level when this was captured.
    tables: Vec<Arc<TableFile>>,
    /// The number of the copy's MANIFEST.
    pub manifest: FileNumber,
    /// Complete logs, and those of large batches.
    older_logs: Vec<(FileNumber, Arc<LogLife>)>,
    /// The log that was being written, and the bytes of it that count.
    current: Option<(FileNumber, Arc<LogLife>, u64)>,
    pub families: Vec<Arc<Family>>,
}

/// A file of what was captured, which pins it.
pub(crate) struct CapturedFile {
    pub path: PathBuf,
    pub content: Content,
}

/// What is in a captured file, and whether it can change.
pub(crate) enum Content {
    /// Never changes.
    Table(Arc<TableFile>),
    /// Never changes any more, but that zeros behind its end are given back when it is closed.
    CompleteLog(FileType, FileNumber),
    /// The first `bytes` count, and do not change.
    GrowingLog { bytes: u64 },
}

impl Capture {
    /// The logs that recovery does not need, and values in tables do. Nobody writes them any more.
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
    /// See [`Db::checkpoint`](crate::Db::checkpoint).
    pub fn checkpoint(&self, dir: &Path) -> Result<SeqNo> {
        let core = self.core;
        core.check_writable()?;
        let staging = Staging::begin(core.context.vfs.clone(), dir)?;
        self.flush_what_no_log_has()?;
        let mut capture = self.capture()?;
        LOG_DIR_OF_COPY.clone_into(&mut capture.snapshot.log_dir);
        self.fill_checkpoint(&staging, &capture)?;
        staging.commit()?;
        Ok(capture.snapshot.last_seq)
    }

    /// Memtables that hold writes which are in no log can be had from tables only.
    pub(crate) fn flush_what_no_log_has(&self) -> Result<()> {
        let families: Vec<_> = self.core.families.load().iter().filter(|f| f.has_unlogged_writes()).cloned().collect();
        self.flusher.flush_families(&families.iter().collect::<Vec<_>>())
    }

    /// Holds the manifest lock throughout: no table comes or goes and no family is made or dropped between the state
    /// that is captured and the end of the log that completes it.
    pub(crate) fn capture(&self) -> Result<Capture> {
        let manifest = self.installer.manifest.lock();
        let closed = || Error::closed("the database is closed");
        manifest.as_ref().ok_or_else(closed)?;
        let number = self.core.context.numbers.take();
        // Ends before pins: a log can be let go in between, but a pinned one never lacks its end.
        let mut log_ends = self.core.logs.recovered_ends();
        let (mut pins, current) = {
            let commit = self.core.commit.lock();
            if commit.closed {
                return Err(closed());
            }
            (self.core.logs.pin_all(), commit.log.clone())
        };
        let mut snapshot = self.installer.manifest_snapshot(Vec::new());
        let families = self.core.families.load().iter().cloned().collect();
        let end_offset = self.published_end_of(current.as_deref())?;
        snapshot.last_seq = self.core.pipeline.visible();
        let mut late = self.large_batches_beside(&pins);
        // After the log's end was taken, so that no ingest before it is missing; none was linked since, for that takes the
        // manifest lock.
        let tables: Vec<Arc<TableFile>> =
            self.core.state.lock().families.values().flat_map(FamilyState::tables).cloned().collect();
        let leaves_values = |table: &Arc<TableFile>| !table.meta.value_logs.is_empty();
        let has_values_in_logs = tables.iter().any(leaves_values);
        if !has_values_in_logs && self.core.is_all_in_tables() {
            pins.clear();
            late.clear();
        }
        drop(manifest);
        log_ends.iter_mut().for_each(|end| end.on_disk = true); // with the current log's end all before it was synced
        log_ends.retain(|end| pins.iter().any(|(pinned, _)| *pinned == end.log));
        let at = pins.iter().position(|(pinned, _)| current.as_ref().is_some_and(|log| *pinned == log.number()));
        let life = at.map(|at| pins.split_off(at)).and_then(|of_current| of_current.into_iter().next());
        // An empty one says that logs before it are not needed, which may be there for the values in them.
        let is_wanted = end_offset > FILE_HEADER_BYTES || has_values_in_logs;
        let current = life.filter(|_| is_wanted).map(|(number, life)| (number, life, end_offset));
        if let Some((log, _, end_offset)) = current {
            log_ends.push(LogEnd { log, end_offset, last_seq: snapshot.last_seq, on_disk: true });
        }
        snapshot.log_row = row_of(&pins, current.as_ref().map(|(number, ..)| *number));
        snapshot.log_dir.clear(); // they are copied beside the tables
        pins.extend(late);
        snapshot.log_ends = log_ends;
        Ok(Capture { snapshot, tables, manifest: number, older_logs: pins, current, families })
    }

    /// The logs of large batches that came after `pins`. The current log can commit some before its end was taken; none
    /// was let go since, for that takes the manifest lock.
    fn large_batches_beside(&self, pins: &[(FileNumber, Arc<LogLife>)]) -> Vec<(FileNumber, Arc<LogLife>)> {
        let mut late = self.core.logs.pin_all();
        late.retain(|(number, life)| {
            life.file().file_type == FileType::LargeBatch && !pins.iter().any(|(pinned, _)| pinned == number)
        });
        late
    }

    /// How many bytes of the current log are published, once everything in the logs before it is; all of that is synced then.
    fn published_end_of(&self, log: Option<&ActiveLog>) -> Result<u64> {
        let mut published = self.core.pipeline.published_log();
        while log.is_some_and(|log| published < log.base()) {
            // Writers that reserved space in the log before are still copying: this takes microseconds.
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

    /// The files that a copy of what was captured needs beside the few that describe it.
    pub(crate) fn files_of(&self, capture: &Capture) -> Vec<CapturedFile> {
        // Virtual tables can share a file.
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
            content: Content::GrowingLog { bytes: *bytes },
        });
        tables.chain(of_values).chain(older).chain(current).collect()
    }

    fn fill_checkpoint(&self, staging: &Staging, capture: &Capture) -> Result<()> {
        for file in self.files_of(capture) {
            match file.content {
                Content::Table(table) => {
                    table.open()?; // its end is whole and in place; its blocks are not read
                    staging.link_or_copy(&file.path)?;
                }
                Content::CompleteLog(..) => staging.link_or_copy(&file.path)?,
                Content::GrowingLog { bytes } => staging.copy(&file.path, Some(bytes))?,
            }
        }
        let options = self.describe_options(&capture.families, ini::Audience::Spillway);
        staging.write(&file_name::format(FileType::Options, capture.manifest), options.as_bytes())?;
        let identity = capture.snapshot.db_id.as_deref().unwrap_or_default();
        staging.write(&file_name::format(FileType::Identity, FileNumber(0)), identity.as_bytes())?;
        self.write_captured_manifest(&self.core.context.vfs, staging.dir(), capture)
    }

    /// Writes the MANIFEST of what was captured, and CURRENT, which names it.
    pub(crate) fn write_captured_manifest(&self, vfs: &Arc<dyn Vfs>, dir: &Path, capture: &Capture) -> Result<()> {
        let limit = self.core.context.options.max_manifest_file_size;
        ManifestWriter::create(vfs.clone(), dir, capture.manifest, &capture.snapshot, limit).map(drop)
    }

    /// The text of the options file for a copy of the database, whose logs lie in its directory itself.
    pub(crate) fn describe_options(&self, families: &[Arc<Family>], audience: ini::Audience) -> String {
        describe_options(&self.core.context.options, families, audience)
    }
}

/// The row that older logs, oldest first, and the current one make; none where there is no log.
fn row_of(older: &[(FileNumber, Arc<LogLife>)], current: Option<FileNumber>) -> Option<LogRow> {
    let older = older.iter().filter(|(_, life)| life.file().file_type == FileType::Log).map(|(number, _)| *number);
    let mut row = older.chain(current);
    let oldest = row.next()?;
    Some(LogRow { oldest, newest: row.last().or(Some(oldest)) })
}
