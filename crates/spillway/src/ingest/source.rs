//! The caller's files, and the database's files made of them. An ingest only reads the caller's files; with
//! `move_files` it removes one if it is still the ingested file. Of its own files it removes the uncommitted ones.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::note;
use base::{Error, FileNumber, Result};
use vfs::{FileIdentity, FileKind, Metadata, Vfs};

use crate::core::context::{Context, directory_at};
use crate::version::backup_dirs;
use crate::version::file_name::{self, FileType};

/// A file of the caller, with its metadata at the first look.
#[derive(Clone, Debug)]
pub(super) struct Source {
    /// As the caller wrote it, links followed where the file is copied.
    pub path: PathBuf,
    pub metadata: Metadata,
}

impl Source {
    /// `follows`: the file that a symbolic link names is taken in its place. Nothing is opened.
    ///
    /// # Errors
    /// `InvalidArgument`: not a regular file. `Io`: not there.
    pub fn look(vfs: &dyn Vfs, path: &Path, follows: bool) -> Result<Source> {
        let metadata = vfs.metadata(path)?;
        let what = match metadata.kind {
            FileKind::File => return Ok(Source { path: path.to_owned(), metadata }),
            FileKind::Directory => "a directory: name the tables in it",
            FileKind::Other if follows => return Source::look(vfs, &vfs.canonicalize(path)?, false),
            FileKind::Other => "a link, a pipe or a device: name the table itself, a regular file",
        };
        Err(Error::invalid_argument(what).at_path(path))
    }

    /// # Errors
    /// `InvalidArgument`: the file was replaced, changed or removed.
    pub fn check_unchanged(&self, vfs: &dyn Vfs) -> Result<()> {
        match vfs.metadata(&self.path) {
            Ok(now) if now == self.metadata => Ok(()),
            Err(error) if !error.is_not_found() => Err(error),
            _ => Err(changed(&self.path)),
        }
    }

    /// Removes a moved file.
    pub fn remove_moved(&self, vfs: &dyn Vfs) {
        // The path may name another file by now, or a copied file may have other contents: neither was ingested.
        let removed = vfs.metadata(&self.path).and_then(|now| match now == self.metadata {
            true => vfs.remove_file(&self.path),
            false => Err(changed(&self.path)),
        });
        if let Err(error) = removed.or_else(|error| if error.is_not_found() { Ok(()) } else { Err(error) }) {
            note::warn!(%error, "a file was ingested, but was not removed from where it was");
        }
    }
}

/// Removes the file at `path`, if there is one and it has this identity. `None`: any identity.
fn remove(vfs: &dyn Vfs, path: &Path, identity: Option<FileIdentity>) -> Result<()> {
    let remove = || match identity {
        Some(identity) if vfs.metadata(path)?.identity != identity => Ok(()),
        _ => vfs.remove_file(path),
    };
    remove().or_else(|error| if error.is_not_found() { Ok(()) } else { Err(error) })
}

/// Error for a caller's file changed since the first look.
pub(super) fn changed(path: &Path) -> Error {
    Error::invalid_argument("the file was changed or removed while it was being ingested; leave it alone until the end")
        .at_path(path)
}

/// # Errors
/// `InvalidArgument`: a file is named twice, by one name or by two.
pub(super) fn check_each_once<'a>(sources: impl Iterator<Item = &'a Source>) -> Result<()> {
    let mut sources: Vec<&Source> = sources.collect();
    sources.sort_unstable_by_key(|source| source.metadata.identity);
    for pair in sources.windows(2) {
        if let &[first, second] = pair
            && first.metadata.identity == second.metadata.identity
        {
            let what = match first.path == second.path {
                true => "the file is named twice in one ingest".to_owned(),
                false => format!("the same file as {}: an ingest takes each file once", first.path.display()),
            };
            return Err(Error::invalid_argument(what).at_path(&second.path));
        }
    }
    Ok(())
}

