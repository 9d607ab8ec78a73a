//! WAL replay: first RocksDB's logs of an adopted directory, then ours. Keeps D1-D3, F1, F2.
//!
//! Old logs are never modified. Their ends are noted in the new MANIFEST before any sequence number is allocated, so a
//! second crash finds the same history.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::limits;
use base::note;
use base::options::WalRecoveryMode;
use base::{Error, ErrorKind, FamilyId, FileNumber, Result, SeqNo, ValueKind};
use memtable::Entry;
use wal::Position;

use crate::batch::BatchReader;
use crate::commit::entries_of;
use crate::core::FamilyState;
use crate::core::context::Context;
use crate::core::doubt::Doubt;
use crate::cursor::snapshot::CapturedSnapshots;
use crate::flush::build::build;
use crate::flush::divide::Divided;
use crate::flush::job::{FlushPlan, next_to_flush};
use crate::flush::link::Ground;
use crate::log_files::logs::ReplayedLog;
use crate::open::restart::Restored;
use crate::queue::entries::{SmallIngests, is_ingest};
use crate::queue::flushable::QueuedMemtable;
use crate::version::builder::VersionBuilder;
use crate::version::edit::VersionEdit;
use crate::version::file_name::{self, FileType};
use crate::version::manifest::manifest_path;
use crate::version::recover::Recovered;
use doubts::{Doubting, Hole};
use prepared::ReplayedPrepares;
use wal_range::FoundRange;

mod doubts;
pub(crate) mod ingests;
pub(crate) mod own_logs;
pub(super) mod prepared;
pub(crate) mod rocksdb_history;
pub(crate) mod rocksdb_logs;
pub(crate) mod rocksdb_range;
pub(crate) mod wal_range;

/// With more old logs of ours than this, an open flushes everything so the logs can be deleted. Each short-lived
/// process leaves a log, and every later open replays it. Fewer are cheaper to replay than to flush.
const OLD_LOGS_MAX: usize = 8;

/// The recovered end of the history.
pub(crate) struct Replayed {
    pub last_seq: SeqNo,
    /// The last number of our records.
    pub last_record: SeqNo,
    pub logs: Vec<ReplayedLog>,
    /// Logs passed over, wholly or in part, and possibly not synced.
    pub unsynced: Vec<FileNumber>,
    pub prepares: ReplayedPrepares,
    /// The largest family id in the MANIFEST and in the logs.
    pub max_family: u32,
    /// All is in tables, and no log that was read is read again: a salvage left something out, or the database is a copy.
    pub lets_logs_go: bool,
}

/// Replays logs into the families' memtables.
pub(crate) struct LogReplay<'a> {
    context: &'a Context,
    recovered: &'a Recovered,
    /// State restored from images; not replayed.
    restored: &'a Restored,
    /// False if opened for reading: nothing is written then, whatever memory replay takes.
    may_flush: bool,
    /// A flush found no space: memtables stay in memory from then on.
    is_disk_full: bool,
    families: &'a mut BTreeMap<FamilyId, FamilyState>,
    /// Per family: RocksDB's logs below this number hold nothing outside its tables.
    log_numbers: BTreeMap<FamilyId, FileNumber>,
    last_seq: SeqNo,
    /// The last number of our records so far.
    last_record: SeqNo,
    /// The last number applied.
    applied: SeqNo,
    /// Records through this number were applied by an earlier replay.
    skips_through: SeqNo,
    /// Replayed logs of ours, large batches included.
    logs: Vec<ReplayedLog>,
    /// Logs passed over, wholly or in part, and possibly not synced.
    unsynced: Vec<FileNumber>,
    prepares: ReplayedPrepares,
    /// The largest family id so far.
    max_family: u32,
    /// Salvage left out damaged records, or a missing log, of ours.
    passed_damage: bool,
    /// Some logs are of sessions that the MANIFEST does not know yet.
    has_later_sessions: bool,
    /// Salvage: records are lost between the last one and the next.
    hole: Option<Hole>,
    /// Where the last hole lies in which records are lost. A prepare before it may have ended there.
    hole_at: Option<Position>,
}

