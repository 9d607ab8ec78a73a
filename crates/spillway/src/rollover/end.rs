//! WAL syncs for callers, and the end of the WAL when the database is closed. Keeps D1, D4.

use std::sync::Arc;

use base::metrics::{Ticker, tick};
use base::note;
use base::{ErrorKind, Result, SeqNo};
use memtable::Memtable;

use crate::order::pipeline::LogPosition;
use crate::rollover::roll::Wal;
use wal::Position;

impl Wal {
    /// Ends the WAL when the database is closed. A log with all its data in tables is released: less to sync, to keep
    /// and to read at the next open. No background work is running.
    pub(crate) fn end_log(&self) -> Result<()> {
        let (log, next_record, last_seq, entered) = {
            let mut commit = self.core.commit.lock();
            commit.closed = true;
            let next_record = self.core.next_record(&commit);
            (commit.log.take(), next_record, commit.last_seq, self.core.pipeline.entered_log())
        };
        // Waits for a roll-over in progress: it finds `closed` set, and removes its log while the directory is this
        // database's.
        drop(self.core.logs.rolling.lock());
        // Writes already numbered are finished by their own threads; no write is numbered any more.
        if self.core.read_only || self.core.background_error().is_some() {
            return Ok(());
        }
        self.core.pipeline.wait_visible(last_seq)?;
        self.core.pipeline.wait_published(entered)?;
        self.keep_images(last_seq, next_record);
        self.core.logs.discard_spare();
        let is_needed = !self.core.is_all_in_tables();
        log.map_or(Ok(()), |log| self.core.logs.end(&log, last_seq, is_needed))?;
        self.installer.release_logs();
        match self.installer.record_last_log() {
            Err(error) if error.kind() == ErrorKind::NoSpace => {
                note::warn!(%error, "logs stay, though all of them is in tables");
                Ok(())
            }
            noted => noted,
        }
    }

    /// Leaves memtables' files to the next open. No write is in progress.
    fn keep_images(&self, last_seq: SeqNo, next_record: Position) {
        if !self.core.context.options.memtable_crash_safe_recover {
            return;
        }
        self.mark_memtables(last_seq, next_record);
        for family in self.core.families.load().iter() {
            let view = family.view();
            let queued = view.queue.iter().filter_map(|entry| entry.as_memtable());
            queued.chain([view.mutable.memtable()]).for_each(leave_image);
        }
    }

    /// Returns once a visible write, its log record ending at `target`, survives power loss.
    ///
    /// # Errors
    /// `Io`, sticky: the database is read-only then (D4).
    pub(crate) fn sync_write(&self, target: LogPosition) -> Result<()> {
        let by_self = self.sync_for_caller(target)?;
        let ticker = if by_self { Ticker::WriteDoneBySelf } else { Ticker::WriteDoneByOther };
        tick(&self.core.context.statistics, ticker, 1);
        Ok(())
    }

    /// Syncs the WAL for a waiting caller; background jobs yield to such syncs. Not for the jobs' own syncs. Returns
    /// whether this call issued the sync.
    ///
    /// # Errors
    /// `Io`, sticky: the database is read-only then (D4).
    pub(crate) fn sync_for_caller(&self, target: LogPosition) -> Result<bool> {
        let synced = self.core.logs.sync_through(target, || self.core.pipeline.published_log());
        self.core.context.throttle.record_sync();
        synced.inspect_err(|e| self.core.fail(e))
    }
}

/// Seals a memtable, and leaves its file in place.
fn leave_image(memtable: &Arc<dyn Memtable>) {
    memtable.seal();
    let Some(file) = memtable.image().and_then(|image| image.file) else { return };
    match file.give_back_the_rest() {
        Ok(()) => file.keep(),
        Err(error) => note::info!(%error, "a memtable's file is not kept; the next open replays the log"),
    }
}
