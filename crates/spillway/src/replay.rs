//! Recovery of what the logs hold: RocksDB's logs of a directory that is taken over, then our own. Keeps D1-D3, F1, F2.
//!
//! Old logs are never modified. Where each ended is noted in the new MANIFEST before anything is numbered, so that a
//! second crash finds the same history.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::options::WalRecoveryMode;
use base::{Error, FamilyId, FileNumber, Result, SeqNo};
use log::framed::FramedReader;
use log::{EndReason, FILE_HEADER_BYTES, Frontiers, RecordKind, RecoveryMode, ReplayOptions};
use memtable::Entry;

use crate::context::Context;
use crate::core::FamilyState;
use crate::flush::flushable::{Flushable, QueuedMemtable};
use crate::flush::job::FlushPlan;
use crate::flush::rewrite;
use crate::read::snapshot::CapturedSnapshots;
use crate::version::builder::VersionBuilder;
use crate::version::edit::{LogEnd, VersionEdit};
use crate::version::file_name::{self, FileType};
use crate::write::batch::BatchReader;
use crate::write::commit::entries_of;
use crate::write::large::LargeBatchRecord;

/// Older logs of ours than this many are flushed at open, so that they go: each short life of a process leaves one, and
/// each costs every later open a file to replay. Fewer are cheaper to replay than to make tables of.
const OLD_LOGS_MAX: usize = 8;

/// A log of ours that was replayed.
pub(crate) struct ReplayedLog {
    pub file_type: FileType,
    pub end: LogEnd,
    pub bytes: u64,
}

impl ReplayedLog {
    /// All of it is in tables: says so in the MANIFEST, so that it is not even read should it outlive its deletion.
    fn forget(&mut self) {
        self.end.end_offset = FILE_HEADER_BYTES;
        self.end.last_seq = SeqNo::ZERO;
    }
}

/// What a database goes on from.
pub(crate) struct Replayed {
    pub last_seq: SeqNo,
    pub logs: Vec<ReplayedLog>,
}

/// Replays logs into the families' memtables.
pub(crate) struct LogReplay<'a> {
    context: &'a Context,
    /// False where the database is opened for reading: then nothing is written, however much memory that takes.
    may_flush: bool,
    families: &'a mut BTreeMap<FamilyId, FamilyState>,
    /// RocksDB's logs below this number hold nothing of the family that is not in tables.
    log_numbers: BTreeMap<FamilyId, FileNumber>,
    last_seq: SeqNo,
    /// Logs of ours that were replayed, those of large batches included.
    logs: Vec<ReplayedLog>,
    /// Damage was passed over in some log of ours.
    passed_damage: bool,
}

impl<'a> LogReplay<'a> {
    pub fn new(
        context: &'a Context,
        may_flush: bool,
        families: &'a mut BTreeMap<FamilyId, FamilyState>,
        log_numbers: BTreeMap<FamilyId, FileNumber>,
        last_seq: SeqNo,
    ) -> Self {
        LogReplay { context, may_flush, families, log_numbers, last_seq, logs: Vec::new(), passed_damage: false }
    }

    /// Replays every log in the directory. `log_ends` is where earlier recoveries ended some of them; `min_rocksdb_log`
    /// is the first of RocksDB's that may be needed.
    pub fn run(mut self, log_ends: &[LogEnd], min_rocksdb_log: FileNumber) -> Result<Replayed> {
        let (mut rocksdb_logs, own_logs) = self.find_logs()?;
        rocksdb_logs.retain(|number| *number >= min_rocksdb_log);
        for number in &rocksdb_logs {
            self.replay_rocksdb_log(*number)?;
        }
        if self.may_flush && !rocksdb_logs.is_empty() {
            self.flush_everything()?;
        }
        self.replay_own_logs(&own_logs, log_ends)?;
        if self.may_flush && (self.passed_damage || self.has_too_many_logs()) {
            self.flush_everything()?;
            self.logs.iter_mut().for_each(ReplayedLog::forget);
        }
        Ok(Replayed { last_seq: self.last_seq, logs: self.logs })
    }

