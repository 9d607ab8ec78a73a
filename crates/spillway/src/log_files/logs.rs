//! The current log and its spare: creation, appends, syncs. Older logs are in [`crate::log_files::live_logs`].
//!
//! A [`LogPosition`] is one number across all logs, so "synced through" and "published through" are one atomic each,
//! across roll-overs. Keeps C1, D1, D4, F1.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use base::metrics::{Histogram, Statistics, Ticker};
use base::options::LogBacking;
use base::{Error, ErrorKind, FileNumber, Result, SeqNo};
use parking_lot::{Condvar, Mutex};
use vfs::{IoClass, Vfs};
use wal::{
    DatabaseId, FILE_HEADER_BYTES, Frontiers, LogConfig, LogFile, NotedManifest, Position, RECORD_HEADER_BYTES,
    RecordKind, Reservation,
};

use crate::log_files::live_logs::{LiveLog, LiveRange, Need};
use crate::log_files::pace::LogPace;
use crate::log_files::prepared::Prepared;
use crate::order::pipeline::LogPosition;
use crate::version::edit::{LogEnd, NotedLogs, WalRange};
use crate::version::file_name::{self, FileType};
use crate::version::log_life::{LogLife, LogLives};
use crate::version::numbers::FileNumbers;

/// A log created by this process.
pub(crate) struct ActiveLog {
    pub file: LogFile,
    /// Position of its first byte; set when the log becomes current.
    base: OnceLock<LogPosition>,
}

impl ActiveLog {
    pub fn number(&self) -> FileNumber {
        self.file.number()
    }

    /// True once the log has become current.
    pub fn is_current(&self) -> bool {
        self.base.get().is_some()
    }

    /// Called when the log becomes current.
    pub fn start_at(&self, base: LogPosition) {
        self.base.set(base).expect("a log becomes current once");
    }

    pub fn base(&self) -> LogPosition {
        *self.base.get().expect("only a current log's positions are asked for")
    }

    /// Position behind all reservations so far. Final once the log is sealed.
    pub fn end(&self) -> LogPosition {
        self.base() + self.file.tail()
    }

    /// Start of the next record, at present.
    pub fn end_position(&self) -> Position {
        self.position_of(self.file.tail())
    }

    pub fn position(&self, reservation: &Reservation) -> LogPosition {
        self.base() + reservation.end()
    }

    /// Passes the published position to the log, capped at its tail. Later records carry it.
    pub fn record_published(&self, published: LogPosition) {
        if let Some(offset) = published.checked_sub(self.base()) {
            self.file.publish(offset.min(self.file.tail()));
        }
    }

    pub fn position_of(&self, offset: u64) -> Position {
        Position { log: self.number(), offset }
    }
}

#[derive(Default)]
struct SyncState {
    running: bool,
    /// Logs of this process with unsynced bytes, oldest first; the current one is last.
    unsynced: Vec<Arc<ActiveLog>>,
    /// Frontiers in logs that left the list, or that an earlier process noted.
    known: Frontiers,
}

/// Where and how logs are made.
pub(crate) struct LogSetup {
    pub vfs: Arc<dyn Vfs>,
    pub statistics: Option<Arc<Statistics>>,
    pub dir: PathBuf,
    /// Id of the owning database.
    pub database: DatabaseId,
    /// Of this open.
    pub session: u32,
    pub numbers: Arc<FileNumbers>,
    pub backing: LogBacking,
    pub file_bytes: u64,
    pub lives: Arc<LogLives>,
}

pub(crate) struct WalFiles {
    setup: LogSetup,
    /// How often a log was synced.
    syncs: AtomicU64,
    live: Mutex<LiveRange>,
    pub prepared: Prepared,
    /// Created ahead and taken under `rolling`.
    spare: Mutex<Option<Arc<ActiveLog>>>,
    /// Held while the current log is replaced or a spare made.
    pub rolling: Mutex<()>,
    sync: Mutex<SyncState>,
    sync_ended: Condvar,
    synced: AtomicU64,
    /// Position of the next recovery watermark.
    next_mark: AtomicU64,
    /// Logs of an earlier process, neither read nor synced, oldest first. Synced before all logs of this process.
    left_unsynced: Mutex<Vec<FileNumber>>,
    /// The MANIFEST's number and length, as the header of a new log notes them.
    manifest: AtomicU64,
    /// `left_unsynced` is empty.
    none_left: AtomicBool,
    /// First failure of a sync or an append: unsynced data may not be on disk, and no sync is retried (D4).
    failed: OnceLock<Error>,
}

