//! `rocksdb_backup_engine_t`: backups of databases in one directory.

use std::ffi::{CStr, c_int, c_uchar};
use std::path::{Path, PathBuf};

use spillway::internal::backup::{BackupEngine, BackupInfo, BackupOptions, RestoreOptions};

use crate::boundary::settings::settings;
use crate::boundary::{export, fallible, handles};
use crate::database::Database;
use crate::env::EnvHandle;
use crate::failure::Failure;
use crate::kept::{Kept, keeps_numbers};
use crate::options::Options;
use crate::text::path;

/// An open directory of backups.
pub struct Backups(pub BackupEngine, Kept);

/// `rocksdb_backup_engine_options_t`.
pub struct BackupSettings {
    pub dir: PathBuf,
    pub options: BackupOptions,
    pub kept: Kept,
}

/// `rocksdb_backup_engine_info_t`. For an index out of range every field is 0.
pub struct BackupList(Vec<BackupInfo>);

/// `rocksdb_restore_options_t`.
#[derive(Default)]
pub struct RestoreSettings {
    pub keep_log_files: bool,
}

handles!(Backups, BackupSettings, BackupList, RestoreSettings);

/// RocksDB's `kUseDbSessionId | kFlagIncludeFileSize`.
const NAMING_DEFAULT: c_int = c_int::MIN | 2;

keeps_numbers!(BackupSettings);

settings! { BackupSettings, "rocksdb_backup_engine_options_";
    share_table_files: c_uchar => options.share_table_files;
    sync: c_uchar => options.sync;
    destroy_old_data: c_uchar => options.destroy_old_data;
    max_background_operations: c_int => options.max_background_operations;

    backup_log_files: c_uchar = 1;
    backup_rate_limit: u64 = 0;
    callback_trigger_interval_size: u64 = 4 << 20;
    max_valid_backups_to_open: c_int = c_int::MAX;
    restore_rate_limit: u64 = 0;
    share_files_with_checksum_naming: c_int = NAMING_DEFAULT;
}

impl Backups {
    pub fn open(settings: &BackupSettings) -> Result<Box<Backups>, Failure> {
        Ok(Box::new(Backups(BackupEngine::open(&settings.dir, &settings.options)?, settings.kept.clone())))
    }

    /// As [`open`](Self::open), in the environment's file system if one is given.
    pub fn open_in(settings: &BackupSettings, env: Option<&EnvHandle>) -> Result<Box<Backups>, Failure> {
        let mut options =
            BackupSettings { dir: settings.dir.clone(), options: settings.options.clone(), kept: Kept::default() };
        if let Some(env) = env {
            options.options.vfs = env.env().vfs();
        }
        Backups::open(&options)
    }

    /// `note`: what an application says about it.
    pub fn back_up(&self, database: &Database, flush: bool, note: &[u8]) -> Result<(), Failure> {
        database.tell(&self.1);
        self.0.create_noted_backup(&database.db, flush, note).map_err(|error| database.refused(error))?;
        Ok(())
    }
}

impl BackupSettings {
    pub fn new(dir: &Path) -> BackupSettings {
        BackupSettings { dir: dir.to_owned(), options: BackupOptions::default(), kept: Kept::default() }
    }
}

impl BackupList {
    fn at(&self, index: c_int) -> Option<&BackupInfo> {
        self.0.get(usize::try_from(index).ok()?)
    }
}

impl RestoreSettings {
    /// WALs go beside the database if `wal_dir` is its directory.
    pub fn to_restore(&self, db_dir: &Path, wal_dir: &Path) -> RestoreOptions {
        let wal_dir = Some(wal_dir).filter(|dir| *dir != db_dir).map(Path::to_owned);
        RestoreOptions { wal_dir, keep_log_files: self.keep_log_files }
    }
}

