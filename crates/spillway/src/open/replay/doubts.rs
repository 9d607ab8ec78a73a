//! Doubts of salvage: turns what it passed over into families and keys. A family whose tables or images hold all of it
//! is not in doubt.

use std::collections::BTreeMap;

use base::{FamilyId, SeqNo, UserOrder, ValueKind};
use wal::Position;

use crate::batch::BatchReader;
use crate::core::FamilyState;
use crate::core::doubt::{Doubt, Doubts};
use crate::open::restart::Restored;
use crate::records::ingest_record::{FamilyIngest, IngestRecord};
use crate::records::record::{CommitRecord, RecordedBatch};
use crate::records::two_phase_record::Step;
use crate::version::span::merged;
use crate::version::span::{Span, widen};

/// A hole in the history: lost records, with unknown numbers above `after`.
pub(super) struct Hole {
    after: SeqNo,
    /// Where it ends, at most.
    at: Position,
    why: String,
    /// Records are lost even if none follows. False at the end of a log that a crash left.
    is_proven: bool,
    /// Further causes, not named.
    others: usize,
}

impl Hole {
    pub fn new(after: SeqNo, at: Position, why: String, is_proven: bool) -> Hole {
        Hole { after, at, why, is_proven, others: 0 }
    }

    /// The hole reaches over something else that is lost. Damage up to a log's end and the lack of an end record are one place.
    pub fn widen(&mut self, at: Position, why: String, is_proven: bool) {
        let is_another = at != self.at;
        self.at = at;
        if is_proven && !self.is_proven {
            (self.why, self.is_proven) = (why, true);
        } else if is_another {
            self.others += 1;
        }
    }

    fn why(&self) -> String {
        match self.others {
            0 => self.why.clone(),
            1 => format!("{} (and 1 more place in the logs)", self.why),
            others => format!("{} (and {others} more places in the logs)", self.why),
        }
    }

    /// Doubts what the hole may hold. `before`: the first number behind it; `None` at the end of the history. Returns where
    /// records are lost, if any are.
    pub fn end(self, before: Option<SeqNo>, doubting: &Doubting<'_>) -> Option<Position> {
        match before {
            // Every record has numbers, and they have no gaps: none is lost.
            Some(first) if first.0 <= self.after.0.saturating_add(1) => return None,
            Some(first) => {
                let last = SeqNo(first.0 - 1);
                doubting.numbers_through(last, &self.why());
                if doubting.families.keys().any(|id| doubting.lacking(*id, last).is_none()) {
                    doubting.add(Doubt::of_prepared(self.why())); // no table tells of a prepare, or of its end
                }
            }
            None if self.is_proven => doubting.add(Doubt::of_all(self.why())),
            None => return None,
        }
        Some(self.at)
    }
}

/// How far the families are complete, and where doubts go.
pub(super) struct Doubting<'a> {
    pub families: &'a BTreeMap<FamilyId, FamilyState>,
    pub restored: &'a Restored,
    /// All families are complete through this number.
    pub all_in_tables: SeqNo,
    pub doubts: &'a Doubts,
}

impl Doubting<'_> {
    pub fn add(&self, doubt: Doubt) {
        self.doubts.add(doubt);
    }

    /// The family, if it may lack a write with a number up to `last`.
    fn lacking(&self, id: FamilyId, last: SeqNo) -> Option<&FamilyState> {
        let family = self.families.get(&id)?;
        let is_complete = last <= family.flushed_through.max(self.all_in_tables) || self.restored.has(id, last);
        (!is_complete).then_some(family)
    }

    /// Lost: any writes with numbers up to `last`.
    fn numbers_through(&self, last: SeqNo, why: &str) {
        self.families_of(self.families.keys().filter(|id| self.lacking(**id, last).is_some()), why);
    }

    /// Lost: any writes to these families.
    pub fn families_of<'f>(&self, ids: impl Iterator<Item = &'f FamilyId>, why: &str) {
        let lacking: Vec<_> = ids.filter_map(|id| self.families.get(id)).collect();
        if !lacking.is_empty() && lacking.len() == self.families.len() {
            return self.add(Doubt::of_all(why));
        }
        lacking.iter().for_each(|family| self.add(Doubt::of_family(family.family.name(), why)));
    }

    /// Lost: the record's changes.
    pub fn record(&self, record: &CommitRecord<'_>, why: &str) {
        let last = record.numbers().map_or(SeqNo::MAX, |(_, last)| last);
        record.ingest.iter().for_each(|ingest| self.ingest(ingest, why));
        let in_families = |ids: &[FamilyId]| {
            self.families_of(ids.iter().filter(|id| self.lacking(**id, last).is_some()), why);
        };
        match &record.batch {
            None => {}
            Some(RecordedBatch::InRecord(batch)) => self.batch(batch.clone(), last, why),
            Some(RecordedBatch::InFile(large)) => in_families(&large.families),
            Some(RecordedBatch::Prepared(step)) => match &step.step {
                Step::Commit(commit) => in_families(&commit.families),
                Step::Prepare(_) | Step::Rollback => self.add(Doubt::of_prepared(why)), // changes nothing by itself
            },
        }
    }

    fn ingest(&self, record: &IngestRecord, why: &str) {
        for share in &record.families {
            let Some(family) = self.families.get(&share.family) else { continue };
            if family.has_linked(record.first, record.last()) {
                continue;
            }
            let (name, order) = (family.family.name(), &family.family.order().user);
            match spans_of(order, share) {
                None => self.add(Doubt::of_family(name, why)),
                Some(spans) => {
                    spans.into_iter().for_each(|span| self.add(Doubt::of_keys(name, (span.start, span.end), why)));
                }
            }
        }
    }

    /// Doubts the range of the batch's keys in each family.
    fn batch(&self, batch: BatchReader<'_>, last: SeqNo, why: &str) {
        let mut ranges = BTreeMap::new();
        for change in batch {
            let Ok(change) = change else { return self.numbers_through(last, why) };
            let Some(family) = self.lacking(change.family, last) else { continue };
            let order = &family.family.order().user;
            let through = if change.kind == ValueKind::RangeDeletion { change.value } else { change.key };
            widen(ranges.entry(change.family).or_default(), change.key, through, |a, b| order.compare(a, b));
        }
        for (id, range) in ranges {
            let named = self.families.get(&id).zip(range);
            named.into_iter().for_each(|(family, keys)| self.add(Doubt::of_keys(family.family.name(), keys, why)));
        }
    }
}

/// The key ranges of an ingest's share; `None` if its bounds are impossible.
fn spans_of(order: &UserOrder, share: &FamilyIngest) -> Option<Vec<Span>> {
    let excise = share.excise.iter();
    let excises = excise.map(|(start, end)| Span { start: start.clone(), end: end.clone(), end_is_exclusive: true });
    let tables = share.layers.iter().flatten().map(|table| Span::of_file(&table.meta));
    let spans: Vec<_> = excises.chain(tables).collect();
    let is_possible = spans.iter().all(|span| order.compare(&span.start, &span.end).is_le());
    is_possible.then(|| merged(order, spans))
}