impl WalFiles {
    pub fn new(setup: LogSetup) -> Self {
        WalFiles {
            setup,
            live: Mutex::default(),
            prepared: Prepared::default(),
            spare: Mutex::default(),
            rolling: Mutex::default(),
            sync: Mutex::default(),
            sync_ended: Condvar::new(),
            synced: AtomicU64::new(0),
            next_mark: AtomicU64::new(0),
            syncs: AtomicU64::new(0),
            failed: OnceLock::new(),
            left_unsynced: Mutex::default(),
            manifest: AtomicU64::new(0),
            none_left: AtomicBool::new(true),
        }
    }

    /// Notes logs of an earlier process not known to be synced.
    pub fn record_left_unsynced(&self, logs: Vec<FileNumber>) {
        self.none_left.store(logs.is_empty(), Ordering::Release);
        *self.left_unsynced.lock() = logs;
    }

    /// Syncs the logs left by an earlier process, so nothing of this process is durable ahead of them (F1, D2). A log
    /// no longer needed may be gone.
    fn sync_left(&self) -> Result<()> {
        if self.none_left.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut left = self.left_unsynced.lock();
        for number in left.iter() {
            let path = self.setup.dir.join(file_name::format(FileType::Log, *number));
            match self.setup.vfs.open_append(&path) {
                Err(error) if error.is_not_found() && !self.is_live(*number) => {}
                opened => opened?.sync(IoClass::Log).inspect_err(|error| self.fail(error))?,
            }
        }
        left.clear();
        self.live.lock().record_left_synced();
        self.none_left.store(true, Ordering::Release);
        Ok(())
    }

    /// Creates a log with room for a record of `need_bytes`. Its first extent is allocated and its name durable. It
    /// names the last log as its predecessor, so the caller holds `rolling` until the new log is current or the spare.
    /// A spare becomes the next current log, or is never used.
    pub fn create(&self, need_bytes: u64) -> Result<Arc<ActiveLog>> {
        self.create_sized(FileType::Log, self.setup.file_bytes.max(capacity_for(need_bytes)))
    }

    /// Creates the log of a large batch, sized for the batch alone.
    pub fn create_for_batch(&self, batch_bytes: u64) -> Result<Arc<ActiveLog>> {
        self.create_sized(FileType::LargeBatch, capacity_for(batch_bytes))
    }

    /// Skips numbers taken by a different database in the same directory since this one was opened.
    fn create_sized(&self, file_type: FileType, capacity_bytes: u64) -> Result<Arc<ActiveLog>> {
        loop {
            let number = self.setup.numbers.take();
            match self.create_numbered(file_type, number, capacity_bytes) {
                Err(error) if error.kind() == ErrorKind::InvalidArgument && self.is_taken(file_type, number) => {}
                made => return made,
            }
        }
    }

    fn is_taken(&self, file_type: FileType, number: FileNumber) -> bool {
        self.setup.vfs.exists(&self.setup.dir.join(file_name::format(file_type, number))).unwrap_or(false)
    }

