//! Backups: many copies of a database in one directory, sharing common tables. The directory has RocksDB's format: its
//! backups are listed, verified and restored here, and RocksDB can list ours.
//!
//! A backup holds a checkpoint's capture, made while writes go on: a prefix of the history (D2, D3). It exists once its
//! meta file is renamed into place, after all its files are complete and synced. Removing a backup deletes the meta
//! file first. Leftovers of an interrupted call are ignored, and the next change of the directory removes them. Nothing
//! read from the directory is trusted (B1, B2).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, Result, SeqNo, UserOrder};
use parking_lot::{Mutex, MutexGuard};
use vfs::{LockGuard, Origin, RealVfs, Vfs};

use crate::database::handle::Database;

mod copy;
mod create;
mod kept_logs;
mod meta_file;
mod path;
mod restore;
mod store;

use store::Store;

pub use restore::RestoreOptions;
pub use store::NO_BACKUP;

/// Held while the directory is changed. Differs from a database's lock: backups may share a database's directory.
const LOCK_NAME: &str = "BACKUP.lock";

/// The number of a backup in its directory, from 1 on.
pub type BackupId = u32;

/// How backups are made.
#[derive(Clone)]
pub struct BackupOptions {
    /// Shares tables between backups: an existing table is not copied again. Otherwise each backup has its own copies.
    pub share_table_files: bool,
    /// Names shared tables uniquely across databases. Otherwise use the directory for one database only, and for no
    /// further backups after restoring an older one.
    pub share_files_with_checksum: bool,
    /// Syncs all writes: a finished backup survives a power loss.
    pub sync: bool,
    /// Deletes all backups in the directory when it is opened.
    pub destroy_old_data: bool,
    /// Files copied or checked at once.
    pub max_background_operations: usize,
    /// Key orders that are not built in. Tables of such an order are verified only if it is listed here.
    pub orders: Vec<UserOrder>,
    /// File system of the backup directory and of restored databases.
    pub vfs: Arc<dyn Vfs>,
}

impl Default for BackupOptions {
    fn default() -> Self {
        BackupOptions {
            share_table_files: true,
            share_files_with_checksum: true,
            sync: true,
            destroy_old_data: false,
            max_background_operations: 1,
            orders: Vec::new(),
            vfs: RealVfs::new(),
        }
    }
}

/// A backup's description.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupInfo {
    /// The backup's number.
    pub id: BackupId,
    /// Seconds since the epoch.
    pub timestamp_s: u64,
    /// The last sequence number in the backup.
    pub last_seq: SeqNo,
    /// Total size of its files, shared ones included.
    pub bytes: u64,
    /// Number of files.
    pub files: usize,
    /// What an application noted with it; empty for nothing.
    pub note: Vec<u8>,
}

/// A backup that cannot be restored.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DamagedBackup {
    /// The backup's number.
    pub id: BackupId,
    /// The damage; names the file.
    pub error: Error,
}

/// A directory of backups. Usable from any number of threads: changes run one at a time, and are refused while another
/// process changes the directory.
pub struct BackupEngine {
    store: Store,
    options: BackupOptions,
    /// Held during each use of the directory.
    turn: Mutex<()>,
    origin: Origin,
}

impl BackupEngine {
    /// Opens the directory of backups at `dir`; creates it if missing.
    ///
    /// # Errors
    /// `Busy`: old backups are to be destroyed while another process changes the directory. `InvalidArgument`: options
    /// are out of bounds.
    pub fn open(dir: impl AsRef<Path>, options: &BackupOptions) -> Result<BackupEngine> {
        let engine = Self::open_to_read(dir, options)?;
        engine.store.create_dirs()?;
        if options.destroy_old_data {
            engine.change(|store| store.remove(&Vec::from_iter(store.ids_with_leftovers()?)))?;
        }
        Ok(engine)
    }

