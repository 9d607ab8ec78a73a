//! Databases that are not open: checked, repaired, backed up and restored.

use std::fmt;
use std::path::Path;

use base::Result;

use crate::api::db::Db;
use crate::api::options::{BackupOptions, Options};
use crate::core::context::named_log_dir;
use crate::maintenance::backup::{BackupEngine, BackupInfo, DamagedBackup, RestoreOptions};
use crate::maintenance::check::{CheckOptions, CheckReport, check};
use crate::maintenance::repair::{RepairReport, repair};

impl Db {
    /// Reads everything that the database in `dir` has, and reports what is damaged. Changes nothing and takes no lock.
    /// Comparators of your own are needed to check the tables of their families.
    ///
    /// # Errors
    /// `InvalidArgument`: there is no database. `Io`: the directory cannot be read. Damage is no error: it is in the
    /// report.
    pub fn check(dir: impl AsRef<Path>, options: &Options) -> Result<CheckReport> {
        let open = options.resolve_or_given(dir.as_ref())?;
        let log_dir = named_log_dir(&open.db);
        check(dir.as_ref(), &CheckOptions { vfs: open.vfs.clone(), orders: open.orders(), log_dir }, &mut |_| {})
    }

    /// Makes the damaged database in `dir` openable, with all that can be read. Nothing is deleted: damaged files are
    /// moved to `lost/` in the directory. Restore a backup instead if there is one; copy the directory first if there is
    /// room.
    ///
    /// # Errors
    /// `Busy`: it is open. `InvalidArgument`: there is nothing to repair, or a copy in the making. `Unsupported`: this
    /// version cannot read an undamaged file. `Corruption`, `InvalidArgument`: the stored options cannot be read; the repair
    /// does not put the defaults in their place, unless [`ignore_stored_options`](Options::ignore_stored_options) is set.
    /// `Io`, `NoSpace`. The repair can be repeated.
    pub fn repair(dir: impl AsRef<Path>, options: &Options) -> Result<RepairReport> {
        let (open, _) = options.resolve(dir.as_ref())?;
        repair(dir, &open)
    }
}

/// A directory of backups, of one database or of several. Usable from any number of threads; backups share the tables
/// they have in common.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let dir = tempfile::tempdir()?;
/// use spillway::{Backups, Db};
///
/// let db = Db::open(dir.path().join("db"))?;
/// db.put("k", "v")?;
/// let backups = Backups::open(dir.path().join("backups"))?;
/// backups.create(&db)?;
/// backups.keep_newest(7)?;
/// backups.restore_latest(dir.path().join("restored"))?;
/// assert!(Db::open(dir.path().join("restored"))?.contains_key("k")?);
/// # Ok(())
/// # }
/// ```
pub struct Backups(BackupEngine);

impl Backups {
    /// Opens a directory of backups, or creates it.
    ///
    /// # Errors
    /// `Io`: the directory cannot be made or read.
    pub fn open(dir: impl AsRef<Path>) -> Result<Backups> {
        Backups::open_with(dir, &BackupOptions::new())
    }

    /// As [`open`](Self::open), with options.
    ///
    /// # Errors
    /// As of [`open`](Self::open). `InvalidArgument`: an option is out of bounds. `Busy`: old backups are to be destroyed,
    /// and another process changes the directory.
    pub fn open_with(dir: impl AsRef<Path>, options: &BackupOptions) -> Result<Backups> {
        BackupEngine::open(dir, &options.0).map(Backups)
    }

    /// Backs up the present state of a database while writes go on, and returns the backup's number. Copies tables that
    /// no other backup has, and the log; flushes nothing.
    ///
    /// # Errors
    /// `Busy`: another process changes the directory. `ReadOnly`, `Closed`. `Corruption`: a file is damaged, and the error
    /// names it. `Io`, `NoSpace`. There is no new backup then.
    pub fn create(&self, db: &Db) -> Result<u32> {
        self.0.create_new_backup(&db.shared().database, false)
    }

    /// The backups that can be restored, oldest first.
    ///
    /// # Errors
    /// `Io`: the directory cannot be read.
    pub fn list(&self) -> Result<Vec<BackupInfo>> {
        self.0.backups()
    }

    /// The backups that cannot be restored, with what is wrong.
    ///
    /// # Errors
    /// `Io`: the directory cannot be read.
    pub fn damaged(&self) -> Result<Vec<DamagedBackup>> {
        self.0.damaged_backups()
    }

    /// Reads every file of a backup and checks its checksums.
    ///
    /// # Errors
    /// `Corruption`: a file is damaged, and the error names it. `InvalidArgument`: there is no such backup.
    pub fn verify(&self, backup: u32) -> Result<()> {
        self.0.verify(backup)
    }

    /// Makes the database in `dir` what the backup holds. **A database that is there is deleted.**
    ///
    /// # Errors
    /// `Busy`: the database there is open. `InvalidArgument`: there is no such backup. `Corruption`: a file of it is
    /// damaged. `Io`, `NoSpace`: repeat the call.
    pub fn restore(&self, backup: u32, dir: impl AsRef<Path>) -> Result<()> {
        self.0.restore(backup, dir, &RestoreOptions::default())
    }

    /// [`restore`](Self::restore) of the newest backup that can be restored; returns its number. Newer ones that cannot be are in
    /// [`damaged`](Self::damaged), and a warning names them.
    ///
    /// # Errors
    /// As of [`restore`](Self::restore). If no backup can be restored, the error names the damaged ones.
    pub fn restore_latest(&self, dir: impl AsRef<Path>) -> Result<u32> {
        self.0.restore_latest(dir, &RestoreOptions::default())
    }

    /// Deletes all but the newest `count` backups.
    ///
    /// # Errors
    /// `Busy`: another process changes the directory. `Io`.
    pub fn keep_newest(&self, count: usize) -> Result<()> {
        self.0.purge_old(count)
    }

    /// Deletes a backup, and the files that no other needs.
    ///
    /// # Errors
    /// As of [`keep_newest`](Self::keep_newest). `InvalidArgument`: there is no such backup.
    pub fn delete(&self, backup: u32) -> Result<()> {
        self.0.delete(backup)
    }
}

impl fmt::Debug for Backups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backups").field("dir", &self.0.dir()).finish_non_exhaustive()
    }
}
