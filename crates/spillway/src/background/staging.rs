//! A database directory under construction. It is filled under a temporary name, marked as incomplete, synced, and
//! renamed into place. So a directory of the final name is either absent or a complete database.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::note;
use base::{Error, Result};
use vfs::{FileKind, IfExists, IoClass, RandomFile, Vfs};

use crate::version::{file_name, incomplete};

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// Suffix of the temporary name.
const SUFFIX: &str = ".tmp";

/// The directory under construction. Removed on drop unless [`commit`](Staging::commit) renamed it.
pub(crate) struct Staging {
    vfs: Arc<dyn Vfs>,
    target: PathBuf,
    dir: PathBuf,
    committed: bool,
}

impl Staging {
    /// Begins a directory to be renamed to `target`. Removes leftovers of an interrupted attempt. `what` names the copy
    /// in the mark ("checkpoint").
    ///
    /// # Errors
    /// `InvalidArgument`: `target` exists, or the temporary name exists and is not a directory of database files only.
    pub fn begin(vfs: Arc<dyn Vfs>, target: &Path, what: &str) -> Result<Staging> {
        if vfs.exists(target)? {
            return Err(Error::invalid_argument("exists already; name a directory that does not").at_path(target));
        }
        let mut name = target.file_name().unwrap_or_default().to_owned();
        name.push(SUFFIX);
        let dir = target.with_file_name(name);
        if vfs.exists(&dir)? {
            remove_database_files(&*vfs, &dir)?;
        }
        vfs.create_dir_all(&dir)?;
        let staging = Staging { vfs, target: target.to_owned(), dir, committed: false };
        let text = format!(
            "an unfinished {what}, to become {}; wait for the {what} if it is still running, else make it again, which removes \
             this directory first\n",
            incomplete::absolute(target).display()
        );
        incomplete::mark(&*staging.vfs, &staging.dir, &text)?;
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
            && let Err(error) = remove_database_files(&*self.vfs, &self.dir)
        {
            note::warn!(%error, "cannot remove a directory that was not finished");
        }
    }
}

/// Removes a directory of database files. Refuses a directory with any other file.
fn remove_database_files(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    let refused = |what: String| Error::invalid_argument(what).at_path(dir);
    if vfs.metadata(dir)?.kind != FileKind::Directory {
        return Err(refused("is in the way, and no directory; remove it".to_owned()));
    }
    let names = vfs.read_dir(dir)?;
    if let Some(other) = names.iter().find(|name| file_name::parse(name).is_none()) {
        return Err(refused(format!("is in the way, and holds {other:?}, which is no database file; remove it")));
    }
    names.iter().try_for_each(|name| vfs.remove_file(&dir.join(name)))?;
    vfs.remove_dir(dir)
}
