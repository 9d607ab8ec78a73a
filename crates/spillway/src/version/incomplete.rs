//! The mark of a copy in the making: a file that is durable before the copy's first file, and removed after its last.
//!
//! A marked directory is no database: it is not opened, checked or repaired. A repair would pass a part for the whole.

use std::path::{Path, PathBuf};

use base::{Error, FileNumber, Result};
use vfs::{IfExists, IoClass, Vfs};

use super::file_name::{self, FileType};

/// Bytes read of a mark. Ours are a few paths and a sentence.
const MARK_BYTES_MAX: u64 = 64 << 10;

/// The first line of a mark whose text is lost.
const UNKNOWN: &str = "an unfinished copy of a database; make the copy again";

/// Marks the directory durably, in place of an earlier mark. The first line of `text` says what the directory is, and
/// what to do.
///
/// # Errors
/// The file system's; the mark is removed again as far as possible, but not one that was there before.
pub(crate) fn mark(vfs: &dyn Vfs, dir: &Path, text: &str) -> Result<()> {
    let (path, temp) = (path_in(dir), dir.join(file_name::format(FileType::Temp, FileNumber(0))));
    let was_there = vfs.exists(&path)?;
    vfs::write_all(vfs, &temp, IfExists::Truncate, text.as_bytes(), IoClass::Other)
        .and_then(|()| vfs.rename(&temp, &path))
        .and_then(|()| vfs.sync_dir(dir))
        .inspect_err(|_| {
            drop(vfs.remove_file(&temp));
            if !was_there {
                drop(vfs.remove_file(&path))
            }
        })
}

/// Removes the mark durably. Every file of the copy must be durable already.
///
/// # Errors
/// The file system's; the mark may remain.
pub(crate) fn unmark(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    vfs.remove_file(&path_in(dir))?;
    vfs.sync_dir(dir)
}

/// The text of the directory's mark; `None` without a mark. The text is empty where it is lost.
///
/// # Errors
/// The file system's.
pub(crate) fn read(vfs: &dyn Vfs, dir: &Path) -> Result<Option<String>> {
    let path = path_in(dir);
    if !vfs.exists(&path)? {
        return Ok(None);
    }
    match vfs::read_all(vfs, &path, MARK_BYTES_MAX, IoClass::Other) {
        Ok(bytes) => Ok(Some(String::from_utf8(bytes).unwrap_or_default())),
        Err(error) if error.is_not_found() => Ok(None), // removed meanwhile: the copy is complete
        Err(_) => Ok(Some(String::new())),
    }
}

/// Refuses a marked directory.
///
/// # Errors
/// `InvalidArgument`: the directory is marked. Not `Corruption`: no salvage takes what is there for a database.
pub fn check(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    let Some(what) = what(vfs, dir)? else { return Ok(()) };
    Err(Error::invalid_argument(format!("this directory is {what}")).at_path(path_in(dir)))
}

/// What a marked directory is, and what to do; `None` without a mark.
///
/// # Errors
/// The file system's.
pub fn what(vfs: &dyn Vfs, dir: &Path) -> Result<Option<String>> {
    let text = read(vfs, dir)?;
    Ok(text.map(|text| text.lines().next().filter(|line| !line.is_empty()).unwrap_or(UNKNOWN).to_owned()))
}

/// The path for a mark's text: whoever reads it may be in another directory.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn path_in(dir: &Path) -> PathBuf {
    dir.join(file_name::format(FileType::Incomplete, FileNumber(0)))
}