    fn create_numbered(&self, file_type: FileType, number: FileNumber, capacity_bytes: u64) -> Result<Arc<ActiveLog>> {
        let config = LogConfig {
            capacity_bytes,
            extent_bytes: match file_type {
                FileType::LargeBatch => capacity_bytes,
                _ => (capacity_bytes / EXTENTS_MIN).min(EXTENT_BYTES),
            },
            backing: self.setup.backing,
            earlier: self.frontiers(),
            predecessor: self.live.lock().last().filter(|_| file_type == FileType::Log),
            database: self.setup.database,
            manifest: NotedManifest::from_word(self.manifest.load(Ordering::Acquire)),
            session: self.setup.session,
            ..LogConfig::default()
        };
        let path = self.setup.dir.join(file_name::format(file_type, number));
        let made = LogFile::create(&*self.setup.vfs, &path, number, config);
        let made = made.and_then(|file| self.setup.vfs.sync_dir(&self.setup.dir).map(|()| file));
        // `InvalidArgument`: the file existed before, and belongs to a different database.
        if made.as_ref().is_err_and(|error| error.kind() != ErrorKind::InvalidArgument) {
            self.remove_unused(&path);
        }
        Ok(Arc::new(ActiveLog { file: made?, base: OnceLock::new() }))
    }

    /// Deletes a log that never came into use.
    pub fn discard(&self, log: &ActiveLog) {
        self.remove_unused(log.file.path());
    }

    /// Deletes a log without records. Left among logs with records, it would end the history at recovery; if it cannot
    /// be deleted, no log is written any more. The next log's creation makes the deletion durable.
    fn remove_unused(&self, path: &Path) {
        if let Err(error) = self.setup.vfs.remove_file(path)
            && !error.is_not_found()
        {
            self.fail(&error.context("an unused log is in the way"));
        }
    }

    /// Sync and publish progress, recorded in each new log. A position claims everything before it, so it may lie in a
    /// log only if the logs before it are whole: synced, or published.
    fn frontiers(&self) -> Frontiers {
        let sync = self.sync.lock();
        let Some(first) = sync.unsynced.first() else { return Frontiers::default() };
        // Bytes of a log are published only after the whole log before it.
        let begun = |log: &&Arc<ActiveLog>| log.file.published() > FILE_HEADER_BYTES;
        let last = sync.unsynced.iter().rev().find(begun).unwrap_or(first);
        Frontiers { synced: first.position_of(first.file.synced()), published: last.position_of(last.file.published()) }
    }

    /// How far the logs are certainly synced and published, to be noted in the MANIFEST. A log of which nothing is synced
    /// says nothing of the logs before it: they may be another process's.
    pub fn known_frontiers(&self) -> Frontiers {
        let now = self.frontiers();
        let begun = |at: Position| if at.offset > FILE_HEADER_BYTES { at } else { Position::default() };
        let now = Frontiers { synced: begun(now.synced), published: begun(now.published) };
        now.max(self.sync.lock().known)
    }

    /// Notes how far the MANIFEST has come. The record at its end is durable.
    pub fn record_manifest(&self, manifest: NotedManifest) {
        self.manifest.store(manifest.to_word(), Ordering::Release);
    }

    /// Takes the spare if a record of `need_bytes` fits into it. A smaller spare is deleted: a log with a larger
    /// number comes into use instead, and recovery follows the order of numbers (C1). Called by the holder of
    /// `rolling`.
    pub fn take_spare(&self, need_bytes: u64) -> Result<Option<Arc<ActiveLog>>> {
        let Some(spare) = self.spare.lock().take() else { return Ok(None) };
        if spare.file.capacity() >= capacity_for(need_bytes) {
            return Ok(Some(spare));
        }
        // Made durable by the directory sync of the next log.
        self.discard(&spare);
        self.check().map(|()| None)
    }

    /// Whether the current log is more than half full and has no spare yet. Final only for the holder of `rolling`.
    pub fn wants_spare(&self) -> bool {
        let is_half_full = |log: &Arc<ActiveLog>| log.file.tail() > log.file.capacity() / 2;
        self.sync.lock().unsynced.last().is_some_and(is_half_full) && self.spare.lock().is_none()
    }

    pub fn has_spare(&self) -> bool {
        self.spare.lock().is_some()
    }

    pub fn put_spare(&self, log: Arc<ActiveLog>) {
        *self.spare.lock() = Some(log);
    }

