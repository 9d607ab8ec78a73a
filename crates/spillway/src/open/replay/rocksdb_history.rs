//! The history that RocksDB's logs hold: which records count, and where it broke off. Replay and `check` judge by it.

use std::collections::BTreeMap;
use std::path::Path;

use base::options::WalRecoveryMode;
use base::{Error, FileNumber, Result, SeqNo};
use vfs::{IoClass, Vfs};
use wal::framed::{FramedEnd, FramedReader, FramedRecord};

use super::rocksdb_range::RocksdbRange;
use crate::batch::BatchReader;
use crate::records::rocksdb_record::{RocksdbStep, RocksdbSteps, steps_of};
use crate::version::file_name::{self, FileType};
use crate::version::recover::Recovered;
use crate::version::replay::RecoveredFamily;

/// How far the logs were read, ascending.
#[derive(Default)]
pub(crate) struct RocksdbHistory {
    /// The number after the last batch. `None`: not known.
    pub(super) next: Option<SeqNo>,
    /// The log in which the history broke off, until a batch continues at `next`.
    broken_in: Option<DamagedLog>,
    /// Salvage: a damaged log, until a batch goes on at `next`.
    pub(super) damaged: Option<DamagedLog>,
    pub range: RocksdbRange,
    /// Of each log, a number that its own, and those of later logs, are above: tables had it when the log was there.
    flushed_before: BTreeMap<FileNumber, SeqNo>,
}

#[derive(Clone, Copy)]
pub(super) struct DamagedLog {
    pub number: FileNumber,
    /// Records are lost. False at the end of a log that a crash left.
    pub is_proven: bool,
}

impl RocksdbHistory {
    /// Of the logs beside this MANIFEST.
    pub fn of(recovered: &Recovered) -> RocksdbHistory {
        let flushed_before = recovered.rocksdb_logs.flushed_before.clone();
        RocksdbHistory { flushed_before, ..RocksdbHistory::default() }
    }

    /// Whether a record with numbers from `first` is part of the history. A database opened in spite of damage continues
    /// with the number at which it stopped; what does not proves that records are lost.
    pub fn admits(&mut self, log: FileNumber, first: SeqNo) -> bool {
        if let Some(broken_in) = self.broken_in.as_mut().filter(|_| self.next != Some(first)) {
            broken_in.is_proven = true;
            self.range.record_damage(broken_in.number);
            self.range.pass_over(log);
            return false;
        }
        self.broken_in = None;
        true
    }

    /// A later change never has a smaller number than an earlier one, nor than those in tables before its log: logs with such are of
    /// different databases, or an old log is in the place of a later one. RocksDB's
    /// write policies `WritePrepared` and `WriteUnprepared` give a number to a batch, not to each change, and after a batch of
    /// several changes the next number looks too small.
    ///
    /// # Errors
    /// `Unsupported`: the number is too small. The log counts as not read.
    pub fn check_numbers(&mut self, log: FileNumber, first: SeqNo) -> Result<()> {
        let in_tables = self.flushed_before.range(..=log).next_back();
        let in_tables = in_tables.map(|(_, last)| SeqNo(last.0.saturating_add(1)));
        let Some(next) = self.next.max(in_tables).filter(|next| first < *next) else { return Ok(()) };
        self.range.pass_over(log);
        let what = format!(
            "a batch in the log has number {first}, and the changes before it have those up to {}: the log, or one before it, \
             is another database's, or an old one in its place, as RocksDB's best_efforts_recovery leaves it; or RocksDB's write policies WritePrepared and WriteUnprepared number so, and their logs \
             cannot be replayed",
            next.0 - 1
        );
        Err(Error::unsupported(what).advise(
            "move the wrong log away; or flush with RocksDB, and close it there; a repair goes on without a log that \
             begins so",
        ))
    }

