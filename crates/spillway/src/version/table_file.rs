//! A table in a version: its metadata from the MANIFEST, and the open table while there is one.
//!
//! Every `Arc<TableFile>` is a pin (Q3): versions, cursors, checkpoints and backups hold clones. Once edits made every
//! table in the file obsolete (V3), the drop of the last pin hands the file to the purge queue.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use base::key::{self, is_exclusive_end};
use base::tombstone::FragmentedTombstones;
use base::{Error, FileNumber, Result, SeqNo};
use parking_lot::Mutex;
use table::{Properties, Table, TablePart, TableReadOptions, TableSummary};

use super::hot_reads::ReadCount;
use super::log_life::ValueLog;
use super::table_life::TableLife;
use super::table_store::TableStore;

/// Metadata of a table in the MANIFEST: plain data.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FileMeta {
    pub number: FileNumber,
    /// Index of the family's directory for the file.
    pub path_id: u32,
    pub temperature: u8,
    /// Bytes of the file; for a virtual table its approximate share of them.
    pub file_bytes: u64,
    /// Backing file of a virtual table; `None` for an ordinary table.
    pub backing: Option<Backing>,
    /// The first internal key. With [`largest`](Self::largest) it spans range tombstones too.
    pub smallest: Vec<u8>,
    /// The last internal key. If a range tombstone ends the table, this is the tombstone's end at `SeqNo::MAX` with
    /// kind `RangeDeletion`. The table then excludes this user key.
    pub largest: Vec<u8>,
    pub smallest_seq: SeqNo,
    pub largest_seq: SeqNo,
    /// Orders level 0: later flushes and ingests have larger epochs. 0 if RocksDB wrote none.
    pub epoch_number: u64,
    pub marked_for_compaction: bool,
    /// Approximate write time of the oldest entry, in seconds since the epoch; 0 if unknown.
    pub oldest_ancestor_time: u64,
    /// Seconds since the epoch; 0 if unknown.
    pub file_creation_time: u64,
    /// The oldest blob file referred to by entries; 0 for none.
    pub oldest_blob: u64,
    pub file_checksum: Vec<u8>,
    /// WALs holding values of the table's entries, ascending by number.
    pub value_logs: Vec<ValueLog>,
    /// Empty if the file has no checksum of its own.
    pub file_checksum_func: String,
    /// RocksDB's internal unique id, from the table's properties. Compared at each open of the file; `None`: an older
    /// table, which stays without.
    pub unique_id: Option<(u64, u64)>,
    /// See [`has_mostly_deletions`]. Not in the MANIFEST: set for tables written by this process.
    pub mostly_deletions: bool,
    /// Whether it has range tombstones. Not in the MANIFEST either.
    pub deletes_ranges: bool,
}

/// Fewer deletions are not worth a compaction of their own.
const DELETIONS_MIN: u64 = 4096;

/// Whether more than half of a table's entries are deletions, and they are many.
pub fn has_mostly_deletions(properties: &Properties) -> bool {
    let Properties { entries, deletions, .. } = *properties;
    deletions >= DELETIONS_MIN && deletions > entries / 2
}

/// Backing file of a virtual table. The table is the part of the file between its bounds. The file was once an ordinary
/// table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backing {
    pub number: FileNumber,
    pub file_bytes: u64,
}

impl FileMeta {
    pub fn is_virtual(&self) -> bool {
        self.backing.is_some()
    }

    /// Checks the number of an entry or a range tombstone of the table.
    ///
    /// # Errors
    /// `Corruption`: another table's.
    pub fn check_number(&self, seq: SeqNo) -> Result<()> {
        let (smallest, largest) = (self.smallest_seq, self.largest_seq);
        if (smallest..=largest).contains(&seq) {
            return Ok(());
        }
        let what = format!("an entry has number {seq}, outside of {smallest} to {largest} that the MANIFEST gives");
        Err(Error::corruption(what))
    }

