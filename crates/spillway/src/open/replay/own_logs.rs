//! Replay of our own logs, and of the large batches they commit. Keeps D1-D3, F1.

use std::collections::BTreeSet;
use std::path::Path;

use base::note;
use base::options::WalRecoveryMode;
use base::{Error, ErrorKind, FamilyId, FileNumber, Result, SeqNo};
use vfs::Vfs;
use wal::{
    DatabaseId, EndReason, FILE_HEADER_BYTES, Frontiers, KnownEnd, LogHead, Position, RecordKind, ReplayEnd,
    ReplayOptions, ReplayRecord,
};

use super::ingests::WantedShare;
use super::prepared::ReplayedPrepares;
use super::wal_range::{self, FoundLog, FoundRange, LogPlaces, MissingLog};
use super::{LogReplay, check_count};
use crate::batch::BatchReader;
use crate::log_files::logs::ReplayedLog;
use crate::open::restart;
use crate::records::record::{CommitRecord, LargeBatchRecord, RecordedBatch};
use crate::records::two_phase_record::{CommitStep, Step, TransactionRecord, check_same, commit_without_prepare};
use crate::version::edit::LogEnd;
use crate::version::file_name::{self, FileType};
use crate::version::recover::Recovered;

/// Offset behind a log's `End` record: a later call must not look for records there.
const ENDED: u64 = u64::MAX;

/// The end of a replayed log.
struct OwnEnd {
    offset: u64,
    /// Ended by its `End` record or as the MANIFEST says, so the next log continues the history.
    proper: bool,
}

