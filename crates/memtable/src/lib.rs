//! Memtables: sorted writes in memory until the flush. One trait, several representations, chosen by name.
//!
//! Contracts of every representation:
//! - Readers never wait for writers. Readers of the vector and the sorted hash may wait for a concurrent reader's sort.
//! - An entry is visible to every read started after its insert returned.
//! - Entries may arrive with sequence numbers out of order.
//! - No inserted entry moves or is freed while the memtable lives.
//! - Memory is counted in full.
//!
//! An internal part of the package `spillway-db`, published because that needs it. It may change in any release.
#![deny(missing_docs)]

mod arena;
mod arguments;
mod bloom;
#[cfg(test)]
mod conformance;
mod conversion;
mod gate;
pub mod image;
mod order;
mod record;
mod registry;
mod runs;
mod skiplist;
mod sorted_hash;
mod stripe;
mod tombstones;
mod trie;
mod vector;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, FamilyId, InternalOrder, LookupKey, Result, SeqNo, ValueKind};
use vfs::{Task, Vfs};

use self::image::{ImageIdentity, SealedImage};

pub use arena::SealedFile;
pub use conversion::{Conversion, ConvertToSst, RefLogFormat};
pub use registry::{factory_from_option_string, names};
pub use stripe::Counts;

/// Parameters of a new memtable.
#[derive(Clone)]
pub struct MemtableConfig {
    /// The order of keys.
    pub order: InternalOrder,
    /// The family.
    pub family: FamilyId,
    /// Bytes of arena: entries, nodes and slack. Fixed for the memtable's life. The trie takes its `mem_cap` if
    /// smaller.
    pub capacity_bytes: usize,
    /// Bytes needed by the batch that caused the memtable's creation, by
    /// [`worst_case_bytes`](Memtable::worst_case_bytes); 0 if none did. [`MemtableFactory::create`] fails if a bound
    /// leaves no room for them.
    pub room_bytes: usize,
    /// Bits of bloom filter over whole user keys, as a share of the capacity (RocksDB's
    /// `memtable_prefix_bloom_size_ratio` with `memtable_whole_key_filtering`); 0 for none.
    pub bloom_ratio: f64,
    /// Runs background work such as sorting.
    pub background: Background,
    /// File for the arena, in representations with images.
    pub image: Option<ImageFile>,
}

impl MemtableConfig {
    /// No filter, no file; background work runs inline on the calling thread.
    pub fn new(order: InternalOrder, family: FamilyId, capacity_bytes: usize) -> Self {
        MemtableConfig {
            order,
            family,
            capacity_bytes,
            room_bytes: 0,
            bloom_ratio: 0.0,
            background: Background::inline(),
            image: None,
        }
    }
}

/// A file to be created and mapped. Removed with the memtable, unless kept by [`SealedFile::keep`].
#[derive(Clone)]
pub struct ImageFile {
    /// Where the file is.
    pub vfs: Arc<dyn Vfs>,
    /// The file.
    pub path: PathBuf,
    /// True once the fallback to memory, when no file can be had, was logged: once for all files sharing this flag.
    pub told: Arc<AtomicBool>,
    /// Written to the image's header before the first insert.
    pub identity: ImageIdentity,
}

impl ImageFile {
    /// A file with an all-zero identity.
    pub fn new(vfs: Arc<dyn Vfs>, path: impl Into<PathBuf>) -> Self {
        ImageFile { vfs, path: path.into(), told: Arc::default(), identity: ImageIdentity::default() }
    }
}

/// Runs tasks, soon and in any order, each once. A task holds only a `Weak` of its memtable, so a task that never runs
/// keeps no memory alive.
#[derive(Clone)]
pub struct Background(Arc<dyn Fn(Task) + Send + Sync>);

impl Background {
    /// Runs tasks by this function.
    pub fn new(run: impl Fn(Task) + Send + Sync + 'static) -> Self {
        Background(Arc::new(run))
    }

    /// Runs each task on the calling thread, before [`run`](Background::run) returns.
    pub fn inline() -> Self {
        Background::new(|task| task())
    }

    /// Runs a task.
    pub fn run(&self, task: Task) {
        (self.0)(task);
    }
}

/// One entry to insert.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The user's key.
    pub user_key: &'a [u8],
    /// The sequence number.
    pub seq: SeqNo,
    /// The kind of entry.
    pub kind: ValueKind,
    /// For `RangeDeletion`, the range's end; the user key is its start.
    pub value: &'a [u8],
}

/// Receives sequence number, kind and value of an entry; returns false to stop.
pub type Visit<'a> = dyn FnMut(SeqNo, ValueKind, &[u8]) -> bool + 'a;

/// As [`Visit`]; the first argument is the index of the lookup.
pub type VisitMany<'a> = dyn FnMut(usize, SeqNo, ValueKind, &[u8]) -> bool + 'a;

/// A sorted set of entries in memory. Any number of threads may insert at once.
pub trait Memtable: Send + Sync {
    /// The registry name of the representation ("skip_list").
    fn name(&self) -> &'static str;

    /// Upper bound on the arena bytes of inserting `entries` entries with `payload_bytes` of keys and values:
    /// alignment, nodes and races included.
    fn worst_case_bytes(&self, entries: usize, payload_bytes: usize) -> usize;

    /// Reserves `bytes` of the arena for later inserts. False if there is no room: the memtable must be switched. A
    /// reservation cannot be returned (C4: after it, [`insert`](Memtable::insert) cannot fail). The representation may
    /// reuse bytes its inserts did not need.
    fn try_reserve(&self, bytes: usize) -> bool;

