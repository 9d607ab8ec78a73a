//! The live WAL range: logs still needed by a family, and released logs not yet deleted. Keeps Q3 and V3: a log is
//! deleted only after the MANIFEST durably records it as unneeded. Recovery thus tells a deleted log from a lost one.

use std::collections::BTreeMap;
use std::sync::Arc;

use base::{FileNumber, SeqNo};

use crate::version::edit::{LogEnd, WalRange};
use crate::version::file_name::FileType;
use crate::version::log_life::LogLife;

/// A log, or the log of a large batch.
pub(crate) struct LiveLog {
    pub life: Arc<LogLife>,
    pub bytes: u64,
    /// The last number in it; `None` for the current log.
    pub last_seq: Option<SeqNo>,
}

impl LiveLog {
    pub fn number(&self) -> FileNumber {
        self.life.file().number
    }

    /// False for the log of a large batch: it is outside the live range, and a record in a log of the range names it.
    fn is_in_range(&self) -> bool {
        self.life.file().file_type == FileType::Log
    }

    fn ends_at_or_below(&self, seq: SeqNo) -> bool {
        self.last_seq.is_some_and(|last| last <= seq)
    }
}

/// What the WAL is needed for.
#[derive(Clone, Copy, Default)]
pub(crate) struct Need {
    /// Every family has flushed through this number.
    pub after: SeqNo,
    /// The oldest log needed by prepared transactions (P1).
    pub by_prepared: Option<FileNumber>,
}

impl Need {
    fn is_past(self, log: &LiveLog) -> bool {
        log.ends_at_or_below(self.after) && self.by_prepared.is_none_or(|needed| log.number() < needed)
    }
}

#[derive(Default)]
pub(crate) struct LiveRange {
    /// Oldest first. Logs ascend by number; the log of a large batch precedes the log committing it.
    logs: Vec<LiveLog>,
    /// Not needed, but not yet recorded as such in the MANIFEST. In the same order.
    released: Vec<LiveLog>,
    /// Ends that recoveries found, of logs that may be gone too.
    recovered_ends: BTreeMap<FileNumber, LogEnd>,
    /// The live range recorded in the MANIFEST.
    noted: Option<WalRange>,
    /// The last log used, needed or not; 0 before the first.
    last: FileNumber,
}

impl LiveRange {
    /// Notes the end of a log that recovery found.
    pub fn record_log_end(&mut self, end: LogEnd) {
        self.recovered_ends.insert(end.log, end);
    }

    /// The ends that recovery found, of the logs in the live range.
    pub fn recovered_ends(&self) -> Vec<LogEnd> {
        let oldest = self.range_after(Need::default()).oldest;
        self.recovered_ends.range(oldest..).map(|(_, end)| *end).collect()
    }

    /// Notes the live range recorded by the previous process.
    pub fn record_earlier(&mut self, range: WalRange) {
        self.last = self.last.max(range.last());
    }

    /// Adds the current log; the one before it ended with `last_seq`.
    pub fn push_current(&mut self, log: LiveLog, last_seq: SeqNo) {
        self.end_current(last_seq);
        self.last = log.number();
        self.logs.push(log);
    }

    /// Ends the current log with `last_seq`; no log is current then.
    pub fn end_current(&mut self, last_seq: SeqNo) {
        if let Some(current) = self.logs.last_mut() {
            current.last_seq.get_or_insert(last_seq);
        }
    }

    /// Marks the logs of earlier processes as synced.
    pub fn record_left_synced(&mut self) {
        self.recovered_ends.values_mut().for_each(|end| end.on_disk = true);
    }

    /// Adds a large batch's log; the current log commits it.
    pub fn push_large(&mut self, log: LiveLog) {
        let current = self.logs.len().saturating_sub(1);
        self.logs.insert(current, log);
    }

    /// Adds a log of an earlier process.
    pub fn push_recovered(&mut self, log: LiveLog) {
        if log.is_in_range() {
            self.last = self.last.max(log.number());
        }
        self.logs.push(log);
    }

    /// The last log used, needed or not.
    pub fn last(&self) -> Option<FileNumber> {
        Some(self.last).filter(|last| last.0 > 0)
    }

    pub fn iter(&self) -> impl Iterator<Item = &LiveLog> {
        self.logs.iter()
    }

    /// The live range once nothing before `need` is needed. At 0 it includes every log: even a log without unflushed
    /// records names its predecessor, and is kept until a recorded range excludes it.
    pub fn range_after(&self, need: Need) -> WalRange {
        let is_over = |log: &&LiveLog| need.after > SeqNo::ZERO && need.is_past(log);
        let mut needed = self.logs.iter().skip_while(is_over);
        let Some(oldest) = needed.find(|log| log.is_in_range()) else { return WalRange::none_through(self.last) };
        let newest = self.logs.iter().rfind(|log| log.is_in_range()).map(LiveLog::number);
        WalRange { oldest: oldest.number(), newest }
    }

    /// The live range, if the MANIFEST records a different one.
    pub fn unnoted_range(&self) -> Option<WalRange> {
        Some(self.range_after(Need::default())).filter(|range| self.noted != Some(*range))
    }

    /// Releases the logs before `need`. Returns the oldest log left.
    pub fn release(&mut self, need: Need) -> Option<FileNumber> {
        let keep = self.logs.iter().position(|log| !need.is_past(log)).unwrap_or(self.logs.len());
        self.released.extend(self.logs.drain(..keep));
        self.logs.iter().find(|log| log.is_in_range()).map(LiveLog::number)
    }