    /// As [`open`](Self::open), but creates and deletes nothing until a backup is made or deleted.
    ///
    /// # Errors
    /// `InvalidArgument`: options are out of bounds.
    pub fn open_to_read(dir: impl AsRef<Path>, options: &BackupOptions) -> Result<BackupEngine> {
        if options.max_background_operations == 0 {
            return Err(Error::invalid_argument(
                "max_background_operations is 0; files are copied by one thread at least",
            ));
        }
        let store = Store { vfs: options.vfs.clone(), dir: dir.as_ref().to_owned(), syncs: options.sync };
        Ok(BackupEngine { store, options: options.clone(), turn: Mutex::default(), origin: Origin::here() })
    }

    /// The directory of the backups.
    pub fn dir(&self) -> &Path {
        &self.store.dir
    }

    /// Backs up `db` as of some instant during the call: all writes acknowledged before the call, and a prefix of
    /// concurrent ones. Writes in a log are flushed only if `flush_before_backup` is set. Returns the backup's id.
    ///
    /// # Errors
    /// `Busy`: another process changes the directory. `ReadOnly`: the database does not take writes. `Corruption`: a
    /// file to copy is damaged; the error names it. On any error there is no new backup.
    pub fn create_new_backup(&self, db: &Database, flush_before_backup: bool) -> Result<BackupId> {
        self.create_noted_backup(db, flush_before_backup, &[])
    }

    /// As [`create_new_backup`](Self::create_new_backup), with a note for [`backups`](Self::backups).
    ///
    /// # Errors
    /// As of [`create_new_backup`](Self::create_new_backup).
    pub fn create_noted_backup(&self, db: &Database, flush_before_backup: bool, note: &[u8]) -> Result<BackupId> {
        self.change(|store| create::create(store, &self.options, db, flush_before_backup, note))
    }

    /// Removes files that belong to no backup: leftovers of failed ones. Warns of what stays because a backup may need it.
    ///
    /// # Errors
    /// `Busy`, or the file system's.
    pub fn collect_garbage(&self) -> Result<()> {
        self.change(|store| store.collect_garbage(&[]))
    }

