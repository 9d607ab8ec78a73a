//! `BackupEngineOptions` and `RestoreOptions`.

use std::path::Path;

use capi::backup::{BackupSettings, ROWS, RestoreSettings};
use capi::boundary::settings::Row;

use crate::boundary::natives;
use crate::boundary::settings::{kept, settings};

/// Without effect here, and without setters in C.
const WITHOUT_EFFECT: &[Row<BackupSettings>] = kept! { BackupSettings;
    "share_files_with_checksum": bool = true;
};

settings! { ["BackupEngineOptions"], BackupSettings = BackupSettings::new(Path::new("/backups")), [ROWS, WITHOUT_EFFECT];
    bool, set "setShareTableFiles", get "shareTableFiles" => "share_table_files";
    bool, set "setShareFilesWithChecksum", get "shareFilesWithChecksum" => "share_files_with_checksum";
    bool, set "setSync", get "sync" => "sync";
    bool, set "setDestroyOldData", get "destroyOldData" => "destroy_old_data";
    bool, set "setBackupLogFiles", get "backupLogFiles" => "backup_log_files";
    i64, set "setBackupRateLimit", get "backupRateLimit" => "backup_rate_limit";
    i64, set "setRestoreRateLimit", get "restoreRateLimit" => "restore_rate_limit";
    i32, set "setMaxBackgroundOperations", get "maxBackgroundOperations" => "max_background_operations";
    i64, set "setCallbackTriggerIntervalSize", get "callbackTriggerIntervalSize" => "callback_trigger_interval_size";
}

pub mod others {
    use capi::env::EnvHandle;

    use super::*;
    use crate::callbacks::logger::Logger;
    use crate::objects::limiter::RateLimit;

    natives! { "BackupEngineOptions";
        "newBackupEngineOptions" => fn(_env, dir: String) -> Box<BackupSettings> {
            Ok(Box::new(BackupSettings::new(Path::new(&dir))))
        }

        "backupDir" => fn(_env, options: &BackupSettings) -> String {
            Ok(options.dir.to_string_lossy().into_owned())
        }

        /// Backups are in the file system of the process.
        "setBackupEnv" => fn(_env, _options: &mut BackupSettings, _of: Option<&EnvHandle>) -> () {
            capi::kept::warn("backup_env", "set");
            Ok(())
        }

        /// Events of backups are those of the database.
        "setInfoLog" => fn(_env, _options: &mut BackupSettings, _logger: Option<&Logger>) -> () {
            capi::kept::warn("backup_info_log", "set");
            Ok(())
        }

        "setBackupRateLimiter" => fn(_env, _options: &mut BackupSettings, _limit: Option<&RateLimit>) -> () {
            capi::kept::warn("backup_rate_limiter", "set");
            Ok(())
        }

        "setRestoreRateLimiter" => fn(_env, _options: &mut BackupSettings, _limit: Option<&RateLimit>) -> () {
            capi::kept::warn("restore_rate_limiter", "set");
            Ok(())
        }
    }
}

pub mod restore {
    use super::*;

    natives! { "RestoreOptions";
        "newRestoreOptions" => fn(_env, keep_log_files: bool) -> Box<RestoreSettings> {
            Ok(Box::new(RestoreSettings { keep_log_files }))
        }
    }
}