    /// Allocates and prefaults the next part of the current log, as much as `pace` says, and releases the written
    /// part. With `is_bounded` it prefaults nothing: a sync would write those pages too. A background job.
    pub fn prefault(&self, pace: &LogPace, is_bounded: bool) {
        let unsynced = self.sync.lock().unsynced.clone();
        if let Some(current) = unsynced.last() {
            let window_bytes = pace.window_bytes(current.end(), self.setup.vfs.now());
            // On failure, the next writer allocates space itself and reports the error.
            let _ = current.file.allocate_ahead(window_bytes);
            if !is_bounded {
                current.file.populate_ahead(window_bytes);
            }
        }
        unsynced.iter().for_each(|log| log.file.release_behind());
    }

    /// Whether a log has `bytes_min` bytes or more that are not on their way to the disk.
    pub fn is_writeback_due(&self, bytes_min: u64) -> bool {
        self.sync.lock().unsynced.iter().any(|log| log.file.is_writeback_due(bytes_min))
    }

    /// Starts writeback of each log with `bytes_min` bytes or more that are not on their way to the disk, oldest first.
    /// What becomes durable by it does so in no order; only a sync tells (F1).
    ///
    /// # Errors
    /// `Io`, sticky: as of [`sync_through`](Self::sync_through) (D4).
    pub fn start_writeback(&self, bytes_min: u64) -> Result<()> {
        self.check()?;
        let unsynced = self.sync.lock().unsynced.clone();
        let mut started = unsynced.iter().map(|log| log.file.start_writeback(bytes_min));
        started.try_for_each(|started| started.inspect_err(|error| self.fail(error)))
    }

    /// Notes `log` as current; the log before it ends with `last_seq`.
    pub fn record_current(&self, log: &Arc<ActiveLog>, last_seq: SeqNo) {
        let current = self.live_log(FileType::Log, log.number(), log.file.capacity(), None);
        self.live.lock().push_current(current, last_seq);
        self.sync.lock().unsynced.push(log.clone());
    }

    /// Notes the log of a large batch with the number `last_seq`. The log goes once every family touched by the batch
    /// has flushed through it.
    pub fn record_large(&self, log: &ActiveLog, last_seq: SeqNo) {
        let large = self.live_log(FileType::LargeBatch, log.number(), log.file.tail(), Some(last_seq));
        self.live.lock().push_large(large);
    }

    /// Notes the live range and the frontiers recorded by an earlier process. Called before any log is noted.
    pub fn record_earlier(&self, noted: &NotedLogs) {
        let synced = WalRange::none_through(noted.frontiers.synced.log);
        let mut live = self.live.lock();
        noted.range.into_iter().chain([synced]).for_each(|range| live.record_earlier(range));
        noted.in_tables().for_each(|end| live.record_log_end(*end)); // their logs may be gone, and later ones name them
        drop(live);
        self.sync.lock().known = noted.frontiers;
    }

    /// Notes a log of an earlier process. Called oldest first.
    pub fn record_recovered(&self, replayed: &ReplayedLog) {
        let ReplayedLog { file_type, end, bytes, is_end_known } = *replayed;
        let log = self.live_log(file_type, end.log, bytes, Some(end.last_seq));
        let mut live = self.live.lock();
        live.push_recovered(log);
        if file_type == FileType::Log && is_end_known {
            live.record_log_end(end);
        }
    }

    fn live_log(&self, file_type: FileType, number: FileNumber, bytes: u64, last_seq: Option<SeqNo>) -> LiveLog {
        let life = self.setup.lives.of(file_type, number);
        life.need();
        life.set_bytes(bytes);
        LiveLog { life, bytes, last_seq }
    }

    /// Ends found by recovery, in the live range.
    pub fn recovered_ends(&self) -> Vec<LogEnd> {
        self.live.lock().recovered_ends()
    }

    /// Releases the logs ending at or below `needed_after`: every family has flushed through it (Q3, F2), and no prepared
    /// transaction needs them (P1). They are deleted once the MANIFEST records them as unneeded.
    pub fn release_through(&self, needed_after: SeqNo) {
        let need = self.need(needed_after);
        let oldest = self.live.lock().release(need);
        self.prepared.forget_before(oldest.unwrap_or(FileNumber(u64::MAX)));
    }

