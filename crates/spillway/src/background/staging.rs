//! A database directory under construction. It is filled under a temporary name, locked and marked as incomplete, synced,
//! and renamed into place. So a directory of the final name is either absent or a complete database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::note;
use base::{Error, FileNumber, Result};
use vfs::{FileKind, IfExists, IoClass, LockGuard, RandomFile, Vfs};

use crate::version::file_name::{self, FileType};
use crate::version::{backup_dirs, incomplete};

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// Suffix of the temporary name.
const SUFFIX: &str = ".tmp";

/// What is made in such directories.
const COPIES: [&str; 2] = ["checkpoint", "export"];

/// The directory under construction. Removed on drop unless [`commit`](Staging::commit) renamed it.
pub(crate) struct Staging {
    vfs: Arc<dyn Vfs>,
    target: PathBuf,
    dir: PathBuf,
    committed: bool,
    /// The lock of `dir`, as of an open database. Released last.
    _lock: Box<dyn LockGuard>,
}

impl Staging {
    /// Begins a directory to be renamed to `target`. Removes leftovers of an interrupted attempt. `what` names the copy
    /// in the mark: one of [`COPIES`].
    ///
    /// # Errors
    /// `InvalidArgument`: `target` exists or belongs to backups, or the temporary name is taken by anything but the
    /// leftovers of such a copy. `Busy`: another copy to `target` is being made.
    pub fn begin(vfs: Arc<dyn Vfs>, target: &Path, what: &str) -> Result<Staging> {
        check_is_free(&*vfs, target)?;
        backup_dirs::check_is_outside(&*vfs, target)?;
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(SUFFIX);
        let dir = target.with_file_name(name);
        if vfs.exists(&dir)? {
            check_is_left(&*vfs, &dir, target)?;
        }
        vfs.create_dir_all(&dir)?;
        let lock = vfs.lock(&lock_in(&dir)).map_err(|error| {
            error.advise(format!("another copy to {} may be in the making there: wait for it", target.display()))
        })?;
        // Another copy may have been finished or removed before the lock.
        check_is_free(&*vfs, target)?;
        check_is_left(&*vfs, &dir, target)?;
        if !vfs.exists(&lock_in(&dir))? {
            return Err(Error::busy("another copy was just ended here; try again").at_path(dir));
        }
        let staging = Staging { vfs, target: target.to_owned(), dir, committed: false, _lock: lock };
        let text = format!(
            "{}{}; wait for the {what} if it is still running, else make it again, which removes this directory first\n",
            beginning(what),
            incomplete::absolute(target).display()
        );
        incomplete::mark(&*staging.vfs, &staging.dir, &text)?;
        remove_files(&*staging.vfs, &staging.dir)?;
        Ok(staging)
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Hard-links an immutable file into the directory; copies it if the link fails.
    pub fn link_or_copy(&self, from: &Path) -> Result<()> {
        let to = self.place_of(from)?;
        match self.vfs.hard_link(from, &to) {
            Ok(()) => Ok(()),
            Err(error) if error.is_not_found() => Err(error),
            // Another file system, or no support for links. If the file itself is unreadable, the copy fails as well.
            Err(_) => self.copy(from, None),
        }
    }

    /// Copies the first `bytes` of a file (`None`: the whole file) and syncs the copy.
    ///
    /// # Errors
    /// `Corruption`: the file is shorter than `bytes`.
    pub fn copy(&self, from: &Path, bytes: Option<u64>) -> Result<()> {
        let to = self.place_of(from)?;
        let mut copy = self.vfs.create(&to, IfExists::Fail)?;
        scan(&*self.vfs, from, bytes, &mut |block| copy.append(block, IoClass::Other))?;
        copy.sync(IoClass::Other)
    }

    /// Writes and syncs a small file.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        vfs::write_all(&*self.vfs, &self.dir.join(name), IfExists::Fail, bytes, IoClass::Other)
    }

    /// Renames the directory to its final name, durably. Every file in it must be synced already.
    pub fn commit(mut self) -> Result<()> {
        self.vfs.sync_dir(&self.dir)?;
        incomplete::unmark(&*self.vfs, &self.dir)?;
        self.vfs.remove_file(&lock_in(&self.dir))?; // a copy has none; without a mark no other copy takes the directory
        self.vfs.rename(&self.dir, &self.target)?;
        self.committed = true;
        match self.target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => self.vfs.sync_dir(parent),
            _ => self.vfs.sync_dir(Path::new(".")),
        }
    }

    fn place_of(&self, from: &Path) -> Result<PathBuf> {
        let name = from.file_name().ok_or_else(|| Error::invalid_argument("not the path of a file").at_path(from))?;
        Ok(self.dir.join(name))
    }
}

/// Calls `visit` with each block of the first `end` bytes of a file; of the whole file if `end` is `None`. Returns the
/// number of bytes read.
///
/// # Errors
/// `Corruption`: the file is shorter than `end`. Read errors, and errors of `visit`.
pub(crate) fn scan(
    vfs: &dyn Vfs,
    path: &Path,
    end: Option<u64>,
    visit: &mut dyn FnMut(&[u8]) -> Result<()>,
) -> Result<u64> {
    let source = vfs.open(path)?;
    let wanted = end.map_or_else(|| source.len(), Ok)?;
    let bytes = read_blocks(&*source, wanted, IoClass::Other, &mut |_, block| visit(block))?;
    // Closing a log truncates it, possibly during this scan.
    if bytes == wanted || (end.is_none() && bytes == source.len()?) {
        return Ok(bytes);
    }
    let what = format!("the file ends after {bytes} bytes of the {wanted} that it should have");
    Err(Error::corruption(what).at_path(path).at_offset(bytes))
}

