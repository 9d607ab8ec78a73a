//! Whether an ingest overlaps a family's mutable memtable. The check reads memory only and does not wait, so it may run
//! under the commit lock.

use std::sync::Arc;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, LookupKey, Result, SeqNo, UserOrder, key};
use memtable::Memtable;
use table::TableReadOptions;
use vfs::IoClass;

use crate::order::pipeline::Pipeline;
use crate::queue::flushable::Flushable;
use crate::records::ingest_record::FamilyIngest;
use crate::version::span::{Span, merged};

/// Spans checked under the commit lock; bounds the work there.
const SPANS_MAX: usize = 8;

/// Keys of an ingest in one family.
pub(crate) struct Coverage {
    order: UserOrder,
    /// Exact; ascending, disjoint.
    spans: Vec<Span>,
    /// `spans` united into `SPANS_MAX` at most, gaps included. `None` if `spans` are few enough.
    united: Option<Vec<Span>>,
}

impl Coverage {
    pub fn of(order: &UserOrder, share: &FamilyIngest) -> Self {
        let of_tables = share.layers.iter().flatten().map(|table| Span::of_file(&table.meta));
        let of_excise = share.excise.as_ref().map(|(start, end)| Span {
            start: start.clone(),
            end: end.clone(),
            end_is_exclusive: true,
        });
        let spans = merged(order, of_tables.chain(of_excise).collect());
        let united = (spans.len() > SPANS_MAX).then(|| united(&spans));
        Coverage { order: order.clone(), spans, united }
    }

    /// The exact spans.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    pub fn into_spans(self) -> Vec<Span> {
        self.spans
    }

    fn few(&self) -> &[Span] {
        self.united.as_deref().unwrap_or(&self.spans)
    }

    /// Whether a numbered write may touch a span or a united gap and be in no memtable yet. Called under the commit
    /// lock, *before* the memtable is checked: a write leaving the pipeline in between is in the memtable.
    pub fn meets_in_flight(&self, family: base::FamilyId, pipeline: &Pipeline) -> bool {
        let mut meets = false;
        pipeline.for_each_in_flight(|touched| {
            meets = meets || self.few().iter().any(|s| touched.may_overlap(family, &self.order, &s.start, &s.end));
        });
        meets
    }

    /// Whether the memtable holds a key in a span or a united gap. Also true if it would have to build an index to
    /// tell. Costs a few cache misses for each of a few spans.
    pub fn meets_memtable(&self, memtable: &Arc<dyn Memtable>) -> bool {
        if memtable.entries() == 0 {
            return false;
        }
        if !memtable.is_ready_to_seek() {
            return true;
        }
        let tombstones = memtable.tombstones();
        let mut cursor = memtable.clone().cursor();
        self.few().iter().any(|span| meets(&self.order, span, tombstones.as_deref(), &mut *cursor))
    }

    /// Whether a queue entry holds a key in a span. May read tables or build a memtable's index: not under a lock.
    pub fn meets_entry(&self, entry: &Arc<dyn Flushable>) -> Result<bool> {
        let options = TableReadOptions { class: IoClass::Ingest, ..TableReadOptions::default() };
        let tombstones = entry.tombstones(&options)?;
        let mut cursor = entry.clone().cursor(&options)?;
        for span in &self.spans {
            if meets(&self.order, span, tombstones.as_deref(), &mut *cursor) {
                return Ok(true);
            }
            cursor.status()?;
        }
        Ok(false)
    }

    /// As [`meets_memtable`](Self::meets_memtable), after the memtable has built its range tombstones. Not under a
    /// lock.
    pub fn meets_memtable_once_ready(&self, memtable: &Arc<dyn Memtable>) -> bool {
        drop(memtable.tombstones());
        self.meets_memtable(memtable)
    }
}

/// Whether an entry with this cursor and these range tombstones holds a key in the span, or covers one.
pub(crate) fn meets(
    order: &UserOrder,
    span: &Span,
    tombstones: Option<&FragmentedTombstones>,
    cursor: &mut dyn Cursor,
) -> bool {
    let next = tombstones.and_then(|all| all.fragments().get(all.seek(&span.start)));
    next.is_some_and(|fragment| span.reaches(order, &fragment.start))
        || (cursor.seek(LookupKey::new(&span.start, SeqNo::MAX).internal())
            && span.reaches(order, key::user_key(cursor.key())))
}

/// Unites neighbours of sorted spans until there are few. The gaps between them then count as covered.
fn united(spans: &[Span]) -> Vec<Span> {
    let each = spans.len().div_ceil(SPANS_MAX).max(1);
    let unite = |group: &[Span]| {
        let (first, last) = (group.first()?, group.last()?);
        Some(Span { start: first.start.clone(), ..last.clone() })
    };
    spans.chunks(each).filter_map(unite).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: &str, end: &str, end_is_exclusive: bool) -> Span {
        Span { start: start.into(), end: end.into(), end_is_exclusive }
    }

    const ORDER: UserOrder = UserOrder::Bytewise;

    #[test]
    fn many_spans_are_united_and_none_is_lost() {
        let spans: Vec<Span> =
            (0..50).rev().map(|i| span(&format!("{i:02}a"), &format!("{i:02}c"), i % 2 == 0)).collect();
        let exact = merged(&ORDER, spans.clone());
        assert_eq!(exact, spans.iter().rev().cloned().collect::<Vec<_>>(), "none overlaps another");
        let few = united(&exact);
        assert!(few.len() <= SPANS_MAX);
        for one in &spans {
            let holds = |all: &Span| {
                all.start <= one.start
                    && (one.end < all.end || (one.end == all.end && (!all.end_is_exclusive || one.end_is_exclusive)))
            };
            assert!(few.iter().any(holds), "{one:?} in {few:?}");
        }
        assert_eq!(united(&exact[..2]), exact[..2], "few stay as they are");
    }

    #[test]
    fn spans_that_overlap_are_merged_and_gaps_stay() {
        let nested = std::iter::once(span("a", "m", false)).chain((0..40).map(|i| span(&format!("b{i}"), "c", false)));
        assert_eq!(merged(&ORDER, nested.collect()), [span("a", "m", false)]);
        let touching = vec![span("k", "m", true), span("m", "p", false), span("a", "c", true), span("b", "c", false)];
        assert_eq!(merged(&ORDER, touching), [span("a", "c", false), span("k", "m", true), span("m", "p", false)]);
    }
}
