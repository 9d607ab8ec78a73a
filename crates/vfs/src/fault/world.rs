//! The wrapper as a `Vfs`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{Error, Result};

use super::handle::FaultHandle;
use super::{FaultVfs, Operation};
use crate::{
    AppendFile, GuardedMapping, IfExists, JoinHandle, LockGuard, Metadata, RandomFile, ReadMapping, RwMapping,
    SharedFile, Task, Vfs,
};

impl FaultVfs {
    fn call<T>(&self, operation: Operation, path: &Path, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.faults.call(operation, None, path, call)
    }

    /// A call with two paths, joined for the rules.
    fn call_between<T>(
        &self,
        operation: Operation,
        from: &Path,
        to: &Path,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        let both = PathBuf::from(format!("{} -> {}", from.display(), to.display()));
        self.faults.call(operation, None, &both, call)
    }

    fn wrap<F>(&self, inner: F, path: &Path) -> FaultHandle<F> {
        FaultHandle::new(inner, &self.faults, path)
    }
}

impl Vfs for FaultVfs {
    fn open(&self, path: &Path) -> Result<Arc<dyn RandomFile>> {
        let file = self.call(Operation::Open, path, || self.inner.open(path))?;
        Ok(Arc::new(self.wrap(file, path)))
    }

    fn create(&self, path: &Path, if_exists: IfExists) -> Result<Box<dyn AppendFile>> {
        let file = self.call(Operation::Create, path, || self.inner.create(path, if_exists))?;
        Ok(Box::new(self.wrap(file, path)))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let file = self.call(Operation::OpenAppend, path, || self.inner.open_append(path))?;
        Ok(Box::new(self.wrap(file, path)))
    }

    fn create_shared(&self, path: &Path) -> Result<Arc<dyn SharedFile>> {
        let file = self.call(Operation::Create, path, || self.inner.create_shared(path))?;
        Ok(Arc::new(self.wrap(file, path)))
    }

    fn map_read(&self, path: &Path) -> Result<Arc<dyn ReadMapping>> {
        self.call(Operation::MapRead, path, || self.inner.map_read(path))
    }

    fn map_guarded(&self, path: &Path) -> Result<Arc<dyn GuardedMapping>> {
        self.call(Operation::MapRead, path, || self.inner.map_guarded(path))
    }

    fn create_mapped(&self, path: &Path, capacity: u64) -> Result<Arc<dyn RwMapping>> {
        let mapping = self.call(Operation::CreateMapped, path, || self.inner.create_mapped(path, capacity))?;
        Ok(Arc::new(self.wrap(mapping, path)))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.call(Operation::Metadata, path, || self.inner.metadata(path))
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<String>> {
        self.call(Operation::ReadDir, path, || self.inner.read_dir(path))
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.call(Operation::CreateDir, path, || self.inner.create_dir_all(path))
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.call(Operation::SyncDir, path, || self.inner.sync_dir(path))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.call(Operation::RemoveFile, path, || self.inner.remove_file(path))
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.call(Operation::RemoveDir, path, || self.inner.remove_dir(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.call_between(Operation::Rename, from, to, || self.inner.rename(from, to))
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.call_between(Operation::Link, from, to, || self.inner.hard_link(from, to))
    }

    fn canonicalize(&self, path: &Path) -> Result<PathBuf> {
        self.call(Operation::Canonicalize, path, || self.inner.canonicalize(path))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>> {
        self.call(Operation::Lock, path, || self.inner.lock(path))
    }

    fn free_bytes(&self, path: &Path) -> Option<u64> {
        self.inner.free_bytes(path)
    }

    fn read_failure(&self, path: &Path) -> Option<Error> {
        self.inner.read_failure(path)
    }

    fn page_cache_id(&self, path: &Path) -> Option<String> {
        self.inner.page_cache_id(path)
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }

    fn unix_time_us(&self) -> u64 {
        self.inner.unix_time_us()
    }

    fn sleep(&self, time: Duration) {
        self.inner.sleep(time);
    }

    fn random_u64(&self) -> u64 {
        self.inner.random_u64()
    }

    fn spawn(&self, name: &str, task: Task) -> Result<Box<dyn JoinHandle>> {
        self.call(Operation::Spawn, Path::new(name), || self.inner.spawn(name, task))
    }

    fn lower_cpu_priority(&self) -> bool {
        self.inner.lower_cpu_priority()
    }

    fn runs_inline(&self) -> bool {
        self.inner.runs_inline()
    }
}
