//! Prepared transactions in replay: prepares are kept aside by name until their end. Keeps P1.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use base::note;
use base::{Error, FileNumber, Result, SeqNo};
use wal::{LogFile, Position, RECORD_HEADER_BYTES, RecordKind};

use crate::batch::WriteBatch;
use crate::log_files::logs::WalFiles;
use crate::log_files::prepared::{EndOfPrepared, RecoveredTransaction};
use crate::records::two_phase_record::{encode_numbered_head, prepared_twice};

/// The prepares and ends of the logs read so far.
#[derive(Default)]
pub(crate) struct ReplayedPrepares {
    open: BTreeMap<Vec<u8>, Prepare>,
    /// By log: the place of its first ended prepare, and the last number of their ends.
    ended: BTreeMap<FileNumber, (Position, SeqNo)>,
}

pub(super) struct Prepare {
    pub at: Position,
    pub batch: WriteBatch,
}

impl ReplayedPrepares {
    /// Keeps a prepare's batch.
    ///
    /// # Errors
    /// `Corruption`: the batch is malformed, or the name is of another prepare without an end.
    pub fn keep(&mut self, name: &[u8], at: Position, batch: Vec<u8>) -> Result<()> {
        let batch = WriteBatch::from_bytes(batch)?;
        match self.open.entry(name.to_vec()) {
            Entry::Vacant(free) => {
                free.insert(Prepare { at, batch });
                Ok(())
            }
            Entry::Occupied(_) => Err(prepared_twice(name)),
        }
    }

    /// Ends a transaction with the number `last`. Returns its prepare, if it was read.
    pub(super) fn end(&mut self, name: &[u8], last: SeqNo) -> Option<Prepare> {
        let prepare = self.open.remove(name)?;
        let (first, through) = self.ended.entry(prepare.at.log).or_insert((prepare.at, last));
        (*first, *through) = (prepare.at.min(*first), last.max(*through));
        Some(prepare)
    }

    /// Ends a transaction in RocksDB's logs, which an open takes over whole. Returns its prepare, if it was read.
    pub(super) fn take(&mut self, name: &[u8]) -> Option<Prepare> {
        self.open.remove(name)
    }

    /// Forgets the prepares in logs before `oldest`: none of them lacks its end (P1), which a secondary may not have read.
    pub(super) fn forget_before(&mut self, oldest: FileNumber) {
        self.open.retain(|_, prepare| prepare.at.log >= oldest);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// At least the bytes of the records of all prepares.
    pub(super) fn record_bytes(&self) -> u64 {
        let of_record = |name: &[u8], batch: &WriteBatch| 2 * RECORD_HEADER_BYTES + 16 + name.len() + batch.len();
        self.open.iter().map(|(name, prepare)| of_record(name, &prepare.batch) as u64).sum()
    }

    /// Writes all prepares to another log, in their order, with numbers above `last`. Returns the last number.
    pub(super) fn log_anew(&mut self, log: &LogFile, last: SeqNo) -> Result<SeqNo> {
        let mut prepares: Vec<_> = self.open.iter_mut().collect();
        prepares.sort_by_key(|(_, prepare)| prepare.at);
        let mut last = last;
        for (name, prepare) in prepares {
            last = last.checked_add(1).ok_or_else(|| Error::corruption("sequence numbers are used up"))?;
            let head = encode_numbered_head(last, name);
            let bytes = prepare.batch.as_bytes();
            log.ensure(head.len() + bytes.len())?;
            let reservation = log.try_reserve(head.len() + bytes.len());
            let reservation =
                reservation.ok_or_else(|| Error::corruption("a prepared transaction is larger than a log"))?;
            log.append(&reservation, RecordKind::Prepare, &[&head, bytes])?;
            log.publish(reservation.end());
            prepare.at = Position { log: log.number(), offset: reservation.offset() };
        }
        Ok(last)
    }

    /// Whether a log holds a prepare without an end, or one before it does.
    pub fn needs(&self, log: FileNumber) -> bool {
        self.open.values().any(|prepare| prepare.at.log <= log)
    }

    /// Passes everything on to the logs of the open database.
    pub fn hand_over(self, logs: &WalFiles) {
        for (at, last) in self.ended.into_values() {
            logs.prepared.begin(at);
            logs.prepared.end(at, EndOfPrepared { last, log_end: 0 });
        }
        let names = logs.prepared.names();
        let taken = self.open.into_iter().filter_map(|(name, prepare)| Some((names.take(&name)?, prepare)));
        let recovered = taken.map(|(name, Prepare { at, batch })| RecoveredTransaction { name, batch, at });
        let recovered: Vec<_> = recovered.collect();
        if !recovered.is_empty() {
            let count = recovered.len();
            note::info!(transactions = count, "prepared transactions wait for their commit or rollback, and keep logs");
        }
        logs.prepared.record_recovered(recovered);
    }
}
