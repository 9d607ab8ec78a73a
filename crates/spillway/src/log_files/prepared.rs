//! Prepared transactions of the WAL: which logs they need, and their names. Keeps P1.
//!
//! A log is needed while it holds a prepare without an end, and after the end until every family has flushed through it:
//! the commit's record names the prepare, and has no copy of the batch.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use base::{FileNumber, SeqNo};
use parking_lot::Mutex;
use wal::Position;

use crate::batch::WriteBatch;
use crate::order::pipeline::LogPosition;

/// A leaf lock.
#[derive(Default)]
pub(crate) struct Prepared {
    state: Mutex<State>,
    names: TransactionNames,
}

#[derive(Default)]
struct State {
    /// Prepares without an end, by the place of their records.
    open: BTreeSet<Position>,
    /// By the log of the prepares.
    ended: BTreeMap<FileNumber, EndedIn>,
    /// Transactions found by recovery, until somebody takes them.
    recovered: Vec<RecoveredTransaction>,
}

/// Ended transactions prepared in one log.
#[derive(Clone, Copy, Debug)]
struct EndedIn {
    /// The first prepare's place in the log.
    offset: u64,
    /// The last number of their ends.
    through: SeqNo,
    /// Where the last of their ends is in the WAL; 0 if it was recovered.
    log_end: LogPosition,
}

/// The end of a prepared transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EndOfPrepared {
    pub last: SeqNo,
    /// The end of its record.
    pub log_end: LogPosition,
}

/// A transaction that was prepared and not ended when the database was closed, or crashed.
pub(crate) struct RecoveredTransaction {
    pub name: TakenName,
    pub batch: WriteBatch,
    pub at: Position,
}

impl Prepared {
    pub fn names(&self) -> &TransactionNames {
        &self.names
    }

    /// Notes a prepare's record. Called under the commit lock: no step of it may find the log unneeded.
    pub fn begin(&self, at: Position) {
        self.state.lock().open.insert(at);
    }

    /// Notes the end of the transaction prepared at `at`.
    pub fn end(&self, at: Position, end: EndOfPrepared) {
        let mut state = self.state.lock();
        state.open.remove(&at);
        let new = EndedIn { offset: at.offset, through: end.last, log_end: end.log_end };
        let ended = state.ended.entry(at.log).or_insert(new);
        ended.offset = ended.offset.min(new.offset);
        ended.through = ended.through.max(new.through);
        ended.log_end = ended.log_end.max(new.log_end);
    }

    /// Notes what recovery found without an end.
    pub fn record_recovered(&self, transactions: Vec<RecoveredTransaction>) {
        let mut state = self.state.lock();
        state.open.extend(transactions.iter().map(|transaction| transaction.at));
        state.recovered = transactions;
    }

    pub fn take_recovered(&self) -> Vec<RecoveredTransaction> {
        std::mem::take(&mut self.state.lock().recovered)
    }

    /// Number of transactions that are prepared and have no end.
    pub fn count(&self) -> usize {
        self.state.lock().open.len()
    }

    /// The oldest log needed by prepared transactions once every family has flushed through `needed_after`. While any has
    /// no end, ends count once they are synced: no later end may survive an unsynced earlier prepare (D2).
    pub fn oldest_needed(&self, needed_after: SeqNo, synced: LogPosition) -> Option<FileNumber> {
        let state = self.state.lock();
        let needs =
            |ended: &EndedIn| ended.through > needed_after || (!state.open.is_empty() && ended.log_end > synced);
        let of_ended = state.ended.iter().find(|(_, ended)| needs(ended)).map(|(log, _)| *log);
        let of_open = state.open.first().map(|at| at.log);
        of_ended.into_iter().chain(of_open).min()
    }

    /// Forgets logs before `oldest`: they are not needed.
    pub fn forget_before(&self, oldest: FileNumber) {
        let mut state = self.state.lock();
        state.ended = state.ended.split_off(&oldest);
    }

