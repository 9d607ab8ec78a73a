//! The state of a point lookup, from the newest source to the oldest.

use base::metrics::{Histogram, Statistics, Ticker};
use base::tombstone::FragmentedTombstones;
use base::{Error, Pinned, Result, SeqNo, ValueKind};
use table::TableValue;
use table::cache::{Answer, KeyHash, Question, Reply};

use super::ReadContext;
use crate::version::version::{ContentNumber, Version};

/// The source that decided a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The mutable memtable or another entry of the queue.
    Queue,
    /// A kept answer of the tables.
    Answer,
    Level(usize),
}

/// Result of a lookup.
#[derive(Clone, Debug)]
pub struct Found {
    /// `None`: the key does not exist at the lookup's sequence number.
    pub value: Option<Pinned>,
    /// Source of the answer; `None` if no source held the key.
    pub source: Option<Source>,
}

impl Found {
    /// Counts the lookup by the source of its answer. As in RocksDB, a deletion in a memtable counts as a memtable hit,
    /// and levels count values only.
    pub fn count(&self, statistics: &Statistics) {
        let memtable = if self.source == Some(Source::Queue) { Ticker::MemtableHit } else { Ticker::MemtableMiss };
        statistics.add(memtable, 1);
        let Some(Source::Level(level)) = self.source.filter(|_| self.value.is_some()) else { return };
        let hit = match level {
            0 => Ticker::GetHitL0,
            1 => Ticker::GetHitL1,
            _ => Ticker::GetHitL2AndUp,
        };
        statistics.add(hit, 1);
    }
}

enum Outcome {
    Value(Pinned),
    Deleted,
    Failed(Error),
}

/// A hot key without a kept answer.
struct Wanted {
    hash: KeyHash,
    content: ContentNumber,
}

/// The state of one key's lookup. Sources are visited from newest to oldest (Q1), the tombstones of a source first.
pub struct Search<'a> {
    context: &'a ReadContext,
    user_key: &'a [u8],
    seq: SeqNo,
    /// The newest visible tombstone over the key so far.
    covered: SeqNo,
    /// Merge operands, newest first.
    operands: Vec<Pinned>,
    merges: bool,
    /// Number of the first entry met, the newest one.
    newest: SeqNo,
    outcome: Option<Outcome>,
    source: Option<Source>,
    /// The answer of the tables is to be kept.
    wanted: Option<Wanted>,
}

impl<'a> Search<'a> {
    pub fn new(context: &'a ReadContext, user_key: &'a [u8], seq: SeqNo) -> Self {
        Search {
            context,
            user_key,
            seq,
            covered: SeqNo::ZERO,
            operands: Vec::new(),
            merges: true,
            newest: SeqNo::ZERO,
            outcome: None,
            source: None,
            wanted: None,
        }
    }

    /// Whether operands are merged; else the lookup of a key that has some fails with `Incomplete`.
    #[must_use]
    pub fn merging(mut self, merges: bool) -> Self {
        self.merges = merges;
        self
    }

    /// Asks the kept answers, after the queue and before the tables of `version`. True if one decides the lookup.
    /// [`finish`](Self::finish) keeps the answer of the tables, if it is wanted and `fill_cache` is set.
    #[inline]
    pub fn ask(&mut self, version: &Version, fill_cache: bool) -> bool {
        let Some(answers) = self.context.answers.as_ref().filter(|_| self.operands.is_empty()) else { return false };
        let reply = answers.ask(&self.question(version.content()));
        if let Some(meter) = &self.context.meter {
            let ticker = if matches!(reply, Reply::Known(_)) { Ticker::RowCacheHit } else { Ticker::RowCacheMiss };
            meter.statistics.add(ticker, 1);
        }
        match reply {
            Reply::Unknown => return false,
            Reply::Wanted(hash) => {
                let wanted = Wanted { hash, content: version.content() };
                self.wanted = Some(wanted).filter(|_| fill_cache && self.seq >= version.largest_seq());
                return false;
            }
            Reply::Known(value) => self.outcome = Some(value.map_or(Outcome::Deleted, Outcome::Value)),
        }
        self.source = Some(Source::Answer);
        true
    }

