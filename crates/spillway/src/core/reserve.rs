//! The reserve: a file without content, emptied when work that frees space finds none. How it is used: [`super::space`].
//!
//! The file is not synced, and its absence is no damage: upkeep makes it anew when the disk has room for it. An empty file
//! tells the next process that the reserve was given up.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use base::{ErrorKind, FileNumber, Result, note};
use parking_lot::Mutex;
use vfs::{IfExists, IoClass, Vfs};

use crate::version::file_name::{self, FileType};

/// The reserve is at most this part of the database.
const PART: u64 = 16;

/// Smaller reserves are not made: a new log and a table take some of them each.
const BYTES_MIN: u64 = 256 << 10;

/// Bounds of the largest reserve. Within them it holds the flush of all memtables, as far as their limit is known.
const LARGEST_BYTES_MIN: u64 = 64 << 20;
pub(crate) const LARGEST_BYTES_MAX: u64 = 256 << 20;

/// A reserve is shortened if it is more than so many times as large as wanted.
const EXCESS_MAX: u64 = 2;

/// The reserve of one database.
pub(crate) struct Reserve {
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
    /// A leaf lock, held while the file is made or deleted.
    file: Mutex<ReserveFile>,
    is_spent: AtomicBool,
    /// Memtables may hold writes older than the moment at which the reserve was spent.
    wants_seal: AtomicBool,
    /// Number of [`Claim`]s.
    claims: AtomicUsize,
}

#[derive(Default)]
struct ReserveFile {
    /// 0: there is no file, or it is empty.
    bytes: u64,
    /// The file system allocates no space ahead.
    is_unsupported: bool,
}

impl Reserve {
    /// The reserve as an earlier process left it.
    pub fn find(vfs: &Arc<dyn Vfs>, dir: &Path) -> Reserve {
        let path = path_in(dir);
        let bytes = vfs.metadata(&path).ok().map(|metadata| metadata.len);
        let is_spent = bytes == Some(0);
        Reserve {
            vfs: vfs.clone(),
            path,
            file: Mutex::new(ReserveFile { bytes: bytes.unwrap_or(0), is_unsupported: false }),
            is_spent: AtomicBool::new(is_spent),
            wants_seal: AtomicBool::new(is_spent),
            claims: AtomicUsize::new(0),
        }
    }

    /// Whether the reserve was given up, and there is no room yet to make it anew.
    pub fn is_spent(&self) -> bool {
        self.is_spent.load(Ordering::Acquire)
    }

    /// Whether all memtables are to be sealed before the next flush.
    pub fn wants_seal(&self) -> bool {
        self.wants_seal.load(Ordering::Acquire)
    }

    pub fn record_sealed(&self) {
        self.wants_seal.store(false, Ordering::Release);
    }