/// Fewer replayed bytes are not flushed because of what other databases hold.
const FLUSH_BYTES_MIN: usize = 1 << 20;

/// Replay beyond the limit looks again after so many bytes.
const CHARGE_STEP_BYTES: usize = 64 << 10;

impl<'a> LogReplay<'a> {
    pub fn new(
        context: &'a Context,
        may_flush: bool,
        families: &'a mut BTreeMap<FamilyId, FamilyState>,
        recovered: &'a Recovered,
        restored: &'a Restored,
    ) -> Self {
        let log_numbers = recovered.families.iter().map(|f| (f.id, f.log_number)).collect();
        let in_images = restored.families.values().map(|(through, _)| *through);
        let last_seq = in_images.fold(recovered.last_seq, SeqNo::max); // `recovered.last_seq` covers the tables
        LogReplay {
            context,
            recovered,
            restored,
            may_flush,
            is_disk_full: false,
            families,
            log_numbers,
            last_seq,
            last_record: SeqNo::ZERO,
            applied: SeqNo::ZERO,
            skips_through: SeqNo::ZERO,
            logs: Vec::new(),
            unsynced: Vec::new(),
            prepares: ReplayedPrepares::default(),
            max_family: recovered.max_family,
            passed_damage: false,
            has_later_sessions: false,
            hole: None,
            hole_at: None,
        }
    }

    /// Replays every needed log.
    ///
    /// # Errors
    /// `Corruption`, `Unsupported`: as [`wal::replay`], or a log is missing. `InvalidArgument`: the logs are in a
    /// directory other than the option's.
    pub fn run(mut self) -> Result<Replayed> {
        let rocksdb_logs = self.find_rocksdb_logs(self.recovered)?;
        // Logs of ours in RocksDB's directory are of a takeover that was cut off.
        let own_logs = if self.recovered.fenced { self.find_wal_range(self.recovered)? } else { FoundRange::default() };
        own_logs.check_manifest(&self.context.dir, self.recovered)?;
        self.replay_rocksdb_logs(&rocksdb_logs)?;
        if self.may_flush && !rocksdb_logs.is_empty() {
            self.check_families()?;
            self.flush_everything(self.last_seq)?;
            self.take_over_prepares()?;
        }
        self.replay_own_logs(&own_logs, &self.recovered.log_ends)?;
        self.end_hole(None);
        self.check_families()?;
        self.doubt_unproven_end()?;
        let lets_logs_go =
            self.may_flush && (self.passed_damage || self.has_later_sessions || self.recovered.is_copy());
        if lets_logs_go {
            // No damaged log is kept, not even for what is prepared: a later open would meet the damage again. A copy's logs have the
            // id of the database that it was made of.
            self.flush_everything(self.last_seq)?;
            self.take_over_prepares()?;
            self.forget_logs();
        } else if (self.has_too_many_logs() || self.has_ingests_to_place())
            && self.flush_if_room(|replay| replay.flush_everything(replay.last_seq))?
        {
            self.forget_logs();
        }
        if self.may_flush {
            self.advance_unused();
        }
        Ok(Replayed {
            last_seq: self.last_seq,
            last_record: self.last_record,
            logs: self.logs,
            unsynced: self.unsynced,
            prepares: self.prepares,
            max_family: self.max_family,
            lets_logs_go,
        })
    }

    /// Atomic flushes would rewrite ingests. Here each can have an edit of its own: all that is in memory is in logs.
    fn has_ingests_to_place(&self) -> bool {
        let mut queued = self.families.values().flat_map(|family| &family.queue);
        self.context.options.atomic_flush && queued.any(is_ingest)
    }

    /// Logs passed over without a known end do not count: they cost next to nothing, and are deleted in the background.
    fn has_too_many_logs(&self) -> bool {
        let read = || self.logs.iter().filter(|log| log.is_end_known && !self.prepares.needs(log.end.log));
        let bytes: u64 = read().map(|log| log.bytes).sum();
        let limit_bytes = self.context.options.max_total_wal_size;
        let count = read().filter(|log| log.file_type == FileType::Log).count();
        count > OLD_LOGS_MAX || (limit_bytes > 0 && bytes > limit_bytes)
    }

