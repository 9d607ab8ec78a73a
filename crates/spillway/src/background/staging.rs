//! A database directory in the making: filled under a temporary name, and renamed into place once it is whole and
//! synced, so that a directory of the final name is a database or is not there.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::note;
use base::{Error, Result};
use vfs::{FileKind, IfExists, IoClass, RandomFile, Vfs};

use crate::version::file_name;

/// Bytes copied at a time.
const COPY_BYTES: usize = 1 << 20;

/// What follows the final name while the directory is being filled.
const SUFFIX: &str = ".tmp";

/// The directory that is being filled. Dropped without [`commit`](Staging::commit), it is removed.
pub(crate) struct Staging {
    vfs: Arc<dyn Vfs>,
    target: PathBuf,
    dir: PathBuf,
    committed: bool,
}

impl Staging {
    /// Begins a directory that will be `target`. What an interrupted attempt left under the temporary name is removed.
    ///
    /// # Errors
    /// `InvalidArgument`: there is something of that name, or something of the temporary name that is not ours.
    pub fn begin(vfs: Arc<dyn Vfs>, target: &Path) -> Result<Staging> {
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
        Ok(Staging { vfs, target: target.to_owned(), dir, committed: false })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Gives a file that nobody will change a second name here, or copies it where that cannot be.
    pub fn link_or_copy(&self, from: &Path) -> Result<()> {
        let to = self.place_of(from)?;
        match self.vfs.hard_link(from, &to) {
            Ok(()) => Ok(()),
            Err(error) if error.is_not_found() => Err(error),
            // Another file system, or one without links: whatever the reason, a copy shows whether the file is readable.
            Err(_) => self.copy(from, None),
        }
    }

    /// Copies the first `bytes` of a file, all of it without, and syncs the copy.
    ///
    /// # Errors
    /// `Corruption`: the file has fewer.
    pub fn copy(&self, from: &Path, bytes: Option<u64>) -> Result<()> {
        let to = self.place_of(from)?;
        let source = self.vfs.open(from)?;
        let mut copy = self.vfs.create(&to, IfExists::Fail)?;
        let copied = read_blocks(&*source, bytes.unwrap_or(u64::MAX), IoClass::Other, &mut |_, block| {
            copy.append(block, IoClass::Other)
        })?;
        if let Some(bytes) = bytes.filter(|bytes| copied < *bytes) {
            let what = format!("the file ends after {copied} bytes of the {bytes} that it should have");
            return Err(Error::corruption(what).at_path(from).at_offset(copied));
        }
        copy.sync(IoClass::Other)
    }

    /// Writes and syncs a small file.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let mut file = self.vfs.create(&self.dir.join(name), IfExists::Fail)?;
        file.append(bytes, IoClass::Other)?;
        file.sync(IoClass::Other)
    }

    /// Gives the directory its final name, durably. Every file in it has been synced.
    pub fn commit(mut self) -> Result<()> {
        self.vfs.sync_dir(&self.dir)?;
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

/// Shows `visit` the first `end` bytes of a file, all that there are at the most, block by block, each with its offset.
/// Returns how many there were.
///
/// # Errors
/// The file's, and whatever `visit` returns, which ends it.
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

/// Removes a directory with the database files in it, and refuses one that holds anything else.
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
