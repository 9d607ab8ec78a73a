//! A database's folder as files: their bytes, a copy, their end.

use std::path::Path;

use base::Result;
use vfs::{FileKind, IfExists, IoClass, Vfs};

/// Suffix of files a database never changes after finishing them: a copy may hard-link them.
const SHARED: &str = ".sst";

/// Limit of a copied file: logs of a closed database hold next to nothing.
const COPIED_BYTES_MAX: u64 = 1 << 30;

/// Bytes of all files, those of folders within included. The database may be open.
pub fn bytes(vfs: &dyn Vfs, dir: &Path) -> Result<u64> {
    let of = |name: &String| {
        let path = dir.join(name);
        match vfs.metadata(&path) {
            Ok(metadata) if metadata.kind == FileKind::Directory => bytes(vfs, &path),
            Ok(metadata) => Ok(metadata.len),
            // Deleted since the folder was read.
            Err(_) if !vfs.exists(&path)? => Ok(0),
            Err(error) => Err(error),
        }
    };
    vfs.read_dir(dir)?.iter().map(of).sum()
}

/// Copies the database in `from`, which must be closed, to `to`.
///
/// # Errors
/// `Io`: a file cannot be read, linked or written.
pub fn copy(vfs: &dyn Vfs, from: &Path, to: &Path) -> Result<()> {
    vfs.create_dir_all(to)?;
    for name in vfs.read_dir(from)? {
        let (old, new) = (from.join(&name), to.join(&name));
        if name.ends_with(SHARED) {
            vfs.hard_link(&old, &new)?;
        } else {
            let content = vfs::read_all(vfs, &old, COPIED_BYTES_MAX, IoClass::Other)?;
            vfs.create(&new, IfExists::Fail)?.append(&content, IoClass::Other)?;
        }
    }
    Ok(())
}

/// Deletes a folder with everything in it, if it exists.
pub fn remove(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    if !vfs.exists(dir)? {
        return Ok(());
    }
    for name in vfs.read_dir(dir)? {
        let path = dir.join(name);
        match vfs.metadata(&path)?.kind {
            FileKind::Directory => remove(vfs, &path)?,
            FileKind::File | FileKind::Other => vfs.remove_file(&path)?,
        }
    }
    vfs.remove_dir(dir)
}
