//! Replay of RocksDB's logs, as RocksDB replays them. Keeps D2.

use std::path::PathBuf;

use base::note;
use base::options::{DbOptions, FamilyOptions, OptionsFile, WalRecoveryMode};
use base::{Error, FileNumber, Result, SeqNo};
use log::framed::{FramedEnd, FramedReader};
use vfs::IoClass;

use super::{LogReplay, check_count, row};
use crate::commit::batch::BatchReader;
use crate::open::options_file;
use crate::version::file_name::{self, FileType};
use crate::version::recover::Recovered;

/// How far the logs have been replayed.
#[derive(Default)]
struct Progress {
    /// The number after the last batch.
    next: Option<SeqNo>,
    /// The log in which the history broke off, until a batch continues at `next`.
    broken_in: Option<FileNumber>,
}

impl Progress {
    /// Whether a batch of `count` records from `first` is part of the history. A database opened in spite of damage
    /// continues with the number at which it stopped.
    fn admits(&mut self, first: SeqNo, count: u64) -> bool {
        if self.broken_in.is_some() && self.next != Some(first) {
            return false;
        }
        self.broken_in = None;
        self.next = first.checked_add(count);
        true
    }
}

impl LogReplay<'_> {
    /// RocksDB's logs in the log directory that may be needed, ascending.
    ///
    /// # Errors
    /// `InvalidArgument`: there is none, but the database's directory or the directory in RocksDB's options has some.
    pub(super) fn find_rocksdb_logs(&self, recovered: &Recovered) -> Result<Vec<FileNumber>> {
        let vfs = &*self.context.vfs;
        let needed = self.log_numbers.values().min().copied().unwrap_or_default().max(recovered.min_log_to_keep);
        let here = self.context.log_dir();
        let found: Vec<_> =
            file_name::numbers_in(vfs, &here, FileType::RocksLog)?.into_iter().filter(|n| *n >= needed).collect();
        if recovered.fenced || !found.is_empty() {
            return Ok(found);
        }
        for other in [Some(self.context.dir.clone()), self.last_rocksdb_log_dir()].into_iter().flatten() {
            if other == here || !vfs.exists(&other)? {
                continue;
            }
            for number in file_name::numbers_in(vfs, &other, FileType::RocksLog)?.range(needed..) {
                let path = other.join(file_name::format(FileType::RocksLog, *number));
                if vfs.metadata(&path)?.len > 0 {
                    return Err(row::elsewhere(&here, &other, *number, "*.log"));
                }
            }
        }
        Ok(found)
    }

    /// `wal_dir` in the newest OPTIONS file; `None` if unset or unreadable.
    fn last_rocksdb_log_dir(&self) -> Option<PathBuf> {
        let (_, text) = options_file::newest(&*self.context.vfs, &self.context.dir).ok()??;
        let text = String::from_utf8(text).ok()?;
        let start = DbOptions { ignore_unsupported_options: true, ..DbOptions::default() };
        let read = OptionsFile::read(&text, start, &|_| FamilyOptions::default(), true);
        read.ok().map(|(file, _)| PathBuf::from(file.db.wal_dir)).filter(|dir| !dir.as_os_str().is_empty())
    }

    pub(super) fn replay_rocksdb_logs(&mut self, numbers: &[FileNumber]) -> Result<()> {
        let mut progress = Progress::default();
        for &number in numbers {
            self.replay_rocksdb_log(number, &mut progress)?;
        }
        progress.broken_in.map_or(Ok(()), |log| self.check_no_family_is_ahead(log))
    }

    fn replay_rocksdb_log(&mut self, number: FileNumber, progress: &mut Progress) -> Result<()> {
        let path = self.path(FileType::RocksLog, number);
        let vfs = self.context.vfs.clone();
        let mode = self.context.options.wal_recovery_mode;
        let mut reader = FramedReader::open(&*vfs, &path, Some(number.0), IoClass::Log)?;
        let mut left_out = 0u64;
        let end = log::framed::replay(&mut reader, mode, &mut |record| {
            let batch = BatchReader::new(&record.payload).map_err(|e| e.at_record(&path, record.offset))?;
            if !progress.admits(batch.seq(), u64::from(batch.declared_count())) {
                left_out += 1;
                return Ok(());
            }
            self.apply_rocksdb_batch(batch, number).map_err(|e| e.at_record(&path, record.offset))
        })?;
        if left_out > 0 {
            note::warn!(log = number.0, batches = left_out, "left out what follows a damaged log");
        }
        // In a recycled file, apparent damage is its earlier contents.
        let is_cut = matches!(end, FramedEnd::Damaged { .. } | FramedEnd::Torn { .. }) && !reader.is_recycled();
        if is_cut && self.context.options.wal_recovery_mode == WalRecoveryMode::PointInTime {
            progress.broken_in.get_or_insert(number);
        }
        Ok(())
    }

    fn apply_rocksdb_batch(&mut self, batch: BatchReader<'_>, log: FileNumber) -> Result<()> {
        check_count(&batch)?;
        let (first, count) = (batch.seq(), u64::from(batch.declared_count()));
        if count > 0 {
            self.last_seq = self.last_seq.max(SeqNo(first.0 + count - 1));
        }
        self.insert_batch(batch, first, Some(log))
    }

    /// Refuses a family with tables of writes after the break: it would be ahead of the other families.
    fn check_no_family_is_ahead(&self, broken_in: FileNumber) -> Result<()> {
        let is_ahead = |id| self.log_numbers.get(id).is_some_and(|log| *log > broken_in);
        let ahead = self.families.iter().find(|(id, f)| is_ahead(id) && f.version.all_files().next().is_some());
        let Some((_, family)) = ahead else { return Ok(()) };
        let what = format!(
            "the log is cut off, but the tables of column family \"{}\" hold what was written after it; open with \
             wal_recovery_mode=kSkipAnyCorruptedRecords to keep both",
            family.family.name()
        );
        Err(Error::corruption(what).at_path(self.path(FileType::RocksLog, broken_in)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_history_goes_on_only_where_it_stopped() {
        let mut progress = Progress::default();
        assert!(progress.admits(SeqNo(10), 5));
        assert!(progress.admits(SeqNo(20), 1), "without damage a gap is writes that went to no log");
        progress.broken_in = Some(FileNumber(3));
        assert!(!progress.admits(SeqNo(20), 1) && !progress.admits(SeqNo(22), 1));
        assert!(progress.admits(SeqNo(21), 2) && progress.admits(SeqNo(40), 1));
    }
}
