//! The database handle: the public API.

use std::path::Path;
use std::sync::Arc;

use arc_swap::Guard;
use base::metrics::is_sampled;
use base::options::{DbOptions, WalRecoveryMode};
use base::{Error, Pinned, Result, SeqNo, note};
use parking_lot::Mutex;
use vfs::Vfs;

use crate::batch::WriteBatch;
use crate::batch::options::WriteOptions;
use crate::commit::{ConflictCheck, Written};
use crate::core::Core;
use crate::core::context::named_log_dir;
use crate::core::family::Family;
use crate::core::open_options::{DEFAULT_FAMILY, OpenOptions};
use crate::cursor::options::ReadOptions;
use crate::cursor::snapshot::Snapshot;
use crate::engine::{DirectoryLock, Engine};
use crate::engine::{Following, Lag};
use crate::open::{self, Opened};
use crate::queue::view::ReadView;
use crate::read::get;
use crate::read::iterator::DbIterator;
use crate::read::multi_get::{self, Asked};
use crate::updates::LogCursor;

/// An open database, usable from any number of threads.
pub struct Database {
    engine: Arc<Engine>,
    lock: Arc<DirectoryLock>,
}

impl Database {
    /// Opens the database in the directory `path`.
    ///
    /// # Errors
    /// `InvalidArgument`: it does not exist, or options do not fit it. `Busy`: it is open already. `Corruption`: a file
    /// is damaged or missing; the error names it.
    pub fn open(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Database> {
        Database::start(open::open(path.as_ref(), options)?, options)
    }

    /// Opens the database in `primary`, to follow its writer. Shows it as of now; see
    /// [`try_catch_up_with_primary`](Self::try_catch_up_with_primary). Own files are in `secondary`. No snapshots.
    ///
    /// # Errors
    /// As of [`open`](Self::open) for reading only.
    pub fn open_as_secondary(
        primary: impl AsRef<Path>,
        secondary: impl AsRef<Path>,
        options: &OpenOptions,
    ) -> Result<Database> {
        let mut options = options.clone();
        (options.read_only, options.bear_damage) = (true, false);
        options.secondary = Some(secondary.as_ref().to_owned());
        options.db.db_log_dir.clear();
        options.db.max_open_files = -1; // the primary deletes tables
        options.db.memtable_as_log_index = false; // its logs are not this reader's to keep
        (options.db.wal_recovery_mode, options.db.best_efforts_recovery) = (WalRecoveryMode::PointInTime, false);
        options.vfs.create_dir_all(secondary.as_ref())?;
        let db = Database::open(primary, &options)?;
        db.try_catch_up_with_primary()?;
        Ok(db)
    }

    /// Shows everything that the primary has logged by now. Iterators go on showing what they show. The time it takes
    /// grows with what is new.
    ///
    /// # Errors
    /// `Unsupported`: not a secondary. `InvalidArgument`: the primary was replaced by another database, or by an older
    /// state. `Io`: it is gone. `Busy`: it changed its files during every try. What is visible stays so.
    pub fn try_catch_up_with_primary(&self) -> Result<()> {
        let caught_up = self.follower()?.catch_up();
        self.engine.core.context.info_log.write_out();
        caught_up
    }

    /// How far a secondary is behind. Errors: `Unsupported`: not a secondary. `Io`, `Corruption`: a log could not be read.
    pub fn lag(&self) -> Result<Lag> {
        self.follower()?.lag()
    }

    fn follower(&self) -> Result<&dyn Following> {
        if !self.engine.core.context.origin.is_here() {
            return Err(self.engine.core.closed()); // its event log is the parent's
        }
        self.engine
            .follower
            .get()
            .map(|follower| &**follower)
            .ok_or_else(|| Error::unsupported("Supported only by secondary instance"))
    }

    /// Makes the handle of an opened database, and registers it with its threads.
    pub(crate) fn start(opened: Opened, options: &OpenOptions) -> Result<Database> {
        let db = Database { engine: opened.engine, lock: Arc::new(Mutex::new(opened.lock)) };
        if !options.read_only {
            db.engine.jobs.register(&options.env)?;
        }
        db.engine.core.upkeep.raise();
        db.engine.core.drive_if_inline();
        super::report::serve::begin(&db.engine);
        Ok(db)
    }

    /// Stops background work, and releases the directory. Data in the WAL is not flushed: the next open replays it.
    /// Writes with `disable_wal` are flushed, unless `avoid_flush_during_shutdown` is set.
    ///
    /// On a background thread of the database it returns at once; the database closes when the job is done. In a process
    /// forked from the one that opened the database it does nothing: the database is the parent's.
    ///
    /// # Errors
    /// The first failure; the database is closed all the same.
    pub fn close(&self) -> Result<()> {
        if !self.engine.core.context.origin.is_here() {
            return Ok(());
        }
        let (engine, lock) = (self.engine.clone(), self.lock.clone());
        let close_later = move || {
            let _ = engine.close(&lock); // noted in the event log
        };
        match self.engine.core.state_changed.registration() {
            Some(registration) if registration.defer(close_later) => Ok(()),
            _ => self.engine.close(&self.lock),
        }
    }

    /// The database's directory.
    pub fn path(&self) -> &Path {
        &self.engine.core.context.dir
    }

    /// The options as they are now; some can change while the database is open.
    pub fn options(&self) -> Arc<DbOptions> {
        self.engine.core.context.options_now.load_full()
    }

    /// The id in IDENTITY and in the tables' properties.
    pub fn identity(&self) -> &str {
        &self.engine.core.context.db_id
    }

    /// Files, clock, threads and randomness.
    pub fn vfs(&self) -> &Arc<dyn Vfs> {
        &self.engine.core.context.vfs
    }

    /// # Errors
    /// `Closed`: the database is closed.
    #[inline]
    pub fn check_open(&self) -> Result<()> {
        self.engine.core.check_open()
    }

    /// # Errors
    /// `InvalidArgument`: the family is of another database. `Closed`: it was dropped.
    pub(crate) fn check_family(&self, family: &Family) -> Result<()> {
        self.engine.core.check_family(family)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.engine.core
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The family present in every database.
    pub fn default_family(&self) -> Arc<Family> {
        self.family(DEFAULT_FAMILY).expect("the default family cannot be dropped")
    }

    /// The open family named `name`.
    pub fn family(&self, name: &str) -> Option<Arc<Family>> {
        self.engine.core.families.load().by_name(name).cloned()
    }

    /// # Errors
    /// `InvalidArgument`: there is no open family of this number.
    pub(crate) fn family_by_id(&self, id: base::FamilyId) -> Result<Arc<Family>> {
        let unknown = || Error::invalid_argument(format!("column family {} is not open", id.0));
        self.engine.core.families.load().get(id).cloned().ok_or_else(unknown)
    }

    /// All open families, by id.
    pub fn families(&self) -> Vec<Arc<Family>> {
        self.engine.core.families.load().iter().cloned().collect()
    }

    /// Applies a batch atomically. Returns the last sequence number it took.
    ///
    /// # Errors
    /// `InvalidArgument`, `Closed`: nothing was written. `Busy`: the write would have waited, and its options forbid
    /// it. `ReadOnly`: the database does not take writes; the message says why. `Io`: the WAL failed; the database
    /// takes no more writes.
    pub fn write(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<SeqNo> {
        self.write_checked(batch, options, None)
    }

    /// As [`write`](Self::write), if no conflict is found.
    ///
    /// # Errors
    /// `Conflict`: of `conflicts`; nothing was written.
    pub(crate) fn write_checked(
        &self,
        batch: &WriteBatch,
        options: &WriteOptions,
        conflicts: Option<&dyn ConflictCheck>,
    ) -> Result<SeqNo> {
        let written = self.engine.committer.write_counted(batch, options, conflicts)?;
        self.flush_written(&written)?;
        Ok(written.last)
    }

    /// The end of a write: flushes what was asked for.
    #[inline]
    pub(crate) fn flush_written(&self, written: &Written) -> Result<()> {
        if !written.to_flush.is_empty() {
            self.engine.flusher.flush_written(written)?;
        }
        self.engine.core.drive_if_inline();
        Ok(())
    }

    /// Writes one change; errors as of [`write`](Self::write).
    pub fn put(&self, family: &Family, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<()> {
        self.write_one(family, options, |batch| batch.put(family.id(), key, value))
    }

    /// Deletes a key.
    pub fn delete(&self, family: &Family, key: &[u8], options: &WriteOptions) -> Result<()> {
        self.write_one(family, options, |batch| batch.delete(family.id(), key))
    }

    /// See [`WriteBatch::single_delete`].
    pub fn single_delete(&self, family: &Family, key: &[u8], options: &WriteOptions) -> Result<()> {
        self.write_one(family, options, |batch| batch.single_delete(family.id(), key))
    }

    /// Deletes `[start, end)`.
    ///
    /// # Errors
    /// `InvalidArgument`: `start` comes after `end`.
    pub fn delete_range(&self, family: &Family, start: &[u8], end: &[u8], options: &WriteOptions) -> Result<()> {
        self.write_one(family, options, |batch| batch.delete_range(family.id(), start, end))
    }

    /// Adds an operand. Reads of the key combine operands by the family's merge operator.
    ///
    /// # Errors
    /// `InvalidArgument`: the family has no merge operator.
    pub fn merge(&self, family: &Family, key: &[u8], operand: &[u8], options: &WriteOptions) -> Result<()> {
        self.write_one(family, options, |batch| batch.merge(family.id(), key, operand))
    }

    /// Writes a batch of one change, in a buffer kept by the thread.
    fn write_one(&self, family: &Family, options: &WriteOptions, add: impl FnOnce(&mut WriteBatch)) -> Result<()> {
        family.check_home(&self.engine.core.context)?;
        thread_local! {
            static BATCH: std::cell::Cell<Option<WriteBatch>> = const { std::cell::Cell::new(None) };
        }
        /// A larger batch is not kept.
        const KEPT_BYTES_MAX: usize = 64 << 10;
        let mut batch = BATCH.try_with(std::cell::Cell::take).ok().flatten().unwrap_or_default();
        batch.clear();
        add(&mut batch);
        let written = self.write(&batch, options);
        if batch.len() <= KEPT_BYTES_MAX {
            let _ = BATCH.try_with(|kept| kept.set(Some(batch))); // fails while the thread ends
        }
        written.map(drop)
    }

    /// The value of a key, or `None`. Values from tables are not copied: they pin their block.
    ///
    /// # Errors
    /// `Corruption`, `Io`: a table could not be read. `Closed`: the family was dropped. `InvalidArgument`: the family
    /// or the snapshot belongs to a different database.
    pub fn get(&self, family: &Family, key: &[u8], options: &ReadOptions) -> Result<Option<Pinned>> {
        self.check_readable(family, options)?;
        let (view, seq) = self.point_in_time(family, options);
        let context = family.read_context();
        let look_up = || get::get(&view, context, key, seq, options);
        let found = match &context.meter {
            Some(meter) => meter.get(look_up)?,
            None => match &context.sample {
                Some(sample) if is_sampled() => sample.get(look_up)?,
                _ => look_up()?,
            },
        };
        Ok(found.value)
    }

    /// The values of many keys of one family, in the order asked for.
    pub fn multi_get(
        &self,
        family: &Family,
        keys: &[&[u8]],
        options: &ReadOptions,
    ) -> Result<Vec<Result<Option<Pinned>>>> {
        self.check_readable(family, options)?;
        let (view, seq) = self.point_in_time(family, options);
        let context = family.read_context();
        let asked: Vec<Asked<'_>> = keys.iter().map(|user_key| Asked { view: &view, context, user_key }).collect();
        Ok(multi_get::multi_get_counted(&asked, seq, options))
    }

    /// The values of keys of several families, all as of one instant, in the order asked for.
    pub fn multi_get_across<'a>(
        &self,
        keys: &[(&'a Family, &'a [u8])],
        options: &ReadOptions,
    ) -> Result<Vec<Result<Option<Pinned>>>> {
        let mut families: Vec<&Family> = keys.iter().map(|&(family, _)| family).collect();
        families.sort_by_key(|family| family.id());
        families.dedup_by_key(|family| family.id());
        for family in &families {
            self.check_readable(family, options)?;
        }
        let (views, seq) = self.point_in_time_across(&families, options);
        let mut asked = Vec::with_capacity(keys.len());
        for &(family, user_key) in keys {
            let at = families.partition_point(|other| other.id() < family.id());
            asked.extend(views.get(at).map(|view| Asked { view, context: family.read_context(), user_key }));
        }
        Ok(multi_get::multi_get_counted(&asked, seq, options))
    }

    /// An iterator over a family, as of now or of the options' snapshot. It owns its view, and can outlive the handle.
    pub fn iter(&self, family: &Family, options: &ReadOptions) -> Result<DbIterator> {
        let (view, seq) = self.read_state(family, options)?;
        DbIterator::new(view, seq, family.read_context(), options)
    }

    /// The state an iterator made now shows: several iterators can share it.
    pub(crate) fn read_state(&self, family: &Family, options: &ReadOptions) -> Result<(Arc<ReadView>, SeqNo)> {
        self.check_readable(family, options)?;
        let (view, seq) = self.point_in_time(family, options);
        Ok((Guard::into_inner(view), seq))
    }

    /// A snapshot of the current state, readable until the last clone is dropped.
    pub fn snapshot(&self) -> Snapshot {
        let now_s = self.engine.core.context.vfs.unix_time_us() / 1_000_000;
        self.engine.core.snapshots.acquire(now_s, || self.engine.core.pipeline.visible())
    }

    /// A view of a family and the number to read it at (V1). The view is loaded first, then the number. Then the view
    /// must still be current: else a write at that number might be in a memtable missing from the view.
    fn point_in_time(&self, family: &Family, options: &ReadOptions) -> (Guard<Arc<ReadView>>, SeqNo) {
        if let Some(snapshot) = &options.snapshot {
            return (family.view(), snapshot.seq());
        }
        loop {
            let view = family.view();
            let seq = self.engine.core.pipeline.visible();
            if Arc::ptr_eq(&view, &family.view()) && view.is_readable_at(seq) {
                return (view, seq);
            }
        }
    }

    /// The same of several families: no view may have changed when the number is known.
    fn point_in_time_across(&self, families: &[&Family], options: &ReadOptions) -> (Vec<Guard<Arc<ReadView>>>, SeqNo) {
        loop {
            let views: Vec<_> = families.iter().map(|family| family.view()).collect();
            if let Some(snapshot) = &options.snapshot {
                return (views, snapshot.seq());
            }
            let seq = self.engine.core.pipeline.visible();
            let stands = |(family, view): (&&Family, &Guard<Arc<ReadView>>)| {
                Arc::ptr_eq(view, &family.view()) && view.is_readable_at(seq)
            };
            if families.iter().zip(&views).all(stands) {
                return (views, seq);
            }
        }
    }

    #[inline]
    fn check_readable(&self, family: &Family, options: &ReadOptions) -> Result<()> {
        if let Some(snapshot) = &options.snapshot {
            self.engine.core.check_snapshot(snapshot)?;
        }
        self.engine.core.check_family(family)
    }

    /// The last visible sequence number.
    pub fn latest_sequence_number(&self) -> SeqNo {
        self.engine.core.pipeline.visible()
    }

    /// A cursor over the batches in the WAL from the one with `seq` on; 0: from the first one there is. `or_later`: if
    /// logs with `seq` are gone, from the first batch there is behind it, as in RocksDB.
    ///
    /// # Errors
    /// `InvalidArgument`: `seq` is beyond the next number to be written. `Closed`.
    pub fn updates_since(&self, seq: SeqNo, or_later: bool) -> Result<LogCursor> {
        LogCursor::new(self.engine.core.clone(), seq, or_later || seq == SeqNo::ZERO)
    }

    /// Syncs the WAL: every write acknowledged so far survives power loss.
    ///
    /// # Errors
    /// `Io`, sticky (D4).
    pub fn sync_log(&self) -> Result<()> {
        self.engine.core.check_writable()?;
        let target = self.engine.core.pipeline.published_log();
        self.engine.wal.sync_for_caller(target).map(drop)
    }

    /// The names of the families in the database at `path`, which need not be open.
    pub fn list_families(path: impl AsRef<Path>, vfs: &Arc<dyn Vfs>) -> Result<Vec<String>> {
        open::list_families(path.as_ref(), vfs)
    }

    /// Deletes the database at `path`: every database file in it, and the directory if it is then empty. `wal_dir` is
    /// the directory of its WALs, if elsewhere.
    ///
    /// # Errors
    /// `Busy`: it is open. Other files are left alone.
    pub fn destroy(path: impl AsRef<Path>, wal_dir: Option<&Path>, vfs: &Arc<dyn Vfs>) -> Result<()> {
        open::destroy(path.as_ref(), wal_dir, "", vfs)
    }

    /// As [`destroy`](Self::destroy), with the options' directories: `wal_dir`, and `db_log_dir` for event logs.
    ///
    /// # Errors
    /// As [`destroy`](Self::destroy).
    pub fn destroy_by(path: impl AsRef<Path>, options: &DbOptions, vfs: &Arc<dyn Vfs>) -> Result<()> {
        let wal_dir = named_log_dir(options);
        open::destroy(path.as_ref(), wal_dir.as_deref(), &options.db_log_dir, vfs)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !self.engine.core.context.origin.is_here() {
            std::mem::forget(self.engine.clone()); // threads of the parent may have held its locks
        }
        if let Err(error) = self.close() {
            note::error!(%error, path = %self.path().display(), "closing the database failed");
        }
    }
}
