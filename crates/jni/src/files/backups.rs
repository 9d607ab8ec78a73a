//! `BackupEngine`.

use std::path::Path;

use capi::backup::{BackupSettings, Backups, RestoreSettings};
use capi::env::EnvHandle;

use crate::boundary::argument::Closed;
use crate::boundary::class::{Class, Method};
use crate::boundary::natives;
use crate::boundary::object::Value;
use crate::boundary::reply::Made;
use crate::collections::list;
use crate::database::Db;
use crate::fault::Fault;

static BACKUP_INFO: Class = Class::new(c"org/rocksdb/BackupInfo");
static NEW_BACKUP_INFO: Method = Method::constructor(&BACKUP_INFO, c"(IJJILjava/lang/String;)V");

/// The number of a backup: Java's `int` without a sign.
fn number(id: i32) -> u32 {
    id as u32
}

natives! { "BackupEngine";
    "open" => fn(_env, env: &EnvHandle, options: &BackupSettings) -> Box<Backups> {
        Ok(Backups::open_in(options, Some(env))?)
    }

    "createNewBackup" => fn(_env, backups: &Backups, database: &Db, flush: bool) -> () {
        Ok(backups.back_up(database, flush, &[])?)
    }

    "createNewBackupWithMetadata" => fn(_env, backups: &Backups, database: &Db, note: String, flush: bool) -> () {
        Ok(backups.back_up(database, flush, note.as_bytes())?)
    }

    "getBackupInfo" => fn(env, backups: &Backups) -> Made {
        let infos = list(env, backups.0.backups()?.iter(), |info| {
            let note = env.new_text(&String::from_utf8_lossy(&info.note))?;
            let files = i32::try_from(info.files).unwrap_or(i32::MAX);
            let made = NEW_BACKUP_INFO.make(
                env,
                &[
                    Value::Int(info.id as i32),
                    Value::Long(info.timestamp_s as i64),
                    Value::Long(info.bytes as i64),
                    Value::Int(files),
                    Value::Object(note),
                ],
            )?;
            env.delete(note);
            Ok(made)
        })?;
        Ok(infos.into())
    }

    "getCorruptedBackups" => fn(_env, backups: &Backups) -> Vec<i32> {
        Ok(backups.0.damaged_backups()?.into_iter().map(|backup| backup.id as i32).collect())
    }

    "garbageCollect" => fn(_env, backups: &Backups) -> () {
        Ok(backups.0.collect_garbage()?)
    }

    "purgeOldBackups" => fn(_env, backups: &Backups, keep: i32) -> () {
        let keep = usize::try_from(keep).map_err(|_| Fault::illegal("a number of backups to keep is negative"))?;
        Ok(backups.0.purge_old(keep)?)
    }

    "deleteBackup" => fn(_env, backups: &Backups, id: i32) -> () {
        Ok(backups.0.delete(number(id))?)
    }

    "restoreDbFromBackup" => fn(
        _env,
        backups: &Backups,
        id: i32,
        database_dir: String,
        wal_dir: String,
        options: &RestoreSettings,
    ) -> () {
        let (database_dir, wal_dir) = (Path::new(&database_dir), Path::new(&wal_dir));
        Ok(backups.0.restore(number(id), database_dir, &options.to_restore(database_dir, wal_dir))?)
    }

    "restoreDbFromLatestBackup" =>
    fn(_env, backups: &Backups, database_dir: String, wal_dir: String, options: &RestoreSettings) -> () {
        let (database_dir, wal_dir) = (Path::new(&database_dir), Path::new(&wal_dir));
        backups.0.restore_latest(database_dir, &options.to_restore(database_dir, wal_dir))?;
        Ok(())
    }

    "disposeInternal" | "disposeInternalJni" => fn(_env, backups: Closed<Backups>) -> () {
        drop(backups.0);
        Ok(())
    }
}
