//! The current log and its successor: roll-over, the limit on total WAL size, spares. Keeps C1, C4, F2.

use std::sync::Arc;

use base::note;
use base::{Error, Result};
use crossbeam_utils::Backoff;
use parking_lot::MutexGuard;
use wal::RecordKind;

use crate::core::Core;
use crate::core::install::Installer;
use crate::core::unfinished::Unfinished;
use crate::log_files::logs::ActiveLog;
use crate::log_files::pace::LogPace;
use crate::memtables::Memtables;
use crate::order::stall::StallCause;

/// Work on the write-ahead log: roll-over, limit, spares, syncs for callers, recovery watermarks. The logs are in `WalFiles`,
/// the current one in `CommitState`.
pub(crate) struct Wal {
    pub core: Arc<Core>,
    pub installer: Arc<Installer>,
    pub(super) memtables: Arc<Memtables>,
    /// Memtables are in files outliving the process, and get recovery watermarks.
    pub(super) tells_marks: bool,
    pub log_pace: LogPace,
}

/// A smaller log frees too little: its successor takes a quarter as much.
const LEFT_BYTES_MIN: u64 = 256 << 10;

impl Wal {
    pub fn new(core: Arc<Core>, installer: Arc<Installer>, memtables: Arc<Memtables>) -> Arc<Self> {
        let tells_marks = !core.read_only && core.context.options.memtable_crash_safe_recover;
        Arc::new(Wal { core, installer, memtables, tells_marks, log_pace: LogPace::default() })
    }

    /// Flushes the families needing the oldest log if the WAL is over its limit, or would be with `coming_bytes` more.
    /// The limit is not checked again before these bytes are written.
    pub fn flush_for_log_limit(&self, coming_bytes: u64) {
        self.installer.release_logs();
        let (bytes, oldest_last) = self.core.logs.total();
        let is_over = bytes.saturating_add(coming_bytes) > self.log_limit_bytes();
        let Some(oldest_last) = oldest_last.filter(|_| is_over) else { return };
        let needing = self.core.state.lock().families_where(|family| family.needed_after() < oldest_last);
        for family in needing {
            if let Err(e) = self.memtables.seal_for_flush(&family) {
                note::warn!(error = %e, family = family.name(), "cannot flush for max_total_wal_size");
            }
        }
    }

    pub fn are_logs_over_limit(&self) -> bool {
        self.core.logs.total().0 > self.log_limit_bytes()
    }

    /// `max_total_wal_size`, or four times the limit on all memtables.
    pub fn log_limit_bytes(&self) -> u64 {
        let limit_bytes = self.core.context.options_now.load().max_total_wal_size;
        if limit_bytes > 0 {
            return limit_bytes;
        }
        let families = self.core.families.load();
        let memtables: usize = families
            .iter()
            .map(|f| f.options())
            .map(|o| o.write_buffer_size.saturating_mul(o.max_write_buffer_number))
            .sum();
        4 * memtables as u64
    }

    /// Called before a full memtable is switched: the spare, if any, replaces a log more than half full. Otherwise the
    /// log would hold writes of two memtables, outlive the first one's flush, and be written back meanwhile.
    pub(crate) fn roll_with_memtable(&self) -> Result<()> {
        let current = self.core.commit.lock().log.clone();
        match current.filter(|log| log.file.tail() > log.file.capacity() / 2) {
            Some(log) if self.core.logs.has_spare() => self.replace_log(Some(&log), 0),
            _ => Ok(()),
        }
    }

    /// Starts writeback of the log where `wal_bytes_per_sync` or more of it is due, off the writers' path. It has a task
    /// of its own: a busy disk would hold up upkeep.
    pub(crate) fn write_back(&self) {
        let bytes_min = self.core.context.options_now.load().wal_bytes_per_sync;
        if bytes_min == 0 || !self.core.logs.is_writeback_due(bytes_min) {
            return;
        }
        let core = self.core.clone();
        self.core.context.tasks.run(Box::new(move || {
            let _ = core.logs.start_writeback(bytes_min).inspect_err(|error| core.fail(error)); // D4
        }));
    }

    /// Starts writeback of the whole log, for a caller about to sync it after other work.
    pub(crate) fn write_back_before_sync(&self) {
        let _ = self.core.logs.start_writeback(0).inspect_err(|error| self.core.fail(error)); // D4
    }

