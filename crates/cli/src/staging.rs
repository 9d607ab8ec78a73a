//! A directory for tables that are not where they are to be yet.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use spillway::Result;
use spillway::vfs::Vfs;

/// The directory, and what is in it, is removed when it is dropped.
pub struct Staging {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
}

impl Staging {
    /// Makes the directory, with a name that nothing has.
    pub fn inside(vfs: Arc<dyn Vfs>, parent: &Path) -> Result<Staging> {
        let dir = parent.join(format!(".spillway-tables-{:016x}", vfs.random_u64()));
        Self::make(vfs, dir)
    }

    /// Makes a directory that is the caller's alone, by a lock that it holds. What a caller that was killed left in it is
    /// removed.
    pub fn owned(vfs: Arc<dyn Vfs>, dir: PathBuf) -> Result<Staging> {
        if vfs.exists(&dir)? {
            remove(&*vfs, &dir)?;
        }
        Self::make(vfs, dir)
    }

    fn make(vfs: Arc<dyn Vfs>, dir: PathBuf) -> Result<Staging> {
        vfs.create_dir_all(&dir)?;
        Ok(Staging { vfs, dir })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

fn remove(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    for name in vfs.read_dir(dir)? {
        vfs.remove_file(&dir.join(name))?;
    }
    vfs.remove_dir(dir)
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = remove(&*self.vfs, &self.dir) {
            eprintln!("warning: cannot remove what is not needed any more: {error}");
        }
    }
}
