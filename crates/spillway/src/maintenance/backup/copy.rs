//! Copies and reads files, with a checksum of their contents. A backup's files are spread over the threads the options
//! allow.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base::checksum::crc32c_append;
use base::{Error, FileNumber, Result};
use vfs::{IfExists, IoClass, Vfs};
use wal::{DatabaseId, EndReason, KnownEnd, ReplayOptions};

use super::kept_logs::read_rocksdb_logs;
use super::meta_file::MetaEntry;
use super::store::{Backup, Store, check_bytes};
use super::{BackupId, BackupOptions};
use crate::background::staging::scan;
use crate::background::{Env, Helpers, run_parts};
use crate::core::tables::verify_alone;
use crate::version::edit::{LogEnd, WalRange};
use crate::version::file_name::FileType;
use crate::version::recover::{self, Recovered};
use crate::version::table_file::FileMeta;

/// Length and checksum of a file's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contents {
    pub bytes: u64,
    pub crc32c: u32,
}

/// A copy's destination, and whether to sync it.
pub(super) struct Target<'a> {
    pub vfs: &'a dyn Vfs,
    pub path: &'a Path,
    pub syncs: bool,
}

/// Reads the first `end` bytes of a file; the whole file if `end` is `None`.
///
/// # Errors
/// `Corruption`: the file is shorter than `end`.
pub(super) fn read(vfs: &dyn Vfs, path: &Path, end: Option<u64>) -> Result<Contents> {
    checked_scan(vfs, path, end, &mut |_| Ok(()))
}

/// Copies the first `end` bytes of a file; the whole file if `end` is `None`. An existing target is replaced.
///
/// # Errors
/// As [`read`], and those of the target's file system. A partial copy is not removed.
pub(super) fn copy(vfs: &dyn Vfs, from: &Path, end: Option<u64>, to: &Target<'_>) -> Result<Contents> {
    copy_as(vfs, from, end, to, None)
}

/// Copies a log as one of the database `owner`: only the id in its header is another. The checksum is the source's.
///
/// # Errors
/// As [`copy`]. The target exists: it is another database's.
pub(super) fn copy_log(vfs: &dyn Vfs, from: &Path, to: &Target<'_>, owner: DatabaseId) -> Result<Contents> {
    copy_as(vfs, from, None, to, Some(owner))
}

fn copy_as(
    vfs: &dyn Vfs,
    from: &Path,
    end: Option<u64>,
    to: &Target<'_>,
    mut owner: Option<DatabaseId>,
) -> Result<Contents> {
    let if_exists = if owner.is_some() { IfExists::Fail } else { IfExists::Truncate };
    let mut copy = to.vfs.create(to.path, if_exists)?;
    let contents = checked_scan(vfs, from, end, &mut |block| {
        let head = owner.take().zip(block.split_first_chunk());
        match head.and_then(|(owner, (head, rest))| Some((wal::header_of(owner, head)?, rest))) {
            Some((head, rest)) => {
                copy.append(&head, IoClass::Other)?;
                copy.append(rest, IoClass::Other)
            }
            None => copy.append(block, IoClass::Other),
        }
    })?;
    if to.syncs {
        copy.sync(IoClass::Other)?;
    }
    Ok(contents)
}