    fn question(&self, content: ContentNumber) -> Question<'a> {
        Question { content: content.0, user_key: self.user_key, seq: self.seq }
    }

    /// Adds the range tombstones of the next source.
    pub fn cover(&mut self, tombstones: Option<&FragmentedTombstones>) {
        if let Some(seq) = tombstones.and_then(|t| t.covering(self.user_key, self.seq)) {
            self.covered = self.covered.max(seq);
        }
    }

    /// Takes the key's next older entry. False if older entries do not matter.
    pub fn entry(&mut self, seq: SeqNo, kind: ValueKind, value: TableValue<'_>) -> bool {
        if self.outcome.is_some() {
            return false;
        }
        self.newest = self.newest.max(seq);
        if seq < self.covered {
            self.outcome = Some(Outcome::Deleted);
            return false;
        }
        match kind {
            ValueKind::Merge if !self.merges => {
                self.outcome = Some(Outcome::Failed(Error::incomplete("the key has merge operands")));
            }
            ValueKind::Merge => {
                self.operands.push(value.pin());
                return true;
            }
            ValueKind::Value => self.outcome = Some(Outcome::Value(value.pin())),
            ValueKind::Deletion | ValueKind::SingleDeletion => self.outcome = Some(Outcome::Deleted),
            ValueKind::RangeDeletion => {
                let error = Error::corruption("a range deletion stands among the point entries of a key");
                self.outcome = Some(Outcome::Failed(error));
            }
        }
        false
    }

    /// Notes a read error of a source. An entry found earlier stands: the rest of the source is older.
    pub fn fail_unless_found(&mut self, error: &Error) {
        self.outcome.get_or_insert_with(|| Outcome::Failed(error.clone()));
    }

    /// Notes an error that leaves nothing certain.
    pub fn fail(&mut self, error: Error) {
        self.outcome = Some(Outcome::Failed(error));
    }

    /// Ends a source. True if older sources cannot matter: a tombstone covers all their entries.
    pub fn decided_by(&mut self, source: Source) -> bool {
        if self.is_decided() {
            self.source = self.source.or(Some(source));
            return true;
        }
        false
    }

    pub fn is_decided(&self) -> bool {
        self.outcome.is_some() || self.covered > SeqNo::ZERO
    }

    /// Whether an entry or an error decided the lookup. After a tombstone alone, the level's next table may still hold
    /// versions of the key newer than the tombstone.
    pub fn is_answered(&self) -> bool {
        self.outcome.is_some()
    }

    /// Returns the answer with operands merged.
    pub fn finish(mut self) -> Result<Found> {
        let Some(Wanted { hash, content }) = self.wanted.take() else { return self.merged() };
        let (context, question, decided_at) = (self.context, self.question(content), self.newest.max(self.covered));
        let is_lasting = self.operands.is_empty() || context.merges_are_pure();
        let found = self.merged()?;
        if let Some(answers) = context.answers.as_ref().filter(|_| is_lasting) {
            answers.keep(hash, &question, &Answer { decided_at, value: found.value.as_deref() });
        }
        Ok(found)
    }

    fn merged(self) -> Result<Found> {
        let base = match self.outcome {
            Some(Outcome::Failed(error)) => return Err(error),
            Some(Outcome::Value(value)) => Some(value),
            Some(Outcome::Deleted) | None => None,
        };
        if self.operands.is_empty() {
            return Ok(Found { value: base, source: self.source });
        }
        if let Some(meter) = &self.context.meter {
            meter.statistics.record(Histogram::ReadNumMergeOperands, self.operands.len() as u64);
        }
        let operands: Vec<&[u8]> = self.operands.iter().rev().map(|operand| &**operand).collect();
        let merged = self.context.merge(self.user_key, base.as_deref(), &operands)?;
        Ok(Found { value: Some(Pinned::from(merged)), source: self.source })
    }
}
