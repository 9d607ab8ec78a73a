//! Context of running jobs: the parts of the database needing no lock.

use base::name;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use base::extend::{Event, Listeners};
use base::metrics::Statistics;
use base::note;
use base::options::DbOptions;
use base::{Error, FileNumber, Result};
use vfs::{FileIdentity, Origin, RandomFile, Vfs};
use wal::DatabaseId;

use crate::background::caught::caught_panic;
use crate::background::tasks::Tasks;
use crate::background::{Throttle, as_away};
use crate::core::doubt::Doubts;
use crate::core::flush_ways::FlushCounts;
use crate::core::kept_views::KeptLook;
use crate::core::running::RunningJobs;
use crate::cursor::meter::{Meter, MeteredFile};
use crate::cursor::sample::Sample;
use crate::info_log::{InfoLog, Noting};
use crate::log_files::logs::LogSetup;
use crate::log_files::value_logs::ValueLogs;
use crate::observe::events::{EventRing, ObservedEvent};
use crate::queue::flushable::{HeldMemtable, MemtableMaking, QueuedMemtable};
use crate::version::file_name::{self, FileType};
use crate::version::log_life::LogLives;
use crate::version::numbers::FileNumbers;
use crate::version::session::Session;
use crate::version::table_file::FileMeta;

/// Environment of the database, shared by all jobs and threads.
pub struct Context {
    pub vfs: Arc<dyn Vfs>,
    /// The process that opened the database.
    pub origin: Origin,
    pub dir: PathBuf,
    /// Identities of the database's directories, independent of their paths.
    pub own_dirs: Vec<FileIdentity>,
    /// As opened: for options fixed while the database is open.
    pub options: DbOptions,
    /// Values with times are shown with them, and come with them: the caller stamps them.
    pub raw_values: bool,
    /// With what was changed since: for options that can change.
    pub options_now: ArcSwap<DbOptions>,
    pub numbers: Arc<FileNumbers>,
    pub memtable_ids: AtomicU64,
    pub memtables: MemtableMaking,
    /// Number of the last OPTIONS file; 0: unknown.
    pub last_options_file: AtomicU64,
    /// Runs the background work of `memtables`.
    pub tasks: Arc<Tasks>,
    /// Lifetimes and pins of the WAL files.
    pub logs: Arc<LogLives>,
    pub statistics: Option<Arc<Statistics>>,
    /// `None` with statistics, and where jobs run inline: such a run repeats each look at the clock.
    pub sample: Option<Arc<Sample>>,
    /// Limits the rate of jobs' table writes.
    pub throttle: Arc<Throttle>,
    pub flushes: FlushCounts,
    pub(crate) running: RunningJobs,
    /// The latest events.
    pub(crate) events: EventRing,
    pub listeners: Listeners,
    pub info_log: Arc<InfoLog>,
    /// The database's id, as in the file IDENTITY.
    pub db_id: String,
    /// Twenty base-36 characters, new at every open. Tables' unique ids combine it with the file number.
    pub session_id: String,
    /// The opens for writing, this one last; a repair's is none.
    pub sessions: Vec<Session>,
    /// A job's directory sync failed: names made by other jobs may be lost too (D4).
    pub dir_sync_failed: AtomicBool,
    /// Keys that recovery could not bring back for certain.
    pub(crate) recovery_doubts: Doubts,
    /// When upkeep looks for readers that keep much for long: at the first of the families' times, or before it.
    pub(crate) kept_look: KeptLook,
}

impl Context {
    /// Number of the last OPTIONS file; 0: unknown.
    pub fn options_file(&self) -> FileNumber {
        FileNumber(self.last_options_file.load(Ordering::Acquire))
    }

    pub fn table_path(&self, number: FileNumber) -> PathBuf {
        self.dir.join(file_name::format(FileType::Table, number))
    }

    /// Syncs the directory, so that the names of a job's tables survive power loss.
    pub fn sync_dir(&self) -> Result<()> {
        self.vfs.sync_dir(&self.dir).inspect_err(|_| self.dir_sync_failed.store(true, Ordering::Release))
    }

    pub fn has_failed_to_sync_dir(&self) -> bool {
        self.dir_sync_failed.load(Ordering::Acquire)
    }