    /// Creates the successor of the current log. A background job.
    pub(crate) fn make_spare_log(&self) -> Result<()> {
        if !self.core.logs.wants_spare() || self.core.is_closing() {
            return Ok(());
        }
        // A concurrent roll-over would use a log with a larger number before this one (C1), and a second spare would
        // never be used. A roll-over in progress brings a log that needs no spare yet, so threads shared by databases
        // do not wait for it.
        let Some(_rolling) = self.core.logs.rolling.try_lock() else { return Ok(()) };
        if self.core.logs.wants_spare() {
            self.core.logs.put_spare(self.core.logs.create(0)?);
        }
        Ok(())
    }

    /// Makes the first log ahead of the first write, which has the error if that fails.
    pub(crate) fn make_first_log(&self) {
        let _rolling = self.core.logs.rolling.lock();
        let has_none = self.core.commit.lock().log.is_none() && !self.core.logs.has_spare();
        if has_none && let Ok(log) = self.core.logs.create(0) {
            self.core.logs.put_spare(log);
        }
    }

    /// Makes room for a record of `need_bytes`: in the next extent of `full`, else in the next log. `full` is `None`
    /// before the first log.
    pub(crate) fn roll_log(&self, full: Option<&Arc<ActiveLog>>, need_bytes: u64) -> Result<()> {
        let is_left = |full: &ActiveLog| self.core.reserve.wants_seal() && full.file.tail() >= LEFT_BYTES_MIN;
        if let Some(full) = full.filter(|full| !is_left(full))
            && self.core.removals.with_all_space(|| full.file.ensure(need_bytes as usize))?
        {
            return Ok(());
        }
        self.replace_log(full, need_bytes)
    }

    /// Replaces the current log unless it is small. On a full disk: the flush of all memtables frees it then.
    pub(crate) fn leave_log(&self) -> Result<()> {
        let current = self.core.commit.lock().log.clone();
        match current.filter(|log| log.file.tail() >= LEFT_BYTES_MIN) {
            Some(log) => self.replace_log(Some(&log), 0),
            None => Ok(()),
        }
    }

    /// Makes the spare or a new log current, if `full` is still the current one.
    fn replace_log(&self, full: Option<&Arc<ActiveLog>>, need_bytes: u64) -> Result<()> {
        let _rolling = self.core.logs.rolling.lock();
        {
            let commit = self.core.commit.lock();
            if commit.closed {
                return Err(Error::closed("the database is closed"));
            }
            if commit.log.as_ref().map(|log| log.number()) != full.map(|log| log.number()) {
                return Ok(()); // a concurrent writer replaced it
            }
        }
        let next = match self.core.logs.take_spare(need_bytes)? {
            Some(spare) => spare,
            None => {
                let _wait = full.map(|_| self.core.stall.wait(StallCause::LogSwitch));
                self.core.removals.with_all_space(|| self.core.logs.create(need_bytes))?
            }
        };
        if let Err(error) = self.install_log(next.clone()) {
            if !next.is_current() {
                self.core.logs.discard(&next);
            }
            return Err(error);
        }
        self.core.upkeep.raise();
        self.flush_for_log_limit(next.file.capacity());
        Ok(())
    }

    /// Replaces the current log if all its data is in tables and it has `bytes_min` or more. The old log need not be
    /// kept until it is full, nor synced.
    pub(crate) fn leave_flushed_log(&self, bytes_min: u64) -> Result<()> {
        self.installer.release_logs();
        let current = self.core.commit.lock().log.clone();
        match current.filter(|log| log.file.tail() >= bytes_min) {
            Some(log) if self.core.is_all_in_tables() => self.replace_log(Some(&log), 0),
            _ => Ok(()),
        }
    }

