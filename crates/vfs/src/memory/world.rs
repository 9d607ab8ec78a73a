//! The in-memory file system as a `Vfs`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use base::{Error, Result};

use super::content::FileNode;
use super::handle::{MemoryAppendFile, MemoryFile};
use super::mapping::{MemoryReadMapping, MemoryRwMapping};
use super::tree::{DirectoryId, Entry, ROOT, Tree, names_of, not_a_directory, not_found};
use super::{Disk, MemoryVfs, random};
use crate::{
    AppendFile, FileIdentity, FileKind, GuardedMapping, IfExists, JoinHandle, LockGuard, Metadata, RandomFile,
    ReadMapping, RwMapping, SharedFile, Task, Vfs,
};

/// The clock's start, in microseconds since the epoch: 2020-01-01.
const EPOCH_US: u64 = 1_577_836_800_000_000;

/// Files and directories have separate numbers.
const DEVICE_OF_FILES: u64 = 1;
const DEVICE_OF_DIRECTORIES: u64 = 2;

impl MemoryVfs {
    fn file(&self, node: Arc<FileNode>, path: &Path) -> MemoryFile {
        MemoryFile::new(&self.disk, node, path)
    }

    /// Creates an empty file. The name must be free.
    fn create_file(&self, path: &Path) -> Result<MemoryFile> {
        let mut state = self.disk.state.lock();
        let place = state.tree.place("create", path)?;
        if state.tree.entry(&place).is_some() {
            return Err(exists("create", path));
        }
        self.disk.begin(&mut state, None);
        let node = state.new_file();
        node.content.lock().modified_us = self.disk.time_us();
        state.tree.commit(vec![place.becomes(Some(Entry::File(Arc::clone(&node))))]);
        Ok(self.file(node, path))
    }

    fn existing_file(&self, doing: &str, path: &Path) -> Result<MemoryFile> {
        self.disk.tick();
        let node = self.disk.state.lock().tree.file(doing, path)?;
        Ok(self.file(node, path))
    }
}

impl Vfs for MemoryVfs {
    fn open(&self, path: &Path) -> Result<Arc<dyn RandomFile>> {
        Ok(Arc::new(self.existing_file("open", path)?))
    }

    fn create(&self, path: &Path, if_exists: IfExists) -> Result<Box<dyn AppendFile>> {
        let file = match (if_exists, self.existing_file("create", path)) {
            (IfExists::Truncate, Ok(file)) => {
                file.set_len(0)?;
                file
            }
            (IfExists::Truncate, Err(e)) if !e.is_not_found() => return Err(e),
            _ => self.create_file(path)?,
        };
        Ok(Box::new(MemoryAppendFile::new(file)))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        Ok(Box::new(MemoryAppendFile::new(self.existing_file("open for appending", path)?)))
    }

    fn create_shared(&self, path: &Path) -> Result<Arc<dyn SharedFile>> {
        Ok(Arc::new(self.create_file(path)?))
    }

    fn map_read(&self, path: &Path) -> Result<Arc<dyn ReadMapping>> {
        Ok(Arc::new(MemoryReadMapping::of(&self.read_file(path)?)?))
    }

    fn map_guarded(&self, path: &Path) -> Result<Arc<dyn GuardedMapping>> {
        Ok(Arc::new(MemoryReadMapping::of(&self.read_file(path)?)?))
    }