/// Checks that files are none of the database's own: outside its directories, compared by identity, or with a name
/// that no file of a database has. Files that are moved are of no other database either.
pub(super) struct Outside<'a> {
    own: &'a [FileIdentity],
    moves: bool,
    /// The last directory found to be outside, as the caller wrote it.
    other: Option<&'a Path>,
}

impl<'a> Outside<'a> {
    pub fn of(context: &'a Context, moves: bool) -> Outside<'a> {
        Outside { own: &context.own_dirs, moves, other: None }
    }

    /// # Errors
    /// `InvalidArgument`: the file lies in a directory of the database, under the name of such a file. It may be one of
    /// its tables, or be taken for a leftover of a crash. Or it is to be moved out of another database.
    pub fn check(&mut self, vfs: &dyn Vfs, path: &'a Path) -> Result<()> {
        let parent = dir_of(path);
        // Mostly the files come from one directory.
        if self.other != Some(parent) {
            if self.own.contains(&directory_at(vfs, parent)?) {
                let name = path.file_name().and_then(|name| name.to_str());
                if name.is_some_and(|name| file_name::parse(name).is_none()) {
                    return Ok(());
                }
                let what = "the file lies in the database's own directory, and has the name of one of its files: put tables to be \
                            ingested elsewhere, or name them otherwise";
                return Err(Error::invalid_argument(what).at_path(path));
            }
            self.other = Some(parent);
        }
        if self.moves { check_movable(vfs, path) } else { Ok(()) }
    }
}

/// The directory of a file. A name alone is of a file in the current one.
fn dir_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// # Errors
/// `InvalidArgument`: the file has the name of a table, and lies in the directory of a database, which would lose it; or among the
/// files of backups.
pub(crate) fn check_movable(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    let name = path.file_name().and_then(|name| name.to_str());
    let is_table = name.and_then(file_name::parse).is_some_and(|(kind, _)| kind == FileType::Table);
    let current = path.with_file_name(file_name::format(FileType::Current, FileNumber(0)));
    if is_table && vfs.exists(&current)? {
        let what = "the file lies in the directory of another database, which would lose it: take it without move_files \
                    (`--move`)";
        return Err(Error::invalid_argument(what).at_path(path));
    }
    if let Some(backups) = backup_dirs::around(vfs, dir_of(path)) {
        let what =
            format!("the file is one of the backups in {}: take it without move_files (`--move`)", backups.display());
        return Err(Error::invalid_argument(what).at_path(path));
    }
    Ok(())
}

/// A file made in the database's directory. Removed on drop unless kept.
pub(super) struct MadeFile {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    /// Metadata when it was finished.
    finished: Option<Metadata>,
    kept: bool,
}

impl MadeFile {
    /// Called before the file is created; nothing exists at `path`.
    pub fn at(vfs: Arc<dyn Vfs>, path: PathBuf) -> MadeFile {
        MadeFile { vfs, path, finished: None, kept: false }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Records the finished file's metadata. Returns its size in bytes.
    pub fn finish(&mut self) -> Result<u64> {
        let metadata = self.vfs.metadata(&self.path)?;
        self.finished = Some(metadata);
        Ok(metadata.len)
    }

    pub fn keep(&mut self) {
        self.kept = true;
    }

    /// Keeps the file unless it is unchanged: its path may name another file by now.
    pub fn keep_if_changed(&mut self) {
        self.kept |= !self.is_unchanged().unwrap_or(false);
    }

    /// Whether the file is unchanged since it was finished. A linked file can be changed through its other names.
    ///
    /// # Errors
    /// `Io`: its metadata cannot be read.
    pub fn is_unchanged(&self) -> Result<bool> {
        match self.vfs.metadata(&self.path) {
            Ok(now) => Ok(self.finished == Some(now)),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for MadeFile {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        let identity = self.finished.map(|finished| finished.identity);
        if let Err(error) = remove(&*self.vfs, &self.path, identity) {
            note::warn!(%error, "cannot remove a table that was not ingested; the next open does");
        }
    }
}
