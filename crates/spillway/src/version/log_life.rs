//! Needs are counted: one for the live WAL range in the MANIFEST, one for each table file with values in the WAL.
//! Memtables with values in the WAL only pin it: their entries are in WALs of the live range.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use base::value_source::{ValueRef, ValueSource};
use base::{Error, FileNumber, Pinned, Result};
use parking_lot::Mutex;
use vfs::Vfs;
use wal::SealedLog;

use super::file_name::{self, FileType};
use super::purge::{FileLife, ObsoleteFile, PurgeQueue};

/// A WAL is worth a compaction if its live values are less than one part in this many.
const DEAD_SHARE: u64 = 4;

/// A WAL, shared by all its users.
pub struct LogLife {
    life: Arc<FileLife>,
    needed: AtomicUsize,
    /// Table files among `needed`, and bytes of the values they refer to.
    tables: AtomicUsize,
    value_bytes: AtomicU64,
    /// Size of the file; 0 if not set.
    file_bytes: AtomicU64,
    /// Source of values in this WAL, set on first use.
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

    /// Adds one need.
    pub fn need(&self) {
        self.needed.fetch_add(1, Ordering::AcqRel);
    }

    /// Removes one need. Called once the edit ending the need is durable (V3).
    pub fn mark_unneeded(&self) {
        if self.needed.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.life.mark_obsolete();
        }
    }

    /// Removes one [`need`](LogLife::need) without a durable edit. The file stays; the next open decides.
    pub fn forget_need(&self) {
        self.needed.fetch_sub(1, Ordering::AcqRel);
    }

    /// As [`need`](LogLife::need), for a table file referring to `bytes` of values.
    pub(super) fn need_values(&self, bytes: u64) {
        self.need();
        self.tables.fetch_add(1, Ordering::Relaxed);
        self.value_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Reverses [`need_values`](LogLife::need_values), with a durable edit or without one.
    pub(super) fn end_values(&self, bytes: u64, is_durable: bool) {
        self.tables.fetch_sub(1, Ordering::Relaxed);
        self.value_bytes.fetch_sub(bytes, Ordering::Relaxed);
        if is_durable { self.mark_unneeded() } else { self.forget_need() }
    }

    /// Sets the size of the file.
    pub fn set_bytes(&self, bytes: u64) {
        self.file_bytes.store(bytes, Ordering::Relaxed);
    }

    pub fn file_bytes(&self) -> u64 {
        self.file_bytes.load(Ordering::Relaxed)
    }

    /// Bytes of the values tables refer to.
    pub fn value_bytes(&self) -> u64 {
        self.value_bytes.load(Ordering::Relaxed)
    }

    /// True if only tables keep the WAL, and their values are a small part of it.
    pub fn is_mostly_dead(&self) -> bool {
        let tables = self.tables.load(Ordering::Relaxed);
        let only_tables = tables > 0 && tables == self.needed.load(Ordering::Relaxed);
        only_tables && self.value_bytes().saturating_mul(DEAD_SHARE) < self.file_bytes()
    }

    /// Sets the source of values for a WAL still being written. The first call wins.
    pub fn read_values_from(&self, source: impl FnOnce() -> Arc<dyn ValueSource>) {
        self.values.get_or_init(source);
    }

    /// Returns the source of values in the WAL.
    ///
    /// # Errors
    /// The file is missing or is a different WAL.
    pub fn values(&self) -> Result<&Arc<dyn ValueSource>> {
        if let Some(values) = self.values.get() {
            return Ok(values);
        }
        let opened = SealedLog::open(&self.vfs, &self.path, self.number())
            .map_err(|error| error.context("a log with values that tables refer to cannot be read"))?;
        Ok(self.values.get_or_init(|| Arc::new(opened)))
    }
}

/// The WALs of a database, by number. Each entry lasts while the WAL has users.
pub struct LogLives {
    vfs: Arc<dyn Vfs>,
    dir: PathBuf,
    purge: Arc<PurgeQueue>,
    /// A leaf lock.
    lives: Mutex<BTreeMap<FileNumber, Weak<LogLife>>>,
}

impl LogLives {
    /// `dir`: the WAL directory.
    pub fn new(vfs: Arc<dyn Vfs>, dir: PathBuf, purge: Arc<PurgeQueue>) -> Arc<Self> {
        Arc::new(LogLives { vfs, dir, purge, lives: Mutex::default() })
    }

    pub fn purge(&self) -> &Arc<PurgeQueue> {
        &self.purge
    }

    /// Returns the lifetime of a WAL.
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

    /// WALs with values of tables: their count, file bytes, and bytes of these values.
    pub fn of_tables(&self) -> (u64, u64, u64) {
        let lives: Vec<_> = self.lives.lock().values().filter_map(Weak::upgrade).collect();
        let of_tables = lives.iter().filter(|life| life.tables.load(Ordering::Relaxed) > 0);
        of_tables.fold((0, 0, 0), |(logs, bytes, values), life| {
            (logs + 1, bytes + life.file_bytes(), values + life.value_bytes())
        })
    }

    /// Returns the lifetime of a WAL, or of a large batch. A large batch must be requested once only.
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

/// WALs found on first use and held from then on. For readers without a list of WALs.
pub struct LogsOnDemand {
    lives: Arc<LogLives>,
    held: Mutex<BTreeMap<FileNumber, Arc<LogLife>>>,
}

impl LogsOnDemand {
    pub fn new(lives: Arc<LogLives>) -> Arc<Self> {
        Arc::new(LogsOnDemand { lives, held: Mutex::default() })
    }

    /// WALs in `dir`, for a reader deleting no files.
    pub fn in_dir(vfs: Arc<dyn Vfs>, dir: PathBuf) -> Arc<Self> {
        Self::new(LogLives::new(vfs, dir, PurgeQueue::new()))
    }
}

impl ValueSource for LogsOnDemand {
    fn resolve(&self, value: ValueRef) -> Result<Pinned> {
        let life = self.held.lock().entry(value.log).or_insert_with(|| self.lives.of_log(value.log)).clone();
        let values = life.values().map_err(|error| match error.is_not_found() {
            // No record of such a WAL: the reference is damaged.
            true => Error::corruption(format!("a value in log {}, which is not there", value.log)).with_source(error),
            false => error,
        })?;
        values.resolve(value)
    }
}

/// A table's share of a WAL, as in the MANIFEST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueLog {
    pub log: FileNumber,
    /// Bytes of the values the table refers to.
    pub bytes: u64,
}

/// The WALs one table refers to.
pub struct LogSet(Vec<Arc<LogLife>>);

impl LogSet {
    /// `logs` are in any order.
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
        row.set_bytes(1000);
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