    /// Makes `next` the current log, and ends the one before it with an end record. The end record takes a place in
    /// the pipeline, so it is published before anything in `next`.
    pub(crate) fn install_log(&self, next: Arc<ActiveLog>) -> Result<()> {
        let backoff = Backoff::new();
        let mut unfinished = Unfinished::new(&self.core);
        let mut commit = self.core.commit.lock();
        while !self.core.pipeline.has_room() && !commit.closed {
            MutexGuard::unlocked(&mut commit, || backoff.snooze());
            self.core.check_writable()?;
        }
        if commit.closed {
            return Err(Error::closed("the database is closed"));
        }
        let full = commit.log.take();
        let end = full.and_then(|full| full.file.seal().map(|reservation| (full, reservation)));
        let base = end.as_ref().map_or(0, |(full, _)| full.end());
        if end.is_some() {
            unfinished.hold(self.core.pipeline.enter(commit.last_seq, base, &[]));
        }
        next.start_at(base);
        self.core.logs.record_current(&next, commit.last_seq);
        commit.log = Some(next);
        drop(commit);
        if let Some((full, reservation)) = end {
            full.record_published(self.core.pipeline.published_log());
            let ended = self.core.logs.append(&full, &reservation, RecordKind::End, &[]);
            ended.inspect_err(|e| self.core.fail(e))?;
            unfinished.finish();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use vfs::fault::{Fault, FaultCode, FaultVfs, Operation, Rule};
    use vfs::{RealVfs, Vfs};

    use crate::internal::{Database, OpenOptions, WriteOptions};

    fn put_mib(db: &Database, mib: usize) -> base::Result<()> {
        let put = |i: usize| db.put(&db.default_family(), &i.to_be_bytes(), &[7; 8 << 10], &WriteOptions::default());
        (0..mib * 128).try_for_each(|i| put(i).map(drop))
    }

    fn holds_soon(vfs: &dyn Vfs, mut what: impl FnMut() -> bool) -> bool {
        let end = vfs.now() + Duration::from_secs(60);
        while vfs.now() < end {
            if what() {
                return true;
            }
            vfs.sleep(Duration::from_millis(5));
        }
        false
    }

    #[test]
    fn unsynced_log_is_written_back_as_it_grows_if_asked_for() {
        let dir = tempfile::tempdir().expect("made");
        let vfs = FaultVfs::new(RealVfs::new());
        let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        let db = Database::open(dir.path().join("db"), &options).expect("opened");
        let calls = || vfs.calls(Operation::Writeback);
        put_mib(&db, 4).expect("written");
        assert_eq!(calls(), 0, "the default leaves it to the system");
        db.set_db_options(&[("wal_bytes_per_sync", "1M")]).expect("it changes while the database is open");
        let mut mib = 4;
        let grows = || {
            put_mib(&db, 1).expect("written");
            mib += 1;
            calls() >= 3
        };
        assert!(holds_soon(&*vfs, grows), "{} pieces", calls());
        assert!(calls() <= mib, "{} pieces of a MiB or more, of {mib} MiB", calls());
        vfs.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Writeback));
        let refused = || put_mib(&db, 1).is_err_and(|error| error.to_string().contains("splog"));
        assert!(holds_soon(&*vfs, refused), "the log may have lost bytes (D4)");
    }

    /// Two that find none would both make one, and that which is replaced would stay among the logs, unused.
    #[test]
    fn there_is_one_spare_log_however_many_make_it() {
        let vfs = vfs::MemoryVfs::new(1);
        let mut options =
            crate::internal::OpenOptions { vfs: vfs.clone(), ..crate::internal::OpenOptions::create_if_missing() };
        options.db.log_file_bytes = 64 << 10;
        let db = crate::internal::Database::open("/db", &options).expect("opened");
        let (core, wal) = (db.core(), &db.engine().wal);
        vfs.set_runs_inline(false); // no upkeep but what is called here
        let write = |kib: usize| {
            db.put(&db.default_family(), b"key", &vec![7; kib << 10], &crate::internal::WriteOptions::default())
        };
        let logs =
            || vfs.all_files().iter().filter(|path| path.extension().is_some_and(|kind| kind == "splog")).count();
        wal.make_spare_log().expect("nothing to make");
        assert_eq!(logs(), 0, "nothing was written");
        write(10).expect("written");
        wal.make_spare_log().expect("nothing to make");
        assert_eq!(logs(), 1, "a log that is not half full needs no successor");
        write(40).expect("written");
        let rolling = core.logs.rolling.lock();
        wal.make_spare_log().expect("nothing to wait for");
        assert_eq!(logs(), 1, "whoever rolls makes one");
        drop(rolling);
        thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(|| wal.make_spare_log().expect("made")))));
        assert_eq!(logs(), 2, "the current one, and the spare");
        vfs.set_runs_inline(true);
    }
}
