//! A file system in memory that tracks synced state. It can be cloned as after a crash, at any operation.
//!
//! Deterministic: each call advances the clock by a microsecond, and `sleep` by its argument. Random numbers follow
//! from the seed, and nothing depends on addresses or the machine. Hard links only; relative paths start at the root.
//!
//! An *operation* is a modifying call, a sync, or a store to a mapping by `write`. Operations are numbered from 0, and
//! a clone continues the numbering. Stores by address are no operations. They are detected when the content is read, by
//! a clone too; each 4 KiB block then has all or none of the stores made so far.
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
#[cfg_attr(not(target_os = "linux"), path = "no_window.rs")]
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

/// State shared by the handles.
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
    /// Numbers of locked files.
    locked: BTreeSet<u64>,
    /// Limit on the files' total bytes.
    capacity: Option<u64>,
    boot: u64,
    /// `None`: unknown.
    mount: Option<u64>,
}

/// A scheduled crash.
struct Armed {
    operation: u64,
    seed: u64,
    policy: CrashPolicy,
}

impl MemoryVfs {
    /// Creates an empty root directory. `seed` determines the random numbers.
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

    /// True (the default) runs background jobs on the scheduling thread; false runs them on system threads.
    pub fn set_runs_inline(&self, inline: bool) {
        self.disk.runs_inline.store(inline, Ordering::Relaxed);
    }

    /// Limits the files' total bytes. A write beyond the limit is `NoSpace` and writes nothing. `None`: no limit. A
    /// removed file does not count, even while open.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.disk.state.lock().capacity = bytes;
    }

    /// Operations so far.
    pub fn operations(&self) -> u64 {
        self.disk.state.lock().operations
    }

    /// The file system as after a crash now, without locks. `seed` determines the policy's random choices and the
    /// clone's random numbers.
    pub fn crash_clone(&self, seed: u64, policy: CrashPolicy) -> Arc<MemoryVfs> {
        self.disk.image(&self.disk.state.lock(), seed, policy, None)
    }

    /// The file system on a new mount in the same boot, after `policy`. A power-loss policy models a remount after an
    /// error. `ProcessKilled` models a second mount of the same file system.
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

    /// Sets the mount's number, initially 1. `None`: unknown, and so is [`page_cache_id`](crate::Vfs::page_cache_id).
    pub fn set_mount(&self, mount: Option<u64>) {
        self.disk.state.lock().mount = mount;
    }

    /// Schedules a clone just before operation number `operation`; the run itself continues. Under
    /// [`CrashPolicy::TornAt512`], if the operation is a write, the clone has part of it.
    pub fn crash_at(&self, operation: u64, seed: u64, policy: CrashPolicy) {
        let mut state = self.disk.state.lock();
        state.image = None;
        state.armed = Some(Armed { operation, seed, policy });
    }

    /// The clone scheduled by [`crash_at`](Self::crash_at), once its operation was reached.
    pub fn take_crash_image(&self) -> Option<Arc<MemoryVfs>> {
        self.disk.state.lock().image.take()
    }

    /// Every file's path, sorted.
    pub fn all_files(&self) -> Vec<PathBuf> {
        files_of(&self.disk.state.lock().tree.current).into_iter().map(|(path, _)| path).collect()
    }

    /// The bytes of a file.
    pub fn read_file(&self, path: &Path) -> Result<Vec<u8>> {
        let node = self.disk.state.lock().tree.file("read", path)?;
        let bytes = node.current().bytes().to_vec();
        Ok(bytes)
    }

    /// Writes a durable file, with its directories as needed. Not an operation. Makes all names durable.
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

    /// Damages a file at rest: flips bit `bit % 8` of byte `bit / 8`, and makes the whole file durable. A bit beyond
    /// the end changes nothing.
    pub fn flip_bit(&self, path: &Path, bit: u64) -> Result<()> {
        self.damage(path, |bytes| {
            if let Some(byte) = usize::try_from(bit / 8).ok().and_then(|index| bytes.get_mut(index)) {
                *byte ^= 1 << (bit % 8);
            }
        })
    }

    /// Truncates a file at rest, or extends it by zeros, and makes the whole file durable.
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

    /// Called for every change, under the state's lock, just before it is made. Returns the operation's number.
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