    /// Logs of transactions without an end stay, and those behind them.
    fn forget_logs(&mut self) {
        let unneeded = self.logs.iter_mut().filter(|log| !self.prepares.needs(log.end.log));
        unneeded.for_each(ReplayedLog::forget);
    }

    fn path(&self, kind: FileType, number: FileNumber) -> PathBuf {
        self.context.log_dir().join(file_name::format(kind, number))
    }

    /// True in the mode that keeps every readable record, despite holes.
    fn salvages(&self) -> bool {
        self.context.options.wal_recovery_mode == WalRecoveryMode::SkipAnyCorruptedRecords
    }

    /// Notes the numbers of a record of ours. They must be above every earlier record's (C1).
    fn follow(&mut self, first: SeqNo, last: SeqNo) -> Result<()> {
        if first <= self.last_record {
            let what = format!("a record's numbers begin with {first}, and one before it had {}", self.last_record);
            return Err(Error::corruption(what));
        }
        self.end_hole(Some(first));
        self.last_record = last;
        Ok(())
    }

    /// Salvage: records are lost behind the last one. `is_proven`: even if none follows.
    fn record_hole(&mut self, at: Position, why: String, is_proven: bool) {
        self.passed_damage |= is_proven;
        match &mut self.hole {
            Some(hole) => hole.widen(at, why, is_proven),
            None => self.hole = Some(Hole::new(self.last_record, at, why, is_proven)),
        }
    }

    /// `before`: the number of the record behind the hole; `None` at the end of the history.
    fn end_hole(&mut self, before: Option<SeqNo>) {
        if let Some(hole) = self.hole.take() {
            self.hole_at = hole.end(before, &self.doubting()).or(self.hole_at);
        }
    }