impl LogReplay<'_> {
    /// The logs to replay.
    ///
    /// # Errors
    /// `Corruption`: one is missing. `InvalidArgument`: it lies in another directory.
    pub(super) fn find_wal_range(&mut self, recovered: &Recovered) -> Result<FoundRange> {
        let (vfs, dir) = (&*self.context.vfs, self.context.log_dir());
        let salvages = self.salvages();
        let mut found = wal_range::find(vfs, &dir, self.database(), recovered.noted_logs(), |path, number| {
            match wal::read_head(vfs, path, number) {
                Err(error) if salvages && error.kind() == ErrorKind::Corruption => Ok(LogHead::default()),
                head => head,
            }
        })?;
        // A next open would not know their sessions: they are let go.
        self.has_later_sessions = found.has_later_sessions;
        let logs = &found.logs;
        let let_go = recovered.let_go_through();
        found.missing.retain(|log| !was_let_go(vfs, &dir, log.number, logs, let_go));
        let places = LogPlaces::new(vfs, &self.context.dir, &dir, recovered.log_dir.as_deref(), Some(recovered))?;
        let doubt = places.check(
            vfs,
            self.database(),
            &found,
            recovered.noted_by_logs(),
            let_go,
            self.context.options.wal_recovery_mode,
        )?;
        doubt.into_iter().for_each(|doubt| self.context.recovery_doubts.add(doubt));
        if found.missing.is_empty() {
            return Ok(found);
        }
        if !salvages {
            return Err(wal_range::refusal(&places, &found.missing));
        }
        for log in &found.missing {
            note::warn!(error = %log.error(&dir), "salvage goes on without a log");
        }
        self.passed_damage = true;
        Ok(found)
    }

    pub(super) fn database(&self) -> DatabaseId {
        self.recovered.id()
    }

    pub(super) fn replay_own_logs(&mut self, range: &FoundRange, log_ends: &[LogEnd]) -> Result<()> {
        let (logs, mut missing) = (&range.logs, range.missing.iter().peekable());
        // The end of the history, if before the last log.
        let mut ended: Option<Position> = None;
        let start = self.find_start(logs);
        for log in logs {
            if let Some((_, before)) = start.filter(|(at, _)| log.number < at.log) {
                self.pass_over(log.number, log_ends, before)?;
                while missing.next_if(|missing| missing.number < log.number).is_some() {} // images hold it
                continue;
            }
            while let Some(missing) = missing.next_if(|missing| missing.number < log.number) {
                self.report_missing(missing);
            }
            if let Some(end) = ended {
                self.check_nothing_follows(end, log.number)?;
                self.record_replayed(FileType::Log, log.number, KnownEnd { offset: FILE_HEADER_BYTES, on_disk: true })?;
                continue;
            }
            let known_end = log_ends.iter().find(|end| end.log == log.number).map(LogEnd::known);
            let from = start.filter(|(at, _)| at.log == log.number).map(|(at, _)| at.offset);
            let end = self.replay_own_log(log, from, known_end)?;
            let at = Position { log: log.number, offset: end.offset };
            if !end.proper && self.salvages() {
                self.record_hole(at, format!("log {} ends without its end record", log.number), false);
            } else if !end.proper {
                ended = Some(at);
            }
            let end = KnownEnd { offset: end.offset, on_disk: from.is_none() };
            self.record_replayed(FileType::Log, log.number, end)?;
        }
        missing.for_each(|missing| self.report_missing(missing));
        start.map_or(Ok(()), |(_, before)| self.pass_over_large_batches(before))
    }

    fn report_missing(&mut self, log: &MissingLog) {
        let at = Position { log: log.number, offset: 0 };
        self.record_hole(at, format!("log {} is missing", log.number), true);
    }

    /// Replays what a live writer has logged since an earlier call: from `log` on, or in the oldest log that is needed,
    /// the records above `applied`. All follow what was applied, whatever error is returned; `prepares` are those read
    /// by earlier calls.
    ///
    /// # Errors
    /// As [`run`](Self::run). A log that is gone, or its large batch, is no loss if the MANIFEST says by now that it is
    /// not needed. `InvalidArgument`: the writer lost records that were applied.
    pub(crate) fn read_on(
        mut self,
        log: &mut Option<Position>,
        applied: &mut SeqNo,
        prepares: &mut ReplayedPrepares,
    ) -> Result<()> {
        self.prepares = std::mem::take(prepares);
        let read = self.read_all_on(log, applied);
        *prepares = self.prepares;
        read
    }

    fn read_all_on(&mut self, log: &mut Option<Position>, applied: &mut SeqNo) -> Result<()> {
        (self.last_record, self.applied, self.skips_through) = (*applied, *applied, *applied);
        let oldest = self.recovered.wal_range.map_or(FileNumber(0), |range| range.oldest);
        self.prepares.forget_before(oldest);
        if let Some(at) = log.filter(|at| at.log >= oldest) {
            let found = FoundLog { number: at.log, later: Frontiers::default() };
            if at.offset < ENDED && !self.read_log_on(&found, Some(at.offset), log, applied)? {
                return Ok(());
            }
        }
        for found in self.find_wal_range(self.recovered)?.logs {
            if log.is_none_or(|at| at.log < found.number) && !self.read_log_on(&found, None, log, applied)? {
                break;
            }
        }
        Ok(())
    }

    /// True if the log has ended, and the next one goes on.
    fn read_log_on(
        &mut self,
        found: &FoundLog,
        from: Option<u64>,
        log: &mut Option<Position>,
        applied: &mut SeqNo,
    ) -> Result<bool> {
        let noted = self.recovered.log_ends.iter().find(|end| end.log == found.number);
        if noted.is_some_and(LogEnd::is_all_in_tables) && *applied <= self.recovered.last_written {
            *log = Some(Position { log: found.number, offset: ENDED });
            return Ok(true);
        }
        let known_end = noted.map(LogEnd::known);
        if let Some((from, end)) = from.zip(known_end).filter(|(from, end)| *from > end.offset) {
            let end = end.offset;
            let what = format!(
                "the primary lost writes that this secondary has read: this log was read to byte {from}, and ends at {end} now; \
                 open the secondary again"
            );
            return Err(Error::invalid_argument(what).at_path(self.path(FileType::Log, found.number)));
        }
        let read = self.replay_own_log(found, from, known_end);
        *applied = self.applied;
        let end = read?;
        // The listing of a live directory can miss a new log and have its spare, which has no header yet to name the log.
        // Once a position lies in the spare, the log is never read.
        let is_blank = !end.proper && end.offset < FILE_HEADER_BYTES;
        if is_blank {
            return Ok(false);
        }
        *log = Some(Position { log: found.number, offset: if end.proper { ENDED } else { end.offset } });
        Ok(end.proper)
    }

    /// The start of replay and an upper bound of all numbers before it, if images provide one. Images have no checksum,
    /// so a position without a record is doubted ([`restart::lost_log_ends`]), and all is replayed. Damage in the log itself
    /// shows in replay.
    fn find_start(&self, logs: &[FoundLog]) -> Option<(Position, SeqNo)> {
        let (vfs, dir) = (&*self.context.vfs, self.context.log_dir());
        let mut places = self.restored.families.values().map(|(_, at)| *at);
        if places.any(|at| restart::lost_log_end(vfs, &dir, self.recovered, at).is_some()) {
            note::warn!("all of the log is replayed, and what the memtables' images have stays");
            return None;
        }
        self.restored.start(self.families).filter(|(at, _)| logs.iter().any(|log| log.number == at.log))
    }

    /// Notes the files of large batches without a replayed record, if logs were passed over. Such a log may name them,
    /// and a later open without images needs them. Their numbers are at or below `last`.
    fn pass_over_large_batches(&mut self, last: SeqNo) -> Result<()> {
        let dir = self.context.log_dir();
        let mut files = file_name::numbers_in(&*self.context.vfs, &dir, FileType::LargeBatch)?;
        let is_noted = |file: &FileNumber| self.logs.iter().any(|log| log.end.log == *file);
        let is_of_another = |file: &FileNumber| {
            wal_range::is_of_another(&*self.context.vfs, &self.path(FileType::LargeBatch, *file), self.database())
        };
        files.retain(|file| !is_noted(file) && !is_of_another(file));
        for file in files {
            let bytes = self.context.vfs.metadata(&self.path(FileType::LargeBatch, file))?.len;
            let end = LogEnd { log: file, end_offset: bytes, last_seq: last, on_disk: true };
            self.logs.insert(0, ReplayedLog { file_type: FileType::LargeBatch, end, bytes, is_end_known: false });
        }
        Ok(())
    }

    /// Notes a log fully covered by images, with numbers at or below `last`. The log is not read: its end is the noted
    /// one or the file's, and matters only without the images.
    fn pass_over(&mut self, number: FileNumber, log_ends: &[LogEnd], last: SeqNo) -> Result<()> {
        let path = self.path(FileType::Log, number);
        let bytes = self.context.vfs.metadata(&path)?.len;
        let noted = log_ends.iter().find(|end| end.log == number);
        let (end_offset, on_disk) = noted.map_or((bytes, false), |end| (end.end_offset, end.on_disk));
        let end = LogEnd { log: number, end_offset, last_seq: last, on_disk };
        self.logs.push(ReplayedLog { file_type: FileType::Log, end, bytes, is_end_known: noted.is_some() });
        self.unsynced.push(number);
        Ok(())
    }

    /// Records after a cut-off log are not history (D2): a power loss took writes before them that were not synced.
    /// `AbsoluteConsistency` refuses them.
    fn check_nothing_follows(&self, ended: Position, later: FileNumber) -> Result<()> {
        let is_strict = self.context.options.wal_recovery_mode == WalRecoveryMode::AbsoluteConsistency;
        if !is_strict || !has_records(&*self.context.vfs, &self.path(FileType::Log, later), later) {
            return Ok(());
        }
        let what = format!(
            "the log ends without its end record, but log {later} has records, and the recovery mode accepts no loss"
        );
        Err(Error::corruption(what).at_path(self.path(FileType::Log, ended.log)).at_offset(ended.offset))
    }

    pub(super) fn record_replayed(&mut self, file_type: FileType, number: FileNumber, end: KnownEnd) -> Result<()> {
        let bytes = self.context.vfs.metadata(&self.path(file_type, number))?.len;
        let KnownEnd { offset: end_offset, on_disk } = end;
        let end = LogEnd { log: number, end_offset, last_seq: self.last_seq, on_disk };
        self.logs.push(ReplayedLog { file_type, end, bytes, is_end_known: true });
        Ok(())
    }

    /// `from`: an offset at which a wanted record may begin; `None`: from the first record.
    fn replay_own_log(&mut self, log: &FoundLog, from: Option<u64>, known_end: Option<KnownEnd>) -> Result<OwnEnd> {
        let number = log.number;
        let path = self.path(FileType::Log, number);
        let vfs = self.context.vfs.clone();
        // Replayed records may become durable in a table: sync the log first (F1). It is not modified.
        if self.may_flush && from.is_some() {
            self.unsynced.push(number); // mostly in images: the open does not wait for its sync
        } else if self.may_flush {
            vfs.open_append(&path)?.sync(vfs::IoClass::Log)?;
        }
        let mode = self.context.options.wal_recovery_mode;
        let database = self.database();
        let options = ReplayOptions { number, mode, known_end, from, later: log.later, database, session: 0 };
        let end = wal::replay(&*vfs, &path, &options, &mut |record| {
            let at = Position { log: number, offset: record.offset };
            if record.skipped_bytes > 0 {
                let (bytes, from) = (record.skipped_bytes, at.offset - record.skipped_bytes);
                self.record_hole(at, format!("{bytes} bytes of log {number} from byte {from} on are damaged"), true);
            }
            let applied = self.apply_record(&record, at).map_err(|e| e.at_record(&path, record.offset));
            self.bear_in_salvage(applied, &record, at)
        })?;
        self.passed_damage |= vfs.read_failure(&path).is_some(); // the next open could not read it
        if end.skipped_bytes > 0 {
            note::warn!(log = number.0, bytes = end.skipped_bytes, "salvage passed over damage in a log");
        }
        if let Some(from) = end.lost_from {
            let at = Position { log: number, offset: end.end_offset };
            let through = if end.reason == EndReason::Sealed { ", up to its end record" } else { "" };
            self.record_hole(at, format!("log {number} is damaged from byte {from} on{through}"), true);
        }
        note::info!(log = number.0, end = end.end_offset, reason = ?end.reason, "replayed a log");
        Ok(OwnEnd { offset: end.end_offset, proper: end.reason.is_continued() })
    }

    fn apply_record(&mut self, record: &ReplayRecord<'_>, at: Position) -> Result<()> {
        if let Some(record) = CommitRecord::decode(record.kind, record.payload)? {
            self.apply_commit(record, at)?;
        }
        self.applied = self.last_record;
        Ok(())
    }

    /// In salvage mode, passes over a record that is malformed or lacks a file. Best efforts pass over an ingest without its
    /// tables.
    fn bear_in_salvage(&mut self, applied: Result<()>, record: &ReplayRecord<'_>, at: Position) -> Result<()> {
        let is_ingest = matches!(record.kind, RecordKind::Ingest | RecordKind::IngestAndLargeBatch);
        let bears = self.salvages() || is_ingest && self.context.options.best_efforts_recovery;
        let error = match applied {
            Err(error) if bears && (error.kind() == ErrorKind::Corruption || error.is_not_found()) => error,
            applied => return applied,
        };
        note::warn!(%error, "salvage passed over a record");
        self.passed_damage = true;
        let why = format!("a record of log {} is passed over: {error}", at.log);
        match CommitRecord::decode(record.kind, record.payload) {
            Ok(record) => record.iter().for_each(|record| self.doubting().record(record, &why)),
            Err(_) => self.record_hole(at, why, true),
        }
        Ok(())
    }

    /// Applies an ingest, then its batch. A large batch is read from its file.
    ///
    /// # Errors
    /// `Corruption`: the record or the batch is malformed, or a file is missing, damaged or another one.
    pub(super) fn apply_commit(&mut self, record: CommitRecord<'_>, at: Position) -> Result<()> {
        if let Some((first, last)) = record.numbers() {
            if last <= self.skips_through {
                return Ok(());
            }
            self.follow(first, last)?;
            // Even if the record is passed over, its numbers are not reused: a flush may have recorded them as flushed.
            self.last_seq = self.last_seq.max(last);
        }
        // Check everything before applying anything: salvage passes over the whole record (D3).
        let wanted = record.ingest.map(|ingest| self.wanted_shares(&ingest)).transpose()?.unwrap_or_default();
        match record.batch {
            None => self.queue_shares(&wanted),
            Some(RecordedBatch::InRecord(batch)) => self.apply_above(&wanted, batch.seq(), batch),
            Some(RecordedBatch::InFile(large)) => self.apply_large(&wanted, &large),
            Some(RecordedBatch::Prepared(record)) => self.apply_step(record, at),
        }
    }

    /// Keeps a prepare aside, or ends it.
    ///
    /// # Errors
    /// `Corruption`: the prepare of a commit was not read, and a family lacks its changes.
    fn apply_step(&mut self, record: TransactionRecord<'_>, at: Position) -> Result<()> {
        let (name, last) = (record.name, record.last());
        match record.step {
            Step::Prepare(batch) => {
                if self.hole_at.is_some() {
                    self.prepares.take(name); // its end is lost
                }
                self.prepares.keep(name, at, batch.to_bytes())
            }
            Step::Rollback => {
                self.prepares.end(name, last);
                Ok(())
            }
            Step::Commit(commit) => self.apply_prepared(name, record.first, last, &commit),
        }
    }

    fn apply_prepared(&mut self, name: &[u8], first: SeqNo, last: SeqNo, commit: &CommitStep) -> Result<()> {
        let Some(prepare) = self.prepares.end(name, last) else {
            // The prepare's log may be gone. A replay's flush can take a part of a record: a family that has the last number has all.
            let is_needed = commit.is_needed(last, |id| self.flushed_or_restored(id, last));
            return if is_needed { Err(commit_without_prepare(name)) } else { Ok(()) };
        };
        check_same(prepare.batch.count(), commit)?;
        if Some(prepare.at) < self.hole_at {
            let why = "a lost part of the log may have prepared a transaction anew that is committed behind it";
            let is_lacking = |id: &&FamilyId| self.flushed_or_restored(**id, last).is_some_and(|has| has < last);
            // The batch that is at hand may be an earlier one of the name.
            let of_batch = prepare.batch.iter().filter_map(|change| Some(change.ok()?.family));
            let families: BTreeSet<FamilyId> = commit.families.iter().copied().chain(of_batch).collect();
            self.doubting().families_of(families.iter().filter(is_lacking), why);
        }
        self.insert_batch(prepare.batch.iter(), first, None)
    }

    /// The number through which a family is in tables or images, `last` at most; `None` if it was dropped.
    fn flushed_or_restored(&self, id: FamilyId, last: SeqNo) -> Option<SeqNo> {
        let family = self.families.get(&id)?;
        Some(if self.restored.has(id, last) { last } else { family.flushed_through })
    }

    fn queue_shares(&mut self, shares: &[WantedShare]) -> Result<()> {
        shares.iter().try_for_each(|wanted| self.queue_share(wanted))
    }

    /// Applies a batch with numbers from `first`, above an ingest.
    fn apply_above(&mut self, shares: &[WantedShare], first: SeqNo, batch: BatchReader<'_>) -> Result<()> {
        check_count(&batch)?;
        self.queue_shares(shares)?;
        self.insert_batch(batch, first, None)
    }

    /// As [`apply_above`](Self::apply_above), for a batch in a file of its own.
    fn apply_large(&mut self, shares: &[WantedShare], large: &LargeBatchRecord) -> Result<()> {
        self.max_family = large.families.iter().fold(self.max_family, |largest, id| largest.max(id.0));
        if !large.is_needed(|id| self.families.get(&id).map(|family| family.flushed_through)) {
            return self.queue_shares(shares); // the file may be gone
        }
        let (vfs, dir) = (self.context.vfs.clone(), self.context.log_dir());
        let session = if self.has_later_sessions { 0 } else { self.recovered.session_of(large.file) };
        let owner = (self.database(), session);
        let mut see = |batch: BatchReader<'_>| self.apply_above(shares, large.first, batch);
        let end_offset = large.read(&*vfs, &dir, owner, &mut see)?;
        self.record_replayed(FileType::LargeBatch, large.file, KnownEnd { offset: end_offset, on_disk: true })
    }
}