    fn has_too_many_logs(&self) -> bool {
        let bytes: u64 = self.logs.iter().map(|log| log.bytes).sum();
        let limit_bytes = self.context.options.max_total_wal_size;
        let count = self.logs.iter().filter(|log| log.file_type == FileType::Log).count();
        count > OLD_LOGS_MAX || (limit_bytes > 0 && bytes > limit_bytes)
    }

    /// The numbers of RocksDB's logs and of ours, ascending.
    fn find_logs(&self) -> Result<(Vec<FileNumber>, Vec<FileNumber>)> {
        let dir = self.context.log_dir();
        let names = self.context.vfs.read_dir(&dir)?;
        let of_type = |wanted: FileType| {
            let found = names.iter().filter_map(|name| file_name::parse(name));
            let mut numbers: Vec<_> = found.filter(|(kind, _)| *kind == wanted).map(|(_, number)| number).collect();
            numbers.sort_unstable();
            numbers
        };
        Ok((of_type(FileType::RocksLog), of_type(FileType::Log)))
    }

    fn path(&self, kind: FileType, number: FileNumber) -> PathBuf {
        self.context.log_dir().join(file_name::format(kind, number))
    }

    fn replay_rocksdb_log(&mut self, number: FileNumber) -> Result<()> {
        let path = self.path(FileType::RocksLog, number);
        let vfs = self.context.vfs.clone();
        let mode = recovery_mode(self.context.options.wal_recovery_mode);
        let mut reader = FramedReader::open(&*vfs, &path, Some(number.0), vfs::IoClass::Log)?;
        log::framed::replay(&mut reader, mode, &mut |record| {
            let applied = self.apply(&record.payload, Some(number));
            applied.map_err(|e| e.at_path(&path).at_offset(record.offset))
        })?;
        Ok(())
    }

    fn replay_own_logs(&mut self, numbers: &[FileNumber], log_ends: &[LogEnd]) -> Result<()> {
        let later = self.later_frontiers(numbers)?;
        let mut history_ended = false;
        for (&number, later) in numbers.iter().zip(later) {
            let known_end = log_ends.iter().find(|end| end.log == number).map(|end| end.end_offset);
            // What follows a log that was cut off was never acknowledged: it is not history (D2).
            let known_end = if history_ended { Some(FILE_HEADER_BYTES) } else { known_end };
            let (end_offset, whole) = self.replay_own_log(number, known_end, later)?;
            history_ended |= !whole && !self.salvages();
            self.note_replayed(FileType::Log, number, end_offset)?;
        }
        Ok(())
    }

    fn note_replayed(&mut self, file_type: FileType, number: FileNumber, end_offset: u64) -> Result<()> {
        let bytes = self.context.vfs.metadata(&self.path(file_type, number))?.len;
        let end = LogEnd { log: number, end_offset, last_seq: self.last_seq };
        self.logs.push(ReplayedLog { file_type, end, bytes });
        Ok(())
    }

    /// True in the mode that keeps whatever can be read, holes or not.
    fn salvages(&self) -> bool {
        self.context.options.wal_recovery_mode == WalRecoveryMode::SkipAnyCorruptedRecords
    }

    /// What the logs behind each one know of it.
    fn later_frontiers(&self, numbers: &[FileNumber]) -> Result<Vec<Frontiers>> {
        let mut known = Frontiers::default();
        let mut later = Vec::with_capacity(numbers.len());
        for &number in numbers.iter().rev() {
            later.push(known);
            known = known.max(log::read_frontiers(&*self.context.vfs, &self.path(FileType::Log, number), number)?);
        }
        later.reverse();
        Ok(later)
    }

