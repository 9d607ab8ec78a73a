//! How long a log stays: until recovery does not need it, no table refers to values in it, and its last pin is gone.
//! Keeps Q3 and V3.
//!
//! What needs a log is counted: the row of logs that the MANIFEST names, and each file of a table that refers to values in
//! it. Memtables that do only pin it: what they hold is in logs of that row.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use base::value_source::{ValueRef, ValueSource};
use base::{Error, FileNumber, Pinned, Result};
use log::SealedLog;
use parking_lot::Mutex;
use vfs::Vfs;

use super::file_name::{self, FileType};
use super::purge::{FileLife, ObsoleteFile, PurgeQueue};

/// A log of which a smaller share than one in so many is values that are needed is worth a compaction.
const DEAD_SHARE: u64 = 4;

/// A log, shared by everything that needs it.
pub struct LogLife {
    life: Arc<FileLife>,
    needed: AtomicUsize,
    /// Of those, tables' files, and bytes of the values that they refer to.
    tables: AtomicUsize,
    value_bytes: AtomicU64,
    /// Of the file; 0 where that was not said.
    file_bytes: AtomicU64,
    /// Where values in it are read, once one was asked for.
    values: OnceLock<Arc<dyn ValueSource>>,
    vfs: Arc<dyn Vfs>,
    path: PathBuf,
}

impl LogLife {
    pub fn file(&self) -> ObsoleteFile {
        self.life.file()
    }

    pub fn number(&self) -> FileNumber {
        self.file().number
    }

    /// Counts one more that needs the log.
    pub fn need(&self) {
        self.needed.fetch_add(1, Ordering::AcqRel);
    }

    /// Says that an edit is durable behind which one of those that needed the log does not (V3).
    pub fn mark_unneeded(&self) {
        if self.needed.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.life.mark_obsolete();
        }
    }

    /// Takes back a [`need`](LogLife::need) that no durable edit stands for. The file stays, for the next open to judge.
    pub fn forget_need(&self) {
        self.needed.fetch_sub(1, Ordering::AcqRel);
    }

    /// As [`need`](LogLife::need), for a table's file that refers to so many bytes.
    pub(super) fn need_values(&self, bytes: u64) {
        self.need();
        self.tables.fetch_add(1, Ordering::Relaxed);
        self.value_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Ends what [`need_values`](LogLife::need_values) began, behind a durable edit or without one.
    pub(super) fn end_values(&self, bytes: u64, is_durable: bool) {
        self.tables.fetch_sub(1, Ordering::Relaxed);
        self.value_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if is_durable { self.mark_unneeded() } else { self.forget_need() }
    }

    /// Notes how large the file is.
    pub fn note_bytes(&self, bytes: u64) {
        self.file_bytes.store(bytes, Ordering::Relaxed);
    }

    pub fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the values that tables refer to.
    pub fn value_bytes(&self) -> u64 {
        self.value_bytes.load(Ordering::Relaxed)
    }

    /// Whether nothing but tables keeps the log, and most of it is not theirs.
    pub fn is_mostly_dead(&self) -> bool {
        let tables = self.tables.load(Ordering::Relaxed);
        let only_tables = tables > 0 && tables == self.needed.load(Ordering::Relaxed);
        only_tables && self.value_bytes().saturating_mul(DEAD_SHARE) < self.file_bytes()
    }

    /// Says where values are read while the log is written; the first to say so counts.
    pub fn read_values_from(&self, source: impl FnOnce() -> Arc<dyn ValueSource>) {
        self.values.get_or_init(source);
    }

    /// Where values in the log are read.
    ///
    /// # Errors
    /// The log is gone, or another.
    pub fn values(&self) -> Result<&Arc<dyn ValueSource>> {
        if let Some(values) = self.values.get() {
            return Ok(values);
        }
        let opened = SealedLog::open(&*self.vfs, &self.path, self.number())
            .map_err(|error| error.context("a log with values that tables refer to cannot be read"))?;
        Ok(self.values.get_or_init(|| Arc::new(opened)))
    }
}

/// The logs of a database, by number, each as long as something knows it.
pub struct LogLives {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    purge: Arc<PurgeQueue>,
    /// A leaf lock.
    lives: Mutex<BTreeMap<FileNumber, Weak<LogLife>>>,
}

impl LogLives {
    /// `dir`: where the logs lie.
    pub fn new(vfs: Arc<dyn Vfs>, dir: PathBuf, purge: Arc<PurgeQueue>) -> Arc<Self> {
        Arc::new(LogLives { vfs, dir, purge, lives: Mutex::default() })
    }

    pub fn purge(&self) -> &Arc<PurgeQueue> {
        &self.purge
    }

    /// The life of a log.
    pub fn of_log(&self, number: FileNumber) -> Arc<LogLife> {
        let mut lives = self.lives.lock();
        if let Some(life) = lives.get(&number).and_then(Weak::upgrade) {
            return life;
        }
        lives.retain(|_, life| life.strong_count() > 0);
        let life = self.make(FileType::Log, number);
        lives.insert(number, Arc::downgrade(&life));
        life
    }