/// What to tell of the end of a log that a crash left.
pub(crate) fn report_on_end(path: &Path, end: &ReplayEnd) -> Option<String> {
    let (name, offset) = (path.display(), end.end_offset);
    match end.reason {
        EndReason::Unfinished { next: None } => {
            Some(format!("{name} ends at byte {offset} with a write that was cut off"))
        }
        EndReason::Unfinished { next: Some(next) } => Some(format!(
            "{name} ends at byte {offset} for an open: a write was cut off there. What follows from byte {next} on was not known \
             to be synced, and is left out"
        )),
        _ => None,
    }
}

/// What to tell of a log with records behind log `cut_off`, whose end a power loss may have taken (D2).
pub(crate) fn report_on_left_out(cut_off: FileNumber, log: FileNumber) -> String {
    format!(
        "log {cut_off} ends without its end record, which a power loss leaves: the writes in log {log} follow lost ones, and were \
         not known to be synced, so they are left out"
    )
}

/// Whether the original of a backup let a missing log go: its numbers are none above [`let_go`](Recovered::let_go_through),
/// since a later log begins at or below the next number.
pub(crate) fn was_let_go(
    vfs: &dyn Vfs,
    dir: &Path,
    missing: FileNumber,
    logs: &[FoundLog],
    let_go: Option<SeqNo>,
) -> bool {
    let Some(let_go) = let_go else { return false };
    let mut later = logs.iter().filter(|log| log.number > missing);
    later.any(|log| first_seq(vfs, dir, log.number).is_some_and(|first| first.0 <= let_go.0 + 1))
}

/// The first number in a log; `None` if the log has no records or is unreadable.
fn first_seq(vfs: &dyn Vfs, dir: &Path, number: FileNumber) -> Option<SeqNo> {
    let path = dir.join(file_name::format(FileType::Log, number));
    let mut first = None;
    let options = ReplayOptions { number, ..ReplayOptions::default() };
    // Stops at the first record. Damage shows in replay.
    let _ = wal::replay(vfs, &path, &options, &mut |record| {
        first = CommitRecord::decode(record.kind, record.payload)?.and_then(|record| record.numbers()).map(|n| n.0);
        match first {
            Some(_) => Err(Error::closed("the first record was seen")),
            None => Ok(()),
        }
    });
    first
}

/// Whether a log of ours may hold records. An unreadable log counts as having some.
pub(crate) fn has_records(vfs: &dyn Vfs, path: &Path, number: FileNumber) -> bool {
    let mut records = 0;
    let options = ReplayOptions { number, mode: WalRecoveryMode::AbsoluteConsistency, ..ReplayOptions::default() };
    let end = wal::replay(vfs, path, &options, &mut |_| {
        records += 1;
        Ok(())
    });
    records > 0 || end.is_err()
}
