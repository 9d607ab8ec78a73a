//! File system with gates, for tests with real threads. A test can hold one WAL store, so that a writer stalls in the
//! middle of its record. Other calls can be held too, selected by thread or by I/O class.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Duration;

use base::{Error, Result};
use parking_lot::{Condvar, Mutex, MutexGuard};
use vfs::{
    AppendFile, GuardedMapping, IfExists, IoClass, JoinHandle, LockGuard, Metadata, RandomFile, ReadMapping, RwMapping,
    SharedFile, Task, Vfs,
};

/// Selects calls to hold. WAL stores are separate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Every file-system call of a thread.
    Of(ThreadId),
    /// Reads, writes and syncs of an I/O class, on any thread.
    For(IoClass),
}

/// Gate in front of WAL stores and of other calls.
#[derive(Default)]
pub struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    /// WAL stores to let pass before one is held; `None` holds none.
    passing: Option<u64>,
    /// The same for other calls.
    calls_passing: Option<(Calls, u64)>,
    held: bool,
    /// I/O class of the held call, if it has one.
    held_for: Option<IoClass>,
    /// WAL stores since the start.
    stores: u64,
}

impl Gate {
    /// Lets `passing` more WAL stores pass and holds the next one. Later stores pass.
    pub fn hold_after(&self, passing: u64) {
        self.state.lock().passing = Some(passing);
    }

    /// Lets `passing` more of these calls pass and holds the next one. Later calls pass.
    pub fn hold_call(&self, calls: Calls, passing: u64) {
        self.state.lock().calls_passing = Some((calls, passing));
    }

    /// Whether a store or call is held.
    pub fn is_holding(&self) -> bool {
        self.state.lock().held
    }

    /// I/O class of the held call; `None` if nothing is held or the call has no class.
    pub fn held_for(&self) -> Option<IoClass> {
        let state = self.state.lock();
        state.held_for.filter(|_| state.held)
    }

    pub fn stores(&self) -> u64 {
        self.state.lock().stores
    }

    /// Releases the held call and disarms the gate.
    pub fn open(&self) {
        let mut state = self.state.lock();
        (state.passing, state.calls_passing, state.held) = (None, None, false);
        self.changed.notify_all();
    }

    fn pass(&self) {
        let mut state = self.state.lock();
        state.stores += 1;
        match state.passing {
            None => {}
            Some(0) => {
                (state.passing, state.held_for) = (None, Some(IoClass::Log));
                self.hold(state);
            }
            Some(passing) => state.passing = Some(passing - 1),
        }
    }

    /// Gate of all calls but WAL stores.
    fn call(&self, class: Option<IoClass>) {
        let mut state = self.state.lock();
        let Some((calls, passing)) = state.calls_passing else { return };
        let is_meant = match calls {
            Calls::Of(thread) => thread == std::thread::current().id(),
            Calls::For(purpose) => class == Some(purpose),
        };
        if !is_meant {
            return;
        }
        state.calls_passing = passing.checked_sub(1).map(|passing| (calls, passing));
        if passing == 0 {
            state.held_for = class;
            self.hold(state);
        }
    }

    fn hold(&self, mut state: MutexGuard<'_, GateState>) {
        state.held = true;
        while state.held {
            self.changed.wait(&mut state);
        }
    }
}

/// Wraps a file system behind a gate.
pub struct GateVfs {
    inner: Arc<dyn Vfs>,
    gate: Arc<Gate>,
}

impl GateVfs {
    pub fn new(inner: Arc<dyn Vfs>) -> (Arc<GateVfs>, Arc<Gate>) {
        let gate = Arc::new(Gate::default());
        (Arc::new(GateVfs { inner, gate: gate.clone() }), gate)
    }
}

struct Gated<F> {
    inner: F,
    gate: Arc<Gate>,
}

impl RandomFile for Gated<Arc<dyn RandomFile>> {
    fn read_at(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize> {
        self.gate.call(Some(class));
        self.inner.read_at(offset, buf, class)
    }

    fn len(&self) -> Result<u64> {
        self.gate.call(None);
        self.inner.len()
    }
}

impl AppendFile for Gated<Box<dyn AppendFile>> {
    fn append(&mut self, bytes: &[u8], class: IoClass) -> Result<()> {
        self.gate.call(Some(class));
        self.inner.append(bytes, class)
    }

    fn len(&self) -> u64 {
        self.inner.len()
    }

    fn sync(&mut self, class: IoClass) -> Result<()> {
        self.gate.call(Some(class));
        self.inner.sync(class)
    }
}

impl RwMapping for Gated<Arc<dyn RwMapping>> {
    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    fn allocated(&self) -> u64 {
        self.inner.allocated()
    }

