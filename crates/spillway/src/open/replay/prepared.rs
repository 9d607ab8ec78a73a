//! Prepared transactions in replay: prepares are kept aside by name until their end. Keeps P1.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use base::note;
use base::{Error, FileNumber, Result, SeqNo};
use log::Position;

use crate::commit::batch::WriteBatch;
use crate::wal::logs::Logs;
use crate::wal::prepared::{EndOfPrepared, RecoveredTransaction};

/// The prepares and ends of the logs read so far.
#[derive(Default)]
pub(crate) struct ReplayedPrepares {
    open: BTreeMap<Vec<u8>, Prepare>,
    /// By log: the place of its first ended prepare, and the last number of their ends.
    ended: BTreeMap<FileNumber, (Position, SeqNo)>,
}

pub(super) struct Prepare {
    at: Position,
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
            Entry::Occupied(_) => {
                let name = name.escape_ascii();
                Err(Error::corruption(format!("the log prepares transaction '{name}' twice")))
            }
        }
    }

    /// Ends a transaction with the number `last`. Returns its prepare, if it was read.
    pub(super) fn end(&mut self, name: &[u8], last: SeqNo) -> Option<Prepare> {
        let prepare = self.open.remove(name)?;
        let (first, through) = self.ended.entry(prepare.at.log).or_insert((prepare.at, last));
        (*first, *through) = (prepare.at.min(*first), last.max(*through));
        Some(prepare)
    }

    /// Whether a log holds a prepare without an end, or one before it does.
    pub fn needs(&self, log: FileNumber) -> bool {
        self.open.values().any(|prepare| prepare.at.log <= log)
    }

    /// Passes everything on to the logs of the open database.
    pub fn hand_over(self, logs: &Logs) {
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
        logs.prepared.note_recovered(recovered);
    }
}
