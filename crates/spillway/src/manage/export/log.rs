//! What an instant's tables lack, as one log in RocksDB's framing. The batches of our WAL have RocksDB's layout already:
//! only records of families whose tables have them are left out. Transactions that are prepared stand at its end. Keeps D2:
//! an unreadable record is an error, not an end.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{Error, FamilyId, FileNumber, Result, SeqNo};
use vfs::{IfExists, IoClass};
use wal::framed::FramedWriter;
use wal::{FILE_HEADER_BYTES, LogReader, Position, RecordKind};

use crate::batch::{self, BatchReader, BatchRecord, WriteBatch};
use crate::core::{Core, FamilyState};
use crate::order::pipeline::LogPosition;
use crate::records::record::{CommitRecord, RecordedBatch};
use crate::records::rocksdb_record::prepare_record;
use crate::records::two_phase_record::{Step, TransactionRecord, commit_without_prepare};
use crate::version::file_name::FileType;
use crate::version::log_life::LogLife;
use crate::version::snapshot::ManifestSnapshot;

/// A place in the WAL before every record above a number.
#[derive(Clone, Copy)]
pub(super) struct LogStart {
    at: Position,
    after: SeqNo,
}

impl LogStart {
    /// The WAL's end. The commit lock keeps numbers and places together (C1).
    pub fn now(core: &Core) -> Self {
        let commit = core.commit.lock();
        LogStart { at: core.next_record(&commit), after: commit.last_seq }
    }
}

/// The part of the WAL that is not in tables, pinned.
pub(super) struct RestOfLog {
    /// Oldest first, without those of large batches.
    logs: Vec<PinnedLog>,
    /// Keeps the logs.
    _pins: Vec<(FileNumber, Arc<LogLife>)>,
    /// Records before it are in tables.
    start: Option<LogStart>,
    /// Of each family, the number through which it is in tables.
    flushed: BTreeMap<FamilyId, SeqNo>,
    /// The last number of the instant.
    through: SeqNo,
    /// The logs have prepares without an end, or with one that tables lack.
    has_prepares: bool,
}

struct PinnedLog {
    number: FileNumber,
    path: PathBuf,
    end: LogEnding,
}

/// What is known of a log's end.
#[derive(Clone, Copy)]
enum LogEnding {
    /// Recovery found the end here.
    Known(u64),
    /// An earlier process may have left it without an end.
    Unknown,
    /// It goes on at least until here, and ends with an end record if another log follows; `u64::MAX`: with that in any
    /// case.
    Own(u64),
}

/// A transaction that is prepared.
struct Prepare {
    name: Vec<u8>,
    batch: Vec<u8>,
}

/// Takes a batch with its first number.
type See<'s> = dyn FnMut(SeqNo, BatchReader<'_>) -> Result<()> + 's;

impl RestOfLog {
    /// Called under the manifest lock, after `snapshot` was taken: logs with numbers that its tables lack are not released
    /// then. `published`: a position at or below its last number.
    pub fn capture(
        core: &Core,
        snapshot: &ManifestSnapshot,
        start: Option<LogStart>,
        published: LogPosition,
    ) -> RestOfLog {
        let through = snapshot.last_seq;
        let in_tables = |family: &FamilyState| match family.is_written() {
            true => family.needed_after().max(family.flushed_through),
            false => through,
        };
        let state = core.state.lock();
        let flushed: BTreeMap<_, _> = state.families.iter().map(|(id, family)| (*id, in_tables(family))).collect();
        drop(state);
        let least = flushed.values().copied().min().unwrap_or(through);
        let has_prepares = core.logs.prepared.oldest_needed(least, LogPosition::MAX).is_some();
        let pins = core.logs.pin_all();
        RestOfLog {
            logs: pinned_logs(core, &pins, published),
            _pins: pins,
            start: start.filter(|start| least >= start.after && !has_prepares),
            flushed,
            through,
            has_prepares,
        }
    }