/// Calls `visit` with each block of the first `end` bytes of a file and its offset. Stops early at the end of the file.
/// Returns the number of bytes read.
///
/// # Errors
/// Read errors, and errors of `visit`; each ends the read.
pub(crate) fn read_blocks(
    from: &dyn RandomFile,
    end: u64,
    class: IoClass,
    visit: &mut dyn FnMut(u64, &[u8]) -> Result<()>,
) -> Result<u64> {
    let mut buf = vec![0; end.min(COPY_BYTES as u64) as usize];
    let mut offset = 0;
    while offset < end {
        let want = (end - offset).min(COPY_BYTES as u64) as usize;
        let part = buf.get_mut(..want).unwrap_or_default();
        let read = from.read_at(offset, part, class)?;
        visit(offset, part.get(..read).unwrap_or_default())?;
        offset += read as u64;
        if read < want {
            break;
        }
    }
    Ok(offset)
}

impl Drop for Staging {
    fn drop(&mut self) {
        if !self.committed
            && let Err(error) = remove(&*self.vfs, &self.dir)
        {
            note::warn!(%error, "cannot remove a directory that was not finished");
        }
    }
}

fn check_is_free(vfs: &dyn Vfs, target: &Path) -> Result<()> {
    if vfs.exists(target)? {
        return Err(Error::invalid_argument("Directory exists; name one that does not").at_path(target));
    }
    Ok(())
}

/// Refuses to remove a directory unless it is empty, or marked as the leftovers of a copy. A copy that is cut off before it
/// is marked leaves LOCK and a temporary file.
fn check_is_left(vfs: &dyn Vfs, dir: &Path, target: &Path) -> Result<()> {
    let refused = |what: String| Error::invalid_argument(what).at_path(dir);
    if vfs.metadata(dir)?.kind != FileKind::Directory {
        return Err(refused("is in the way, and no directory; remove it".to_owned()));
    }
    let mark = incomplete::read(vfs, dir)?;
    let is_ours = mark.is_some_and(|text| COPIES.iter().any(|what| text.starts_with(&beginning(what))));
    for name in vfs.read_dir(dir)? {
        match file_name::parse(&name) {
            None => {
                return Err(refused(format!(
                    "is in the way, and holds {name:?}, which is no database file; remove it"
                )));
            }
            Some((FileType::Lock | FileType::Temp, _)) => {}
            Some(_) if is_ours => {}
            Some(_) => {
                let target = target.display();
                return Err(refused(format!(
                    "is in the way, and holds {name:?} without the mark of an unfinished checkpoint or export: it may be a \
                     database, or a copy that was cut off when it was whole already. Copy to another name, or rename it; \
                     if it is that copy, to {target}"
                )));
            }
        }
    }
    Ok(())
}

/// How the mark of a copy begins.
fn beginning(what: &str) -> String {
    format!("an unfinished {what}, to become ")
}

fn lock_in(dir: &Path) -> PathBuf {
    dir.join(file_name::format(FileType::Lock, FileNumber(0)))
}

/// Removes what there is of a copy: the mark after all that it marks, the lock last.
fn remove(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    remove_files(vfs, dir)?;
    let if_there = |removed: Result<()>| removed.or_else(|e| if e.is_not_found() { Ok(()) } else { Err(e) });
    if_there(incomplete::unmark(vfs, dir))?;
    if_there(vfs.remove_file(&lock_in(dir)))?;
    vfs.remove_dir(dir)
}

/// Removes all but the lock and the mark, durably: a power loss must not bring files back without their mark.
fn remove_files(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    for name in vfs.read_dir(dir)? {
        let kind = file_name::parse(&name).map(|(kind, _)| kind);
        if kind.is_some_and(|kind| !matches!(kind, FileType::Lock | FileType::Incomplete)) {
            vfs.remove_file(&dir.join(name))?;
        }
    }
    vfs.sync_dir(dir)
}

/// Makes a directory whose name survives a power loss.
pub(crate) fn create_durable_dir(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    vfs.create_dir_all(dir)?;
    match dir.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => vfs.sync_dir(parent),
        Some(_) => vfs.sync_dir(Path::new(".")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use base::ErrorKind;
    use vfs::MemoryVfs;

    use super::*;

    #[test]
    fn second_copy_to_a_place_waits_for_the_first() {
        let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
        let target = Path::new("/copy");
        let begin = || Staging::begin(vfs.clone(), target, "checkpoint");
        let first = begin().unwrap();
        first.write("CURRENT", b"first").unwrap();
        assert_eq!(begin().err().unwrap().kind(), ErrorKind::Busy);
        first.commit().unwrap();
        assert_eq!(vfs.read_dir(target).unwrap(), ["CURRENT"]);
        assert_eq!(begin().err().unwrap().kind(), ErrorKind::InvalidArgument);
        vfs.rename(target, Path::new("/elsewhere")).unwrap();
        drop(begin().unwrap());
        assert!(!vfs.exists(Path::new("/copy.tmp")).unwrap());
    }

    #[test]
    fn copy_cut_off_before_its_mark_is_in_nobodys_way() {
        let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
        let dir = Path::new("/copy.tmp");
        vfs.create_dir_all(dir).unwrap();
        for name in ["LOCK", "000000.dbtmp"] {
            vfs::write_all(&*vfs, &dir.join(name), IfExists::Fail, b"", IoClass::Other).unwrap();
        }
        Staging::begin(vfs.clone(), Path::new("/copy"), "export").unwrap().commit().unwrap();
        assert!(vfs.read_dir(Path::new("/copy")).unwrap().is_empty());
    }
}
