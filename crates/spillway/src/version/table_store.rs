//! Opens tables and bounds how many are open.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use base::Result;
use parking_lot::Mutex;
use table::Table;

use super::file_name::FileType;
use super::log_life::{LogLife, LogLives};
use super::purge::{ObsoleteFile, PurgeQueue};
use super::table_file::{FileMeta, TableFile};
use super::table_life::TableLife;

/// Opens the tables of one family: knows its directories, its order of keys and its table options.
pub trait TableOpener: Send + Sync {
    /// # Errors
    /// What reading the file yields; the error names it.
    fn open(&self, meta: &FileMeta) -> Result<Arc<dyn Table>>;
}

/// Makes the table handles of one family. The open slots and the purge queue are the database's.
pub struct TableStore {
    opener: Box<dyn TableOpener>,
    slots: Arc<OpenSlots>,
    purge: Arc<PurgeQueue>,
    /// `None` where no table refers to values in logs.
    logs: Option<Arc<LogLives>>,
}

impl TableStore {
    pub fn new(opener: Box<dyn TableOpener>, slots: Arc<OpenSlots>, purge: Arc<PurgeQueue>) -> Arc<Self> {
        Arc::new(TableStore { opener, slots, purge, logs: None })
    }

    /// As [`new`](TableStore::new), for tables that may refer to values in `logs`.
    pub fn with_logs(opener: Box<dyn TableOpener>, slots: Arc<OpenSlots>, logs: Arc<LogLives>) -> Arc<Self> {
        Arc::new(TableStore { opener, slots, purge: logs.purge().clone(), logs: Some(logs) })
    }

    /// A handle for a table that no version of this process held before, in a file that no table of one lies in.
    pub fn file(self: &Arc<Self>, meta: FileMeta) -> Arc<TableFile> {
        let logs = self.logs_of(&meta);
        self.with_life(meta, logs)
    }

    /// As [`file`](Self::file), for a version that is never installed. It does not count among what needs the table's logs:
    /// it would go without an edit, and a log that lost its last need so would stay.
    pub(super) fn planned_file(self: &Arc<Self>, meta: FileMeta) -> Arc<TableFile> {
        self.with_life(meta, Vec::new())
    }

    fn with_life(self: &Arc<Self>, meta: FileMeta, logs: Vec<(Arc<LogLife>, u64)>) -> Arc<TableFile> {
        let (path_id, number) = (meta.path_id, meta.physical_number());
        let file = ObsoleteFile { file_type: FileType::Table, path_id, number };
        TableFile::new(meta, TableLife::new(file, self.purge.clone(), logs), self.clone())
    }

    fn logs_of(&self, meta: &FileMeta) -> Vec<(Arc<LogLife>, u64)> {
        let of =
            |logs: &Arc<LogLives>| meta.value_logs.iter().map(|share| (logs.of_log(share.log), share.bytes)).collect();
        self.logs.as_ref().map(of).unwrap_or_default()
    }

    /// As [`file`](Self::file), of a table that is open already.
    pub fn open_file(self: &Arc<Self>, meta: FileMeta, table: Arc<dyn Table>) -> Arc<TableFile> {
        let file = self.file(meta);
        file.take_open(table);
        file
    }

    pub(super) fn open(&self, meta: &FileMeta) -> Result<Arc<dyn Table>> {
        self.opener.open(meta)
    }

    pub(super) fn slots(&self) -> &OpenSlots {
        &self.slots
    }
}

/// The tables that are open, bounded. A CLOCK: when there are too many, the hand passes over those read since it last
/// came by and closes the first that was not.
pub struct OpenSlots {
    /// `None`: no bound, and nothing is tracked.
    max: Option<usize>,
    clock: Mutex<VecDeque<Weak<TableFile>>>,
}

impl OpenSlots {
    /// `max_open_files` as RocksDB has it: -1 keeps every table open.
    pub fn new(max_open_files: i32) -> Arc<Self> {
        let max = usize::try_from(max_open_files).ok().map(|max| max.max(1));
        Arc::new(OpenSlots { max, clock: Mutex::new(VecDeque::new()) })
    }

    /// Notes that a table was opened, and closes others while there are too many.
    pub(super) fn took_slot(&self, file: Weak<TableFile>) {
        let Some(max) = self.max else {
            return;
        };
        // Closed and dropped after the lock: the last handle of a table may go here, and its file be queued.
        let mut passed = Vec::new();
        let mut clock = self.clock.lock();
        clock.push_back(file);
        // Every pass clears a mark or removes an entry, so two rounds find what to close.
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

    /// Tables that hold a slot; those whose handles are gone count until the hand passes.
    pub fn len(&self) -> usize {
        self.clock.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
