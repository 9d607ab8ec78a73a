//! Staging directories: tables are built here before they get their final names.
//!
//! A staging directory beside tables holds a lock file, locked as long as the owning process lives. The next build
//! clears directories of dead owners ([`clear_abandoned`]).

mod abandoned;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use spillway::internal::vfs::{LockGuard, Vfs};
use spillway::internal::{Error, ErrorKind, Result};

pub use self::abandoned::{clear_abandoned, first_of_a_part, record_complete, record_rename};

/// Prefix of staging directory names; hexadecimal digits follow.
const PREFIX: &str = ".spillway-tables-";
const DIGITS: usize = 16;

/// File in the directory, locked by the owner.
const LOCK: &str = "LOCK";

/// File in the directory. It exists once all tables have their final names; the tables are the user's from then on.
const COMPLETE: &str = "COMPLETE";

/// Names tried. One is enough unless a concurrent process clears directories at the same moment.
const ATTEMPTS_MAX: usize = 16;

/// Dropping it removes the directory with its contents.
pub struct Staging {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    /// Released last.
    _lock: Option<Box<dyn LockGuard>>,
}

impl Staging {
    /// Creates a directory with an unused name and locks it.
    pub fn inside(vfs: Arc<dyn Vfs>, parent: &Path) -> Result<Staging> {
        for _ in 0..ATTEMPTS_MAX {
            let dir = parent.join(format!("{PREFIX}{:016x}", vfs.random_u64()));
            if vfs.exists(&dir)? {
                continue;
            }
            vfs.create_dir_all(&dir)?;
            let claimed = claim(&*vfs, &dir).inspect_err(|_| drop(remove(&*vfs, &dir)))?;
            if let Some(lock) = claimed {
                return Ok(Staging { vfs, dir, _lock: Some(lock) });
            }
        }
        let what =
            "other processes keep removing the directory of unfinished tables; try again, or choose a different --to";
        Err(Error::new(ErrorKind::Busy, what).at_path(parent))
    }

    /// Creates a directory under a lock held by the caller. Removes leftovers of a killed caller first.
    pub fn owned(vfs: Arc<dyn Vfs>, dir: PathBuf) -> Result<Staging> {
        if vfs.exists(&dir)? {
            remove(&*vfs, &dir)?;
        }
        vfs.create_dir_all(&dir)?;
        Ok(Staging { vfs, dir, _lock: None })
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Locks a new directory. `None` if the directory is lost: until the lock is held it looks abandoned, and a concurrent
/// process may clear it. A lock can then be on an unlinked file.
fn claim(vfs: &dyn Vfs, dir: &Path) -> Result<Option<Box<dyn LockGuard>>> {
    let made = vfs.metadata(dir)?.identity;
    let lock = match vfs.lock(&dir.join(LOCK)) {
        Ok(lock) => lock,
        Err(error) if error.kind() == ErrorKind::Busy || error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let is_there = match vfs.metadata(dir) {
        Ok(now) => now.identity == made && vfs.exists(&dir.join(LOCK))?,
        Err(error) if error.is_not_found() => false,
        Err(error) => return Err(error),
    };
    Ok(is_there.then_some(lock))
}

/// Removes tables first, the completion note next, the lock file last: no build clears a directory without a lock file.
fn remove(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    let mut names = vfs.read_dir(dir)?;
    names.sort_by_key(|name| (name == LOCK, name == COMPLETE));
    for name in names {
        vfs.remove_file(&dir.join(name))?;
    }
    vfs.remove_dir(dir)
}

impl Drop for Staging {
    fn drop(&mut self) {
        if let Err(error) = remove(&*self.vfs, &self.dir) {
            eprintln!("warning: cannot remove temporary files: {error}");
        }
    }
}

/// The name of the `nth` table, from 1.
pub fn table_name(name: &str, nth: usize) -> String {
    format!("{name}-{nth:06}.sst")
}

/// Returns the part before the number in a name made by [`table_name`].
pub fn name_of_tables(file: &str) -> Option<&str> {
    let (name, number) = file.strip_suffix(".sst")?.rsplit_once('-')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(name)
}

#[cfg(test)]
mod tests;