    /// Adds a record that counts, whose first change has the number `first`.
    pub fn add(&mut self, log: FileNumber, first: SeqNo, steps: &[RocksdbStep<'_>]) {
        self.next = self.range.add(log, first, steps);
    }

    /// Reads a log whose changes are all in tables, for the transactions that it prepares, up to its end. Each record that can be
    /// read is visited. Returns the offset behind which it is damaged.
    ///
    /// # Errors
    /// The file system's. Errors of `visit`, except `Corruption`.
    pub fn read_old_log(
        &mut self,
        vfs: &dyn Vfs,
        path: &Path,
        log: FileNumber,
        visit: &mut dyn FnMut(&FramedRecord, &BatchReader<'_>, RocksdbSteps<'_>) -> Result<()>,
    ) -> Result<Option<u64>> {
        let mut reader = FramedReader::open(vfs, path, Some(log.0), IoClass::Log)?;
        let mode = WalRecoveryMode::SkipAnyCorruptedRecords;
        let mut is_damaged = false;
        let end = wal::framed::replay(&mut reader, mode, &mut |record| {
            is_damaged |= record.follows_damage;
            let batch = BatchReader::new(&record.payload)?;
            // A flush in RocksDB put changes of a kind unknown here into tables.
            let steps = steps_of(&batch, true).map_err(|error| Error::corruption(error.message().to_owned()))?;
            self.range.add_steps(log, batch.seq(), &steps);
            visit(&record, &batch, steps)
        })?;
        self.range.end(log, &reader, end, false);
        let damaged = match end {
            FramedEnd::Damaged { offset } => Some(offset),
            _ => None,
        };
        if is_damaged || damaged.is_some() {
            self.range.record_old_damage(log);
        }
        Ok(damaged)
    }

    /// Ends a log that was read under `mode`.
    pub fn end_log(&mut self, log: FileNumber, reader: &FramedReader, end: FramedEnd, mode: WalRecoveryMode) {
        let is_proven = matches!(end, FramedEnd::Damaged { .. });
        let is_cut = is_proven || matches!(end, FramedEnd::Torn { .. });
        let breaks_off = is_cut && mode == WalRecoveryMode::PointInTime;
        let is_passed = is_cut && mode == WalRecoveryMode::SkipAnyCorruptedRecords;
        self.range.end(log, reader, end, breaks_off || is_passed);
        if is_proven {
            self.range.record_damage(log);
        }
        let damaged = DamagedLog { number: log, is_proven };
        if breaks_off {
            self.broken_in.get_or_insert(damaged).is_proven |= is_proven;
        }
        if is_passed {
            self.damaged = Some(damaged);
        }
    }

    /// Behind all logs: the one in which the history broke off for good, if records are lost.
    pub fn lost_from(&self) -> Option<FileNumber> {
        self.broken_in.filter(|broken_in| broken_in.is_proven).map(|broken_in| broken_in.number)
    }

    /// Refuses a family with tables of writes after the break: it would be ahead of the other families.
    ///
    /// # Errors
    /// `Corruption`, at the log, which is in `log_dir`.
    pub fn check_no_family_is_ahead(&self, recovered: &Recovered, log_dir: &Path) -> Result<()> {
        let Some(DamagedLog { number, .. }) = self.broken_in else { return Ok(()) };
        let Some(family) = family_ahead_of(recovered, number) else { return Ok(()) };
        let what = format!(
            "the log is cut off, but the tables of column family \"{}\" hold what was written after it; open with \
             wal_recovery_mode=kSkipAnyCorruptedRecords to keep both",
            family.name
        );
        Err(Error::corruption(what).at_path(log_dir.join(file_name::format(FileType::RocksLog, number))))
    }
}

/// A family with tables that was left for a later log than this one.
pub(super) fn family_ahead_of(recovered: &Recovered, log: FileNumber) -> Option<&RecoveredFamily> {
    recovered.families.iter().find(|family| family.log_number > log && !family.tables.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: FileNumber = FileNumber(4);

    #[test]
    fn a_broken_history_goes_on_only_where_it_stopped() {
        let mut history = RocksdbHistory { next: Some(SeqNo(15)), ..RocksdbHistory::default() };
        assert!(history.admits(LOG, SeqNo(20)), "without damage a gap is writes that went to no log");
        let broken_in = Some(DamagedLog { number: FileNumber(3), is_proven: false });
        history = RocksdbHistory { next: Some(SeqNo(21)), broken_in, ..RocksdbHistory::default() };
        assert!(history.lost_from().is_none());
        assert!(!history.admits(LOG, SeqNo(20)) && !history.admits(LOG, SeqNo(22)));
        assert_eq!(history.lost_from(), Some(FileNumber(3)), "records follow the break");
        assert!(history.admits(LOG, SeqNo(21)) && history.admits(LOG, SeqNo(40)));
    }

    #[test]
    fn numbers_that_overlap_are_of_another_policy_or_database() {
        RocksdbHistory::default().check_numbers(LOG, SeqNo(0)).unwrap();
        let mut history = RocksdbHistory { next: Some(SeqNo(21)), ..RocksdbHistory::default() };
        history.check_numbers(LOG, SeqNo(21)).unwrap();
        let error = history.check_numbers(LOG, SeqNo(20)).unwrap_err();
        let names = |cause: &str| error.message().contains(cause);
        assert!(error.kind() == base::ErrorKind::Unsupported && names("WritePrepared") && names("another"), "{error}");
    }
}