    /// Returns where the log ended, and whether that was its proper end.
    fn replay_own_log(&mut self, number: FileNumber, known_end: Option<u64>, later: Frontiers) -> Result<(u64, bool)> {
        let path = self.path(FileType::Log, number);
        let vfs = self.context.vfs.clone();
        if self.may_flush {
            // What is replayed may become durable in a table: the log must be so first (F1). It is not modified.
            vfs.open_append(&path)?.sync(vfs::IoClass::Log)?;
        }
        let mode = recovery_mode(self.context.options.wal_recovery_mode);
        let options = ReplayOptions { number, mode, known_end, later };
        let end = log::replay(&*vfs, &path, &options, &mut |record| {
            let applied = match record.kind {
                RecordKind::Batch => self.apply(record.payload, None),
                RecordKind::LargeBatch => self.apply_large(record.payload),
                RecordKind::Noop | RecordKind::End => Ok(()),
                kind => {
                    Err(Error::unsupported(format!("the log holds a record of kind {kind:?}, which is not replayed")))
                }
            };
            applied.map_err(|e| e.at_path(&path).at_offset(record.offset))
        })?;
        self.passed_damage |= end.skipped_bytes > 0;
        tracing::info!(log = number.0, end = end.end_offset, reason = ?end.reason, "replayed a log");
        Ok((end.end_offset, matches!(end.reason, EndReason::Sealed | EndReason::KnownEnd)))
    }

    /// Applies a batch as it stands in a log. `rocksdb_log`: the number of RocksDB's log that it comes from.
    fn apply(&mut self, payload: &[u8], rocksdb_log: Option<FileNumber>) -> Result<()> {
        let batch = BatchReader::new(payload)?;
        let first = batch.seq();
        self.apply_batch(batch, first, rocksdb_log)
    }

    /// Applies a batch under the numbers from `first`.
    fn apply_batch(&mut self, batch: BatchReader<'_>, first: SeqNo, rocksdb_log: Option<FileNumber>) -> Result<()> {
        if batch.clone().try_fold(0u64, |n, record| record.map(|_| n + 1))? != u64::from(batch.declared_count()) {
            return Err(Error::corruption("a batch in the log does not hold as many records as it says"));
        }
        let count = u64::from(batch.declared_count());
        for (family, entry) in entries_of(batch, first) {
            if self.is_wanted(family, entry.seq, rocksdb_log) {
                self.insert(family, &entry)?;
            }
        }
        if count > 0 {
            self.last_seq = self.last_seq.max(SeqNo(first.0 + count - 1));
        }
        Ok(())
    }

    /// Applies the batch that a record of the log commits and another file holds.
    fn apply_large(&mut self, payload: &[u8]) -> Result<()> {
        let record = LargeBatchRecord::decode(payload)?;
        let last = record.last();
        self.last_seq = self.last_seq.max(last);
        let flushed = |id: &FamilyId| self.families.get(id).is_none_or(|family| family.flushed_through >= last);
        if record.families.iter().all(flushed) {
            return Ok(()); // its file may be gone
        }
        let path = self.path(FileType::LargeBatch, record.file);
        let vfs = self.context.vfs.clone();
        // It was synced before the record that commits it was written: all of it must be there.
        let mode = RecoveryMode::AbsoluteConsistency;
        let options = ReplayOptions { number: record.file, mode, ..ReplayOptions::default() };
        let mut batches = 0;
        let end = log::replay(&*vfs, &path, &options, &mut |held| {
            batches += 1;
            let batch = BatchReader::new(held.payload)?;
            if held.kind != RecordKind::Batch || batch.declared_count() != record.count || batches > 1 {
                return Err(Error::corruption("the file does not hold the batch that the log commits").at_path(&path));
            }
            self.apply_batch(batch, record.first, None).map_err(|e| e.at_path(&path).at_offset(held.offset))
        })?;
        if batches == 0 {
            return Err(Error::corruption("the file of a large batch is empty").at_path(path));
        }
        self.note_replayed(FileType::LargeBatch, record.file, end.end_offset)
    }

    /// False for what is in tables already (F2), and for families that were dropped.
    fn is_wanted(&self, id: FamilyId, seq: SeqNo, rocksdb_log: Option<FileNumber>) -> bool {
        let Some(family) = self.families.get(&id) else { return false };
        match rocksdb_log {
            Some(log) => self.log_numbers.get(&id).is_none_or(|needed| log >= *needed),
            None => seq > family.flushed_through,
        }
    }

