//! Memtables: where writes live, sorted, until they are flushed. One trait, several representations, chosen by name.
//!
//! Contracts of every representation: readers never wait for writers (those of the vector and the sorted hash may wait for
//! each other's sort of what is new); an entry is visible to every read that starts after its
//! insert returned; entries whose sequence numbers arrive out of order are placed rightly; nothing inserted moves or is
//! freed while the memtable lives; memory is accounted honestly.

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
pub use registry::{factory_from_option_string, factory_from_params, names};

/// What a memtable is made for.
#[derive(Clone)]
pub struct MemtableConfig {
    pub order: InternalOrder,
    pub family: FamilyId,
    /// Bytes of arena: entries, nodes and slack. Fixed for the memtable's life. A representation with a bound of its own
    /// (the trie's `mem_cap`) takes the smaller.
    pub capacity_bytes: usize,
    /// Bytes that the batch for which the memtable is made needs, by [`worst_case_bytes`](Memtable::worst_case_bytes); 0
    /// where it is not made for one. [`MemtableFactory::create`] fails where a bound leaves no room for them.
    pub room_bytes: usize,
    /// Bits of bloom filter over whole user keys, as a share of the capacity (RocksDB's
    /// `memtable_prefix_bloom_size_ratio` with `memtable_whole_key_filtering`); 0 for none.
    pub bloom_ratio: f64,
    /// Where work goes that no caller should wait for.
    pub background: Background,
    /// The file that the arena is to lie in, for representations whose image can be one.
    pub image: Option<ImageFile>,
}

impl MemtableConfig {
    /// Without a filter or a file; background work is done by whoever asks for it.
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

/// A file to be created and mapped. It is removed with the memtable, unless it was kept ([`SealedFile::keep`]).
#[derive(Clone)]
pub struct ImageFile {
    pub vfs: Arc<dyn Vfs>,
    pub path: PathBuf,
    /// Whether it was said already that no file can be had and memory is taken instead: said once for all files that
    /// share this.
    pub told: Arc<AtomicBool>,
    /// What the image says of itself from the start.
    pub identity: ImageIdentity,
}

impl ImageFile {
    /// A file whose image says nothing of whose it is.
    pub fn new(vfs: Arc<dyn Vfs>, path: impl Into<PathBuf>) -> Self {
        ImageFile { vfs, path: path.into(), told: Arc::default(), identity: ImageIdentity::default() }
    }
}

/// Runs tasks, soon and in any order, each once. A task holds no more than a `Weak` of the memtable it works for, so
/// that one which is never run keeps nothing alive.
#[derive(Clone)]
pub struct Background(Arc<dyn Fn(Task) + Send + Sync>);

impl Background {
    pub fn new(run: impl Fn(Task) + Send + Sync + 'static) -> Self {
        Background(Arc::new(run))
    }

    /// Runs each task on the thread that hands it in, before [`run`](Background::run) returns.
    pub fn inline() -> Self {
        Background::new(|task| task())
    }

    pub fn run(&self, task: Task) {
        (self.0)(task);
    }
}

/// One entry to insert.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    pub user_key: &'a [u8],
    pub seq: SeqNo,
    pub kind: ValueKind,
    /// For `RangeDeletion`, the range's end; the user key is its start.
    pub value: &'a [u8],
}

/// Is shown number, kind and value of an entry; false where it has seen enough.
pub type Visit<'a> = dyn FnMut(SeqNo, ValueKind, &[u8]) -> bool + 'a;

/// As [`Visit`], told first which of many lookups the entry is for.
pub type VisitMany<'a> = dyn FnMut(usize, SeqNo, ValueKind, &[u8]) -> bool + 'a;

/// A sorted set of entries in memory.
///
/// Inserting takes `&self`: where [`concurrent_insert`](Memtable::concurrent_insert) is false the caller must insert from
/// one thread at a time.
pub trait Memtable: Send + Sync {
    /// The registry name of the representation ("skip_list").
    fn name(&self) -> &'static str;

    fn concurrent_insert(&self) -> bool;

    /// The most arena bytes that inserting `entries` entries, whose keys and values are `payload_bytes` together, can
    /// take: alignment, nodes and races included.
    fn worst_case_bytes(&self, entries: usize, payload_bytes: usize) -> usize;

