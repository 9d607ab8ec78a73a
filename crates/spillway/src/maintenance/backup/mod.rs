//! Backups: copies of a database at instants of its life, many in one directory, which share the tables that they have in
//! common. The directory is RocksDB's: its backups are listed, verified and restored here, and it reads the list of ours.
//!
//! A backup is made of what a checkpoint captures, while writes go on: it is a prefix of the history (D2, D3). It is there
//! from the instant at which its meta file gets its name, which is the last thing that happens: everything it names is whole
//! and synced before. Removing one begins with that file. What an interrupted call leaves counts for nothing, and the next
//! call that changes the directory removes it. Nothing read from the directory is trusted (B1, B2).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, Result, SeqNo, UserOrder};
use parking_lot::Mutex;
use vfs::{LockGuard, RealVfs, Vfs};

use crate::api::db::Db;

mod copy;
mod create;
mod kept_logs;
mod meta_file;
mod path;
mod restore;
mod store;

use store::{Backup, Store};

pub use restore::RestoreOptions;

/// Held while the directory is changed. Not the name of a database's lock: backups can lie in the directory of one.
const LOCK_NAME: &str = "BACKUP.lock";

/// The number of a backup in its directory, from 1 on.
pub type BackupId = u32;

/// How backups are made.
#[derive(Clone)]
pub struct BackupOptions {
    /// Tables go where other backups find them; a table that is there already is not copied again. Otherwise each backup
    /// has copies of its own.
    pub share_table_files: bool,
    /// Shared tables have names that tell them apart whichever database they are of. Otherwise the directory must be used
    /// for one database only, and not on after an older backup of it was restored.
    pub share_files_with_checksum: bool,
    /// Syncs what is written, so that a backup survives a power loss from the moment it is there.
    pub sync: bool,
    /// Deletes all backups in the directory when it is opened.
    pub destroy_old_data: bool,
    /// Files that are copied or checked at once.
    pub max_background_operations: usize,
    /// Orders of keys that are not built in: tables of such an order are verified only where it is here.
    pub orders: Vec<UserOrder>,
    /// Where the backup directory is, and databases are restored to.
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

/// What a backup is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupInfo {
    pub id: BackupId,
    /// Seconds since the epoch.
    pub timestamp_s: u64,
    /// The number of the last write in it.
    pub last_seq: SeqNo,
    /// Of all its files, those that it shares included.
    pub bytes: u64,
    pub files: usize,
}

/// A backup that cannot be restored.
#[derive(Clone, Debug)]
pub struct DamagedBackup {
    pub id: BackupId,
    /// What is wrong; names the file.
    pub error: Error,
}

/// A directory of backups. Usable from any number of threads: calls that change it follow one another, and are refused
/// while another process makes one.
pub struct BackupEngine {
    store: Store,
    options: BackupOptions,
    /// Held while something is done with the directory.
    turn: Mutex<()>,
}

impl BackupEngine {
    /// Opens the directory of backups at `dir`, and makes it where there is none.
    ///
    /// # Errors
    /// `Busy`: old backups are to be destroyed while another process uses the directory. `InvalidArgument`: options are out
    /// of bounds.
    pub fn open(dir: impl AsRef<Path>, options: &BackupOptions) -> Result<BackupEngine> {
        if options.max_background_operations == 0 {
            return Err(Error::invalid_argument(
                "max_background_operations is 0; files are copied by one thread at least",
            ));
        }
        let store = Store { vfs: options.vfs.clone(), dir: dir.as_ref().to_owned(), syncs: options.sync };
        store.create_dirs()?;
        let engine = BackupEngine { store, options: options.clone(), turn: Mutex::default() };
        if options.destroy_old_data {
            engine.change(|store| store.remove(&store.ids()?))?;
        }
        Ok(engine)
    }

    pub fn dir(&self) -> &Path {
        &self.store.dir
    }

    /// Backs up what `db` holds at some instant during the call: everything acknowledged before it, and of what is written
    /// meanwhile a prefix. Nothing is flushed that a log holds, unless `flush_before_backup` says so. Returns the backup's
    /// id.
    ///
    /// # Errors
    /// `Busy`: another process changes the directory. `ReadOnly`: the database does not take writes. `Corruption`: a file that
    /// was to be copied is damaged; the error names it. On any error there is no new backup.
    pub fn create_new_backup(&self, db: &Db, flush_before_backup: bool) -> Result<BackupId> {
        self.change(|store| create::create(store, &self.options, db, flush_before_backup))
    }