    fn doubting(&self) -> Doubting<'_> {
        Doubting {
            families: self.families,
            restored: self.restored,
            all_in_tables: self.recovered.all_in_tables(),
            doubts: &self.context.recovery_doubts,
        }
    }

    /// Inserts a checked batch with numbers from `first`. `rocksdb_log`: the log's number, if RocksDB wrote it.
    fn insert_batch(&mut self, batch: BatchReader<'_>, first: SeqNo, rocksdb_log: Option<FileNumber>) -> Result<()> {
        for (family, entry) in entries_of(batch, first) {
            if self.is_wanted(family, entry.seq, rocksdb_log) {
                self.insert(family, &entry)?;
            }
        }
        Ok(())
    }

    /// Checks that the MANIFEST knows every family of the logs: it is durable before the first write to a new family.
    ///
    /// # Errors
    /// `Corruption`: the MANIFEST lost its end.
    fn check_families(&self) -> Result<()> {
        let recovered = self.recovered;
        let Some(end) = recovered.manifest_end else { return Ok(()) };
        if self.max_family <= recovered.max_family || recovered.is_backups() {
            return Ok(());
        }
        let (id, manifest) = (self.max_family, recovered.manifest);
        let what =
            format!("the end of the MANIFEST is missing: the logs hold writes of column family {id}, which it lacks");
        Err(Error::corruption(what).at_path(manifest_path(&self.context.dir, manifest)).at_offset(end))
    }

    /// False for writes already in tables (F2) or images, and for dropped families.
    fn is_wanted(&mut self, id: FamilyId, seq: SeqNo, rocksdb_log: Option<FileNumber>) -> bool {
        self.max_family = self.max_family.max(id.0);
        let Some(family) = self.families.get(&id) else { return false };
        if seq <= family.flushed_through {
            return false; // of RocksDB's families a repair alone knows it
        }
        match rocksdb_log {
            Some(log) => self.log_numbers.get(&id).is_none_or(|needed| log >= *needed),
            None => !self.restored.has(id, seq),
        }
    }

    /// Whether to leave out an entry too large for any table. Earlier versions admitted such entries, and their flush
    /// would fail forever. Reading only keeps the entry.
    ///
    /// # Errors
    /// `InvalidArgument`: the entry is too large, and the recovery mode accepts no loss.
    fn leaves_out(&mut self, id: FamilyId, entry: &Entry<'_>) -> Result<bool> {
        let Some(error) = limits::check_entry(entry.user_key, entry.value).err().filter(|_| self.may_flush) else {
            return Ok(false);
        };
        if !self.salvages() {
            let name = self.families.get(&id).map_or("", |family| family.family.name());
            let what = format!(
                "column family \"{name}\" cannot be flushed with what the log holds; open for reading to copy the value, \
                 then once with wal_recovery_mode=kSkipAnyCorruptedRecords, which leaves this entry out"
            );
            return Err(error.context(what));
        }
        note::warn!(%error, "salvage leaves out an entry of a log");
        if let Some(family) = self.families.get(&id) {
            let end = if entry.kind == ValueKind::RangeDeletion { entry.value } else { entry.user_key };
            let keys = (entry.user_key.to_vec(), end.to_vec());
            self.doubting().add(Doubt::of_keys(family.family.name(), keys, "an entry of the log is too large"));
        }
        self.passed_damage = true;
        Ok(true)
    }

    fn insert(&mut self, id: FamilyId, entry: &Entry<'_>) -> Result<()> {
        if self.leaves_out(id, entry)? {
            return Ok(());
        }
        let Some(family) = self.families.get(&id) else { return Ok(()) };
        let payload_bytes = entry.user_key.len() + entry.value.len();
        let need = family.mutable.room_for(1, payload_bytes);
        let before = SeqNo(entry.seq.0.saturating_sub(1));
        if self.may_flush && !family.mutable.charge_for(need) {
            // All memtables together reached their memory limit.
            if self.flush_is_due() {
                self.flush_if_room(|replay| replay.flush_everything(before))?;
            }
            if let Some(family) = self.families.get(&id) {
                family.mutable.charge_whole(need.max(CHARGE_STEP_BYTES));
            }
        }
        let Some(family) = self.families.get_mut(&id) else { return Ok(()) };
        if !family.mutable.memtable().try_reserve(need) {
            seal(self.context, family, before, need)?;
            let full = family.queue.len() >= family.family.options().max_write_buffer_number;
            if full {
                self.flush_if_room(|replay| replay.flush_family(id))?;
            }
            let Some(family) = self.families.get(&id) else { return Ok(()) };
            if !family.mutable.memtable().try_reserve(need) {
                let what = format!("an entry of {payload_bytes} bytes in a log fits into no memtable that can be made");
                return Err(Error::invalid_argument(what));
            }
        }
        if let Some(family) = self.families.get(&id) {
            family.mutable.insert_all(&mut std::iter::once(*entry), None);
        }
        Ok(())
    }

    /// Whether flushes free memory. Databases that share the limit may hold it: they are asked to flush, and each record
    /// is no reason for a table meanwhile.
    fn flush_is_due(&self) -> bool {
        let memory = &self.context.memtables.memory;
        memory.sharers.ask_for_memory(memory.flushes_oldest_first());
        let used_bytes: usize = self.families.values().map(|family| family.mutable.used_bytes()).sum();
        let is_worth_it = !memory.is_shared() || used_bytes >= (memory.limit_bytes() / 64).min(FLUSH_BYTES_MIN);
        self.context.options.enforce_write_buffer_manager_during_recovery && is_worth_it
    }

    /// Flushes to relieve memory or to drop logs; false if nothing is flushed. On a full disk the memtables stay, as the
    /// logs do: deletions that follow may make room.
    fn flush_if_room(&mut self, flush: impl FnOnce(&mut Self) -> Result<()>) -> Result<bool> {
        if !self.may_flush || self.is_disk_full {
            return Ok(false);
        }
        self.sync_passed_over()?;
        match flush(self) {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                note::warn!(%error, "recovery keeps in memory what it has no space to flush");
                self.is_disk_full = true;
                Ok(false)
            }
            flushed => flushed.map(|()| true),
        }
    }

    fn flush_family(&mut self, id: FamilyId) -> Result<()> {
        self.families.get_mut(&id).map_or(Ok(()), |family| flush_queue(self.context, family))
    }

    /// Syncs the passed-over logs. Called before their records may become durable in a table (F1).
    fn sync_passed_over(&mut self) -> Result<()> {
        for number in std::mem::take(&mut self.unsynced) {
            self.context.vfs.open_append(&self.path(FileType::Log, number))?.sync(vfs::IoClass::Log)?;
        }
        Ok(())
    }

    /// Flushes every family through a number; everything at or below it was replayed.
    fn flush_everything(&mut self, through: SeqNo) -> Result<()> {
        self.sync_passed_over()?;
        for family in self.families.values_mut() {
            if family.mutable.memtable().entries() > 0 {
                seal(self.context, family, through, 0)?;
            }
            if !family.queue.is_empty() {
                flush_queue(self.context, family)?;
            }
        }
        Ok(())
    }

    /// Advances families holding nothing unflushed (F3), for the MANIFEST of this open: a flush in the middle of a record left them
    /// with a number within it, and the record's prepare or file may go before the record does. Their images begin there, too.
    fn advance_unused(&self) {
        let empty = self.families.values().filter(|family| family.queue.is_empty() && family.mutable.is_unused());
        empty.for_each(|family| family.mutable.begin_after(self.last_seq));
    }
}