    /// # Errors
    /// `Closed`: the handle is of the process that this one was forked from, and so are the backups.
    fn take_turn(&self) -> Result<MutexGuard<'_, ()>> {
        if self.origin.is_here() {
            return Ok(self.turn.lock());
        }
        Err(Error::closed("the backups were opened before a fork, and are the parent process's").at_path(self.dir()))
    }

    /// Returns the undamaged backups, with all their files present, oldest first.
    ///
    /// # Errors
    /// Reading the directory fails.
    pub fn backups(&self) -> Result<Vec<BackupInfo>> {
        let _turn = self.take_turn()?;
        Ok(self.store.load_all()?.into_iter().filter_map(Result::ok).map(|backup| backup.info()).collect())
    }

    /// Returns the backups with a missing file, a wrong file size or a damaged meta file.
    ///
    /// # Errors
    /// Reading the directory fails.
    pub fn damaged_backups(&self) -> Result<Vec<DamagedBackup>> {
        let _turn = self.take_turn()?;
        let ids = self.store.ids()?;
        let loaded = ids.into_iter().map(|id| (id, self.store.load(id)));
        Ok(loaded.filter_map(|(id, backup)| Some(DamagedBackup { id, error: backup.err()? })).collect())
    }

    /// Returns what there is of backups without a meta file. Such a backup is being made, was cut off, or has lost its meta
    /// file. The next backup or deletion removes it if it never was finished; else it stays until deleted by its number.
    ///
    /// # Errors
    /// Reading the directory fails.
    pub fn unfinished_backups(&self) -> Result<Vec<DamagedBackup>> {
        let _turn = self.take_turn()?;
        self.store.unfinished()
    }

    /// Compares every file of a backup with its size and checksum, and checks its MANIFEST, every block of its tables and every
    /// record of its logs.
    ///
    /// # Errors
    /// `Corruption`: a file is damaged or missing; the error names it. `InvalidArgument`: no such backup.
    pub fn verify(&self, id: BackupId) -> Result<()> {
        let _turn = self.take_turn()?;
        copy::verify(&self.store, &self.options, self.store.load(id)?)
    }

    /// Restores a backup to `db_dir`. An existing database there is deleted first: [`verify`](Self::verify) the backup
    /// before if it may be damaged. The database is complete once this returns. An interrupted restore leaves a mark, the
    /// file INCOMPLETE: the directory is not opened and not repaired; restore again.
    ///
    /// # Errors
    /// `Busy`: the database is open. `Corruption`: a file of the backup is damaged; the error names it, and the other
    /// backups that can take its place. `InvalidArgument`: no such backup, or `db_dir` belongs to backups. Also if kept
    /// logs do not follow the backup, lack a file they name or a write that the existing MANIFEST knows, or lie where an
    /// unfinished restore did not keep them, or if that MANIFEST cannot be read; then nothing is changed.
    pub fn restore(&self, id: BackupId, db_dir: impl AsRef<Path>, options: &RestoreOptions) -> Result<()> {
        let _turn = self.take_turn()?;
        restore::restore(&self.store, &self.options, self.store.load(id)?, db_dir.as_ref(), options)
    }

    /// Returns the files of the existing database that a restore to `db_dir` may delete. Lists some files that stay:
    /// tables named by kept logs, and other databases' logs in `wal_dir`. None, if an unfinished restore with the same
    /// options is all that lies there.
    ///
    /// # Errors
    /// Reading the directories fails.
    pub fn replaced_by_restore(&self, db_dir: impl AsRef<Path>, options: &RestoreOptions) -> Result<Vec<PathBuf>> {
        restore::replaced(&*self.store.vfs, db_dir.as_ref(), options)
    }

    /// Restores the newest backup with all its files, as RocksDB does, and returns its id. Warns if a newer one is damaged:
    /// look at [`damaged_backups`](Self::damaged_backups) before, if an older one is not wanted.
    ///
    /// # Errors
    /// As [`restore`](Self::restore). `InvalidArgument`: there is none; the error names the damaged ones.
    pub fn restore_latest(&self, db_dir: impl AsRef<Path>, options: &RestoreOptions) -> Result<BackupId> {
        let _turn = self.take_turn()?;
        let latest = self.store.latest()?;
        let id = latest.id;
        restore::restore(&self.store, &self.options, latest, db_dir.as_ref(), options)?;
        Ok(id)
    }

    /// Deletes all undamaged backups but the newest `keep`. Damaged ones stay until deleted by id.
    ///
    /// # Errors
    /// `Busy`, or the file system's: some backups to delete may remain.
    pub fn purge_old(&self, keep: usize) -> Result<()> {
        self.change(|store| {
            let good: Vec<BackupId> = store.load_all()?.iter().flatten().map(|backup| backup.id).collect();
            let old = good.len().saturating_sub(keep);
            store.remove(good.get(..old).unwrap_or_default())
        })
    }

    /// Deletes a backup, damaged or not, or what is left of one, and files used by no other backup. Shared files stay while
    /// it is in doubt which ones another backup needs.
    ///
    /// # Errors
    /// `InvalidArgument`: no such backup. `Busy`, or the file system's: the backup may remain whole.
    pub fn delete(&self, id: BackupId) -> Result<()> {
        self.change(|store| {
            store.check_exists(id).or_else(|error| match store.ids_with_leftovers()?.contains(&id) {
                true => Ok(()),
                false => Err(error),
            })?;
            store.remove(&[id])
        })
    }

    /// Calls `work` under the thread lock and the directory's file lock.
    fn change<R>(&self, work: impl FnOnce(&Store) -> Result<R>) -> Result<R> {
        let _turn = self.take_turn()?;
        self.store.create_dirs()?;
        let _lock: Box<dyn LockGuard> = self.store.vfs.lock(&self.store.dir.join(LOCK_NAME))?;
        work(&self.store)
    }
}
