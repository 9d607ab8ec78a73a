//! A file system for rescues. A device's read failure damages one page of a file; the rest of the file counts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{Error, Result};
use parking_lot::Mutex;

use crate::{
    AppendFile, GuardedMapping, IfExists, IoClass, JoinHandle, LocalListener, LockGuard, Metadata, RandomFile,
    ReadMapping, Remains, RwMapping, SharedFile, Task, Vfs,
};

/// The unit of a read failure.
const PAGE_BYTES: usize = 4096;

/// Bytes of one read of a file to map.
const READ_BYTES: usize = 1 << 20;

/// The value of an unreadable byte. Not 0: zeros can pass for unused space.
const FILLING: u8 = 0xff;

/// Files with unreadable parts, each with the first error.
type Unreadable = Mutex<BTreeMap<PathBuf, Error>>;

/// Wraps a file system. Unreadable pages have 0xff bytes, so their checksums fail. Their files are listed.
pub struct UnreadableVfs {
    inner: Arc<dyn Vfs>,
    unreadable: Arc<Unreadable>,
}

impl UnreadableVfs {
    /// Wraps a file system.
    pub fn new(inner: Arc<dyn Vfs>) -> Arc<UnreadableVfs> {
        Arc::new(UnreadableVfs { inner, unreadable: Arc::default() })
    }

    /// Files with unreadable pages, by name, each with the first error.
    pub fn unreadable(&self) -> Vec<(PathBuf, Error)> {
        self.unreadable.lock().iter().map(|(path, error)| (path.clone(), error.clone())).collect()
    }
}

struct FilledFile {
    inner: Arc<dyn RandomFile>,
    path: PathBuf,
    unreadable: Arc<Unreadable>,
}

impl RandomFile for FilledFile {
    fn read_at(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize> {
        match self.inner.read_at(offset, buf, class) {
            Err(error) if error.is_read_failure() => self.read_pages(offset, buf, class),
            read => read,
        }
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }
}

impl FilledFile {
    /// Reads page by page, and fills the unreadable ones.
    fn read_pages(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize> {
        let there = self.inner.len()?.saturating_sub(offset).min(buf.len() as u64) as usize;
        let mut at = 0;
        while at < there {
            let place = offset + at as u64;
            let page = (PAGE_BYTES - (place % PAGE_BYTES as u64) as usize).min(there - at);
            let Some(bytes) = buf.get_mut(at..at + page) else { break };
            match self.inner.read_at(place, bytes, class) {
                Err(error) if error.is_read_failure() => {
                    bytes.fill(FILLING);
                    self.unreadable
                        .lock()
                        .entry(self.path.clone())
                        .or_insert(error.at_path(&self.path).at_offset(place));
                }
                read => drop(read?),
            }
            at += page;
        }
        Ok(there)
    }
}

/// The contents of a file that cannot be mapped safely.
struct FilledMapping(Vec<u8>);

impl AsRef<[u8]> for FilledMapping {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl ReadMapping for FilledMapping {}

impl UnreadableVfs {
    fn open_filled(&self, path: &Path) -> Result<FilledFile> {
        let (inner, unreadable) = (self.inner.open(path)?, self.unreadable.clone());
        Ok(FilledFile { inner, path: path.to_owned(), unreadable })
    }
}

impl Vfs for UnreadableVfs {
    fn open(&self, path: &Path) -> Result<Arc<dyn RandomFile>> {
        Ok(Arc::new(self.open_filled(path)?))
    }

    fn create(&self, path: &Path, if_exists: IfExists) -> Result<Box<dyn AppendFile>> {
        self.inner.create(path, if_exists)
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.inner.open_append(path)
    }

    fn create_shared(&self, path: &Path) -> Result<Arc<dyn SharedFile>> {
        self.inner.create_shared(path)
    }

    /// Reads the file once. A mapped page that cannot be read ends the process (SIGBUS), so a file that has one is copied to
    /// memory, filled as in [`open`](Vfs::open).
    fn map_read(&self, path: &Path) -> Result<Arc<dyn ReadMapping>> {
        let mapping = self.inner.map_read(path)?; // its errors first: a directory, or no such file
        let file = self.open_filled(path)?;
        let (len, mut step) = (file.len()?, vec![0; READ_BYTES]);
        for offset in (0..len).step_by(READ_BYTES) {
            file.read_at(offset, &mut step, IoClass::Other)?;
        }
        if !self.unreadable.lock().contains_key(path) {
            return Ok(mapping);
        }
        let mut bytes =
            vec![0; usize::try_from(len).map_err(|_| Error::unsupported("too large to read").at_path(path))?];
        file.read_pages(0, &mut bytes, IoClass::Other)?;
        Ok(Arc::new(FilledMapping(bytes)))
    }

