//! Opens tables and bounds the number of open ones.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use base::Result;
use parking_lot::Mutex;
use table::Table;

use super::file_name::FileType;
use super::hot_reads::HotReads;
use super::log_life::{LogLife, LogLives};
use super::purge::ObsoleteFile;
use super::table_file::{FileMeta, TableFile};
use super::table_life::TableLife;

/// Opens the tables of one family: knows its directories, comparator and table options.
pub trait TableOpener: Send + Sync {
    /// # Errors
    /// Errors of reading the file, naming it.
    fn open(&self, meta: &FileMeta) -> Result<Arc<dyn Table>>;
}

/// Makes the table handles of one family. The open slots and the purge queue are the database's.
pub struct TableStore {
    opener: Box<dyn TableOpener>,
    slots: Arc<OpenSlots>,
    logs: Arc<LogLives>,
    hot_reads: HotReads,
}

impl TableStore {
    /// Tables may refer to values in `logs`.
    pub fn new(opener: Box<dyn TableOpener>, slots: Arc<OpenSlots>, logs: Arc<LogLives>) -> Arc<Self> {
        Arc::new(TableStore { opener, slots, logs, hot_reads: HotReads::default() })
    }

    /// A handle for a table new to this process, in a file without tables in any of its versions.
    pub fn file(self: &Arc<Self>, meta: FileMeta) -> Arc<TableFile> {
        let shares = meta.value_logs.iter();
        let logs = shares.map(|share| (self.logs.of_log(share.log), share.bytes)).collect();
        self.with_life(meta, logs)
    }

    /// As [`file`](Self::file), for a version never installed. The handle adds no need to the table's WALs: it is
    /// dropped without an edit, and a WAL losing its last need this way would stay.
    pub(crate) fn planned_file(self: &Arc<Self>, meta: FileMeta) -> Arc<TableFile> {
        self.with_life(meta, Vec::new())
    }

    fn with_life(self: &Arc<Self>, meta: FileMeta, logs: Vec<(Arc<LogLife>, u64)>) -> Arc<TableFile> {
        let (path_id, number) = (meta.path_id, meta.physical_number());
        let file = ObsoleteFile { file_type: FileType::Table, path_id, number };
        TableFile::new(meta, TableLife::new(file, self.logs.purge().clone(), logs), self.clone())
    }

    /// As [`file`](Self::file), for an already open table.
    pub fn open_file(self: &Arc<Self>, meta: FileMeta, table: Arc<dyn Table>) -> Arc<TableFile> {
        let file = self.file(meta);
        file.take_open(table);
        file
    }

    pub(super) fn open(&self, meta: &FileMeta) -> Result<Arc<dyn Table>> {
        self.opener.open(meta)
    }

    /// Counts of reads, over the family's tables.
    pub fn hot_reads(&self) -> &HotReads {
        &self.hot_reads
    }

    pub(super) fn slots(&self) -> &OpenSlots {
        &self.slots
    }
}

const UNBOUNDED: usize = usize::MAX;

fn bound(max_open_files: i32) -> usize {
    usize::try_from(max_open_files).map_or(UNBOUNDED, |max| max.max(1))
}

/// The open tables, bounded by CLOCK eviction. Over the bound, the hand skips tables read since its last pass and
/// closes the first unread one.
pub struct OpenSlots {
    /// `UNBOUNDED`: nothing is tracked.
    max: AtomicUsize,
    pub(super) clock: Mutex<VecDeque<Weak<TableFile>>>,
}

impl OpenSlots {
    /// `max_open_files` as in RocksDB: -1 keeps every table open.
    pub fn new(max_open_files: i32) -> Arc<Self> {
        Arc::new(OpenSlots { max: AtomicUsize::new(bound(max_open_files)), clock: Mutex::new(VecDeque::new()) })
    }

    /// Changes the bound. True if nothing was tracked before: the caller registers the open tables.
    pub fn set_max(&self, max_open_files: i32) -> bool {
        let max = bound(max_open_files);
        let before = self.max.swap(max, Ordering::Relaxed);
        if max == UNBOUNDED {
            self.clock.lock().clear();
        }
        before == UNBOUNDED && max != UNBOUNDED
    }

    /// Registers an opened table, and closes tables while over the bound.
    pub(crate) fn took_slot(&self, file: Weak<TableFile>) {
        let max = self.max.load(Ordering::Relaxed);
        if max == UNBOUNDED {
            return;
        }
        // Closed and dropped after the lock: this may drop the last handle of a table and queue its file.
        let mut passed = Vec::new();
        let mut clock = self.clock.lock();
        clock.push_back(file);
        // Every step clears a mark or removes an entry, so two rounds suffice.
        let mut steps = 2 * clock.len();
        while clock.len() > max && steps > 0 {
            steps -= 1;
            let Some(oldest) = clock.pop_front() else { break };
            let Some(open) = oldest.upgrade() else { continue };
            let is_idle = !open.take_touched();
            if !is_idle {
                clock.push_back(oldest);
            }
            passed.push((open, is_idle));
        }
        drop(clock);
        passed.iter().filter(|(_, is_idle)| *is_idle).for_each(|(file, _)| file.close());
    }
}
