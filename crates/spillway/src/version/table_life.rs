//! How long a table's file stays, and the logs that it refers to: until no table that lies in it is needed, and its last
//! pin is gone.
//!
//! A file holds one whole table or, once an excise has cut that up, any number of virtual ones. Keeps Q3 and V3.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::log_life::LogLife;
use super::purge::{FileLife, ObsoleteFile, PurgeQueue};

/// A table's life, shared by every handle of it. While one lives, the file does.
pub(super) struct TableLife {
    home: Arc<SharedFile>,
    obsolete: AtomicBool,
}

/// A file with the tables that lie in it.
struct SharedFile {
    life: Arc<FileLife>,
    /// Tables in it that no edit has removed. Once 0, it stays so.
    needed: AtomicUsize,
    /// What values in the file are in, and how many bytes of each; the file needs each of them.
    logs: Vec<(Arc<LogLife>, u64)>,
}

impl Drop for SharedFile {
    /// Without an edit that removed all its tables: the database closes, or the file never became part of it.
    fn drop(&mut self) {
        if !self.life.is_obsolete() {
            self.logs.iter().for_each(|(log, bytes)| log.end_values(*bytes, false));
        }
    }
}

impl TableLife {
    /// Of the only table in a file so far.
    pub fn new(file: ObsoleteFile, queue: Arc<PurgeQueue>, logs: Vec<(Arc<LogLife>, u64)>) -> Arc<Self> {
        logs.iter().for_each(|(log, bytes)| log.need_values(*bytes));
        let home = SharedFile { life: FileLife::new(file, queue), needed: AtomicUsize::new(1), logs };
        Arc::new(TableLife { home: Arc::new(home), obsolete: AtomicBool::new(false) })
    }

    /// Of another table in the same file. Made before any edit removes the last one that is there.
    pub fn beside(&self) -> Arc<Self> {
        let before = self.home.needed.fetch_add(1, Ordering::AcqRel);
        assert!(before > 0, "a table is put into a file that is about to be deleted");
        Arc::new(TableLife { home: self.home.clone(), obsolete: AtomicBool::new(false) })
    }

    /// Says that no version needs the table from now on. The caller has made the edit that says so durable (V3).
    pub fn mark_obsolete(&self) {
        if !self.obsolete.swap(true, Ordering::AcqRel) && self.home.needed.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.home.life.mark_obsolete();
            self.home.logs.iter().for_each(|(log, bytes)| log.end_values(*bytes, true));
        }
    }

    /// Whether the table keeps a log that is mostly dead.
    pub fn keeps_dead_log(&self) -> bool {
        self.home.logs.iter().any(|(log, _)| log.is_mostly_dead())
    }

    pub fn is_obsolete(&self) -> bool {
        self.obsolete.load(Ordering::Acquire)
    }
}

impl Drop for TableLife {
    /// Goes without having been removed: its edit was never made, or the database closes. The last of a file keeps the
    /// file from deletion for ever, so that closing deletes nothing; others leave that to those that are still there.
    fn drop(&mut self) {
        if !*self.obsolete.get_mut() {
            let others_stay = |needed: usize| needed.checked_sub(1).filter(|&others| others > 0);
            let _ = self.home.needed.fetch_update(Ordering::AcqRel, Ordering::Acquire, others_stay);
        }
    }
}
