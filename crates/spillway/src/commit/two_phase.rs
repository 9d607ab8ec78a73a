//! Two-phase commit: a prepare logs a batch under a name, and a later commit applies it. Keeps C1-C4, D1, D3, P1.
//!
//! Each step is a [`Commit`] like any other. A prepare and a rollback take one number and touch no memtable. A commit's
//! record names the prepare; its entries take their numbers there.

use base::{Error, Result};
use smallvec::smallvec;
use wal::{PAYLOAD_BYTES_MAX, Position, RecordKind};

use crate::batch::WriteBatch;
use crate::batch::options::WriteOptions;
use crate::commit::admission::{self, Parts, Waiter, flushed_eagerly};
use crate::commit::committer::Committer;
use crate::commit::slow::Step;
use crate::commit::{Commit, Committed, MadeRecord, Record, Written};
use crate::log_files::prepared::EndOfPrepared;
use crate::records::two_phase_record::{CommitStep, encode_commit, encode_head};

/// A prepare in the WAL.
pub(crate) struct PreparedBatch<'a> {
    pub name: &'a [u8],
    pub batch: &'a WriteBatch,
    pub at: Position,
}

/// The steps of two-phase commit. They are logged whatever `disable_wal` says.
pub(crate) struct TwoPhase<'a>(pub &'a Committer);

impl TwoPhase<'_> {
    /// Logs a batch, so that a commit after a crash finds it. Reads do not see it. Returns the record's place.
    ///
    /// # Errors
    /// As of [`Committer::write`]: what the commit would refuse is refused here.
    pub fn prepare(&self, name: &[u8], batch: &WriteBatch, options: &WriteOptions) -> Result<Position> {
        let committer = self.0;
        let core = &committer.core;
        let times = committer.counts.slow.begin();
        core.check_writable().or_else(|refused| core.check_after_refusal(refused))?;
        batch.check_size()?;
        let head = encode_head(name);
        if (head.len() + batch.len()) as u64 > PAYLOAD_BYTES_MAX {
            return Err(Error::invalid_argument(
                "the batch and the transaction's name are larger than a record of the log",
            ));
        }
        let set = core.families.load();
        admission::summarise(batch, &set, options, &mut Parts::new())?;
        committer.wait_for_debt(batch.len(), options, || batch.only_deletes())?;
        let record = Record::Prepare { head: &head, batch };
        let mut commit = Commit::of_flushables(Some(record), 1, Vec::new(), Waiter::of_write(options));
        commit.times = times.as_ref();
        let committed = self.run(&mut commit, options)?;
        committer.end_watch(times.as_ref(), batch);
        let (log, at) = committed.log.as_ref().expect("a prepare is logged");
        Ok(log.position_of(at.offset()))
    }

    /// Applies a prepared batch.
    ///
    /// # Errors
    /// As of [`Committer::write`]; the batch is prepared still, unless the database turned read-only.
    pub fn commit(&self, prepared: &PreparedBatch<'_>, options: &WriteOptions) -> Result<Written> {
        let committer = self.0;
        let core = &committer.core;
        let times = committer.counts.slow.begin();
        core.check_writable().or_else(|refused| core.check_after_refusal(refused))?;
        let PreparedBatch { name, batch, at } = *prepared;
        let set = core.families.load();
        committer.wait_for_debt(batch.len(), options, || batch.only_deletes())?;
        let mut commit = Commit::of_prepared(batch, options);
        commit.times = times.as_ref();
        commit.take_apart(&set)?;
        let families = commit.parts().iter().map(|part| part.family.id()).collect();
        let step = CommitStep { count: batch.count(), families };
        commit.record = Some(made(RecordKind::Commit, encode_commit(name, &step)));
        let committed = self.run(&mut commit, options)?;
        core.logs.prepared.end(at, end_of(&committed));
        committer.end_watch(times.as_ref(), batch);
        committer.counts.add(batch, options, &committer.core.context, None);
        Ok(Written { last: committed.given.last, to_flush: flushed_eagerly(commit.parts(), options) })
    }

    /// Forgets a prepared batch.
    ///
    /// # Errors
    /// As of [`Committer::write`]; the batch is prepared still, unless the database turned read-only.
    pub fn rollback(&self, name: &[u8], at: Position, options: &WriteOptions) -> Result<()> {
        let core = &self.0.core;
        core.check_writable().or_else(|refused| core.check_after_refusal(refused))?;
        let record = made(RecordKind::Rollback, encode_head(name));
        let mut commit = Commit::of_flushables(Some(record), 1, Vec::new(), Waiter::of_write(options));
        let committed = self.run(&mut commit, options)?;
        core.logs.prepared.end(at, end_of(&committed));
        Ok(())
    }

    fn run<'c>(&'c self, commit: &mut Commit<'c>, options: &WriteOptions) -> Result<Committed> {
        let committer = self.0;
        let numbered = committer.number(commit)?;
        let committed = committer.apply(commit, numbered)?;
        committer.pass_due_mark(&committed);
        if options.sync {
            committer.wal.sync_write(committed.given.log_end)?;
            commit.mark(Step::Synced);
        }
        Ok(committed)
    }
}

/// A record that begins with its number.
fn made(kind: RecordKind, payload: Vec<u8>) -> Record<'static> {
    Record::Made(MadeRecord { kind, payload, numbers: smallvec![(0, 1)] })
}

fn end_of(committed: &Committed) -> EndOfPrepared {
    EndOfPrepared { last: committed.given.last, log_end: committed.given.log_end }
}