    fn create_mapped(&self, path: &Path, capacity: u64) -> Result<Arc<dyn RwMapping>> {
        let capacity = MemoryRwMapping::whole_pages(capacity).map_err(|e| e.at_path(path))?;
        Ok(Arc::new(MemoryRwMapping::new(self.create_file(path)?, capacity)))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.disk.tick();
        match self.disk.state.lock().tree.find(path)? {
            Some(Entry::File(node)) => {
                let content = node.content.lock();
                let modified_us = EPOCH_US + content.modified_us;
                let identity = FileIdentity { device: DEVICE_OF_FILES, number: node.id };
                Ok(Metadata { kind: FileKind::File, len: content.len(), modified_us, identity })
            }
            Some(Entry::Directory(id)) => {
                let identity = FileIdentity { device: DEVICE_OF_DIRECTORIES, number: id };
                Ok(Metadata { kind: FileKind::Directory, len: 0, modified_us: EPOCH_US, identity })
            }
            None => Err(not_found("examine", path)),
        }
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<String>> {
        self.disk.tick();
        let state = self.disk.state.lock();
        let id = state.tree.directory("list", path)?;
        Ok(state.tree.current.get(&id).map(|names| names.keys().cloned().collect()).unwrap_or_default())
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        let mut state = self.disk.state.lock();
        if state.tree.find(path)?.is_none() {
            self.disk.begin(&mut state, None);
        }
        make_directories(&mut state.tree, path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.disk.state.lock();
        let id = state.tree.directory("sync directory", path)?;
        self.disk.begin(&mut state, None);
        state.tree.sync(id);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        let mut state = self.disk.state.lock();
        let place = state.tree.place("remove", path)?;
        state.tree.file("remove", path)?;
        self.disk.begin(&mut state, None);
        state.tree.commit(vec![place.becomes(None)]);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        let mut state = self.disk.state.lock();
        let place = state.tree.place("remove directory", path)?;
        let id = state.tree.directory("remove directory", path)?;
        if state.tree.current.get(&id).is_some_and(|names| !names.is_empty()) {
            return Err(Error::io("remove directory", path, std::io::ErrorKind::DirectoryNotEmpty.into()));
        }
        self.disk.begin(&mut state, None);
        state.tree.commit(vec![place.becomes(None)]);
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let mut state = self.disk.state.lock();
        let old = state.tree.place("rename", from)?;
        let new = state.tree.place("rename", to)?;
        let entry = state.tree.entry(&old).cloned().ok_or_else(|| not_found("rename", from))?;
        match (&entry, state.tree.entry(&new)) {
            // Two names of one file: POSIX keeps both.
            (Entry::File(a), Some(Entry::File(b))) if Arc::ptr_eq(a, b) => return Ok(()),
            (_, None) | (Entry::File(_), Some(Entry::File(_))) => {}
            _ => return Err(exists("rename", to)),
        }
        self.disk.begin(&mut state, None);
        state.tree.commit(vec![old.becomes(None), new.becomes(Some(entry))]);
        Ok(())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        let mut state = self.disk.state.lock();
        let node = state.tree.file("link", from)?;
        let place = state.tree.place("link", to)?;
        if state.tree.entry(&place).is_some() {
            return Err(exists("link", to));
        }
        self.disk.begin(&mut state, None);
        state.tree.commit(vec![place.becomes(Some(Entry::File(node)))]);
        Ok(())
    }

    fn canonicalize(&self, path: &Path) -> Result<PathBuf> {
        self.metadata(path)?;
        Ok(Path::new("/").join(names_of(path)?.iter().collect::<PathBuf>()))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>> {
        match self.create_file(path) {
            Ok(_) => {}
            Err(e) if e.kind() == base::ErrorKind::InvalidArgument => {}
            Err(e) => return Err(e),
        }
        let mut state = self.disk.state.lock();
        let file = state.tree.file("lock", path)?.id;
        if !state.locked.insert(file) {
            let message = "another handle in this process has the database open: share that handle, or close it first";
            return Err(Error::busy(message).at_path(path));
        }
        Ok(Box::new(MemoryLock { disk: Arc::clone(&self.disk), file }))
    }

    fn free_bytes(&self, _path: &Path) -> Option<u64> {
        let state = self.disk.state.lock();
        state.capacity.map(|capacity| capacity.saturating_sub(state.used_bytes()))
    }

    fn page_cache_id(&self, _path: &Path) -> Option<String> {
        let state = self.disk.state.lock();
        state.mount.map(|mount| format!("boot-{} mount-{mount}", state.boot))
    }

    fn now(&self) -> Duration {
        Duration::from_micros(self.disk.tick())
    }

    fn unix_time_us(&self) -> u64 {
        EPOCH_US + self.disk.tick()
    }

    fn sleep(&self, time: Duration) {
        let time_us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX >> 1);
        self.disk.clock_us.fetch_add(time_us, Ordering::Relaxed);
    }

    fn random_u64(&self) -> u64 {
        random::nth(self.disk.seed, self.disk.drawn.fetch_add(1, Ordering::Relaxed))
    }

    fn spawn(&self, name: &str, task: Task) -> Result<Box<dyn JoinHandle>> {
        if self.runs_inline() {
            return Err(Error::unsupported("this file system runs its jobs inline, and starts no threads"));
        }
        crate::std_calls::spawn_thread(name, task)
    }

    fn runs_inline(&self) -> bool {
        self.disk.runs_inline.load(Ordering::Relaxed)
    }
}

struct MemoryLock {
    disk: Arc<Disk>,
    file: u64,
}

impl LockGuard for MemoryLock {}

impl Drop for MemoryLock {
    fn drop(&mut self) {
        self.disk.state.lock().locked.remove(&self.file);
    }
}

/// Creates the missing directories of `path`.
pub(super) fn make_directories(tree: &mut Tree, path: &Path) -> Result<()> {
    let mut parent: DirectoryId = ROOT;
    for name in names_of(path)? {
        let found = tree.current.get(&parent).and_then(|names| names.get(name)).cloned();
        parent = match found {
            Some(Entry::Directory(id)) => id,
            Some(Entry::File(_)) => return Err(not_a_directory("create directory", path)),
            None => {
                let id = tree.new_directory();
                let place = super::tree::Place { directory: parent, name: name.to_owned() };
                tree.commit(vec![place.becomes(Some(Entry::Directory(id)))]);
                id
            }
        };
    }
    Ok(())
}

fn exists(doing: &str, path: &Path) -> Error {
    Error::invalid_argument(format!("cannot {doing}"))
        .at_path(path)
        .with_source(std::io::Error::from(std::io::ErrorKind::AlreadyExists))
}
