//! Whether what is about to be ingested meets anything in a family's mutable memtable. Looks at memory only and waits
//! for nobody, so that it can be asked under the commit lock.

use std::sync::Arc;

use base::tombstone::FragmentedTombstones;
use base::{Cursor, LookupKey, Result, SeqNo, UserOrder, key};
use memtable::Memtable;
use table::TableReadOptions;
use vfs::IoClass;

use super::record::FamilyIngest;
use crate::compaction::Span;
use crate::flush::flushable::Flushable;
use crate::write::pipeline::Pipeline;

/// Spans that are looked for under the commit lock; bounds what is done there.
const SPANS_MAX: usize = 8;

/// What an ingest covers of one family.
pub(crate) struct Coverage {
    order: UserOrder,
    spans: Vec<Span>,
}

impl Coverage {
    pub fn of(order: &UserOrder, share: &FamilyIngest) -> Self {
        let of_tables = share.layers.iter().flatten().map(|table| Span::of_file(&table.meta));
        let of_excise = share.excise.as_ref().map(|(start, end)| Span {
            start: start.clone(),
            end: end.clone(),
            end_is_exclusive: true,
        });
        Coverage { order: order.clone(), spans: united(order, of_tables.chain(of_excise).collect()) }
    }

    /// Few: what lies between neighbours may be covered too.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Whether a write that has a number may touch what is covered and be in no memtable yet. Asked under the commit
    /// lock, *before* the memtable is looked at: a write that leaves the pipeline in between is in the memtable.
    pub fn meets_in_flight(&self, family: base::FamilyId, pipeline: &Pipeline) -> bool {
        let mut meets = false;
        pipeline.for_each_in_flight(|touched| {
            meets = meets || self.spans.iter().any(|s| touched.may_overlap(family, &self.order, &s.start, &s.end));
        });
        meets
    }

    /// Whether the memtable holds anything of what is covered, or would have to build something to tell. Takes a few
    /// cache misses for each span.
    pub fn meets_memtable(&self, memtable: &Arc<dyn Memtable>) -> bool {
        if memtable.entries() == 0 {
            return false;
        }
        if !memtable.is_ready_to_seek() {
            return true;
        }
        let tombstones = memtable.tombstones();
        let mut cursor = memtable.clone().cursor();
        self.spans.iter().any(|span| self.meets(span, tombstones.as_deref(), &mut *cursor))
    }

    /// Whether an entry of a queue holds anything of what is covered. May read tables, or have a memtable build what it
    /// needs: not under a lock.
    pub fn meets_entry(&self, entry: &Arc<dyn Flushable>) -> Result<bool> {
        let tombstones = entry.tombstones()?;
        let options = TableReadOptions { class: IoClass::Ingest, ..TableReadOptions::default() };
        let mut cursor = entry.clone().cursor(&options)?;
        for span in &self.spans {
            if self.meets(span, tombstones.as_deref(), &mut *cursor) {
                return Ok(true);
            }
            cursor.status()?;
        }
        Ok(false)
    }

    fn meets(&self, span: &Span, tombstones: Option<&FragmentedTombstones>, cursor: &mut dyn Cursor) -> bool {
        let next = tombstones.and_then(|all| all.fragments().get(all.seek(&span.start)));
        next.is_some_and(|fragment| span.reaches(&self.order, &fragment.start))
            || (cursor.seek(LookupKey::new(&span.start, SeqNo::MAX).internal())
                && span.reaches(&self.order, key::user_key(cursor.key())))
    }

    /// As [`meets_memtable`](Self::meets_memtable), having the memtable build what it needs first. Not under a lock.
    pub fn meets_memtable_once_ready(&self, memtable: &Arc<dyn Memtable>) -> bool {
        drop(memtable.tombstones());
        self.meets_memtable(memtable)
    }
}

/// Unites neighbours until there are no more than so many. What lies between two that were united counts as covered.
fn united(order: &UserOrder, mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by(|a, b| order.compare(&a.start, &b.start));
    let each = spans.len().div_ceil(SPANS_MAX).max(1);
    let unite = |group: &[Span]| {
        let ends_last =
            |a: &&Span, b: &&Span| order.compare(&a.end, &b.end).then(b.end_is_exclusive.cmp(&a.end_is_exclusive));
        let (first, last) = (group.first()?, group.iter().max_by(ends_last)?);
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

    #[test]
    fn many_spans_are_united_and_none_is_lost() {
        let spans: Vec<Span> =
            (0..50).rev().map(|i| span(&format!("{i:02}a"), &format!("{i:02}c"), i % 2 == 0)).collect();
        let united = united(&UserOrder::Bytewise, spans.clone());
        assert!(united.len() <= SPANS_MAX);
        for one in &spans {
            let holds = |all: &Span| {
                all.start <= one.start
                    && (one.end < all.end || (one.end == all.end && (!all.end_is_exclusive || one.end_is_exclusive)))
            };
            assert!(united.iter().any(holds), "{one:?} in {united:?}");
        }
        let few = vec![span("a", "b", true), span("k", "m", false)];
        assert_eq!(super::united(&UserOrder::Bytewise, few.clone()), few);
        let nested =
            vec![span("a", "z", false); 1].into_iter().chain((0..40).map(|i| span(&format!("b{i}"), "c", false)));
        let united = super::united(&UserOrder::Bytewise, nested.collect());
        assert_eq!((&*united[0].start, &*united[0].end), (&b"a"[..], &b"z"[..]));
    }
}