    /// Deletes tables named by no edit. If a deletion fails, the next open does it.
    pub fn discard_tables<'a>(&self, tables: impl IntoIterator<Item = &'a FileMeta>) {
        for table in tables {
            if let Err(error) = self.vfs.remove_file(&self.table_path(table.number)) {
                note::warn!(%error, "cannot delete a table that does not count");
            }
        }
    }

    /// Whether a log in a directory of its own may be another database's: it has another's id, or cannot be read.
    pub fn may_be_of_another(&self, kind: FileType, number: FileNumber, path: &Path) -> bool {
        if !kind.is_log() || kind == FileType::RocksLog || *self.log_dir() == *self.dir {
            return false;
        }
        match wal::database_of(&*self.vfs, path, number) {
            Ok(found) => found.is_another_than(DatabaseId::new(&self.db_id)),
            Err(error) => !error.is_not_found(),
        }
    }

    /// Seconds since the epoch.
    pub fn now_s(&self) -> u64 {
        self.vfs.unix_time_us() / 1_000_000
    }

    /// The directory of the log files.
    pub fn log_dir(&self) -> PathBuf {
        log_dir(&self.dir, &self.options)
    }

    pub(crate) fn log_setup(&self) -> LogSetup {
        LogSetup {
            session: self.sessions.last().map_or(0, |session| session.id),
            vfs: self.vfs.clone(),
            statistics: self.statistics.clone(),
            dir: self.log_dir(),
            database: DatabaseId::new(&self.db_id),
            numbers: self.numbers.clone(),
            backing: self.options.log_backing,
            file_bytes: self.options.log_file_bytes,
            lives: self.logs.clone(),
        }
    }

    /// As the MANIFEST notes them: the directory of the logs that the options name, and that of the database. Without one, both are
    /// empty.
    pub fn noted_places(&self) -> [String; 2] {
        let places = named_log_dir(&self.options).map(|logs| [logs, self.dir.clone()]);
        places.map_or_else(Default::default, |places| places.map(|dir| whole_path(&*self.vfs, &dir)))
    }

    /// Wraps a memtable for a family's queue.
    pub fn queue_memtable(&self, memtable: HeldMemtable) -> Arc<QueuedMemtable> {
        let id = 1 + self.memtable_ids.fetch_add(1, Ordering::Relaxed);
        let conversion = memtable.conversion().filter(|_| self.options.memtable_as_log_index);
        let value_logs = conversion
            .and_then(|conversion| conversion.reference_form())
            .map(|form| ValueLogs::new(form, self.logs.clone()));
        let concurrent = self.options.allow_concurrent_memtable_write;
        QueuedMemtable::new(id, memtable, concurrent, value_logs)
    }

    /// `None` if no statistics are kept.
    pub fn meter(&self) -> Option<Arc<Meter>> {
        self.statistics.clone().map(|statistics| Meter::new(statistics, self.vfs.clone()))
    }

    /// Opens a table's file; statistics count its reads.
    pub(crate) fn open_metered(&self, path: &Path) -> Result<Arc<dyn RandomFile>> {
        let file = self.vfs.open(path)?;
        Ok(match self.meter() {
            Some(meter) => Arc::new(MeteredFile { file, meter }),
            None => file,
        })
    }

    /// Note scope for calls and database threads. Not under a lock: without an upkeep thread, its end writes the
    /// notes.
    pub(crate) fn noting(&self) -> Noting<'_> {
        Noting::new(self.note_scope(), &self.info_log)
    }

    /// As [`noting`](Self::noting), but allowed under locks: its end writes nothing.
    pub(crate) fn note_scope(&self) -> note::Scope {
        note::within(Some(self.info_log.clone()))
    }

    /// Keeps the event, and calls the listeners. Called under no lock. A listener's panic is caught and noted.
    pub fn notify(&self, event: &Event) {
        if let Some(seen) = ObservedEvent::of(event, self.vfs.unix_time_us()) {
            self.events.keep(seen);
        }
        for listener in &self.listeners {
            if let Err(error) = caught_panic("a listener", || as_away(|| listener.on_event(event))) {
                note::error!(%error, ?event, "the database goes on");
            }
        }
    }
}

/// Identities of a database's directories: its own, and its WAL directory if that exists.
pub(crate) fn own_dirs(vfs: &dyn Vfs, dir: &Path, options: &DbOptions) -> Result<Vec<FileIdentity>> {
    let mut own = vec![directory_at(vfs, dir)?];
    match directory_at(vfs, &log_dir(dir, options)) {
        Ok(logs) if !own.contains(&logs) => own.push(logs),
        Err(error) if !error.is_not_found() => return Err(error),
        _ => {}
    }
    Ok(own)
}

/// Identity of the directory at `path`, symbolic links followed. The appended `.` resolves a link in the last
/// component.
pub(crate) fn directory_at(vfs: &dyn Vfs, path: &Path) -> Result<FileIdentity> {
    Ok(vfs.metadata(&path.join("."))?.identity)
}

/// Whether both paths are of one directory. They need not exist.
pub(crate) fn is_same_dir(vfs: &dyn Vfs, one: &Path, other: &Path) -> Result<bool> {
    match (directory_at(vfs, one), directory_at(vfs, other)) {
        (Ok(one), Ok(other)) => Ok(one == other),
        (Err(error), _) | (_, Err(error)) if !error.is_not_found() => Err(error),
        _ => Ok(one == other),
    }
}

/// Checks that the directory of a database's logs is there.
///
/// # Errors
/// `InvalidArgument`: it is not. The file system's.
pub(crate) fn check_log_dir(vfs: &dyn Vfs, log_dir: &Path) -> Result<()> {
    if vfs.exists(log_dir)? {
        return Ok(());
    }
    let what = "the directory of the logs is missing: name its new place by the option wal_dir, in a copy that RocksDB made the \
                copy's own directory; if it is lost, make it anew, empty, and repair the database: the repair reports the lost logs";
    Err(Error::invalid_argument(what).at_path(log_dir))
}

pub(crate) fn log_dir(dir: &Path, options: &DbOptions) -> PathBuf {
    named_log_dir(options).unwrap_or_else(|| dir.to_owned())
}

/// The whole path of a directory, for a MANIFEST: a relative one, or a symbolic link, can mean another directory later.
pub(crate) fn whole_path(vfs: &dyn Vfs, dir: &Path) -> String {
    let whole = vfs.canonicalize(dir).or_else(|_| std::path::absolute(dir));
    name::of_path(&whole.unwrap_or_else(|_| dir.to_owned())).into_owned()
}

/// The log directory, if the options name one.
pub(crate) fn named_log_dir(options: &DbOptions) -> Option<PathBuf> {
    (!options.wal_dir.is_empty()).then(|| name::path(&options.wal_dir))
}