    fn insert(&mut self, id: FamilyId, entry: &Entry<'_>) -> Result<()> {
        let Some(family) = self.families.get_mut(&id) else { return Ok(()) };
        let payload_bytes = entry.user_key.len() + entry.value.len();
        let need = family.mutable.memtable().worst_case_bytes(1, payload_bytes);
        if !family.mutable.memtable().try_reserve(need) {
            let before = SeqNo(entry.seq.0.saturating_sub(1));
            seal(self.context, family, before, need)?;
            let full = family.queue.len() >= family.family.options().max_write_buffer_number;
            if self.may_flush && full {
                flush_queue(self.context, family)?;
            }
            if !family.mutable.memtable().try_reserve(need) {
                return Err(Error::corruption(format!("an entry of {payload_bytes} bytes fits into no memtable")));
            }
        }
        family.mutable.insert_all(&mut std::iter::once(*entry));
        Ok(())
    }

    fn flush_everything(&mut self) -> Result<()> {
        for family in self.families.values_mut() {
            if family.mutable.memtable().entries() > 0 {
                seal(self.context, family, self.last_seq, 0)?;
            }
            if !family.queue.is_empty() {
                flush_queue(self.context, family)?;
            }
        }
        Ok(())
    }
}

/// Seals the mutable memtable at `largest` and puts one with `need_bytes` of room in its place.
fn seal(context: &Context, family: &mut FamilyState, largest: SeqNo, need_bytes: usize) -> Result<()> {
    let made = family.family.create_memtable(need_bytes)?;
    let next = context.queue_memtable(made, largest);
    let full: Arc<QueuedMemtable> = std::mem::replace(&mut family.mutable, next);
    full.seal_at(largest, 0); // the logs it came from are synced
    family.queue.insert(0, full);
    Ok(())
}

/// Turns the queue into a table. The MANIFEST written at the end of recovery is the first to name it; a crash before
/// leaves an orphan, and the logs as they were.
fn flush_queue(context: &Context, family: &mut FamilyState) -> Result<()> {
    let entries: Vec<Arc<dyn Flushable>> = family.queue.iter().rev().cloned().collect();
    let Some(through) = entries.last().and_then(|entry| entry.largest_seq()) else { return Ok(()) };
    for memtable in entries.iter().filter_map(|entry| entry.as_memtable()) {
        memtable.seal();
    }
    let plan = FlushPlan { family: family.family.clone(), version: family.version.clone(), entries, through };
    let captured = CapturedSnapshots { snapshots: Vec::new(), visible: through };
    if let Some(table) = rewrite::run(context, &plan, &captured)? {
        let mut edit = VersionEdit::new(family.family.id());
        edit.added.push((0, table));
        let mut builder = VersionBuilder::new(&family.version, family.family.tables());
        builder.apply(&edit)?;
        family.version = Arc::new(builder.build()?.version);
    }
    family.queue.clear();
    family.flushed_through = through;
    Ok(())
}

fn recovery_mode(mode: WalRecoveryMode) -> RecoveryMode {
    match mode {
        WalRecoveryMode::TolerateCorruptedTailRecords => RecoveryMode::TolerateCorruptedTailRecords,
        WalRecoveryMode::AbsoluteConsistency => RecoveryMode::AbsoluteConsistency,
        WalRecoveryMode::PointInTime => RecoveryMode::PointInTime,
        WalRecoveryMode::SkipAnyCorruptedRecords => RecoveryMode::SkipAnyCorruptedRecords,
    }
}

/// Removes a file that recovery made superfluous; one that cannot be removed is left for the next open.
pub(crate) fn remove_quietly(context: &Context, path: &Path) {
    if let Err(error) = context.vfs.remove_file(path) {
        tracing::warn!(%error, "cannot delete a superfluous file");
    }
}