    /// Notes `range` as recorded in the MANIFEST. Returns the logs to be deleted now.
    pub fn record_durable(&mut self, range: WalRange) -> Vec<LiveLog> {
        self.noted = Some(range);
        let may_go = |log: &LiveLog| !log.is_in_range() || log.number() < range.oldest;
        let keep = self.released.iter().position(|log| !may_go(log)).unwrap_or(self.released.len());
        self.released.drain(..keep).collect()
    }
}

#[cfg(test)]
mod tests {
    use vfs::MemoryVfs;

    use super::*;
    use crate::version::log_life::LogLives;
    use crate::version::purge::PurgeQueue;

    fn log(file_type: FileType, number: u64, last_seq: Option<u64>) -> LiveLog {
        let lives = LogLives::new(MemoryVfs::new(1), "/db".into(), PurgeQueue::new());
        LiveLog { life: lives.of(file_type, FileNumber(number)), bytes: 0, last_seq: last_seq.map(SeqNo) }
    }

    fn range(oldest: u64, newest: u64) -> WalRange {
        WalRange { oldest: FileNumber(oldest), newest: Some(FileNumber(newest)) }
    }

    fn after(seq: SeqNo) -> Need {
        Need { after: seq, by_prepared: None }
    }

    fn no_logs_before(oldest: u64) -> WalRange {
        WalRange { oldest: FileNumber(oldest), newest: None }
    }

    /// Log 5 ends with number 10, log 7 with 20, log 9 is current; 8 is a large batch with the number 15.
    fn three_logs() -> LiveRange {
        let mut live = LiveRange::default();
        live.push_recovered(log(FileType::Log, 5, Some(10)));
        live.push_current(log(FileType::Log, 7, None), SeqNo(10));
        live.push_large(log(FileType::LargeBatch, 8, Some(SeqNo(15).0)));
        live.push_current(log(FileType::Log, 9, None), SeqNo(20));
        live
    }

    fn numbers(logs: &[LiveLog]) -> Vec<u64> {
        logs.iter().map(|log| log.number().0).collect()
    }

    #[test]
    fn live_range_begins_with_the_first_needed_log() {
        let live = three_logs();
        assert_eq!(live.range_after(after(SeqNo(9))), range(5, 9));
        assert_eq!(live.range_after(after(SeqNo(10))), range(7, 9));
        assert_eq!(live.range_after(after(SeqNo(20))), range(9, 9));
        assert_eq!(live.range_after(after(SeqNo::MAX)), range(9, 9), "the current log is always needed");
    }

    #[test]
    fn logs_of_prepared_transactions_stay_with_all_behind_them() {
        let mut live = three_logs();
        let need = |by_prepared| Need { after: SeqNo(20), by_prepared: Some(FileNumber(by_prepared)) };
        assert_eq!(
            (live.range_after(need(5)), live.range_after(need(7)), live.range_after(need(9))),
            (range(5, 9), range(7, 9), range(9, 9))
        );
        assert_eq!(live.release(need(7)), Some(FileNumber(7)));
        assert_eq!(numbers(&live.record_durable(range(7, 9))), [5]);
        assert_eq!(live.release(after(SeqNo(20))), Some(FileNumber(9)));
    }

    #[test]
    fn a_log_goes_only_once_the_manifest_says_that_nobody_needs_it() {
        let mut live = three_logs();
        assert!(live.record_durable(range(5, 9)).is_empty());
        live.release(after(SeqNo(20)));
        assert_eq!(live.unnoted_range(), Some(range(9, 9)));
        assert!(live.record_durable(range(5, 9)).is_empty(), "an older record does not count");
        assert_eq!(numbers(&live.record_durable(range(7, 9))), [5, 8]);
        assert_eq!(numbers(&live.record_durable(range(9, 9))), [7]);
        assert_eq!(live.unnoted_range(), None);
    }

    #[test]
    fn there_may_be_no_log() {
        let mut live = LiveRange::default();
        assert_eq!((live.unnoted_range(), live.last()), (Some(no_logs_before(1)), None));
        live.record_earlier(no_logs_before(4));
        assert_eq!((live.unnoted_range(), live.last()), (Some(no_logs_before(4)), Some(FileNumber(3))));
        live.push_recovered(log(FileType::Log, 5, Some(10)));
        assert_eq!(live.range_after(after(SeqNo(9))), range(5, 5));
        assert_eq!(live.range_after(after(SeqNo(10))), no_logs_before(6));
        live.release(after(SeqNo(10)));
        assert_eq!(live.last(), Some(FileNumber(5)), "the next log names it");
        assert_eq!(numbers(&live.record_durable(no_logs_before(6))), [5]);
        live.push_current(log(FileType::Log, 8, None), SeqNo(10));
        live.release(after(SeqNo(20)));
        assert_eq!(live.unnoted_range(), Some(range(8, 8)));
        live.end_current(SeqNo(20));
        live.release(after(SeqNo(20)));
        assert!(live.record_durable(range(8, 8)).is_empty(), "an older record does not count");
        assert_eq!(live.unnoted_range(), Some(no_logs_before(9)));
        assert_eq!(numbers(&live.record_durable(no_logs_before(9))), [8]);
    }
}