    /// Writes and syncs the log, and returns its bytes. Without a rest it is empty, as in RocksDB's checkpoints.
    ///
    /// # Errors
    /// `Corruption`: a log cannot be read.
    pub fn write(&self, core: &Core, path: &Path) -> Result<u64> {
        let file = core.context.vfs.create(path, IfExists::Fail)?;
        let mut writer = FramedWriter::new(file, IoClass::Other);
        let mut reading = Reading { core, rest: self, prepares: Vec::new(), gap: None };
        reading.run(&mut |first, batch| self.put(&mut writer, first, batch))?;
        for Prepare { name, batch } in &reading.prepares {
            writer.append(&prepare_record(SeqNo(self.through.0 + 1), name, &BatchReader::new(batch)?))?;
        }
        writer.sync()?;
        Ok(writer.len())
    }

    /// Appends what no table has of a batch. Parts of it keep their numbers, each in a batch of its own: the log is
    /// complete, so none is applied without the others.
    fn put(&self, writer: &mut FramedWriter, first: SeqNo, batch: BatchReader<'_>) -> Result<()> {
        let numbered = || batch.clone().zip(first.0..).map(|(record, seq)| record.map(|record| (record, SeqNo(seq))));
        let is_wanted = |(record, seq): &(BatchRecord<'_>, SeqNo)| {
            self.flushed.get(&record.family).is_some_and(|flushed| flushed < seq)
        };
        let (mut wanted, mut count) = (0, 0);
        for numbered in numbered() {
            wanted += u32::from(is_wanted(&numbered?));
            count += 1;
        }
        if wanted == 0 {
            return Ok(());
        }
        if wanted == count {
            return writer.append(&[&batch::header(first, count), batch.rest()].concat()); // log data included
        }
        let mut part = Part { first, batch: WriteBatch::new() };
        for numbered in numbered() {
            let (record, seq) = numbered?;
            if is_wanted(&(record, seq)) {
                part.batch.add(record.family, record.kind, record.key, record.value);
            } else {
                part.write(writer)?;
                part.first = SeqNo(seq.0 + 1);
            }
        }
        part.write(writer)
    }
}

fn pinned_logs(core: &Core, pins: &[(FileNumber, Arc<LogLife>)], published: LogPosition) -> Vec<PinnedLog> {
    let current = core.commit.lock().log.clone();
    let ends = core.logs.recovered_ends();
    let own_end = |number| match &current {
        Some(log) if log.number() == number => published.saturating_sub(log.base()).min(log.file.tail()),
        // Published as a whole, with its end record. Else its writers may still fill it.
        Some(log) if number < log.number() && published >= log.base() => u64::MAX,
        _ => 0,
    };
    let end_of = |number| match ends.iter().find(|end| end.log == number) {
        Some(end) => LogEnding::Known(end.end_offset),
        None if number < core.first_own_file => LogEnding::Unknown,
        None => LogEnding::Own(own_end(number)),
    };
    let logs = pins.iter().filter(|(_, life)| life.file().file_type == FileType::Log);
    let pinned = |number| PinnedLog { number, path: core.path_of(FileType::Log, number), end: end_of(number) };
    logs.map(|(number, _)| pinned(*number)).collect()
}

/// Consecutive changes of a batch.
struct Part {
    first: SeqNo,
    batch: WriteBatch,
}

impl Part {
    fn write(&mut self, writer: &mut FramedWriter) -> Result<()> {
        let count = self.batch.count();
        if count > 0 {
            writer.append(&[&batch::header(self.first, count), self.batch.body()].concat())?;
            self.batch.clear();
        }
        Ok(())
    }
}

/// A read of the logs from the start through the last number.
struct Reading<'a> {
    core: &'a Core,
    rest: &'a RestOfLog,
    /// Those without an end so far, in their order.
    prepares: Vec<Prepare>,
    /// The error if a record follows: the log before it was not read to its end.
    gap: Option<Error>,
}

