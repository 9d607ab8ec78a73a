//! Makes a directory the database that a backup holds. CURRENT goes first and comes last: in between the directory does not
//! open, and does not pass for another database.

use std::path::{Path, PathBuf};

use base::{Error, FileNumber, Result};
use vfs::Vfs;

use super::copy::{self, Target, check, for_each_file};
use super::store::{Backup, Store};
use super::{BackupId, BackupOptions};
use crate::db::lock_path;
use crate::open::{create_durable_dir, remove_files, remove_load_dir};
use crate::version::current::{install_current, read_current};
use crate::version::file_name::{self, FileType};

/// How a backup is restored.
#[derive(Clone, Debug, Default)]
pub struct RestoreOptions {
    /// Where the logs go, if not into the database's directory.
    pub wal_dir: Option<PathBuf>,
    /// Leaves logs that are there, for the database to go on with: for a backup that has none of its own, being made after
    /// a flush. Whether they follow it without a gap shows when the database is opened.
    pub keep_log_files: bool,
}

/// The directories that are restored.
#[derive(Clone)]
struct Places {
    db: PathBuf,
    logs: PathBuf,
}

impl Places {
    fn of(&self, kind: FileType) -> &Path {
        if kind.is_log() { &self.logs } else { &self.db }
    }
}

pub(super) fn restore(
    store: &Store,
    options: &BackupOptions,
    backup: Backup,
    (db_dir, how): (&Path, &RestoreOptions),
) -> Result<()> {
    let vfs = &*store.vfs;
    let logs = how.wal_dir.clone().unwrap_or_else(|| db_dir.to_owned());
    let places = Places { db: db_dir.to_owned(), logs };
    let manifest = manifest_of(store, &backup)?;
    for dir in [&places.db, &places.logs] {
        create_durable_dir(vfs, dir)?;
    }
    let _lock = vfs.lock(&lock_path(&places.db))?;
    if how.keep_log_files {
        check_logs_can_stay(vfs, &places, &backup)?;
    }
    clear(vfs, &places, how.keep_log_files)?;
    bring_all(store, options, backup, &places)?;
    for dir in [&places.logs, &places.db] {
        vfs.sync_dir(dir)?;
    }
    install_current(vfs, &places.db, manifest)
}

/// The MANIFEST that a backup's CURRENT names.
///
/// # Errors
/// `Corruption`: it has none, or none of that number.
fn manifest_of(store: &Store, backup: &Backup) -> Result<FileNumber> {
    let number = read_current(&*store.vfs, &store.private_dir(backup.id))?;
    let name = file_name::format(FileType::Manifest, number);
    if backup.meta.files.iter().any(|file| file.path.database_name() == name) {
        return Ok(number);
    }
    let what = format!("backup {} lacks {name}, which its CURRENT names", backup.id);
    Err(Error::corruption(what).at_path(store.private_dir(backup.id)))
}

/// # Errors
/// `InvalidArgument`: there are logs, and the backup has logs too. Those that are there would go on from writes that its
/// logs end before.
fn check_logs_can_stay(vfs: &dyn Vfs, places: &Places, backup: &Backup) -> Result<()> {
    if !backup.meta.files.iter().any(|file| file.path.file_type().is_log()) {
        return Ok(());
    }
    let names = vfs.read_dir(&places.logs)?;
    let is_log = |name: &&String| file_name::parse(name).is_some_and(|(kind, _)| kind.is_log());
    match names.iter().find(is_log) {
        Some(name) => {
            let what = format!(
                "{name} was to be kept, but backup {} has logs of its own, which it does not follow; restore without \
                 keep_log_files",
                backup.id
            );
            Err(Error::invalid_argument(what).at_path(&places.logs))
        }
        None => Ok(()),
    }
}

/// Removes the database that is there. Files that are no database's stay.
fn clear(vfs: &dyn Vfs, places: &Places, keeps_logs: bool) -> Result<()> {
    remove_files(vfs, &places.db, |kind| kind == FileType::Current)?;
    vfs.sync_dir(&places.db)?;
    let is_old = |kind: FileType| kind != FileType::Lock && !(keeps_logs && kind.is_log());
    remove_files(vfs, &places.db, is_old)?;
    remove_load_dir(vfs, &places.db)?;
    if places.logs != places.db {
        remove_files(vfs, &places.logs, |kind| kind.is_log() && !keeps_logs)?;
    }
    // A file that came back after a power loss could be taken for one of the backup.
    vfs.sync_dir(&places.logs)?;
    vfs.sync_dir(&places.db)
}

/// Copies every file but CURRENT, and compares it with its checksum.
fn bring_all(store: &Store, options: &BackupOptions, backup: Backup, places: &Places) -> Result<()> {
    let (store, places, id): (Store, Places, BackupId) = (store.clone(), places.clone(), backup.id);
    for_each_file(options, backup, move |file, bytes| {
        let (kind, from) = (file.path.file_type(), file.path.at(&store.dir));
        let contents = if kind == FileType::Current {
            copy::read(&*store.vfs, &from, None)?
        } else {
            let to = places.of(kind).join(file.path.database_name());
            copy::copy(&*store.vfs, &from, None, &Target { vfs: &*store.vfs, path: &to, syncs: true })?
        };
        check(id, &from, (file, bytes), contents)
    })
}