    fn map_guarded(&self, path: &Path) -> Result<Arc<dyn GuardedMapping>> {
        self.inner.map_guarded(path)
    }

    fn create_mapped(&self, path: &Path, capacity: u64) -> Result<Arc<dyn RwMapping>> {
        self.inner.create_mapped(path, capacity)
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.inner.metadata(path)
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<String>> {
        self.inner.read_dir(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.inner.create_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.inner.sync_dir(path)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.inner.remove_file(path)
    }

    fn remove_in_steps(&self, path: &Path) -> Result<Option<Box<dyn Remains>>> {
        self.inner.remove_in_steps(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.inner.remove_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.inner.hard_link(from, to)
    }

    fn canonicalize(&self, path: &Path) -> Result<PathBuf> {
        self.inner.canonicalize(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>> {
        self.inner.lock(path)
    }

    fn free_bytes(&self, path: &Path) -> Option<u64> {
        self.inner.free_bytes(path)
    }

    fn read_failure(&self, path: &Path) -> Option<Error> {
        self.unreadable.lock().get(path).cloned()
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
        self.inner.spawn(name, task)
    }

    fn listen(&self, path: &Path) -> Result<LocalListener> {
        self.inner.listen(path)
    }

    fn lower_cpu_priority(&self) -> bool {
        self.inner.lower_cpu_priority()
    }

    fn runs_inline(&self) -> bool {
        self.inner.runs_inline()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fault, FaultCode, FaultVfs, MemoryVfs, Operation, Rule};

    #[test]
    fn only_the_pages_that_fail_are_filled() {
        let faulty = FaultVfs::new(MemoryVfs::new(1));
        let path = Path::new("/file");
        crate::write_all(&*faulty, path, IfExists::Fail, &[7; 3 * PAGE_BYTES + 100], IoClass::Other).unwrap();
        let vfs = UnreadableVfs::new(faulty.clone());
        let read = |from: u64, len: usize| {
            let mut bytes = vec![0; len];
            let read = vfs.open(path).unwrap().read_at(from, &mut bytes, IoClass::Other).unwrap();
            bytes.truncate(read);
            bytes
        };
        assert_eq!(read(100, 4 * PAGE_BYTES), [7; 3 * PAGE_BYTES]);
        assert!(vfs.unreadable().is_empty());
        // The whole read fails, then its second page.
        let rule = |nth| Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Read).nth(nth);
        for nth in [1, 3] {
            faulty.inject(rule(nth));
        }
        let bytes = read(100, 4 * PAGE_BYTES);
        let second = PAGE_BYTES - 100..2 * PAGE_BYTES - 100;
        assert_eq!(bytes.len(), 3 * PAGE_BYTES);
        assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == if second.contains(&at) { FILLING } else { 7 }));
        let [(file, error)] = vfs.unreadable().try_into().unwrap();
        assert_eq!((file.as_path(), error.offset()), (path, Some(PAGE_BYTES as u64)));
    }

    #[test]
    fn page_that_fails_is_not_mapped() {
        let faulty = FaultVfs::new(MemoryVfs::new(1));
        let [whole, bad] = ["/whole", "/bad"].map(Path::new);
        for path in [whole, bad] {
            crate::write_all(&*faulty, path, IfExists::Fail, &[7; 3 * PAGE_BYTES], IoClass::Other).unwrap();
        }
        let vfs = UnreadableVfs::new(faulty.clone());
        assert_eq!((*vfs.map_read(whole).unwrap()).as_ref(), [7; 3 * PAGE_BYTES]);
        // The whole read fails, its second page, and that page again.
        for nth in [1, 3, 6] {
            faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Read).nth(nth));
        }
        let mapping = vfs.map_read(bad).unwrap();
        let bytes = (*mapping).as_ref();
        assert_eq!((bytes.len(), &bytes[..PAGE_BYTES]), (3 * PAGE_BYTES, &[7; PAGE_BYTES][..]));
        assert_eq!(&bytes[PAGE_BYTES..2 * PAGE_BYTES], &[FILLING; PAGE_BYTES][..]);
        assert_eq!(vfs.unreadable().len(), 1);
    }
}
