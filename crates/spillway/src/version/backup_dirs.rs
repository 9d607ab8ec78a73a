//! The directories inside a directory of backups. Their files have the names of a database's, and are no database's: no
//! copy is made over them, and nothing opens them for writing, repairs them, or deletes them as one.

use std::path::{Path, PathBuf};

use base::shell;
use base::{Error, FileNumber, Result};
use vfs::{FileKind, Vfs};

use super::file_name::{self, FileType};
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
pub fn check_is_outside(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    let Some(backups) = around(vfs, dir) else { return Ok(()) };
    let what = format!(
        "this place belongs to the backups in {}, which a change here would damage: name another directory; {}, and `spillway \
         backup delete` deletes one",
        backups.display(),
        way_out(&backups)
    );
    Err(Error::invalid_argument(what).at_path(dir))
}

/// What brings the database of a backup back.
pub fn way_out(backups: &Path) -> String {
    format!(
        "`spillway backup restore --dir {} --to DIR` restores a backup to a directory of its own",
        shell::word(backups)
    )
}

/// The directory of backups to whose files a place belongs. It need not exist. A database that was opened for writing there has
/// its own lock, and is no backup's.
pub fn around(vfs: &dyn Vfs, dir: &Path) -> Option<PathBuf> {
    // By the part of it that exists, which `..` can lead out of.
    let resolved = |part: &Path| Some(vfs.canonicalize(part).ok()?.join(dir.strip_prefix(part).ok()?));
    let place = dir.ancestors().find_map(resolved).unwrap_or_else(|| absolute(dir));
    if has(vfs, &place, FileType::Lock) {
        return None;
    }
    place.ancestors().find_map(|part| {
        let (name, root) = (part.file_name()?.to_str()?, part.parent()?);
        (DIRS.contains(&name) && has_backups(vfs, root)).then(|| root.to_owned())
    })
}

/// Whether the directory has a backup's meta file or private files, which are named by the backup's number. Either may be
/// lost. The private ones are a directory as a database's, but without the lock that each open for writing leaves.
fn has_backups(vfs: &dyn Vfs, root: &Path) -> bool {
    let is_number =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit));
    let numbered = |dir| -> Vec<PathBuf> {
        let names = vfs.read_dir(&root.join(dir)).unwrap_or_default();
        names.iter().map(|name| root.join(dir).join(name)).filter(is_number).collect()
    };
    let is_meta = |path: &PathBuf| vfs.metadata(path).is_ok_and(|found| found.kind == FileKind::File);
    let is_private = |path: &PathBuf| has(vfs, path, FileType::Current) && !has(vfs, path, FileType::Lock);
    let has_both = [META_DIR, PRIVATE_DIR].iter().all(|dir| vfs.exists(&root.join(dir)).unwrap_or(false));
    has_both && (numbered(META_DIR).iter().any(is_meta) || numbered(PRIVATE_DIR).iter().any(is_private))
}

fn has(vfs: &dyn Vfs, dir: &Path, kind: FileType) -> bool {
    vfs.exists(&dir.join(file_name::format(kind, FileNumber(0)))).unwrap_or(false)
}