export! {
    fn rocksdb_backup_engine_close(backups: Option<Box<Backups>>) {
        drop(backups);
    }

    /// Empty if the directory cannot be read.
    fn rocksdb_backup_engine_get_backup_info(backups: &Backups) -> Box<BackupList> {
        let list = backups.0.backups().inspect_err(|error| tracing::error!(%error, "backups cannot be listed"));
        Box::new(BackupList(list.unwrap_or_default()))
    }

    fn rocksdb_backup_engine_info_count(list: &BackupList) -> c_int {
        c_int::try_from(list.0.len()).unwrap_or(c_int::MAX)
    }

    /// Seconds since the epoch.
    fn rocksdb_backup_engine_info_timestamp(list: &BackupList, index: c_int) -> i64 {
        list.at(index).map_or(0, |backup| i64::try_from(backup.timestamp_s).unwrap_or(i64::MAX))
    }

    fn rocksdb_backup_engine_info_backup_id(list: &BackupList, index: c_int) -> u32 {
        list.at(index).map_or(0, |backup| backup.id)
    }

    fn rocksdb_backup_engine_info_size(list: &BackupList, index: c_int) -> u64 {
        list.at(index).map_or(0, |backup| backup.bytes)
    }

    fn rocksdb_backup_engine_info_number_files(list: &BackupList, index: c_int) -> u32 {
        list.at(index).map_or(0, |backup| u32::try_from(backup.files).unwrap_or(u32::MAX))
    }

    fn rocksdb_backup_engine_info_destroy(list: Option<Box<BackupList>>) {
        drop(list);
    }

    fn rocksdb_backup_engine_options_create(dir: &CStr) -> Box<BackupSettings> {
        Box::new(BackupSettings::new(path(dir)))
    }

    fn rocksdb_backup_engine_options_destroy(options: Option<Box<BackupSettings>>) {
        drop(options);
    }

    fn rocksdb_backup_engine_options_set_backup_dir(options: &mut BackupSettings, dir: &CStr) {
        options.dir = path(dir).to_owned();
    }

    fn rocksdb_backup_engine_options_set_env(options: &mut BackupSettings, env: Option<&EnvHandle>) {
        options.options.vfs = env.map_or_else(|| BackupOptions::default().vfs, |env| env.env().vfs());
    }

    fn rocksdb_restore_options_create() -> Box<RestoreSettings> {
        Box::default()
    }

    fn rocksdb_restore_options_destroy(options: Option<Box<RestoreSettings>>) {
        drop(options);
    }

    fn rocksdb_restore_options_set_keep_log_files(options: &mut RestoreSettings, keep: c_int) {
        options.keep_log_files = keep != 0;
    }
}

fallible! {
    fn rocksdb_backup_engine_open(options: &Options, dir: &CStr) -> Box<Backups> {
        let mut settings = BackupSettings::new(path(dir));
        settings.options.vfs = options.vfs();
        Backups::open(&settings)
    }

    fn rocksdb_backup_engine_open_opts(options: &BackupSettings, env: Option<&EnvHandle>) -> Box<Backups> {
        Backups::open_in(options, env)
    }

    fn rocksdb_backup_engine_create_new_backup(backups: &Backups, database: &Database) {
        backups.back_up(database, false, &[])
    }

    fn rocksdb_backup_engine_create_new_backup_flush(backups: &Backups, database: &Database, flush: bool) {
        backups.back_up(database, flush, &[])
    }

    fn rocksdb_backup_engine_purge_old_backups(backups: &Backups, keep: u32) {
        Ok(backups.0.purge_old(keep as usize)?)
    }

    fn rocksdb_backup_engine_verify_backup(backups: &Backups, id: u32) {
        Ok(backups.0.verify(id)?)
    }

    fn rocksdb_backup_engine_restore_db_from_backup(
        backups: &Backups,
        db_dir: &CStr,
        wal_dir: &CStr,
        options: &RestoreSettings,
        id: u32,
    ) {
        Ok(backups.0.restore(id, path(db_dir), &options.to_restore(path(db_dir), path(wal_dir)))?)
    }

    fn rocksdb_backup_engine_restore_db_from_latest_backup(
        backups: &Backups,
        db_dir: &CStr,
        wal_dir: &CStr,
        options: &RestoreSettings,
    ) {
        backups.0.restore_latest(path(db_dir), &options.to_restore(path(db_dir), path(wal_dir)))?;
        Ok(())
    }
}