    /// Live range for an edit flushing every family through `needed_after`.
    pub fn range_after(&self, needed_after: SeqNo) -> WalRange {
        let need = self.need(needed_after);
        self.live.lock().range_after(need)
    }

    fn need(&self, after: SeqNo) -> Need {
        let by_prepared = self.prepared.oldest_needed(after, self.synced.load(Ordering::Acquire));
        Need { after, by_prepared }
    }

    /// The live range, if not yet recorded in the MANIFEST.
    pub fn unnoted_range(&self) -> Option<WalRange> {
        self.live.lock().unnoted_range()
    }

    /// Notes `range` as recorded in the MANIFEST: logs before it are deleted when their last pin goes.
    pub fn record_durable(&self, range: WalRange) {
        let gone = self.live.lock().record_durable(range);
        gone.iter().for_each(|log| log.life.mark_unneeded());
        // With `sync_sst_file=false` some were never synced; they need no sync any more.
        self.sync.lock().unsynced.retain(|log| log.number() >= range.oldest);
    }

    fn is_live(&self, number: FileNumber) -> bool {
        self.live.lock().iter().any(|log| log.number() == number)
    }

    /// Bytes of all live logs, counting only the used bytes of the current one; and the last number in the oldest log,
    /// `None` if it is current.
    pub fn total(&self) -> (u64, Option<SeqNo>) {
        let current_bytes = self.sync.lock().unsynced.last().map_or(0, |current| current.file.tail());
        let live = self.live.lock();
        let ended = live.iter().filter(|log| log.last_seq.is_some());
        (ended.map(|log| log.bytes).sum::<u64>() + current_bytes, live.iter().next().and_then(|log| log.last_seq))
    }

    /// The oldest log still needed.
    pub fn oldest(&self) -> Option<FileNumber> {
        self.live.lock().iter().next().map(LiveLog::number)
    }

    /// Numbers and pins of all live logs, oldest first.
    pub fn pin_all(&self) -> Vec<(FileNumber, Arc<LogLife>)> {
        self.live.lock().iter().map(|log| (log.number(), log.life.clone())).collect()
    }

    /// Fills a reservation, in parallel with other writers (C2).
    pub fn append(&self, log: &ActiveLog, at: &Reservation, kind: RecordKind, parts: &[&[u8]]) -> Result<()> {
        log.file.append(at, kind, parts).inspect_err(|e| self.fail(e))
    }

    /// Whether the memtables' next recovery watermark is due at `at`. True for exactly one caller per watermark.
    #[inline]
    pub fn takes_mark(&self, at: LogPosition) -> bool {
        let next = self.next_mark.load(Ordering::Relaxed);
        let exchange =
            |next| self.next_mark.compare_exchange(next, at + MARK_EVERY_BYTES, Ordering::Relaxed, Ordering::Relaxed);
        at >= next && exchange(next).is_ok()
    }

    /// Whether everything before `target` already survives power loss.
    pub fn is_synced_through(&self, target: LogPosition) -> bool {
        self.synced.load(Ordering::Acquire) >= target
    }

    /// Returns once everything before `target` survives power loss. One `fdatasync` serves all waiting callers; it is
    /// issued after `target` was published. `published` returns the published position. Returns true if this call
    /// issued a sync.
    ///
    /// # Errors
    /// `Io`, sticky: the log's unsynced part is lost to this process (D4).
    pub fn sync_through(&self, target: LogPosition, published: impl Fn() -> LogPosition) -> Result<bool> {
        self.check()?;
        self.sync_left()?;
        let mut issued = false;
        let mut state = self.sync.lock();
        loop {
            if self.is_synced_through(target) {
                return Ok(issued);
            }
            self.check()?;
            if state.running {
                self.sync_ended.wait(&mut state);
                continue;
            }
            state.running = true;
            // Read before the list is taken: a log is in the list before anything in it is published.
            let through = published();
            let logs = state.unsynced.clone();
            drop(state);
            let result = self.sync_logs(&logs, through);
            issued = true;
            state = self.sync.lock();
            state.running = false;
            match &result {
                Ok(()) => {
                    self.synced.fetch_max(through, Ordering::AcqRel);
                    let is_whole = |log: &Arc<ActiveLog>| log.file.is_sealed() && log.end() <= through;
                    let SyncState { unsynced, known, .. } = &mut *state;
                    for end in unsynced.iter().filter(|log| is_whole(log)).map(|log| log.end_position()) {
                        *known = known.max(Frontiers { synced: end, published: end });
                    }
                    unsynced.retain(|log| !is_whole(log));
                }
                Err(e) => self.fail(e),
            }
            self.sync_ended.notify_all();
            result?;
        }
    }