    /// The logs that tables refer to: how many, their bytes, and those of the values referred to.
    pub fn of_tables(&self) -> (u64, u64, u64) {
        let lives: Vec<_> = self.lives.lock().values().filter_map(Weak::upgrade).collect();
        let of_tables = lives.iter().filter(|life| life.tables.load(Ordering::Relaxed) > 0);
        of_tables.fold((0, 0, 0), |(logs, bytes, values), life| {
            (logs + 1, bytes + life.file_bytes(), values + life.value_bytes())
        })
    }

    /// The life of a log or, never asked for again, of a large batch's.
    pub fn of(&self, file_type: FileType, number: FileNumber) -> Arc<LogLife> {
        if file_type == FileType::Log { self.of_log(number) } else { self.make(file_type, number) }
    }

    fn make(&self, file_type: FileType, number: FileNumber) -> Arc<LogLife> {
        let file = ObsoleteFile { file_type, path_id: 0, number };
        Arc::new(LogLife {
            life: FileLife::new(file, self.purge.clone()),
            needed: AtomicUsize::new(0),
            tables: AtomicUsize::new(0),
            value_bytes: AtomicU64::new(0),
            file_bytes: AtomicU64::new(0),
            values: OnceLock::new(),
            vfs: self.vfs.clone(),
            path: self.dir.join(file_name::format(file_type, number)),
        })
    }
}

/// Logs that are found as they are asked for, and held from then on: for whoever reads without knowing which there are.
pub struct LogsOnDemand {
    lives: Arc<LogLives>,
    held: Mutex<BTreeMap<FileNumber, Arc<LogLife>>>,
}

impl LogsOnDemand {
    pub fn new(lives: Arc<LogLives>) -> Arc<Self> {
        Arc::new(LogsOnDemand { lives, held: Mutex::default() })
    }

    /// Those in `dir`, for somebody who deletes none.
    pub fn in_dir(vfs: Arc<dyn Vfs>, dir: PathBuf) -> Arc<Self> {
        Self::new(LogLives::new(vfs, dir, PurgeQueue::new()))
    }
}

impl ValueSource for LogsOnDemand {
    fn resolve(&self, value: ValueRef) -> Result<Pinned> {
        let life = self.held.lock().entry(value.log).or_insert_with(|| self.lives.of_log(value.log)).clone();
        let values = life.values().map_err(|error| match error.is_not_found() {
            // Nothing says that there was one: it is the reference that is damaged.
            true => Error::corruption(format!("a value in log {}, which is not there", value.log)).with_source(error),
            false => error,
        })?;
        values.resolve(value)
    }
}

/// A table's share in a log, as the MANIFEST has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueLog {
    pub log: FileNumber,
    /// Bytes of the values that the table refers to.
    pub bytes: u64,
}

/// The logs that one table refers to.
pub struct LogSet(Vec<Arc<LogLife>>);

impl LogSet {
    /// Any order.
    pub fn new(mut logs: Vec<Arc<LogLife>>) -> Self {
        logs.sort_by_key(|log| log.number());
        LogSet(logs)
    }
}

impl ValueSource for LogSet {
    fn resolve(&self, value: ValueRef) -> Result<Pinned> {
        let at = self.0.binary_search_by_key(&value.log, |log| log.number()).ok();
        let Some(log) = at.and_then(|at| self.0.get(at)) else {
            let what = format!("a value in log {}, which the table is not said to refer to", value.log);
            return Err(Error::corruption(what));
        };
        log.values()?.resolve(value)
    }
}

#[cfg(test)]
mod tests {
    use vfs::MemoryVfs;

    use super::*;

    fn lives() -> Arc<LogLives> {
        LogLives::new(MemoryVfs::new(1), PathBuf::from("/db"), PurgeQueue::new())
    }

    #[test]
    fn a_log_goes_when_neither_recovery_nor_a_table_needs_it_and_the_last_pin_is_gone() {
        let lives = lives();
        let (row, table) = (lives.of_log(FileNumber(7)), lives.of_log(FileNumber(7)));
        assert!(Arc::ptr_eq(&row, &table));
        row.need();
        row.note_bytes(1000);
        table.need_values(100);
        assert!(!row.is_mostly_dead(), "recovery needs it");
        row.mark_unneeded();
        assert!(row.is_mostly_dead());
        table.need_values(150);
        assert!(!row.is_mostly_dead(), "a quarter of it is values");
        assert_eq!(lives.of_tables(), (1, 1000, 250));
        table.end_values(150, true);
        drop(row);
        assert!(lives.purge().is_empty(), "a table needs it");
        let reader = table.clone();
        table.end_values(100, true);
        drop(table);
        assert!(lives.purge().is_empty(), "it is being read");
        drop(reader);
        assert_eq!(lives.purge().take().len(), 1);
    }

    #[test]
    fn closing_deletes_nothing() {
        let lives = lives();
        let (row, table) = (lives.of_log(FileNumber(7)), lives.of_log(FileNumber(7)));
        row.need();
        table.need_values(7);
        row.mark_unneeded();
        table.end_values(7, false);
        drop((row, table));
        assert!(lives.purge().is_empty());
    }
}
