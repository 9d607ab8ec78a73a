//! `SstFileManager`: total size of several databases' tables.

use capi::env::EnvHandle;
use capi::file_manager::FileManager;

use crate::boundary::natives;
use crate::callbacks::logger::Logger;

natives! { "SstFileManager";
    /// Files are removed at once: there are no chunks.
    "newSstFileManager" => fn(
        _env,
        _of: &EnvHandle,
        _logger: Option<&Logger>,
        delete_bytes_per_second: i64,
        trash_ratio_max: f64,
        _delete_chunk_bytes_max: i64,
    ) -> Box<FileManager> {
        let manager = Box::<FileManager>::default();
        manager.set_delete_rate(delete_bytes_per_second);
        manager.set_trash_ratio(trash_ratio_max);
        Ok(manager)
    }

    "setMaxAllowedSpaceUsage" => fn(_env, manager: &FileManager, bytes: i64) -> () {
        manager.set_allowed_bytes(bytes as u64);
        Ok(())
    }

    "setCompactionBufferSize" => fn(_env, manager: &FileManager, bytes: i64) -> () {
        manager.set_compaction_buffer(bytes as u64);
        Ok(())
    }

    /// Output of running compactions is not included.
    "isMaxAllowedSpaceReached" | "isMaxAllowedSpaceReachedIncludingCompactions" =>
    fn(_env, manager: &FileManager) -> bool {
        Ok(manager.is_full())
    }

    "getTotalSize" => fn(_env, manager: &FileManager) -> i64 {
        Ok(manager.total_bytes() as i64)
    }

    "getDeleteRateBytesPerSecond" => fn(_env, manager: &FileManager) -> i64 {
        Ok(manager.delete_rate())
    }

    "setDeleteRateBytesPerSecond" => fn(_env, manager: &FileManager, bytes: i64) -> () {
        manager.set_delete_rate(bytes);
        Ok(())
    }

    "getMaxTrashDBRatio" => fn(_env, manager: &FileManager) -> f64 {
        Ok(manager.trash_ratio())
    }

    "setMaxTrashDBRatio" => fn(_env, manager: &FileManager, ratio: f64) -> () {
        manager.set_trash_ratio(ratio);
        Ok(())
    }
}
