//! A file system in memory that knows what was synced: it can be cloned as a crash would leave it, at any operation.
//!
//! Deterministic: the clock is a counter that each call advances by a microsecond and `sleep` by what it is told; random
//! numbers follow from the seed; nothing depends on addresses or on the machine. There are no links but hard ones, and
//! relative paths start at the root.
//!
//! An *operation* is a call that changes something, syncs included, or a store to a mapping by its `write`. Operations
//! are numbered from 0, and go on being numbered in a clone. Stores by address are no operations: they are found when
//! somebody looks, a clone included, and a 4 KiB block then has all of those made by then or none.
//!
//! Lock order: the state, then one file's content.

mod content;
mod crash;
mod handle;
mod mapping;
mod random;
#[cfg(test)]
mod tests;
mod tree;
mod window;
mod world;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use base::Result;
use parking_lot::{Mutex, MutexGuard};

use content::{Content, FileNode};
use crash::{Crash, WriteUnderWay};
use tree::{Entry, Tree, files_of};

pub use crash::CrashPolicy;

/// See the module's description. Shared by all handles to its files.
pub struct MemoryVfs {
    disk: Arc<Disk>,
}

/// What handles keep alive.
struct Disk {
    state: Mutex<State>,
    clock_us: AtomicU64,
    seed: u64,
    /// Random numbers drawn so far.
    drawn: AtomicU64,
    runs_inline: AtomicBool,
}

struct State {
    tree: Tree,
    next_file: u64,
    operations: u64,
    armed: Option<Armed>,
    image: Option<Arc<MemoryVfs>>,
    /// Numbers of files that are locked.
    locked: BTreeSet<u64>,
    /// Bytes that files may have in all.
    capacity: Option<u64>,
    boot: u64,
    /// `None`: not told.
    mount: Option<u64>,
}

/// A crash to come.
struct Armed {
    operation: u64,
    seed: u64,
    policy: CrashPolicy,
}

impl MemoryVfs {
    /// An empty root directory. `seed` decides the random numbers.
    pub fn new(seed: u64) -> Arc<MemoryVfs> {
        let state = State {
            tree: Tree::new(),
            next_file: 0,
            operations: 0,
            armed: None,
            image: None,
            locked: BTreeSet::new(),
            capacity: None,
            boot: 1,
            mount: Some(1),
        };
        Self::with(state, 0, seed, true)
    }

    fn with(state: State, clock_us: u64, seed: u64, runs_inline: bool) -> Arc<MemoryVfs> {
        let disk = Disk {
            state: Mutex::new(state),
            clock_us: AtomicU64::new(clock_us),
            seed,
            drawn: AtomicU64::new(0),
            runs_inline: AtomicBool::new(runs_inline),
        };
        Arc::new(MemoryVfs { disk: Arc::new(disk) })
    }

    /// Whether background jobs run on the thread that schedules them (as they do at first), or on threads of the system.
    pub fn set_runs_inline(&self, inline: bool) {
        self.disk.runs_inline.store(inline, Ordering::Relaxed);
    }

