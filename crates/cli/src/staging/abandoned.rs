//! Leftovers of killed builds: staging directories, and final names already given to some of their tables.
//!
//! All tables of a build appear, or none. Tables get their final names one after the other, and keep a second name in
//! the locked staging directory. The second names show which tables belong to an incomplete build. The final names of
//! an incomplete build are removed first, durably. If a file cannot have two names, a note in the staging directory
//! replaces the second one.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use spillway::internal::vfs::{self, FileIdentity, FileKind, IfExists, IoClass, Metadata, Vfs};
use spillway::internal::{ErrorKind, Result};

use super::{COMPLETE, DIGITS, LOCK, PREFIX, name_of_tables, remove};
use crate::human;

/// Suffix of a note's name, after the table's name.
const NOTE_SUFFIX: &str = ".named";

/// A note holds two numbers.
const NOTE_BYTES_MAX: u64 = 64;

/// Tolerance for the modification time of an unchanged file: FAT keeps it to two seconds.
const TIME_STEP_US: u64 = 2_000_000;

/// Notes durably, beside the table `from`, its coming rename to `to` in a different directory.
pub fn record_rename(vfs: &dyn Vfs, from: &Path, to: &Path) -> Result<()> {
    let Metadata { len, modified_us, .. } = vfs.metadata(from)?;
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let mut note = vfs.create(&from.with_file_name(format!("{name}{NOTE_SUFFIX}")), IfExists::Truncate)?;
    note.append(format!("{len} {modified_us}").as_bytes(), IoClass::Other)?;
    note.sync(IoClass::Other)?;
    from.parent().map_or(Ok(()), |staging| vfs.sync_dir(staging))
}

/// Notes durably that all tables have their names; from now on the tables are the user's. If the note fails and the
/// process is killed before the directory is gone, the next build takes the tables for incomplete once some were moved.
pub fn record_complete(vfs: &dyn Vfs, staging: &Path) {
    let noted = vfs.create(&staging.join(COMPLETE), IfExists::Truncate);
    let _ = noted.and_then(|_| vfs.sync_dir(staging)); // names are durable; the note precedes the success report
}

/// Removes leftovers of dead builds in `dir` and reports them. A failed removal causes a warning only.
///
/// # Errors
/// `Io`: the directory cannot be listed.
pub fn clear_abandoned(vfs: &dyn Vfs, dir: &Path) -> Result<()> {
    let names = vfs.read_dir(dir)?;
    for staging in names.iter().filter(|name| is_staging(name)).map(|name| dir.join(name)) {
        match clear(vfs, dir, &staging) {
            Ok(None) => {}
            Ok(Some(told)) => eprintln!("{told}"),
            Err(error) if error.is_not_found() => {} // removed meanwhile by its owner or a concurrent build
            Err(error) => {
                let staging = staging.display();
                eprintln!("warning: cannot remove the leftovers of an interrupted build in {staging}: {error}");
            }
        }
    }
    Ok(())
}

/// Returns the first file of a build with only some tables named: the build was killed, or still runs. Directories that
/// cannot be read are skipped.
pub fn first_of_a_part(vfs: &dyn Vfs, files: &[PathBuf]) -> Option<PathBuf> {
    let around = |file: &PathBuf| match file.parent() {
        Some(dir) if dir.as_os_str().is_empty() => Some(PathBuf::from(".")),
        dir => dir.map(Path::to_owned),
    };
    let dirs: BTreeSet<PathBuf> = files.iter().filter_map(around).collect();
    let parts: BTreeSet<FileIdentity> = dirs.iter().flat_map(|dir| parts_in(vfs, dir)).collect();
    let is_part = |file: &&PathBuf| vfs.metadata(file).is_ok_and(|metadata| parts.contains(&metadata.identity));
    if parts.is_empty() { None } else { files.iter().find(is_part).cloned() }
}

/// Named tables of builds with some, but not all, tables named.
fn parts_in(vfs: &dyn Vfs, dir: &Path) -> BTreeSet<FileIdentity> {
    let names = vfs.read_dir(dir).unwrap_or_default();
    let is_dir = |path: &PathBuf| vfs.metadata(path).is_ok_and(|metadata| metadata.kind == FileKind::Directory);
    let staging = names.iter().filter(|name| is_staging(name)).map(|name| dir.join(name)).filter(is_dir);
    let left = staging.filter_map(|staging| Left::find(vfs, dir, &staging).ok());
    left.filter(Left::is_cut_off).flat_map(|left| left.published).collect()
}