fn checked_scan(
    vfs: &dyn Vfs,
    path: &Path,
    end: Option<u64>,
    visit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<Contents> {
    let mut crc32c = 0;
    let bytes = scan(vfs, path, end, &mut |block| {
        crc32c = crc32c_append(crc32c, block);
        visit(block)
    })?;
    Ok(Contents { bytes, crc32c })
}

/// What a backup's MANIFEST says of its logs.
#[derive(Clone)]
pub(super) struct NotedEnds {
    pub ends: Vec<LogEnd>,
    pub range: Option<WalRange>,
    /// Logs from this number on were ended by the process that makes the backup, if the MANIFEST has no end for them.
    pub own_from: FileNumber,
}

impl NotedEnds {
    /// # Errors
    /// `Corruption`: a log that the backup's MANIFEST names is not in the backup.
    fn of(recovered: &Recovered, backup: &Backup) -> Result<NotedEnds> {
        let has = |log: &FileNumber| {
            let mut files = backup.meta.files.iter().map(|file| &file.path);
            files.any(|path| path.file_type() == FileType::Log && path.number() == *log)
        };
        let named = recovered.wal_range.and_then(|range| Some([range.oldest, range.newest?]));
        if let Some(log) = named.iter().flatten().find(|log| !has(log)) {
            let what = format!("backup {} lacks log {log}, which its MANIFEST names", backup.id);
            return Err(Error::corruption(what));
        }
        Ok(NotedEnds { ends: recovered.log_ends.clone(), range: recovered.wal_range, own_from: FileNumber(u64::MAX) })
    }

    /// Reads a log of ours as the open of the backup does, which takes each log through its end.
    ///
    /// # Errors
    /// `Corruption`: a record before the end is damaged, or the end is.
    pub fn verify(&self, vfs: &dyn Vfs, path: &Path, kind: FileType, number: FileNumber) -> Result<()> {
        let noted = self.ends.iter().find(|end| end.log == number);
        let known_end = noted.map(|end| KnownEnd { offset: end.end_offset, on_disk: true });
        let options = ReplayOptions { number, known_end, ..ReplayOptions::default() };
        let end = wal::replay(vfs, path, &options, &mut |_| Ok(()))?;
        let is_followed =
            self.range.and_then(|range| Some(range.oldest..range.newest?)).is_some_and(|range| range.contains(&number));
        // A kill can leave a large batch that no record names.
        let wants_end = number >= self.own_from || is_followed && kind == FileType::Log;
        if !wants_end || matches!(end.reason, EndReason::Sealed | EndReason::KnownEnd) {
            return Ok(());
        }
        let what = "the log is damaged from here on: it has no end record";
        Err(Error::corruption(what).at_path(path).at_offset(end.end_offset))
    }
}

/// Compares every file of a backup with its recorded size and checksum. Also reads the MANIFEST, every block of tables and
/// every record of logs: a file damaged before the backup has a matching checksum.
pub(super) fn verify(store: &Store, options: &BackupOptions, backup: Backup) -> Result<()> {
    let (store_of_crew, id, orders) = (store.clone(), backup.id, options.orders.clone());
    let dir = store.private_dir(id);
    let recovered = recover::recover(&*store.vfs, &dir);
    let recovered = recovered.map_err(|error| error.context(format!("the MANIFEST of backup {id}")))?;
    let last = backup.last_written(&recovered);
    if backup.meta.last_seq != last && recovered.fenced {
        let noted = backup.meta.last_seq;
        let what = format!("backup {id} ends with number {last} by its MANIFEST, and with {noted} by its meta file");
        return Err(Error::corruption(what).at_path(store.meta_path(id)));
    }
    let logs = NotedEnds::of(&recovered, &backup).map_err(|error| error.at_path(dir))?;
    let rocksdb_logs = rocksdb_logs_of(store, &recovered, &backup);
    let damaged = move |what: &str, error: Error| {
        error.context(format!("a {what} of backup {id} was damaged when it was backed up"))
    };
    for_each_file(options, backup, move |file, bytes| {
        let (vfs, path, kind) = (&*store_of_crew.vfs, file.path.at(&store_of_crew.dir), file.path.file_type());
        check(id, &path, file, bytes, read(vfs, &path, None)?)?;
        let (what, verified) = match kind {
            FileType::Table => {
                let meta = FileMeta { file_bytes: bytes, ..FileMeta::default() };
                ("table", verify_alone(vfs, &path, &meta, &orders))
            }
            FileType::Log | FileType::LargeBatch => ("log", logs.verify(vfs, &path, kind, file.path.number())),
            _ => return Ok(()),
        };
        verified.map_err(|error| damaged(what, error).at_path(&path))
    })?;
    read_rocksdb_logs(&*store.vfs, &recovered, &rocksdb_logs).map(drop).map_err(|error| damaged("log", error))
}

/// RocksDB's logs of a backup that an open reads.
fn rocksdb_logs_of(store: &Store, recovered: &Recovered, backup: &Backup) -> BTreeMap<FileNumber, PathBuf> {
    let paths = backup.meta.files.iter().map(|file| &file.path);
    let logs = paths.filter(|path| path.file_type() == FileType::RocksLog && !recovered.fenced);
    let needed = logs.filter(|path| path.number() >= recovered.oldest_rocksdb_log());
    needed.map(|path| (path.number(), path.at(&store.dir))).collect()
}

/// Compares a file's contents with its entry and size in backup `id`.
///
/// # Errors
/// `Corruption`: size or checksum differs from the backup's record.
pub(super) fn check(id: BackupId, path: &Path, file: &MetaEntry, bytes: u64, found: Contents) -> Result<()> {
    check_bytes(id, path, Some(bytes), found.bytes)?;
    match file.crc32c {
        Some(expected) if expected != found.crc32c => {
            let what = format!("a file of backup {id} has the checksum {}, and should have {expected}", found.crc32c);
            Err(Error::corruption(what).at_path(path))
        }
        _ => Ok(()),
    }
}

/// Calls `work` with every file of a backup and its size.
///
/// # Errors
/// The first error of `work`.
pub(super) fn for_each_file(
    options: &BackupOptions,
    backup: Backup,
    work: impl Fn(&MetaEntry, u64) -> Result<()> + Send + Sync + 'static,
) -> Result<()> {
    let files: Vec<_> = backup.meta.files.into_iter().zip(backup.file_bytes).collect();
    work_off(options, files, move |(file, bytes)| work(file, *bytes)).map(drop)
}

/// Runs `work` on every item, on as many threads as the options allow. Results are in the order of `items`.
///
/// # Errors
/// The first error of `work`.
pub(super) fn work_off<T, R>(
    options: &BackupOptions,
    items: Vec<T>,
    work: impl Fn(&T) -> Result<R> + Send + Sync + 'static,
) -> Result<Vec<R>>
where
    T: Send + Sync + 'static,
    R: Send + 'static,
{
    let helpers = match options.vfs.runs_inline() {
        true => Helpers::none(),
        false => Env::default().helpers(options.max_background_operations - 1),
    };
    run_parts(helpers, items, &|| false, move |item, _| work(item)).all()
}
