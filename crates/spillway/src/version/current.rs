//! CURRENT names the live MANIFEST. Replacing CURRENT is the instant a new MANIFEST takes over, so CURRENT is written
//! whole, synced, and renamed into place.

use std::path::Path;

use base::{Error, FileNumber, Result};
use vfs::{IfExists, IoClass, Vfs};

use super::file_name::{self, FileType};
use super::incomplete;

/// Longest CURRENT accepted, in bytes; a real one is about 16.
const CURRENT_BYTES_MAX: u64 = 256;

/// Returns the number of the MANIFEST named by CURRENT.
///
/// # Errors
/// `Corruption` if CURRENT is anything but `MANIFEST-NNNNNN` and a newline: a path in it is never followed.
/// `InvalidArgument`: the directory is a copy in the making.
pub fn read_current(vfs: &dyn Vfs, dir: &Path) -> Result<FileNumber> {
    incomplete::check(vfs, dir)?;
    let path = dir.join(file_name::format(FileType::Current, FileNumber(0)));
    let bytes = vfs::read_all(vfs, &path, CURRENT_BYTES_MAX, IoClass::Manifest)?;
    let damaged = |what: &str| Error::corruption(format!("CURRENT {what}")).at_path(&path);
    let Some(name) = bytes.strip_suffix(b"\n") else {
        return Err(damaged("file does not end with newline"));
    };
    let name = std::str::from_utf8(name).map_err(|_| damaged("names no file"))?;
    match file_name::parse(name) {
        Some((FileType::Manifest, number)) => Ok(number),
        _ => Err(damaged(&format!("file corrupted: it names {name:?}, which is no MANIFEST"))),
    }
}

/// State of CURRENT after a failed replacement.
pub(crate) enum SetCurrentError {
    /// The old CURRENT stands.
    Before(Error),
    /// Either CURRENT may survive a power loss: no MANIFEST can be appended to any more (D4).
    Unknown(Error),
}

impl From<SetCurrentError> for Error {
    fn from(failed: SetCurrentError) -> Error {
        match failed {
            SetCurrentError::Before(error) | SetCurrentError::Unknown(error) => error,
        }
    }
}

/// Durably points CURRENT at `manifest`, a MANIFEST already whole and synced, its name too: a surviving CURRENT must find
/// it.
pub(crate) fn set_current(vfs: &dyn Vfs, dir: &Path, manifest: FileNumber) -> Result<(), SetCurrentError> {
    let temp = dir.join(file_name::format(FileType::Temp, manifest));
    let current = dir.join(file_name::format(FileType::Current, FileNumber(0)));
    let line = format!("{}\n", file_name::format(FileType::Manifest, manifest));
    let prepared = vfs::write_all(vfs, &temp, IfExists::Truncate, line.as_bytes(), IoClass::Manifest);
    if let Err(error) = prepared {
        // The next open deletes leftover temporary files.
        let _ = vfs.remove_file(&temp);
        return Err(SetCurrentError::Before(error));
    }
    vfs.rename(&temp, &current).and_then(|()| vfs.sync_dir(dir)).map_err(SetCurrentError::Unknown)
}

/// Syncs the directory, then as [`set_current`]. For a directory abandoned after an error.
pub(crate) fn install_current(vfs: &dyn Vfs, dir: &Path, manifest: FileNumber) -> Result<()> {
    vfs.sync_dir(dir)?;
    Ok(set_current(vfs, dir, manifest)?)
}
