//! Lifetime of a table's file and of the WALs with its values: until no table in the file is needed, and its last pin
//! is gone.
//!
//! A file holds one whole table or, after an excise, any number of virtual ones. Keeps Q3 and V3.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::log_life::LogLife;
use super::purge::{FileLife, ObsoleteFile, PurgeQueue};

/// Lifetime of a table, shared by all its handles. The file outlives it.
pub(super) struct TableLife {
    home: Arc<SharedFile>,
    obsolete: AtomicBool,
}

/// A file and the tables in it.
struct SharedFile {
    life: Arc<FileLife>,
    /// Tables not yet removed by an edit. Once 0, it stays so.
    needed: AtomicUsize,
    /// WALs with values of the file's entries, and bytes of values in each. The file needs each WAL.
    logs: Vec<(Arc<LogLife>, u64)>,
}

impl Drop for SharedFile {
    /// If no edit removed all tables, ends the WAL needs without a durable edit: the database closes, or the file never
    /// became part of it.
    fn drop(&mut self) {
        if !self.life.is_obsolete() {
            self.logs.iter().for_each(|(log, bytes)| log.end_values(*bytes, false));
        }
    }
}

impl TableLife {
    /// For the first table in a file.
    pub fn new(file: ObsoleteFile, queue: Arc<PurgeQueue>, logs: Vec<(Arc<LogLife>, u64)>) -> Arc<Self> {
        logs.iter().for_each(|(log, bytes)| log.need_values(*bytes));
        let home = SharedFile { life: FileLife::new(file, queue), needed: AtomicUsize::new(1), logs };
        Arc::new(TableLife { home: Arc::new(home), obsolete: AtomicBool::new(false) })
    }

    /// For a further table in the same file. Called before an edit removes the last existing one.
    pub fn beside(&self) -> Arc<Self> {
        let before = self.home.needed.fetch_add(1, Ordering::AcqRel);
        assert!(before > 0, "a table is put into a file that is about to be deleted");
        Arc::new(TableLife { home: self.home.clone(), obsolete: AtomicBool::new(false) })
    }

    /// Marks the table obsolete. Called once the edit removing it is durable (V3).
    pub fn mark_obsolete(&self) {
        if !self.obsolete.swap(true, Ordering::AcqRel) && self.home.needed.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.home.life.mark_obsolete();
            self.home.logs.iter().for_each(|(log, bytes)| log.end_values(*bytes, true));
        }
    }

    /// Whether the table keeps a mostly dead WAL.
    pub fn keeps_dead_log(&self) -> bool {
        self.home.logs.iter().any(|(log, _)| log.is_mostly_dead())
    }

    pub fn is_obsolete(&self) -> bool {
        self.obsolete.load(Ordering::Acquire)
    }
}

impl Drop for TableLife {
    /// Dropped without removal: the table's edit was never made, or the database closes. The last table leaves `needed`
    /// at 1, so closing never deletes the file. Earlier ones decrement it.
    fn drop(&mut self) {
        if !*self.obsolete.get_mut() {
            let others_stay = |needed: usize| needed.checked_sub(1).filter(|&others| others > 0);
            let _ = self.home.needed.fetch_update(Ordering::AcqRel, Ordering::Acquire, others_stay);
        }
    }
}
