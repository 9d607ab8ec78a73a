//! Counting writes: few sums always, times and distributions where statistics are kept.

use base::metrics::{Histogram, Ticker, tick};
use base::{Result, SeqNo};

use crate::commit::batch::WriteBatch;
use crate::commit::options::WriteOptions;
use crate::commit::pipeline::LogPosition;
use crate::core::Core;

impl Core {
    /// As [`Core::write`], counted, and timed where statistics are kept.
    pub(crate) fn write_counted(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<SeqNo> {
        let last = self.write_timed(batch, options)?;
        if !batch.is_empty() {
            let (bytes, logged) = (batch.len() as u64, u64::from(!options.disable_wal));
            self.written.add([1, u64::from(batch.count()), bytes, logged, logged * bytes]);
        }
        Ok(last)
    }

    fn write_timed(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<SeqNo> {
        let Some(statistics) = self.context.statistics.as_ref().filter(|_| !batch.is_empty()) else {
            return self.write(batch, options);
        };
        let start = self.context.vfs.now();
        let last = self.write(batch, options)?;
        let micros = self.context.vfs.now().saturating_sub(start).as_micros() as u64;
        let bytes = batch.len() as u64;
        statistics.record(Histogram::DbWrite, micros);
        statistics.record(Histogram::BytesPerWrite, bytes);
        statistics.add(Ticker::NumberKeysWritten, u64::from(batch.count()));
        statistics.add(Ticker::BytesWritten, bytes);
        if !options.disable_wal {
            statistics.add(Ticker::WriteWithWal, 1);
            statistics.add(Ticker::WalFileBytes, bytes);
        }
        if !options.sync {
            statistics.add(Ticker::WriteDoneBySelf, 1); // synced writes count where they are synced
        }
        Ok(last)
    }

    /// Returns once a visible write, whose log record ends at `target`, survives power loss.
    ///
    /// # Errors
    /// `Io`, sticky: the database is read-only then (D4).
    pub(crate) fn sync_write(&self, target: LogPosition) -> Result<()> {
        let by_self = self.sync_for_caller(target)?;
        let ticker = if by_self { Ticker::WriteDoneBySelf } else { Ticker::WriteDoneByOther };
        tick(&self.context.statistics, ticker, 1);
        Ok(())
    }

    /// A sync that a caller waits for, which background jobs give way to: those that jobs want for themselves are none of
    /// these. Whether this call issued it.
    ///
    /// # Errors
    /// `Io`, sticky: the database is read-only then (D4).
    pub(crate) fn sync_for_caller(&self, target: LogPosition) -> Result<bool> {
        let synced = self.logs.sync_through(target, || self.pipeline.published_log());
        self.context.pace.note_log_sync(self.context.vfs.now());
        synced.inspect_err(|e| self.fail(e))
    }
}