    /// How often a log was synced, since the database was opened.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    /// Syncs everything before `through`, older logs first: no record is durable ahead of an older one (F1).
    fn sync_logs(&self, logs: &[Arc<ActiveLog>], through: LogPosition) -> Result<()> {
        for log in logs {
            if log.base() >= through {
                break;
            }
            log.record_published(through);
            self.syncs.fetch_add(1, Ordering::Relaxed);
            let Some(statistics) = &self.setup.statistics else {
                log.file.sync()?;
                continue;
            };
            let start = self.setup.vfs.now();
            log.file.sync()?;
            statistics.add(Ticker::WalFileSynced, 1);
            statistics.record(Histogram::WalFileSync, self.setup.vfs.now().saturating_sub(start).as_micros() as u64);
        }
        Ok(())
    }

    /// Deletes the spare.
    pub fn discard_spare(&self) {
        let spare = self.spare.lock().take();
        spare.inspect(|spare| self.discard(spare));
    }

    /// Ends this process's last log with the number `last_seq`. No write is in progress. If the log `is_needed`, it gets
    /// an end record, and the next open finds it whole.
    pub fn end(&self, log: &ActiveLog, last_seq: SeqNo, is_needed: bool) -> Result<()> {
        self.live.lock().end_current(last_seq);
        if !is_needed {
            log.file.seal();
            log.file.wait_for_growth(); // while the directory is this database's
            return Ok(());
        }
        // All records are synced before the end record. It then proves the log whole: damage is told from a torn tail.
        self.sync_through(log.end(), || log.end())?;
        let Some(reservation) = log.file.seal() else { return Ok(()) };
        self.append(log, &reservation, RecordKind::End, &[])?;
        log.file.wait_for_growth(); // while the directory is this database's
        self.sync_through(log.end(), || log.end()).map(drop)
    }

    /// # Errors
    /// The sticky error of the first append or sync that failed.
    pub fn check(&self) -> Result<()> {
        self.failed.get().cloned().map_or(Ok(()), Err)
    }

    /// No log is written or synced any more.
    pub fn fail(&self, error: &Error) {
        let _ = self.failed.set(error.clone()); // the first failure is the one to report
    }
}

/// WAL bytes from one watermark to the next: the most a restart replays, a few milliseconds' worth. Every memtable
/// gets each watermark, however slowly it is written, so none keeps the logs of all families.
const MARK_EVERY_BYTES: u64 = 256 << 10;

/// Largest first extent of a log: the disk use of a database with few records.
const EXTENT_BYTES: u64 = 64 << 10;

/// Fewest extents of a log: a short log has shorter extents, so it also grows in steps.
const EXTENTS_MIN: u64 = 16;

/// The size of a log whose first record has `payload_bytes`.
fn capacity_for(payload_bytes: u64) -> u64 {
    // Two record headers: the record's own and that of the end record. The rest is alignment.
    FILE_HEADER_BYTES + payload_bytes + 2 * RECORD_HEADER_BYTES as u64 + 64
}

/// A replayed log in Spillway's own format.
pub(crate) struct ReplayedLog {
    pub file_type: FileType,
    pub end: LogEnd,
    pub bytes: u64,
    /// Whether recovery read the whole log, so `end` may be recorded.
    pub is_end_known: bool,
}

impl ReplayedLog {
    /// Marks the log as fully in tables for the MANIFEST, so it is not even read if it outlives its deletion.
    pub fn forget(&mut self) {
        self.is_end_known = true;
        self.end = LogEnd::of_log_in_tables(self.end.log);
    }
}