/// # Errors
/// `Corruption`: a record is malformed, or the number of records differs from the header's.
fn check_count(batch: &BatchReader<'_>) -> Result<()> {
    if batch.clone().try_fold(0u64, |n, record| record.map(|_| n + 1))? == u64::from(batch.declared_count()) {
        return Ok(());
    }
    Err(Error::corruption("a batch in the log does not hold as many records as it says"))
}

/// Seals the mutable memtable at `largest` and replaces it with one of `need_bytes` room.
fn seal(context: &Context, family: &mut FamilyState, largest: SeqNo, need_bytes: usize) -> Result<()> {
    let made = family.family.create_memtable(need_bytes)?;
    let next = context.queue_memtable(made);
    next.begin_after(largest);
    let full: Arc<QueuedMemtable> = std::mem::replace(&mut family.mutable, next);
    full.seal_at(largest, 0, None); // its logs are synced, or noted as left unsynced
    family.queue.insert(0, full);
    Ok(())
}

/// Flushes the queue into tables. The MANIFEST at the end of recovery is the first to name them. A crash before it
/// leaves orphans, and the logs unchanged.
fn flush_queue(context: &Context, family: &mut FamilyState) -> Result<()> {
    let small = SmallIngests::Link; // their tables are there
    while let Some(plan) = FlushPlan::new(family, next_to_flush(&family.queue, small), small) {
        let divided = Divided::new(Arc::new(plan))?;
        let plan = &divided.plan;
        let through = plan.through;
        if family.mutable.is_unused() {
            family.mutable.advance_empty_to(through);
        }
        let captured = CapturedSnapshots { snapshots: Vec::new(), visible: through };
        let (edit, handles): (_, Vec<_>) = if plan.has_ingests() {
            let linked = Ground::without_compactions(&family.version).place(&divided, &captured, context)?;
            (linked.edit(plan), divided.linked().cloned().collect())
        } else {
            let mut edit = VersionEdit::new(family.family.id());
            let built = build(plan, context, &captured)?.inspect(|table| table.installed(plan));
            edit.added.extend(built.iter().map(|table| (0, table.meta.clone())));
            (edit, built.into_iter().filter_map(|table| table.adopted).collect())
        };
        let mut builder = VersionBuilder::new(&family.version, family.family.tables()).adopting(&handles);
        builder.apply(&edit)?;
        family.version = Arc::new(builder.build()?.version);
        let unneeded = family.unneeded_without(&plan.entries);
        family.end_flush(&plan.entries, &unneeded);
    }
    drop(family.publish_view()); // or the previous view would keep flushed memtables in memory
    Ok(())
}

/// Removes a file made superfluous by recovery. On failure the file stays for the next open.
pub(crate) fn remove_quietly(context: &Context, path: &Path) {
    if let Err(error) = context.vfs.remove_file(path) {
        note::warn!(%error, "cannot delete a superfluous file");
    }
}

#[cfg(test)]
mod tests {
    use vfs::MemoryVfs;