    /// Until the claim drops, no job begins, and the reserve is not made anew: either would take the space that another
    /// job gives back.
    pub fn claim(&self) -> Claim<'_> {
        self.claims.fetch_add(1, Ordering::AcqRel);
        Claim(&self.claims)
    }

    pub fn is_claimed(&self) -> bool {
        self.claims.load(Ordering::Acquire) > 0
    }

    pub fn bytes(&self) -> u64 {
        self.file.lock().bytes
    }

    /// Gives the reserve up. False if there is none. Calls `on_change` if [`is_spent`](Self::is_spent) changed, also in
    /// the order of changes.
    pub fn give_up(&self, on_change: impl Fn(bool)) -> bool {
        let mut file = self.file.lock();
        if file.bytes == 0 {
            return false;
        }
        if let Err(error) = empty(&*self.vfs, &self.path) {
            note::warn!(%error, "the reserve cannot be given up");
            return false;
        }
        note::warn!(bytes = file.bytes, "the disk is full: only deletions are written until there is room");
        file.bytes = 0;
        self.set_spent(true, on_change);
        true
    }

    /// Makes the reserve `wanted_bytes` long if it `may_grow` and the disk has room for half as much again. The first
    /// reserve may be shorter. Without any reserve it counts as given up. `on_change`: see [`give_up`](Self::give_up).
    pub fn keep(&self, wanted_bytes: u64, may_grow: bool, on_change: impl Fn(bool)) {
        let mut file = self.file.lock();
        let is_empty = wanted_bytes == 0 && self.is_spent(); // the file that tells the next process
        let is_kept = file.bytes >= wanted_bytes && file.bytes / EXCESS_MAX <= wanted_bytes && !is_empty;
        let is_first = file.bytes == 0 && !self.is_spent();
        let mut bytes = wanted_bytes;
        while is_first && bytes > BYTES_MIN && !self.has_room(bytes, 0) {
            bytes = (bytes / 2).max(BYTES_MIN);
        }
        if !is_kept && may_grow && !self.is_claimed() && !file.is_unsupported && self.has_room(bytes, file.bytes) {
            self.make(bytes, &mut file);
        }
        self.set_spent(file.bytes == 0 && wanted_bytes > 0 && !file.is_unsupported, on_change);
    }

    fn has_room(&self, wanted_bytes: u64, held_bytes: u64) -> bool {
        let free_bytes = self.path.parent().and_then(|dir| self.vfs.free_bytes(dir));
        free_bytes.is_none_or(|free| free.saturating_add(held_bytes) >= wanted_bytes + wanted_bytes / 2)
    }

    /// Replaces the file by one of `bytes`, by none if that is 0 or fails.
    fn make(&self, bytes: u64, file: &mut ReserveFile) {
        self.remove();
        file.bytes = bytes;
        if bytes == 0 {
            return;
        }
        let made = self.vfs.create_shared(&self.path);
        if let Err(error) = made.and_then(|made| made.allocate(0, bytes, IoClass::Other)) {
            note::info!(%error, "the reserve cannot be made");
            file.bytes = 0;
            file.is_unsupported = error.kind() != ErrorKind::NoSpace;
            self.remove();
        }
    }

    fn remove(&self) {
        match self.vfs.remove_file(&self.path) {
            Err(error) if !error.is_not_found() => note::warn!(%error, "the reserve cannot be deleted"),
            _ => {}
        }
    }

    /// Called under the lock of `file`.
    fn set_spent(&self, is_spent: bool, on_change: impl Fn(bool)) {
        if self.is_spent() != is_spent {
            self.wants_seal.store(is_spent, Ordering::Release);
            self.is_spent.store(is_spent, Ordering::Release);
            on_change(is_spent);
        }
    }
}

/// A call looks for space.
pub(crate) struct Claim<'a>(&'a AtomicUsize);

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Gives up the reserve in `dir`, for an open on a full disk. False if there is none.
pub(crate) fn give_up_in(vfs: &dyn Vfs, dir: &Path) -> bool {
    let path = path_in(dir);
    vfs.metadata(&path).is_ok_and(|metadata| metadata.len > 0) && empty(vfs, &path).is_ok()
}

fn empty(vfs: &dyn Vfs, path: &Path) -> Result<()> {
    vfs.create(path, IfExists::Truncate).map(drop)
}

fn path_in(dir: &Path) -> PathBuf {
    dir.join(file_name::format(FileType::Reserve, FileNumber(0)))
}

/// Length of the reserve for a database of `held_bytes` whose memtables may hold `memtable_bytes`. A power of two, or a
/// limit, so that it seldom changes.
pub(crate) fn wanted_bytes(held_bytes: u64, memtable_bytes: u64) -> u64 {
    let part = (held_bytes / PART).checked_ilog2().map_or(0, |log| 1 << log);
    let bytes = part.min(memtable_bytes.clamp(LARGEST_BYTES_MIN, LARGEST_BYTES_MAX));
    if bytes < BYTES_MIN { 0 } else { bytes }
}