    fn ensure(&self, end: u64) -> Result<()> {
        self.gate.call(Some(IoClass::Log));
        self.inner.ensure(end)
    }

    fn populate(&self, offset: u64, len: u64) {
        self.inner.populate(offset, len);
    }

    fn write(&self, offset: u64, bytes: &[u8]) {
        self.gate.pass();
        self.inner.write(offset, bytes);
    }

    fn read(&self, offset: u64, buf: &mut [u8]) {
        self.inner.read(offset, buf);
    }

    fn sync(&self, class: IoClass) -> Result<()> {
        self.gate.call(Some(class));
        self.inner.sync(class)
    }

    fn truncate_on_drop(&self, len: u64) {
        self.inner.truncate_on_drop(len);
    }

    fn cut(&self, len: u64) -> Result<()> {
        self.gate.call(Some(IoClass::Log));
        self.inner.cut(len)
    }
}

impl SharedFile for Gated<Arc<dyn SharedFile>> {
    fn write_at(&self, offset: u64, bytes: &[u8], class: IoClass) -> Result<()> {
        self.gate.pass();
        self.inner.write_at(offset, bytes, class)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8], class: IoClass) -> Result<usize> {
        self.gate.call(Some(class));
        self.inner.read_at(offset, buf, class)
    }

    fn sync(&self, class: IoClass) -> Result<()> {
        self.gate.call(Some(class));
        self.inner.sync(class)
    }

    fn allocate(&self, offset: u64, len: u64, class: IoClass) -> Result<()> {
        self.gate.call(Some(class));
        self.inner.allocate(offset, len, class)
    }

    fn len(&self) -> Result<u64> {
        self.gate.call(None);
        self.inner.len()
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.gate.call(None);
        self.inner.truncate(len)
    }
}

impl Vfs for GateVfs {
    fn open(&self, path: &Path) -> Result<Arc<dyn RandomFile>> {
        self.gate.call(None);
        let inner = self.inner.open(path)?;
        Ok(Arc::new(Gated { inner, gate: self.gate.clone() }))
    }

    fn create(&self, path: &Path, if_exists: IfExists) -> Result<Box<dyn AppendFile>> {
        self.gate.call(None);
        let inner = self.inner.create(path, if_exists)?;
        Ok(Box::new(Gated { inner, gate: self.gate.clone() }))
    }

    fn open_append(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.gate.call(None);
        let inner = self.inner.open_append(path)?;
        Ok(Box::new(Gated { inner, gate: self.gate.clone() }))
    }

    fn create_shared(&self, path: &Path) -> Result<Arc<dyn SharedFile>> {
        self.gate.call(None);
        let inner = self.inner.create_shared(path)?;
        Ok(Arc::new(Gated { inner, gate: self.gate.clone() }))
    }

    fn map_read(&self, path: &Path) -> Result<Arc<dyn ReadMapping>> {
        self.gate.call(None);
        self.inner.map_read(path)
    }

    fn map_guarded(&self, path: &Path) -> Result<Arc<dyn GuardedMapping>> {
        self.gate.call(None);
        self.inner.map_guarded(path)
    }

    fn create_mapped(&self, path: &Path, capacity: u64) -> Result<Arc<dyn RwMapping>> {
        self.gate.call(None);
        let inner = self.inner.create_mapped(path, capacity)?;
        Ok(Arc::new(Gated { inner, gate: self.gate.clone() }))
    }

    fn metadata(&self, path: &Path) -> Result<Metadata> {
        self.gate.call(None);
        self.inner.metadata(path)
    }

    fn read_dir(&self, path: &Path) -> Result<Vec<String>> {
        self.gate.call(None);
        self.inner.read_dir(path)
    }

    fn create_dir_all(&self, path: &Path) -> Result<()> {
        self.gate.call(None);
        self.inner.create_dir_all(path)
    }

    fn sync_dir(&self, path: &Path) -> Result<()> {
        self.gate.call(None);
        self.inner.sync_dir(path)
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        self.gate.call(None);
        self.inner.remove_file(path)
    }

    fn remove_dir(&self, path: &Path) -> Result<()> {
        self.gate.call(None);
        self.inner.remove_dir(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.gate.call(None);
        self.inner.rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> Result<()> {
        self.gate.call(None);
        self.inner.hard_link(from, to)
    }

    fn canonicalize(&self, path: &Path) -> Result<PathBuf> {
        self.gate.call(None);
        self.inner.canonicalize(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn LockGuard>> {
        self.gate.call(None);
        self.inner.lock(path)
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
        self.inner.spawn(name, task)
    }

    fn lower_cpu_priority(&self) -> bool {
        self.inner.lower_cpu_priority()
    }

    fn runs_inline(&self) -> bool {
        self.inner.runs_inline()
    }
}
