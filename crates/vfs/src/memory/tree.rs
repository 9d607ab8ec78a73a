//! Names: current, durable (as of the last directory sync), and the changes in between.
//!
//! A move between two directories is one transaction: a crash keeps all of it or none. Syncing either directory makes
//! it durable, with all earlier transactions of both.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use base::{Error, Result};

use super::content::FileNode;

pub(super) type DirectoryId = u64;

pub(super) const ROOT: DirectoryId = 0;

#[derive(Clone)]
pub(super) enum Entry {
    File(Arc<FileNode>),
    Directory(DirectoryId),
}

pub(super) type Directories = BTreeMap<DirectoryId, BTreeMap<String, Entry>>;

/// A name's new entry; `None` removes it.
#[derive(Clone)]
pub(super) struct NameChange {
    pub(super) directory: DirectoryId,
    pub(super) name: String,
    pub(super) entry: Option<Entry>,
}

/// Name changes made durable together.
pub(super) type Transaction = Vec<NameChange>;

/// Invariant: `durable` with `unsynced` applied in order is `current`.
#[derive(Clone)]
pub(super) struct Tree {
    pub(super) current: Directories,
    pub(super) durable: Directories,
    pub(super) unsynced: Vec<Transaction>,
    pub(super) next_directory: DirectoryId,
}

/// The place of a name, existing or not.
pub(super) struct Place {
    pub(super) directory: DirectoryId,
    pub(super) name: String,
}

impl Place {
    /// A change of the name's entry to `entry`.
    pub(super) fn becomes(self, entry: Option<Entry>) -> NameChange {
        NameChange { directory: self.directory, name: self.name, entry }
    }
}

impl Tree {
    pub(super) fn new() -> Self {
        Tree::of(BTreeMap::from([(ROOT, BTreeMap::new())]), ROOT + 1)
    }

    /// A tree with everything in `directories` durable.
    pub(super) fn of(directories: Directories, next_directory: DirectoryId) -> Self {
        Tree { durable: directories.clone(), current: directories, unsynced: Vec::new(), next_directory }
    }

    /// `None` if the path, or a part of it, does not exist.
    pub(super) fn find(&self, path: &Path) -> Result<Option<Entry>> {
        Ok(self.entry_of(&names_of(path)?))
    }

    fn entry_of(&self, names: &[&str]) -> Option<Entry> {
        let mut entry = &Entry::Directory(ROOT);
        for &name in names {
            let Entry::Directory(directory) = entry else { return None };
            entry = self.current.get(directory)?.get(name)?;
        }
        Some(entry.clone())
    }

    pub(super) fn file(&self, doing: &str, path: &Path) -> Result<Arc<FileNode>> {
        match self.find(path)? {
            Some(Entry::File(node)) => Ok(node),
            Some(Entry::Directory(_)) => Err(Error::invalid_argument("not a regular file").at_path(path)),
            None => Err(not_found(doing, path)),
        }
    }

    pub(super) fn directory(&self, doing: &str, path: &Path) -> Result<DirectoryId> {
        match self.find(path)? {
            Some(Entry::Directory(id)) => Ok(id),
            Some(Entry::File(_)) => Err(not_a_directory(doing, path)),
            None => Err(not_found(doing, path)),
        }
    }

    /// The place of a name. Its directory must exist.
    pub(super) fn place(&self, doing: &str, path: &Path) -> Result<Place> {
        let names = names_of(path)?;
        let Some((name, parents)) = names.split_last() else {
            return Err(Error::invalid_argument("a path without a name").at_path(path));
        };
        match self.entry_of(parents) {
            Some(Entry::Directory(directory)) => Ok(Place { directory, name: (*name).to_owned() }),
            Some(Entry::File(_)) => Err(not_a_directory(doing, path)),
            None => Err(not_found(doing, path)),
        }
    }

    pub(super) fn entry(&self, place: &Place) -> Option<&Entry> {
        self.current.get(&place.directory)?.get(&place.name)
    }

    pub(super) fn commit(&mut self, transaction: Transaction) {
        apply(&transaction, &mut self.current);
        self.unsynced.push(transaction);
    }

    /// Creates a directory without a name.
    pub(super) fn new_directory(&mut self) -> DirectoryId {
        let id = self.next_directory;
        self.next_directory += 1;
        self.current.insert(id, BTreeMap::new());
        self.durable.insert(id, BTreeMap::new());
        id
    }

    /// Makes the names in a directory durable.
    pub(super) fn sync(&mut self, directory: DirectoryId) {
        // From the newest: a chosen transaction also selects all older transactions in its directories.
        let mut touched = vec![directory];
        let mut chosen = Vec::new();
        for transaction in std::mem::take(&mut self.unsynced).into_iter().rev() {
            if transaction.iter().any(|change| touched.contains(&change.directory)) {
                let more = transaction.iter().map(|change| change.directory).filter(|id| !touched.contains(id));
                touched.extend(more.collect::<Vec<_>>());
                chosen.push(transaction);
            } else {
                self.unsynced.push(transaction);
            }
        }
        self.unsynced.reverse();
        chosen.iter().rev().for_each(|transaction| apply(transaction, &mut self.durable));
    }

    /// Makes everything durable.
    pub(super) fn sync_all(&mut self) {
        self.unsynced.clear();
        self.durable = self.current.clone();
    }
}

pub(super) fn apply(transaction: &Transaction, to: &mut Directories) {
    for change in transaction {
        let names = to.entry(change.directory).or_default();
        match &change.entry {
            Some(entry) => names.insert(change.name.clone(), entry.clone()),
            None => names.remove(&change.name),
        };
    }
}

/// All files with a name in a reachable directory, with their paths.
pub(super) fn files_of(directories: &Directories) -> Vec<(PathBuf, Arc<FileNode>)> {
    let mut files = Vec::new();
    let mut pending = vec![(PathBuf::from("/"), ROOT)];
    while let Some((path, id)) = pending.pop() {
        for (name, entry) in directories.get(&id).into_iter().flatten() {
            match entry {
                Entry::File(node) => files.push((path.join(name), Arc::clone(node))),
                Entry::Directory(id) => pending.push((path.join(name), *id)),
            }
        }
    }
    files.sort_by(|a, b| a.0.cmp(&b.0));
    files
}

/// The names from the root. Without symbolic links, `..` drops the previous name. Relative paths start at the root.
pub(super) fn names_of(path: &Path) -> Result<Vec<&str>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(text_of(name, path)?),
            Component::ParentDir => {
                names.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    Ok(names)
}

fn text_of<'a>(name: &'a OsStr, path: &Path) -> Result<&'a str> {
    name.to_str().ok_or_else(|| Error::invalid_argument("a name that is not UTF-8").at_path(path))
}

pub(super) fn not_a_directory(doing: &str, path: &Path) -> Error {
    Error::io(doing, path, std::io::ErrorKind::NotADirectory.into())
}

pub(super) fn not_found(doing: &str, path: &Path) -> Error {
    Error::io(doing, path, std::io::ErrorKind::NotFound.into())
}