    use super::*;
    use crate::batch::options::WriteOptions;
    use crate::core::open_options::OpenOptions;
    use crate::database::handle::Database;
    use crate::records::record::CommitRecord;
    use crate::version::recover::recover;
    use crate::version::table_file::FileMeta;

    #[test]
    fn numbers_do_not_end_where_a_table_tells_none() {
        let vfs = MemoryVfs::new(1);
        let options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        let db = Database::open("/db", &options).unwrap();
        db.put(&db.default_family(), b"key", b"value", &WriteOptions::default()).unwrap();
        db.flush(&[&db.default_family()]).unwrap();
        let mut recovered = recover(&*vfs, Path::new("/db")).unwrap();
        // As LevelDB's tables are read, which do not say.
        let silent = FileMeta { number: FileNumber(90), largest_seq: SeqNo::MAX, ..FileMeta::default() };
        recovered.families[0].tables.push((0, silent));
        let (mut families, restored) = (BTreeMap::new(), Restored::default());
        let replay = LogReplay::new(&db.core().context, true, &mut families, &recovered, &restored);
        assert_eq!(replay.last_seq, SeqNo(1));
    }

    /// Has `test` replay into an empty database with one family.
    fn with_replay(mode: WalRecoveryMode, test: impl FnOnce(&mut LogReplay<'_>)) {
        let vfs = MemoryVfs::new(1);
        let mut options = OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() };
        options.db.wal_recovery_mode = mode;
        let db = Database::open("/db", &options).unwrap();
        let recovered = recover(&*vfs, Path::new("/db")).unwrap();
        let family = db.default_family();
        let state = FamilyState::new(family.clone(), &family.view_full(), SeqNo::ZERO);
        let mut families = BTreeMap::from([(family.id(), state)]);
        let restored = Restored::default();
        test(&mut LogReplay::new(&db.core().context, true, &mut families, &recovered, &restored));
    }

    #[test]
    fn an_entry_that_no_table_can_hold_is_named_and_salvage_leaves_it_out() {
        let value = vec![0; limits::ENTRY_BYTES_MAX]; // never touched, so never in memory
        let entry = Entry { user_key: b"huge", seq: SeqNo(1), kind: base::ValueKind::Value, value: &value };
        with_replay(WalRecoveryMode::PointInTime, |replay| {
            let error = replay.insert(FamilyId::DEFAULT, &entry).unwrap_err().to_string();
            assert!(error.contains("\"huge\"") && error.contains("kSkipAnyCorruptedRecords"), "{error}");
        });
        with_replay(WalRecoveryMode::SkipAnyCorruptedRecords, |replay| {
            replay.insert(FamilyId::DEFAULT, &entry).unwrap();
            assert!(replay.passed_damage, "all is flushed, and the log let go");
            let doubts = replay.context.recovery_doubts.all();
            let has = |key: &[u8]| doubts.iter().any(|doubt| doubt.covers("default", key, &base::UserOrder::Bytewise));
            assert!(has(b"huge") && !has(b"hug") && !has(b"hugf"), "{doubts:?}");
            replay.may_flush = false;
            assert!(!replay.leaves_out(FamilyId::DEFAULT, &entry).unwrap(), "who only reads has it");
        });
    }

    #[test]
    fn a_range_that_ends_before_it_starts_deletes_nothing() {
        // Versions before this one admitted such in batches.
        let mut batch = crate::batch::WriteBatch::new();
        batch.put(FamilyId::DEFAULT, b"b", b"1");
        batch.delete_range(FamilyId::DEFAULT, b"c", b"a");
        let mut payload = batch.as_bytes().to_vec();
        payload[0] = 1; // the first number
        with_replay(WalRecoveryMode::PointInTime, |replay| {
            let record = CommitRecord::decode(wal::RecordKind::Batch, &payload).unwrap().unwrap();
            replay.apply_commit(record, wal::Position::default()).unwrap();
            let family = &replay.families[&FamilyId::DEFAULT];
            assert_eq!((family.mutable.memtable().entries(), replay.last_seq), (2, SeqNo(2)));
            replay.flush_everything(SeqNo(2)).unwrap();
            let family = &replay.families[&FamilyId::DEFAULT];
            assert_eq!(family.version.all_files().count(), 1);
        });
    }
}