    /// Asks for the memory that an insert of this key reads first. A hint, for other work done in between.
    fn prefetch(&self, _user_key: &[u8]) {}

    /// Inserts an entry with reserved bytes. Range deletions go to a list of their own.
    fn insert(&self, entry: Entry<'_>);

    /// Inserts the entries of a batch, in the order given.
    fn insert_all(&self, entries: &mut dyn Iterator<Item = Entry<'_>>) {
        for entry in entries {
            self.insert(entry);
        }
    }

    /// Shows `visit` the point entries of the lookup's user key at or below its sequence number, newest first, until it
    /// returns false. The value is valid only during the call.
    fn get(&self, key: &LookupKey, visit: &mut Visit<'_>);

    /// Many lookups; `visit` receives the index of the key. Some representations interleave their descents.
    fn multi_get(&self, keys: &[&LookupKey], visit: &mut VisitMany<'_>) {
        for (i, key) in keys.iter().enumerate() {
            self.get(key, &mut |seq, kind, value| visit(i, seq, kind, value));
        }
    }

    /// A cursor over point entries. It keeps the memtable alive. Entries inserted later are visible at the latest after
    /// the next seek.
    fn cursor(self: Arc<Self>) -> Box<dyn Cursor>;

    /// The range tombstones inserted so far, fragmented; `None` if there are none. Rebuilt only after new ones.
    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>>;

    /// True if a seek costs only a few cache misses now and [`tombstones`](Memtable::tombstones) builds nothing, so
    /// both may be called under a lock. Always false for representations that sort in readers.
    fn is_ready_to_seek(&self) -> bool {
        false
    }

    /// Of all entries inserted.
    fn counts(&self) -> Counts;

    /// Point entries, deletions included, and range deletions.
    fn entries(&self) -> u64 {
        self.counts().entries
    }

    /// Memory held now, everything included, in bytes.
    fn memory_bytes(&self) -> usize;

    /// Arena bytes reserved so far; compared with `write_buffer_size`.
    fn reserved_bytes(&self) -> usize;

    /// Upper limit of [`reserved_bytes`](Memtable::reserved_bytes).
    fn capacity_bytes(&self) -> usize;

    /// Estimated entries with user keys in `[start, end)`, for converted tables; 0 for representations without images.
    fn approximate_entries(&self, _start: &[u8], _end: &[u8]) -> u64 {
        0
    }

    /// Prefaults the next arena pages, of the `ahead_bytes` behind the reserved part, so that inserts take no page
    /// faults: at most 2 MiB a call. `may_hold` decides first whether so many bytes more may be held, because
    /// prefaulted pages count as held. False if no page was missing or none could be had. Called in the background,
    /// before and during writes.
    fn prefault(&self, _ahead_bytes: usize, _may_hold: &dyn Fn(usize) -> bool) -> bool {
        false
    }

    /// Records in the image: no write at or below `created_at` is in it. Called before the first insert, and again with
    /// a larger number while the memtable is empty. A late call with a smaller number has no effect. No effect without
    /// an image, or once sealed.
    fn begin_after(&self, _created_at: SeqNo) {}

    /// Records in the image: no write at or below `seq` is in it. Where it begins stays. Called while the memtable is empty.
    fn advance_empty_to(&self, _seq: SeqNo) {}

    /// Raises the recovery watermark. Every write of the family meant for this memtable, above the `begin_after` number
    /// and up to `complete_through`, is inserted. `position` is at or before the first write above `complete_through`,
    /// in any unit that grows with later writes. Smaller values than before have no effect. Cheap enough for each
    /// publication. No effect without an image, or once sealed.
    fn mark(&self, _complete_through: SeqNo, _position: u64) {}

    /// Records in the image: some writes of its family in this range are elsewhere, so the image alone is incomplete.
    /// False if it cannot be recorded: without an image, or once sealed.
    fn mark_foreign(&self) -> bool {
        false
    }

    /// Called once or more, after the last insert has returned. Representations that sort, sort here.
    fn seal(&self) {}

    /// The memtable's memory as the bytes of a file, once sealed. `None` for representations without images, and if the
    /// factory's [`Conversion`] wants none and the memtable has no file.
    fn image(&self) -> Option<SealedImage<'_>> {
        None
    }
}

/// Sizes of a family's memtables.
#[derive(Clone, Copy, Debug)]
pub struct MemtableSizes {
    /// `write_buffer_size`.
    pub write_buffer_bytes: usize,
    /// [`MemtableConfig::capacity_bytes`].
    pub capacity_bytes: usize,
    /// [`MemtableConfig::bloom_ratio`].
    pub bloom_ratio: f64,
}

/// Makes memtables of one representation, as named by an option string such as `skip_list` or `vector`.
pub trait MemtableFactory: Send + Sync {
    /// The name by which the registry knows it.
    fn name(&self) -> &'static str;

    /// Option string of this factory; parsing it yields the same factory.
    fn option_string(&self) -> String;

    /// # Errors
    /// `NoSpace`: memory cannot be had. `InvalidArgument`: the capacity is impossible, or too small for any entry.
    fn create(&self, config: &MemtableConfig) -> Result<Arc<dyn Memtable>>;

    /// How flushes convert its memtables to tables; by default entries are rewritten.
    fn conversion(&self) -> Conversion {
        Conversion::default()
    }

    /// Whether its memtables have images, so that they can become tables.
    fn can_convert(&self) -> bool {
        false
    }

    /// Parameters and options that do nothing, or something else, beside these sizes: a sentence for each.
    fn without_effect(&self, _sizes: &MemtableSizes) -> Vec<String> {
        Vec::new()
    }
}