#[cfg(test)]
mod tests {
    use vfs::MemoryVfs;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn small_databases_have_no_reserve_and_large_ones_one_for_their_memtables() {
        let held = [0, 4 * MIB - 1, 4 * MIB, 15 * MIB, 1 << 30, 1 << 40];
        let kib = |memtables: u64| held.map(|held| wanted_bytes(held, memtables) >> 10);
        assert_eq!(kib(192 * MIB), [0, 0, 256, 512, 64 << 10, 192 << 10]);
        assert_eq!(kib(MIB), [0, 0, 256, 512, 64 << 10, 64 << 10]);
        assert_eq!(kib(1 << 40), [0, 0, 256, 512, 64 << 10, 256 << 10]);
    }

    /// Free bytes, whether the reserve is spent, and whether memtables are to be sealed.
    fn seen(memory: &MemoryVfs, reserve: &Reserve) -> (u64, bool, bool) {
        (memory.free_bytes(Path::new("/db")).expect("known"), reserve.is_spent(), reserve.wants_seal())
    }

    #[test]
    fn it_is_given_up_once_and_made_anew_when_there_is_room() {
        let memory = MemoryVfs::new(1);
        let vfs: Arc<dyn Vfs> = memory.clone();
        let dir = Path::new("/db");
        vfs.create_dir_all(dir).expect("made");
        memory.set_capacity(Some(4 * MIB));
        let reserve = Reserve::find(&vfs, dir);
        assert!(!reserve.give_up(|_| {}), "there is none");
        reserve.keep(0, true, |_| {});
        assert_eq!(seen(&memory, &reserve), (4 * MIB, false, false));
        for (wanted, held) in [(MIB, MIB), (2 * MIB, 2 * MIB), (MIB, 2 * MIB), (MIB / 4, MIB / 4), (MIB, MIB)] {
            reserve.keep(wanted, true, |_| {});
            assert_eq!(seen(&memory, &reserve), (4 * MIB - held, false, false), "{wanted} bytes are wanted");
        }
        memory.set_capacity(Some(MIB));
        let reserve = Reserve::find(&vfs, dir);
        reserve.keep(2 * MIB, true, |_| {});
        assert_eq!(seen(&memory, &reserve), (0, false, false), "a shorter one is better than none");
        assert!(reserve.give_up(|_| {}) && !reserve.give_up(|_| {}));
        assert_eq!(seen(&memory, &reserve), (MIB, true, true));
        reserve.record_sealed();
        reserve.keep(MIB, true, |_| {});
        assert_eq!(seen(&memory, &reserve), (MIB, true, false));
        let next = Reserve::find(&vfs, dir);
        assert_eq!(seen(&memory, &next), (MIB, true, true), "of the next process");
        next.keep(MIB, true, |_| {});
        assert_eq!(seen(&memory, &next), (MIB, true, true));
        memory.set_capacity(Some(MIB + MIB / 2));
        next.keep(MIB, false, |_| {});
        assert!(next.is_spent());
        next.keep(MIB, true, |_| {});
        assert_eq!(seen(&memory, &next), (MIB / 2, false, false));
        assert!(give_up_in(&*vfs, dir) && !give_up_in(&*vfs, dir));
        next.keep(0, true, |_| {});
        assert_eq!(seen(&memory, &next), (MIB + MIB / 2, false, false));
        assert!(!vfs.exists(&path_in(dir)).expect("known"));
    }

    #[test]
    fn the_first_may_be_shorter_than_wanted() {
        let memory = MemoryVfs::new(1);
        let vfs: Arc<dyn Vfs> = memory.clone();
        let dir = Path::new("/db");
        vfs.create_dir_all(dir).expect("made");
        for (free, held, is_spent) in [(MIB, MIB / 2, false), (BYTES_MIN, 0, true)] {
            memory.set_capacity(Some(free));
            let reserve = Reserve::find(&vfs, dir);
            reserve.keep(8 * MIB, true, |_| {});
            assert_eq!(seen(&memory, &reserve), (free - held, is_spent, is_spent));
            reserve.make(0, &mut reserve.file.lock());
        }
    }
}