    /// The bytes that files may have in all; what goes beyond is `NoSpace`, and nothing of it is written. `None`: no
    /// limit. A removed file counts no longer, even while it is open.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.disk.state.lock().capacity = bytes;
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.disk.state.lock().operations
    }

    /// The file system as a crash now would leave it. Locks are not carried over; `seed` decides what the policy leaves
    /// open, and the clone's random numbers.
    pub fn crash_clone(&self, seed: u64, policy: CrashPolicy) -> Arc<MemoryVfs> {
        self.disk.image(&self.disk.state.lock(), seed, policy, None)
    }

    /// The file system on another mount on the same boot, with what `policy` leaves: where it is a power loss, as where the
    /// mount before ended after an error; where it is a kill, as where both are of one file system.
    pub fn remounted(&self, seed: u64, policy: CrashPolicy) -> Arc<MemoryVfs> {
        let (boot, mount) = {
            let state = self.disk.state.lock();
            (state.boot, state.mount.unwrap_or(0) + 1)
        };
        let after = self.crash_clone(seed, policy);
        after.disk.state.lock().boot = boot;
        after.set_mount(Some(mount));
        after
    }

    /// The mount's number, at first 1; `None`: it cannot be told, and [`page_cache_id`](crate::Vfs::page_cache_id) with it.
    pub fn set_mount(&self, mount: Option<u64>) {
        self.disk.state.lock().mount = mount;
    }

    /// Takes a clone when operation number `operation` is about to happen; the run goes on unharmed. Under
    /// [`CrashPolicy::TornAt512`], where that operation is a write, the clone holds a part of it.
    pub fn crash_at(&self, operation: u64, seed: u64, policy: CrashPolicy) {
        let mut state = self.disk.state.lock();
        state.image = None;
        state.armed = Some(Armed { operation, seed, policy });
    }

    /// The clone that [`crash_at`](Self::crash_at) asked for, once its operation came.
    pub fn take_crash_image(&self) -> Option<Arc<MemoryVfs>> {
        self.disk.state.lock().image.take()
    }

    /// Every file's path, sorted.
    pub fn all_files(&self) -> Vec<PathBuf> {
        files_of(&self.disk.state.lock().tree.current).into_iter().map(|(path, _)| path).collect()
    }

    pub fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        let node = self.disk.state.lock().tree.file("read", path)?;
        let bytes = node.current().bytes().to_vec();
        Ok(bytes)
    }

    /// Puts a file there, durable, its directories made as needed; not an operation. All names become durable with it.
    pub fn write_file(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut state = self.disk.state.lock();
        let node = match state.tree.find(path)? {
            Some(_) => state.tree.file("write", path)?,
            None => {
                world::make_directories(&mut state.tree, path.parent().unwrap_or(Path::new("/")))?;
                let place = state.tree.place("write", path)?;
                let node = state.new_file();
                state.tree.commit(vec![place.becomes(Some(Entry::File(Arc::clone(&node))))]);
                node
            }
        };
        state.tree.sync_all();
        *node.content.lock() = Content::synced(bytes.to_vec(), self.disk.time_us());
        Ok(())
    }

    /// Damages a file at rest: bit `bit % 8` of byte `bit / 8`; all of the file becomes durable. A bit beyond the end
    /// changes nothing.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> Result<()> {
        self.damage(path, |bytes| {
            if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|index| bytes.get_mut(index)) {
                *byte ^= 1 << (bit % 8);
            }
        })
    }

    /// Cuts a file at rest, or grows it by zeros; all of the file becomes durable.
    pub fn truncate(&self, path: &Path, len: usize) -> Result<()> {
        self.damage(path, |bytes| bytes.resize(len, 0))
    }

    fn damage(&self, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        let state = self.disk.state.lock();
        let node = state.tree.file("damage", path)?;
        let mut content = node.current();
        let mut bytes = content.bytes().to_vec();
        change(&mut bytes);
        *content = Content::synced(bytes, content.modified_us);
        Ok(())
    }
}

impl State {
    fn new_file(&mut self) -> Arc<FileNode> {
        self.next_file += 1;
        Arc::new(FileNode { id: self.next_file, content: Mutex::new(Content::default()) })
    }

    fn used_bytes(&self) -> u64 {
        let mut counted = BTreeSet::new();
        let files = files_of(&self.tree.current);
        files.iter().filter(|(_, node)| counted.insert(node.id)).map(|(_, node)| node.content.lock().len()).sum()
    }

    fn has_room_for(&self, growth_bytes: u64) -> bool {
        match self.capacity {
            Some(capacity) if growth_bytes > 0 => self.used_bytes().saturating_add(growth_bytes) <= capacity,
            _ => true,
        }
    }
}

impl Disk {
    fn time_us(&self) -> u64 {
        self.clock_us.load(Ordering::Relaxed)
    }

    fn tick(&self) -> u64 {
        self.clock_us.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Every change passes here, under the state's lock, just before it is made. Returns the operation's number.
    fn begin(&self, state: &mut MutexGuard<'_, State>, write: Option<WriteUnderWay<'_>>) -> u64 {
        self.tick();
        let operation = state.operations;
        if let Some(armed) = state.armed.take_if(|armed| armed.operation == operation) {
            state.image = Some(self.image(state, armed.seed, armed.policy, write));
        }
        state.operations += 1;
        operation
    }

    fn image(
        &self,
        state: &State,
        seed: u64,
        policy: CrashPolicy,
        under_way: Option<WriteUnderWay<'_>>,
    ) -> Arc<MemoryVfs> {
        let boot = if policy == CrashPolicy::ProcessKilled { state.boot } else { state.boot + 1 };
        let after = State {
            tree: Crash::new(seed, policy, under_way).tree_after(&state.tree),
            next_file: state.next_file,
            operations: state.operations,
            armed: None,
            image: None,
            locked: BTreeSet::new(),
            capacity: state.capacity,
            boot,
            mount: state.mount,
        };
        MemoryVfs::with(after, self.time_us(), seed, self.runs_inline.load(Ordering::Relaxed))
    }
}