impl Reading<'_> {
    fn run(&mut self, see: &mut See<'_>) -> Result<()> {
        let rest = self.rest;
        if !rest.has_prepares && rest.flushed.values().all(|flushed| *flushed >= rest.through) {
            return Ok(());
        }
        let oldest = rest.start.map_or(FileNumber(0), |start| start.at.log);
        for log in rest.logs.iter().filter(|log| log.number >= oldest) {
            let Some(mut reader) = LogReader::open(&*self.core.context.vfs, &log.path, log.number)? else {
                self.end_unread(log, FILE_HEADER_BYTES)?; // without a header no record was written, or all is lost
                continue;
            };
            if let Some(start) = rest.start.filter(|start| start.at.log == log.number) {
                reader.go_on_at(start.at.offset);
            }
            if self.read_log(log, &mut reader, see)? {
                break;
            }
        }
        Ok(())
    }

    /// True once the last number was passed.
    ///
    /// # Errors
    /// `Corruption`: the log, or the one before, breaks off.
    fn read_log(&mut self, log: &PinnedLog, reader: &mut LogReader, see: &mut See<'_>) -> Result<bool> {
        loop {
            let offset = reader.offset();
            if matches!(log.end, LogEnding::Known(end) if offset >= end) {
                return Ok(false);
            }
            let Some(record) = reader.read()? else { return self.end_unread(log, offset) };
            if record.kind == RecordKind::End {
                return Ok(false);
            }
            let decoded = CommitRecord::decode(record.kind, record.payload);
            let at = |error: Error| error.at_record(&log.path, offset);
            let Some(commit) = decoded.map_err(at)? else { continue };
            if commit.numbers().is_some_and(|(first, _)| first > self.rest.through) {
                return Ok(true);
            }
            self.gap.take().map_or(Ok(()), Err)?;
            commit.batch.map_or(Ok(()), |batch| self.show(batch, see)).map_err(at)?;
        }
    }

    /// The log has no whole record at `offset`.
    fn end_unread(&mut self, log: &PinnedLog, offset: u64) -> Result<bool> {
        let what = "a record of the log cannot be read; flush, then make the copy";
        let error = || Error::corruption(what).at_path(&log.path).at_offset(offset);
        match log.end {
            LogEnding::Own(published) if offset >= published => self.gap = Some(error()),
            LogEnding::Known(end) if offset >= end => {}
            LogEnding::Own(_) | LogEnding::Known(_) => return Err(error()),
            LogEnding::Unknown => {}
        }
        Ok(false)
    }

    fn show(&mut self, batch: RecordedBatch<'_>, see: &mut See<'_>) -> Result<()> {
        match batch {
            RecordedBatch::InRecord(batch) => see(batch.seq(), batch),
            RecordedBatch::InFile(large) => {
                if !large.is_needed(|id| self.rest.flushed.get(&id).copied()) {
                    return Ok(()); // the file may be gone
                }
                let dirs = self.core.archive.dirs();
                large.read(dirs.vfs, &dirs.dir, (dirs.own, 0), &mut |batch| see(large.first, batch)).map(drop)
            }
            RecordedBatch::Prepared(step) => self.show_step(step, see),
        }
    }

    fn show_step(&mut self, record: TransactionRecord<'_>, see: &mut See<'_>) -> Result<()> {
        let last = record.last();
        match record.step {
            Step::Prepare(batch) => {
                self.prepares.push(Prepare { name: record.name.to_vec(), batch: batch.to_bytes() });
            }
            Step::Rollback => {
                self.take_prepare(record.name);
            }
            Step::Commit(commit) => match self.take_prepare(record.name) {
                Some(prepare) => see(record.first, BatchReader::new(&prepare.batch)?)?,
                None if commit.is_needed(last, |id| self.rest.flushed.get(&id).copied()) => {
                    return Err(commit_without_prepare(record.name));
                }
                None => {}
            },
        }
        Ok(())
    }

    fn take_prepare(&mut self, name: &[u8]) -> Option<Prepare> {
        let at = self.prepares.iter().position(|prepare| prepare.name == name)?;
        Some(self.prepares.remove(at))
    }
}
