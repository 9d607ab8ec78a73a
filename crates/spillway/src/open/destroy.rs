//! Deletes a database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::options::{DbOptions, FamilyOptions, ini};
use base::{FileNumber, Result};
use vfs::{IoClass, Vfs};

use crate::context::log_dir;
use crate::db::lock_path;
use crate::version::file_name::{self, FileType};

/// Longest options file that is read, in bytes: room for thousands of families.
const OPTIONS_BYTES_MAX: u64 = 64 << 20;

pub(crate) fn destroy(dir: &Path, vfs: &Arc<dyn Vfs>) -> Result<()> {
    if !vfs.exists(dir)? {
        return Ok(());
    }
    let lock = vfs.lock(&lock_path(dir))?;
    // First the logs elsewhere: what names their directory goes with the rest.
    if let Some(logs) = separate_log_dir(&**vfs, dir)? {
        remove_files(&**vfs, &logs, |kind| matches!(kind, FileType::Log | FileType::LargeBatch))?;
        let _ = vfs.remove_dir(&logs); // other files may be in it
    }
    remove_files(&**vfs, dir, |kind| kind != FileType::Lock)?;
    drop(lock);
    vfs.remove_file(&lock_path(dir))?;
    let _ = vfs.remove_dir(dir); // other files may be in it
    Ok(())
}

fn remove_files(vfs: &dyn Vfs, dir: &Path, is_ours: impl Fn(FileType) -> bool) -> Result<()> {
    for name in vfs.read_dir(dir)? {
        if file_name::parse(&name).is_some_and(|(kind, _)| is_ours(kind)) {
            vfs.remove_file(&dir.join(name))?;
        }
    }
    Ok(())
}

/// The directory of the logs that the newest options file names, where that is another one. One that is a database
/// itself is not: RocksDB names a database's own directory, and a copy of the files still names the original's.
fn separate_log_dir(vfs: &dyn Vfs, dir: &Path) -> Result<Option<PathBuf>> {
    let Some(options) = newest_options(vfs, dir)? else { return Ok(None) };
    let logs = log_dir(dir, &options);
    let current = logs.join(file_name::format(FileType::Current, FileNumber(0)));
    let is_separate = logs != dir && vfs.exists(&logs)? && !vfs.exists(&current)?;
    Ok(is_separate.then_some(logs))
}

/// What the newest options file says of the database; `None` where there is none that can be read.
fn newest_options(vfs: &dyn Vfs, dir: &Path) -> Result<Option<DbOptions>> {
    let names = vfs.read_dir(dir)?;
    let of_options = names.iter().filter_map(|name| match file_name::parse(name)? {
        (FileType::Options, number) => Some((number, name)),
        _ => None,
    });
    let Some((_, name)) = of_options.max() else { return Ok(None) };
    let path = dir.join(name);
    let bytes = vfs::read_all(vfs, &path, OPTIONS_BYTES_MAX, IoClass::Other)?;
    let text = String::from_utf8_lossy(&bytes);
    let read = ini::OptionsFile::read(&text, DbOptions::default(), &|_| FamilyOptions::default(), true);
    match read {
        Ok((file, _)) => Ok(Some(file.db)),
        Err(error) => {
            tracing::warn!(%error, path = %path.display(), "whether the logs lie elsewhere is not known");
            Ok(None)
        }
    }
}