    /// Compares the unique id, if there is one, with the open table's.
    ///
    /// # Errors
    /// `Corruption`: another table lies in the file's place.
    pub fn check_identity(&self, properties: &Properties) -> Result<()> {
        let Some(expected) = self.unique_id else { return Ok(()) };
        let found = properties.unique_id();
        if found == Some(expected) {
            return Ok(());
        }
        let text = |(first, second)| format!("{first:016X}-{second:016X}");
        let found = found.map_or_else(|| "no id".to_owned(), text);
        let (number, db_id) = (properties.original_file_number, &properties.db_id);
        let what = format!(
            "Mismatch in unique ID on table file: expected {}, found {found}, made as number {number} by database \
             \"{db_id}\". Put the right file back from a copy",
            text(expected)
        );
        Err(Error::corruption(what))
    }

    /// The metadata of a copy in a file of its own, `number`. Fields that describe the old file are cleared.
    pub fn copied_to(&self, number: FileNumber, copy: &TableSummary) -> FileMeta {
        FileMeta {
            number,
            file_bytes: copy.file_bytes,
            backing: None,
            file_checksum: Vec::new(),
            file_checksum_func: String::new(),
            unique_id: copy.properties.unique_id(),
            value_logs: Vec::new(),
            ..self.clone()
        }
    }

    /// The number of the file holding the table.
    pub fn physical_number(&self) -> FileNumber {
        self.backing.map_or(self.number, |backing| backing.number)
    }

    /// Bytes of the file holding the table.
    pub fn physical_bytes(&self) -> u64 {
        self.backing.map_or(self.file_bytes, |backing| backing.file_bytes)
    }

    /// The part of the backing file; `None` for an ordinary table.
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

    /// Clips the table's tombstones to its bounds. Older versions of RocksDB wrote a split tombstone whole into every
    /// output of a compaction. Outside the bounds it is void: newer entries there may have zeroed sequence numbers.
    pub fn tombstones_inside(&self, all: &Arc<FragmentedTombstones>) -> Arc<FragmentedTombstones> {
        all.clipped(self.smallest_user_key(), self.largest_user_key(), self.largest_is_exclusive())
    }

    /// True if the largest user key is the exclusive end of a range tombstone.
    pub fn largest_is_exclusive(&self) -> bool {
        is_exclusive_end(&self.largest)
    }
}

/// An open table, boxed to one word for atomic swaps.
pub(super) struct OpenTable(pub Arc<dyn Table>);

