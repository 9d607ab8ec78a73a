//! A directory for tables that are not where they are to be yet.
//!
//! One of those that lie beside tables is its maker's for as long as that lives: a lock in it says so, which dies with the
//! process. What a maker that was killed left is cleared away by whoever comes next ([`clear_abandoned`]).

mod abandoned;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use spillway::vfs::{LockGuard, Vfs};
use spillway::{Error, ErrorKind, Result};

pub use self::abandoned::{clear_abandoned, first_of_a_part, note_complete, note_rename};

/// What the names of directories beside tables begin with; behind it stand so many hexadecimal digits.
const PREFIX: &str = ".spillway-tables-";
const DIGITS: usize = 16;

/// The file in such a directory that its maker has locked.
const LOCK: &str = "LOCK";

/// The file in it that says, from when it is there on, that all of its tables have their names: they are whoever's.
const COMPLETE: &str = "COMPLETE";

/// Names that are tried. One is enough unless others clear away at that very moment.
const ATTEMPTS_MAX: usize = 16;

/// The directory, and what is in it, is removed when it is dropped.
pub struct Staging {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    /// Released last.
    _lock: Option<Box<dyn LockGuard>>,
}

impl Staging {
    /// Makes the directory, with a name that nothing has, and locks it.
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
        let what = "others keep removing the directories that tables are made in here; try again, or say another --to";
        Err(Error::new(ErrorKind::Busy, what).at_path(parent))
    }

    /// Makes a directory that is the caller's alone, by a lock that it holds. What a caller that was killed left in it is
    /// removed.
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

/// Locks a directory that was just made. `None` where it is lost: between its lock's making and its locking it looks like
/// one whose maker is dead, and whoever clears those away may have it, or have removed it. A lock that is held then is that
/// of a file without a name.
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

/// What tells about the tables goes behind them, and the lock last: without it nobody dares to remove what is left.
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
            eprintln!("warning: cannot remove what is not needed any more: {error}");
        }
    }
}

/// The name of the `nth` table, from 1.
pub fn table_name(name: &str, nth: usize) -> String {
    format!("{name}-{nth:06}.sst")
}

/// What stands before the number in a name that [`table_name`] gave.
pub fn name_of_tables(file: &str) -> Option<&str> {
    let (name, number) = file.strip_suffix(".sst")?.rsplit_once('-')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(name)
}

#[cfg(test)]
mod tests;