    /// Sets `bytes` of the arena aside for inserts to come. False where there is no room: the memtable must be switched.
    /// A caller cannot give back what it reserved (C4: after this, [`insert`](Memtable::insert) cannot fail); the
    /// representation may reuse what its inserts did not need.
    fn try_reserve(&self, bytes: usize) -> bool;

    /// Inserts an entry whose bytes were reserved. Range deletions go to a list of their own.
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

    /// Many lookups; `visit` is told which. Representations that can, interleave their descents.
    fn multi_get(&self, keys: &[&LookupKey], visit: &mut VisitMany<'_>) {
        for (i, key) in keys.iter().enumerate() {
            self.get(key, &mut |seq, kind, value| visit(i, seq, kind, value));
        }
    }

    /// A cursor over point entries. It keeps the memtable alive and sees entries inserted while it lives, at the latest
    /// from the next call that positions it by other than a step.
    fn cursor(self: Arc<Self>) -> Box<dyn Cursor>;

    /// The range tombstones inserted so far, fragmented; `None` where there are none. Built again only after new ones.
    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>>;

    /// Whether a seek takes a few cache misses just now, and [`tombstones`](Memtable::tombstones) builds nothing: then both
    /// may be asked under a lock. Representations that sort for their readers never are.
    fn is_ready_to_seek(&self) -> bool {
        false
    }

    /// Point entries, deletions included, and range deletions.
    fn entries(&self) -> u64;

    fn deletions(&self) -> u64;

    /// Bytes of keys and values inserted.
    fn payload_bytes(&self) -> u64;

    /// Memory held now, everything included, in bytes.
    fn memory_bytes(&self) -> usize;

    /// Arena bytes reserved so far: what `write_buffer_size` is compared with.
    fn reserved_bytes(&self) -> usize;

    /// What [`reserved_bytes`](Memtable::reserved_bytes) can reach.
    fn capacity_bytes(&self) -> usize;

    /// Estimated entries with user keys in `[start, end)`.
    fn approximate_entries(&self, start: &[u8], end: &[u8]) -> u64;

    /// Makes the next pages of the arena present of those that lie less than `ahead_bytes` behind what is reserved, so that
    /// no insert waits for them: a step of at most 2 MiB. `may_hold` is asked first whether so many bytes more may be held, as
    /// what is present counts as held. False where nothing was lacking, or could be had. Called in the background, before
    /// and while the memtable is written.
    fn make_present(&self, _ahead_bytes: usize, _may_hold: &dyn Fn(usize) -> bool) -> bool {
        false
    }

    /// Makes all of it present.
    fn populate(&self) {
        while self.make_present(usize::MAX, &|_| true) {}
    }

    /// Tells an image that no write at or below `created_at` is in it. Told before the first insert, again with a larger number as
    /// long as nothing was inserted, and late by some with what was told before; nothing without an image, or once sealed.
    fn begin_after(&self, _created_at: SeqNo) {}

    /// Tells an image that every write of its family above the number that it begins after, up to `complete_through`, that was
    /// meant for this memtable is inserted; and a position at or before the first write above that number, in whatever way
    /// of counting in which later is larger. What was told before stands where it is larger. Cheap enough for each
    /// publication; nothing without an image, or once sealed.
    fn mark(&self, _complete_through: SeqNo, _position: u64) {}

    /// Tells an image that something of its family which belongs between is elsewhere, so that the image alone does not
    /// tell all. False where it cannot be told: without an image, or once sealed.
    fn mark_foreign(&self) -> bool {
        false
    }

    /// Told, once or more often, when no further insert will come and all are done. Representations that sort, sort here.
    fn seal(&self) {}

    /// Its memory as the bytes of a file, once it is sealed. `None` for representations that have no images, and where the
    /// factory's [`Conversion`] wants none and the memtable lies in no file.
    fn image(&self) -> Option<SealedImage<'_>> {
        None
    }
}

/// Makes memtables of one representation: what an option string such as `skip_list` or `vector` names.
pub trait MemtableFactory: Send + Sync {
    fn name(&self) -> &'static str;

    /// The option string that yields this factory again.
    fn option_string(&self) -> String;

    /// # Errors
    /// `NoSpace` where memory cannot be had; `InvalidArgument` for a capacity that nothing fits in, or one that cannot be.
    fn create(&self, config: &MemtableConfig) -> Result<Arc<dyn Memtable>>;

    /// How its memtables are to become tables; as a rule by being rewritten.
    fn conversion(&self) -> Conversion {
        Conversion::default()
    }
}
