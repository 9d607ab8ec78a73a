//! `SstFileManager`: total size of several databases' tables.

use capi::env::EnvHandle;
use capi::file_manager::FileManager;

use crate::boundary::class::{Class, Method};
use crate::boundary::env::Env;
use crate::boundary::natives;
use crate::boundary::object::{Object, Value};
use crate::boundary::reply::Made;
use crate::callbacks::logger::Logger;
use crate::collections;
use crate::fault::Fault;

static LONG: Class = Class::new(c"java/lang/Long");
static VALUE_OF: Method = Method::fixed(&LONG, c"valueOf", c"(J)Ljava/lang/Long;");

/// A number as an object.
fn boxed(env: Env<'_>, number: u64) -> Result<Object<'_>, Fault> {
    VALUE_OF.object_fixed(env, &[Value::Long(number as i64)])?.ok_or_else(|| Fault::illegal("Long.valueOf gave null"))
}

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

    /// By path.
    "getTrackedFiles" => fn(env, manager: &FileManager) -> Made {
        let files = collections::map(env, manager.tables().into_iter(), |(path, bytes)| {
            Ok((env.new_text(&path.to_string_lossy())?, boxed(env, bytes)?))
        })?;
        Ok(Made::from(files))
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
