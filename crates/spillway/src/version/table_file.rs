//! A table on disk, as versions hold it: what the MANIFEST says of it, and the open table while there is one.
//!
//! Every `Arc<TableFile>` is a pin (Q3): versions, cursors, checkpoints and backups hold clones. The last one to go hands
//! the file to the purge queue, if an edit made it obsolete (V3).

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use base::{FileNumber, Result, SeqNo, ValueKind, key};
use parking_lot::Mutex;
use table::Table;

use super::purge::FileLife;
use super::table_store::TableStore;

/// What the MANIFEST says of a table: plain data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileMeta {
    pub number: FileNumber,
    /// Which of the family's directories holds the file.
    pub path_id: u32,
    pub temperature: u8,
    pub file_bytes: u64,
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
    /// Empty where the file has no checksum of its own.
    pub file_checksum_func: String,
    /// RocksDB's internal unique id, checked against the table's properties where it is there.
    pub unique_id: Option<(u64, u64)>,
}

impl FileMeta {
    pub fn smallest_user_key(&self) -> &[u8] {
        key::user_key(&self.smallest)
    }

    pub fn largest_user_key(&self) -> &[u8] {
        key::user_key(&self.largest)
    }

    /// True where the largest user key is the exclusive end of a range tombstone.
    pub fn largest_is_exclusive(&self) -> bool {
        is_exclusive_end(&self.largest)
    }
}

/// True for an internal key that stands for the end of a range tombstone: its user key is outside.
pub fn is_exclusive_end(internal_key: &[u8]) -> bool {
    key::split(internal_key)
        .is_some_and(|(_, trailer)| trailer == key::pack_trailer(SeqNo::MAX, ValueKind::RangeDeletion as u8))
}

/// An open table, in a box of one word's size so that it can be swapped atomically.
pub(super) struct OpenTable(pub Arc<dyn Table>);

/// A table that some version holds or held. Shared by all threads.
pub struct TableFile {
    pub meta: FileMeta,
    open: ArcSwapOption<OpenTable>,
    /// Read since the open slots' clock hand last passed.
    touched: AtomicBool,
    /// Held while the file is being opened, so that it is opened once.
    opening: Mutex<()>,
    life: Arc<FileLife>,
    store: Arc<TableStore>,
    me: Weak<TableFile>,
}

impl TableFile {
    pub(super) fn new(meta: FileMeta, life: Arc<FileLife>, store: Arc<TableStore>) -> Arc<Self> {
        Arc::new_cyclic(|me| TableFile {
            meta,
            open: ArcSwapOption::empty(),
            touched: AtomicBool::new(false),
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
        let open = Arc::new(OpenTable(self.store.open(&self.meta)?));
        self.touch();
        self.open.store(Some(open.clone()));
        self.store.slots().took_slot(self.me.clone());
        Ok(open)
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

    /// Says that an edit which removes the file from its family is durable (V3): it goes when the last pin does.
    pub fn mark_obsolete(&self) {
        self.life.mark_obsolete();
    }

    pub fn is_obsolete(&self) -> bool {
        self.life.is_obsolete()
    }
}