/// A table of a current or past version. Shared by all threads.
pub struct TableFile {
    pub meta: FileMeta,
    open: ArcSwapOption<OpenTable>,
    /// Read since the last pass of the open slots' clock hand.
    touched: AtomicBool,
    /// See [`keep_above`](Self::keep_above).
    kept_above: AtomicBool,
    /// Found in the properties when the table was opened.
    mostly_deletions: AtomicBool,
    reads: ReadCount,
    /// Held during an open, so the file is opened once.
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
            mostly_deletions: AtomicBool::new(false),
            reads: ReadCount::default(),
            opening: Mutex::new(()),
            life,
            store,
            me: me.clone(),
        })
    }

    /// The same table under changed metadata, such as temperature or epoch. Both handles share one life, so the file
    /// outlives both.
    pub fn with_meta(&self, meta: FileMeta) -> Arc<TableFile> {
        assert_eq!(meta.number, self.meta.number, "metadata of another file");
        TableFile::new(meta, self.life.clone(), self.store.clone())
    }

    /// A copy of the table in a file of another database, never read here.
    pub(super) fn elsewhere(&self, meta: FileMeta) -> Arc<TableFile> {
        self.store.planned_file(meta)
    }

    /// A handle for a virtual table in the same file; the file outlives both. Called before an edit removing this table
    /// is durable.
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

    /// Returns the table, opening it on first use and after its slot was reclaimed. It stays usable as long as it is
    /// held. For a single read, [`with`](Self::with) is cheaper.
    ///
    /// # Errors
    /// Errors of opening the file, naming it.
    pub fn open(&self) -> Result<Arc<dyn Table>> {
        self.open_by(&TableReadOptions::default())
    }

    /// As [`open`](Self::open).
    ///
    /// # Errors
    /// `Incomplete` too: the table is not open, and `options` allow no file.
    pub fn open_by(&self, options: &TableReadOptions) -> Result<Arc<dyn Table>> {
        if let Some(open) = &*self.open.load() {
            self.touch();
            return Ok(open.0.clone());
        }
        Ok(self.open_slow(options)?.0.clone())
    }

    /// Calls `read` with the open table, without touching its reference count.
    ///
    /// # Errors
    /// As [`open`](Self::open), and errors of `read`.
    pub fn with<R>(&self, read: impl FnOnce(&dyn Table) -> Result<R>) -> Result<R> {
        self.read_by(&TableReadOptions::default(), read)
    }

    /// As [`with`](Self::with).
    ///
    /// # Errors
    /// As [`open_by`](Self::open_by), and errors of `read`.
    pub fn read_by<R>(&self, options: &TableReadOptions, read: impl FnOnce(&dyn Table) -> Result<R>) -> Result<R> {
        if let Some(open) = &*self.open.load() {
            self.touch();
            return read(&*open.0);
        }
        read(&*self.open_slow(options)?.0)
    }

    /// Opens the file anew, and reads all of it: an open table keeps its index, and its tail could be damaged since.
    ///
    /// # Errors
    /// `Corruption`: a part of the file is damaged. Errors of opening the file.
    pub fn verify_file(&self) -> Result<()> {
        self.store.open(&self.meta)?.verify()
    }

    /// Counts a read that goes on to older tables, if the family's reads are counted.
    #[inline]
    pub fn count_read(&self) {
        let of_family = self.store.hot_reads();
        if of_family.is_counting() {
            self.reads.add(of_family, self.number(), self.meta.file_bytes);
        }
    }

    #[cold]
    fn open_slow(&self, options: &TableReadOptions) -> Result<Arc<OpenTable>> {
        options.check_may_read_file()?;
        let _opening = self.opening.lock();
        if let Some(open) = self.open.load_full() {
            return Ok(open);
        }
        Ok(self.take_open(self.store.open(&self.meta)?))
    }

    /// Stores an open table until its slot is reclaimed.
    pub(super) fn take_open(&self, table: Arc<dyn Table>) -> Arc<OpenTable> {
        if has_mostly_deletions(table.properties()) {
            self.mostly_deletions.store(true, Ordering::Relaxed);
        }
        let open = Arc::new(OpenTable(table));
        self.touch();
        self.open.store(Some(open.clone()));
        self.store.slots().took_slot(self.me.clone());
        open
    }

    pub fn is_open(&self) -> bool {
        self.open.load().is_some()
    }

    /// Memory of the open table beside the caches'; `None` if it is closed.
    pub fn memory_bytes_if_open(&self) -> Option<usize> {
        self.open.load().as_ref().map(|open| open.0.memory_bytes())
    }

    /// Closes the table. Readers already holding it keep it.
    pub(super) fn close(&self) {
        self.open.store(None);
    }

    fn touch(&self) {
        // Stored only on change, so readers of a hot table share its cache line.
        if !self.touched.load(Ordering::Relaxed) {
            self.touched.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the table was read since the last call.
    pub(super) fn take_touched(&self) -> bool {
        self.touched.swap(false, Ordering::Relaxed)
    }

    /// Marks the table obsolete. Called once the edit removing it from its family is durable (V3). The file goes with
    /// the last pin of the last table in it.
    pub fn mark_obsolete(&self) {
        self.life.mark_obsolete();
    }

    /// Bars the table from sinking beneath the older tables of its level. Called after a failed attempt, so it is not
    /// retried.
    pub fn keep_above(&self) {
        self.kept_above.store(true, Ordering::Relaxed);
    }

    pub fn is_kept_above(&self) -> bool {
        self.kept_above.load(Ordering::Relaxed)
    }

    /// Whether the table is known to hold [mostly deletions](has_mostly_deletions). An earlier process's table is known once
    /// it was opened.
    pub fn has_mostly_deletions(&self) -> bool {
        self.meta.mostly_deletions || self.mostly_deletions.load(Ordering::Relaxed)
    }

    /// Whether rewriting the table would free a mostly dead WAL.
    pub fn keeps_dead_log(&self) -> bool {
        self.life.keeps_dead_log()
    }

    pub fn is_obsolete(&self) -> bool {
        self.life.is_obsolete()
    }
}