fn is_staging(name: &str) -> bool {
    let digits = name.strip_prefix(PREFIX).unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Removes one staging directory unless its owner lives. Returns the message to print.
fn clear(vfs: &dyn Vfs, dir: &Path, staging: &Path) -> Result<Option<String>> {
    if vfs.metadata(staging)?.kind != FileKind::Directory {
        return Ok(None); // not a staging directory
    }
    let lock = staging.join(LOCK);
    if file_at(vfs, &lock)?.is_none() {
        vfs.metadata(staging)?; // fails if the owner is removing both; the lock goes first
        return Ok(Some(format!(
            "warning: {} has no lock that tells whether a build is at work in it: delete it if none is running",
            staging.display()
        )));
    }
    let _lock = match vfs.lock(&lock) {
        Ok(lock) => lock,
        Err(error) if error.kind() == ErrorKind::Busy => return Ok(None),
        Err(error) => return Err(error),
    };
    let left = Left::find(vfs, dir, staging)?;
    if left.is_cut_off() {
        left.named.iter().try_for_each(|path| vfs.remove_file(path))?;
    }
    if !left.named.is_empty() {
        vfs.sync_dir(dir)?; // all names or none, before the evidence of an incomplete build goes
    }
    remove(vfs, staging)?;
    Ok((left.files > 0 || !left.named.is_empty()).then(|| left.to_string()))
}

/// Leftovers of one dead build.
#[derive(Default)]
struct Left {
    dir: PathBuf,
    files: u64,
    bytes: u64,
    /// Renamed ones included.
    tables: BTreeSet<FileIdentity>,
    /// All tables had their names.
    is_complete: bool,
    /// Final names of its tables.
    named: Vec<PathBuf>,
    /// Identities of the tables with final names.
    published: BTreeSet<FileIdentity>,
}

impl Left {
    fn find(vfs: &dyn Vfs, dir: &Path, staging: &Path) -> Result<Left> {
        let mut left = Left { dir: dir.to_owned(), ..Left::default() };
        for name in vfs.read_dir(staging)?.iter().filter(|name| *name != LOCK) {
            let path = staging.join(name);
            if name == COMPLETE {
                left.is_complete = true;
                continue;
            }
            if let Some(renamed) = name.strip_suffix(NOTE_SUFFIX) {
                left.add_renamed(vfs, &path, dir.join(renamed))?;
                continue;
            }
            let metadata = vfs.metadata(&path)?;
            left.files += 1;
            left.bytes += metadata.len;
            if name.ends_with(".sst") && metadata.kind == FileKind::File {
                left.tables.insert(metadata.identity);
            }
        }
        left.find_linked(vfs)?;
        Ok(left)
    }

    fn find_linked(&mut self, vfs: &dyn Vfs) -> Result<()> {
        if self.tables.len() == self.published.len() {
            return Ok(());
        }
        let names = vfs.read_dir(&self.dir)?;
        for path in names.iter().filter(|name| name_of_tables(name).is_some()).map(|name| self.dir.join(name)) {
            if let Some(metadata) = file_at(vfs, &path)?
                && self.tables.contains(&metadata.identity)
                && !self.named.contains(&path)
            {
                self.named.push(path);
                self.published.insert(metadata.identity);
            }
        }
        Ok(())
    }

    /// Adds the table of a note, if it was renamed and still has the noted length and time.
    fn add_renamed(&mut self, vfs: &dyn Vfs, note: &Path, path: PathBuf) -> Result<()> {
        let note = vfs::read_all(vfs, note, NOTE_BYTES_MAX, IoClass::Other)?;
        let Some((len, modified_us)) = numbers_of(&note) else { return Ok(()) }; // incomplete note: no rename was begun
        if let Some(metadata) = file_at(vfs, &path)?
            && metadata.len == len
            && metadata.modified_us.abs_diff(modified_us) <= TIME_STEP_US
        {
            self.tables.insert(metadata.identity);
            self.published.insert(metadata.identity);
            self.named.push(path);
        }
        Ok(())
    }

    /// Whether some, but not all, tables have their final names.
    fn is_cut_off(&self) -> bool {
        !self.is_complete && !self.named.is_empty() && self.published.len() < self.tables.len()
    }
}

/// Parses a note: the file's length and modification time.
fn numbers_of(note: &[u8]) -> Option<(u64, u64)> {
    let (len, modified_us) = std::str::from_utf8(note).ok()?.split_once(' ')?;
    Some((len.parse().ok()?, modified_us.parse().ok()?))
}

/// `None` if no file has this name; a concurrent build may have removed it.
fn file_at(vfs: &dyn Vfs, path: &Path) -> Result<Option<Metadata>> {
    match vfs.metadata(path) {
        Ok(metadata) => Ok(Some(metadata).filter(|metadata| metadata.kind == FileKind::File)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (files, bytes, dir) =
            (human::counted(self.files, "file", "files"), human::bytes(self.bytes), self.dir.display());
        write!(f, "note: removed {files} ({bytes}) that an interrupted build left in {dir}")?;
        match self.named.as_slice() {
            [] => Ok(()),
            [first, ..] if self.is_cut_off() => {
                let count = human::count(self.named.len() as u64);
                write!(f, ", and the names that {count} of its tables had already ({}, ...)", first.display())
            }
            [first, ..] => write!(f, "; all of its tables have their names ({}, ...) and stay", first.display()),
        }
    }
}
