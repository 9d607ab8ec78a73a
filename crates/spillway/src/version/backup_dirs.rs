//! The directories inside a directory of backups. Their files have the names of a database's, and are no database's: no
//! copy is made over them, and none is deleted as one.

use std::path::Path;

use base::{Error, Result};
use vfs::Vfs;

use super::incomplete::absolute;

pub(crate) const META_DIR: &str = "meta";
pub(crate) const PRIVATE_DIR: &str = "private";
pub(crate) const SHARED_DIR: &str = "shared";
pub(crate) const SHARED_CHECKSUM_DIR: &str = "shared_checksum";

const DIRS: [&str; 4] = [META_DIR, PRIVATE_DIR, SHARED_DIR, SHARED_CHECKSUM_DIR];

/// Refuses a place for a database inside the files of backups. It need not exist.
///
/// # Errors
/// `InvalidArgument`: the place belongs to backups.
pub(crate) fn check_is_outside(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    let place = vfs.canonicalize(dir).unwrap_or_else(|_| absolute(dir));
    for part in place.ancestors() {
        let (Some(name), Some(root)) = (part.file_name().and_then(|name| name.to_str()), part.parent()) else {
            continue;
        };
        if DIRS.contains(&name) && has_backups(vfs, root) {
            let what = format!(
                "this place belongs to the backups in {}, which would be lost: name another directory; `spillway backup \
                 delete` deletes a backup",
                root.display()
            );
            return Err(Error::invalid_argument(what).at_path(dir));
        }
    }
    Ok(())
}

/// Whether the directory has a backup's meta file, which is named by the backup's number.
fn has_backups(vfs: &dyn Vfs, root: &Path) -> bool {
    let is_number = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit());
    vfs.exists(&root.join(PRIVATE_DIR)).unwrap_or(false)
        && vfs.read_dir(&root.join(META_DIR)).is_ok_and(|names| names.iter().any(is_number))
}
