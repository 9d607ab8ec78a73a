//! A table on disk, as versions hold it: what the MANIFEST says of it, and the open table while there is one.
//!
//! Every `Arc<TableFile>` is a pin (Q3): versions, cursors, checkpoints and backups hold clones. The last one to go hands
//! the file to the purge queue, if edits made every table in it obsolete (V3).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use base::key::{self, is_exclusive_end};
use base::tombstone::FragmentedTombstones;
use base::{FileNumber, Result, SeqNo};
use parking_lot::Mutex;
use table::{Table, TablePart};

use super::log_life::ValueLog;
use super::table_life::TableLife;
use super::table_store::TableStore;

/// What the MANIFEST says of a table: plain data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileMeta {
    pub number: FileNumber,
    /// Which of the family's directories holds the file.
    pub path_id: u32,
    pub temperature: u8,
    /// Bytes of the file; of a virtual table its share of them, about.
    pub file_bytes: u64,
    /// Where a virtual table lies; `None` for one that is its file.
    pub backing: Option<Backing>,
    /// The first internal key. With [`largest`](Self::largest) it spans range tombstones too.
    pub smallest: Vec<u8>,
    /// The last internal key. Where a range tombstone ends the table this is its end at `SeqNo::MAX` with kind
    /// `RangeDeletion`, and that user key is not in the table.
    pub largest: Vec<u8>,
    pub smallest_seq: SeqNo,
    pub largest_seq: SeqNo,
    /// Orders level 0: what was flushed or ingested later has a larger one. 0 where RocksDB did not write any.
    pub epoch_number: u64,
    pub marked_for_compaction: bool,
    /// Seconds since the epoch at which the oldest entry was written, about; 0 where unknown.
    pub oldest_ancestor_time: u64,
    /// Seconds since the epoch; 0 where unknown.
    pub file_creation_time: u64,
    /// The oldest blob file that entries refer to; 0 for none.
    pub oldest_blob: u64,
    pub file_checksum: Vec<u8>,
    /// The logs that hold values of the table's entries, by number.
    pub value_logs: Vec<ValueLog>,
    /// Empty where the file has no checksum of its own.
    pub file_checksum_func: String,
    /// RocksDB's internal unique id, checked against the table's properties where it is there.
    pub unique_id: Option<(u64, u64)>,
}

/// The file that a virtual table is a part of: the part between its bounds. It has been a table's own once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backing {
    pub number: FileNumber,
    pub file_bytes: u64,
}

impl FileMeta {
    pub fn is_virtual(&self) -> bool {
        self.backing.is_some()
    }

    /// The number of the file that the table lies in.
    pub fn physical_number(&self) -> FileNumber {
        self.backing.map_or(self.number, |backing| backing.number)
    }

    /// Bytes of the file that the table lies in.
    pub fn physical_bytes(&self) -> u64 {
        self.backing.map_or(self.file_bytes, |backing| backing.file_bytes)
    }

    /// The part of its file that a virtual table is.
    pub fn part(&self) -> Option<TablePart> {
        self.backing.map(|backing| TablePart {
            smallest: self.smallest.clone(),
            largest: self.largest.clone(),
            bytes: self.file_bytes,
            file_bytes: backing.file_bytes,
        })
    }

    pub fn smallest_user_key(&self) -> &[u8] {
        key::user_key(&self.smallest)
    }

    pub fn largest_user_key(&self) -> &[u8] {
        key::user_key(&self.largest)
    }

    /// The tombstones of the table as far as its bounds go. Older versions of RocksDB wrote a tombstone whole into every
    /// table that a compaction cut it over; outside the table it says nothing, and there may be newer entries there whose
    /// numbers have been zeroed since.
    pub fn tombstones_inside(&self, all: &Arc<FragmentedTombstones>) -> Arc<FragmentedTombstones> {
        all.clipped(self.smallest_user_key(), self.largest_user_key(), self.largest_is_exclusive())
    }

    /// True where the largest user key is the exclusive end of a range tombstone.
    pub fn largest_is_exclusive(&self) -> bool {
        is_exclusive_end(&self.largest)
    }
}

/// An open table, in a box of one word's size so that it can be swapped atomically.
pub(super) struct OpenTable(pub Arc<dyn Table>);