    /// The backups that are there with all their files, oldest first.
    ///
    /// # Errors
    /// Reading the directory fails.
    pub fn backups(&self) -> Result<Vec<BackupInfo>> {
        let _turn = self.turn.lock();
        Ok(self.store.load_all()?.into_iter().filter_map(Result::ok).map(|backup| backup.info()).collect())
    }

    /// The backups that lack files, or whose list of files is damaged.
    ///
    /// # Errors
    /// Reading the directory fails.
    pub fn damaged_backups(&self) -> Result<Vec<DamagedBackup>> {
        let _turn = self.turn.lock();
        let ids = self.store.ids()?;
        let loaded = ids.into_iter().map(|id| (id, self.store.load(id)));
        Ok(loaded.filter_map(|(id, backup)| Some(DamagedBackup { id, error: backup.err()? })).collect())
    }

    /// Reads every file of a backup and compares it with its size and checksum, and every block of its tables.
    ///
    /// # Errors
    /// `Corruption`: the first file that is damaged or missing; the error names it. `InvalidArgument`: no such backup.
    pub fn verify(&self, id: BackupId) -> Result<()> {
        let _turn = self.turn.lock();
        copy::verify(&self.store, &self.options, self.store.load(id)?)
    }

    /// Makes the directory `db_dir` the database that a backup holds. What is there of another database is deleted first:
    /// where the backup may be damaged, [`verify`](Self::verify) it before. The database is there once this returns; a
    /// directory in which it was interrupted does not open, and can be restored again.
    ///
    /// # Errors
    /// `Busy`: the database is open. `Corruption`: a file of the backup is damaged; the error names it. `InvalidArgument`: no
    /// such backup; or logs were to be kept that do not follow it, or lack what they name, and nothing is changed.
    pub fn restore(&self, id: BackupId, db_dir: impl AsRef<Path>, options: &RestoreOptions) -> Result<()> {
        let _turn = self.turn.lock();
        restore::restore(&self.store, &self.options, self.store.load(id)?, (db_dir.as_ref(), options))
    }

    /// The files that a restore to `db_dir` would delete: those of the database that is there. With `keep_log_files` tables
    /// that logs name are listed too, and stay.
    ///
    /// # Errors
    /// Reading the directories fails.
    pub fn replaced_by_restore(&self, db_dir: impl AsRef<Path>, options: &RestoreOptions) -> Result<Vec<PathBuf>> {
        restore::replaced(&*self.store.vfs, db_dir.as_ref(), options)
    }

    /// Restores the newest backup that has all its files, and returns its id.
    ///
    /// # Errors
    /// As [`restore`](Self::restore). `InvalidArgument`: there is none.
    pub fn restore_latest(&self, db_dir: impl AsRef<Path>, options: &RestoreOptions) -> Result<BackupId> {
        let _turn = self.turn.lock();
        let latest = self.store.load_all()?.into_iter().rev().find_map(Result::ok);
        let none = || Error::invalid_argument("there is no backup to restore").at_path(&self.store.dir);
        let latest: Backup = latest.ok_or_else(none)?;
        let id = latest.id;
        restore::restore(&self.store, &self.options, latest, (db_dir.as_ref(), options))?;
        Ok(id)
    }

    /// Deletes all backups but the newest `keep` that are not damaged. Damaged ones stay until they are deleted by id.
    ///
    /// # Errors
    /// `Busy`, or the file system's: backups that were to go may be there still.
    pub fn purge_old(&self, keep: usize) -> Result<()> {
        self.change(|store| {
            let good: Vec<BackupId> = store.load_all()?.iter().flatten().map(|backup| backup.id).collect();
            let old = good.len().saturating_sub(keep);
            store.remove(good.get(..old).unwrap_or_default())
        })
    }

    /// Deletes a backup, damaged or not, and the files that no other has.
    ///
    /// # Errors
    /// `InvalidArgument`: no such backup. `Busy`, or the file system's: it may be there still, whole.
    pub fn delete(&self, id: BackupId) -> Result<()> {
        self.change(|store| {
            store.check_exists(id)?;
            store.remove(&[id])
        })
    }

    /// Calls `work` while nobody else changes the directory.
    fn change<R>(&self, work: impl FnOnce(&Store) -> Result<R>) -> Result<R> {
        let _turn = self.turn.lock();
        let _lock: Box<dyn LockGuard> = self.store.vfs.lock(&self.store.dir.join(LOCK_NAME))?;
        work(&self.store)
    }
}