    /// Where replay has to begin, if images have everything through `through` and later records are at `at` or beyond:
    /// not behind a prepare without an end at or below `through`.
    pub fn replay_from(&self, through: SeqNo, at: Position) -> Position {
        let state = self.state.lock();
        let later = state.ended.iter().filter(|(_, ended)| ended.through > through);
        let of_ended = later.map(|(log, ended)| Position { log: *log, offset: ended.offset });
        of_ended.chain(state.open.first().copied()).fold(at, Position::min)
    }
}

/// Names of transactions, each taken by one.
#[derive(Clone, Default)]
pub(crate) struct TransactionNames(Arc<Mutex<BTreeSet<Arc<[u8]>>>>);

impl TransactionNames {
    /// `None`: the name is taken.
    pub fn take(&self, name: &[u8]) -> Option<TakenName> {
        let name: Arc<[u8]> = name.into();
        let is_new = self.0.lock().insert(name.clone());
        is_new.then(|| TakenName { name, names: self.clone() })
    }
}

/// A name of a transaction. Dropped, it is free again.
pub(crate) struct TakenName {
    name: Arc<[u8]>,
    names: TransactionNames,
}

impl TakenName {
    pub fn bytes(&self) -> &[u8] {
        &self.name
    }
}

impl Drop for TakenName {
    fn drop(&mut self) {
        self.names.0.lock().remove(&self.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(log: u64, offset: u64) -> Position {
        Position { log: FileNumber(log), offset }
    }

    fn end(last: u64, log_end: u64) -> EndOfPrepared {
        EndOfPrepared { last: SeqNo(last), log_end }
    }

    fn oldest(prepared: &Prepared, needed_after: u64, synced: u64) -> Option<u64> {
        prepared.oldest_needed(SeqNo(needed_after), synced).map(|log| log.0)
    }

    #[test]
    fn a_log_is_needed_until_the_end_of_its_prepares_is_flushed() {
        let prepared = Prepared::default();
        prepared.begin(at(5, 128));
        prepared.begin(at(5, 256));
        prepared.begin(at(7, 128));
        assert_eq!(oldest(&prepared, 100, 1000), Some(5));
        prepared.end(at(5, 256), end(20, 300));
        prepared.end(at(5, 128), end(10, 200));
        assert_eq!(oldest(&prepared, 19, 1000), Some(5), "the later end counts");
        assert_eq!(oldest(&prepared, 20, 299), Some(5), "a power loss may take the end, and keep the prepare in 7");
        assert_eq!(oldest(&prepared, 20, 300), Some(7));
        prepared.end(at(7, 128), end(30, 400));
        assert_eq!(oldest(&prepared, 20, 0), Some(7));
        assert_eq!((oldest(&prepared, 30, 0), prepared.count()), (None, 0));
        prepared.forget_before(FileNumber(6));
        assert_eq!(oldest(&prepared, 0, 0), Some(7));
    }

    #[test]
    fn replay_begins_with_the_first_prepare_that_it_needs() {
        let prepared = Prepared::default();
        let mark = at(9, 512);
        assert_eq!(prepared.replay_from(SeqNo(50), mark), mark);
        prepared.begin(at(7, 256));
        prepared.begin(at(5, 128));
        assert_eq!(prepared.replay_from(SeqNo(50), mark), at(5, 128));
        prepared.end(at(5, 128), end(51, 600));
        assert_eq!(prepared.replay_from(SeqNo(50), mark), at(5, 128), "its commit is behind the mark");
        assert_eq!(prepared.replay_from(SeqNo(51), mark), at(7, 256));
    }

    #[test]
    fn a_name_is_taken_once_and_free_again() {
        let names = TransactionNames::default();
        let taken = names.take(b"name").expect("free");
        assert!(names.take(b"name").is_none() && taken.bytes() == b"name");
        drop(taken);
        assert!(names.take(b"name").is_some());
    }
}