/// A table that some version holds or held. Shared by all threads.
pub struct TableFile {
    pub meta: FileMeta,
    open: ArcSwapOption<OpenTable>,
    /// Read since the open slots' clock hand last passed.
    touched: AtomicBool,
    /// See [`keep_above`](Self::keep_above).
    kept_above: AtomicBool,
    /// Held while the file is being opened, so that it is opened once.
    opening: Mutex<()>,
    life: Arc<TableLife>,
    store: Arc<TableStore>,
    me: Weak<TableFile>,
}

impl TableFile {
    pub(super) fn new(meta: FileMeta, life: Arc<TableLife>, store: Arc<TableStore>) -> Arc<Self> {
        Arc::new_cyclic(|me| TableFile {
            meta,
            open: ArcSwapOption::empty(),
            touched: AtomicBool::new(false),
            kept_above: AtomicBool::new(false),
            opening: Mutex::new(()),
            life,
            store,
            me: me.clone(),
        })
    }

    /// The same file under changed metadata (a level's new temperature or epoch): they share one life, so that the file
    /// outlives both.
    pub fn with_meta(&self, meta: FileMeta) -> Arc<TableFile> {
        assert_eq!(meta.number, self.meta.number, "metadata of another file");
        TableFile::new(meta, self.life.clone(), self.store.clone())
    }

    /// A handle for a virtual table in the same file, which then outlives both. Made before an edit that removes this
    /// table is durable.
    pub(super) fn beside(&self, meta: FileMeta) -> Arc<TableFile> {
        assert_eq!(meta.physical_number(), self.meta.physical_number(), "a table in another file");
        TableFile::new(meta, self.life.beside(), self.store.clone())
    }

    pub fn number(&self) -> FileNumber {
        self.meta.number
    }

    pub fn smallest_user_key(&self) -> &[u8] {
        self.meta.smallest_user_key()
    }

    pub fn largest_user_key(&self) -> &[u8] {
        self.meta.largest_user_key()
    }

    /// The open table, opened on first use and again after its slot was taken. It stays usable as long as it is held.
    /// To read it once, [`with`](Self::with) is cheaper.
    ///
    /// # Errors
    /// What opening the file yields, naming it.
    pub fn open(&self) -> Result<Arc<dyn Table>> {
        if let Some(open) = &*self.open.load() {
            self.touch();
            return Ok(open.0.clone());
        }
        Ok(self.open_slow()?.0.clone())
    }

    /// Calls `read` with the open table, without touching its reference count.
    ///
    /// # Errors
    /// As [`open`](Self::open), and what `read` yields.
    pub fn with<R>(&self, read: impl FnOnce(&dyn Table) -> Result<R>) -> Result<R> {
        if let Some(open) = &*self.open.load() {
            self.touch();
            return read(&*open.0);
        }
        read(&*self.open_slow()?.0)
    }

    #[cold]
    fn open_slow(&self) -> Result<Arc<OpenTable>> {
        let _opening = self.opening.lock();
        if let Some(open) = self.open.load_full() {
            return Ok(open);
        }
        Ok(self.take_open(self.store.open(&self.meta)?))
    }

    /// Keeps an open table, until its slot is taken.
    pub(super) fn take_open(&self, table: Arc<dyn Table>) -> Arc<OpenTable> {
        let open = Arc::new(OpenTable(table));
        self.touch();
        self.open.store(Some(open.clone()));
        self.store.slots().took_slot(self.me.clone());
        open
    }

    pub fn is_open(&self) -> bool {
        self.open.load().is_some()
    }

    /// Closes the table; readers that hold it keep it.
    pub(super) fn close(&self) {
        self.open.store(None);
    }

    fn touch(&self) {
        // Stored only when it changes, so that readers of a hot table share its cache line.
        if !self.touched.load(Ordering::Relaxed) {
            self.touched.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the table was read since the last call.
    pub(super) fn take_touched(&self) -> bool {
        self.touched.swap(false, Ordering::Relaxed)
    }

    /// Says that an edit which removes the table from its family is durable (V3): its file goes when the last pin of the
    /// last table in it does.
    pub fn mark_obsolete(&self) {
        self.life.mark_obsolete();
    }

    /// Says that what is above the table in its level cannot be put above it in a level of its own.
    pub fn keep_above(&self) {
        self.kept_above.store(true, Ordering::Relaxed);
    }

    pub fn is_kept_above(&self) -> bool {
        self.kept_above.load(Ordering::Relaxed)
    }

    /// Whether rewriting the table would let a log go most of which nobody needs.
    pub fn keeps_dead_log(&self) -> bool {
        self.life.keeps_dead_log()
    }

    pub fn is_obsolete(&self) -> bool {
        self.life.is_obsolete()
    }
}
