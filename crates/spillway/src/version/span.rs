//! Spans of user keys for compactions, and runs of files in a sorted level.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use base::UserOrder;

use crate::version::level::ends_before;
use crate::version::table_file::{FileMeta, TableFile};

/// All user keys from `start` to `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    pub start: Vec<u8>,
    pub end: Vec<u8>,
    /// `end` itself is outside: it is the end of a range tombstone.
    pub end_is_exclusive: bool,
}

impl Span {
    pub fn of_file(meta: &FileMeta) -> Span {
        Span {
            start: meta.smallest_user_key().to_vec(),
            end: meta.largest_user_key().to_vec(),
            end_is_exclusive: meta.largest_is_exclusive(),
        }
    }

    /// The smallest span covering all files; `None` for no files.
    pub fn of_files<'a>(order: &UserOrder, files: impl IntoIterator<Item = &'a Arc<TableFile>>) -> Option<Span> {
        let mut files = files.into_iter();
        let mut span = Span::of_file(&files.next()?.meta);
        for file in files {
            span.include(order, &file.meta);
        }
        Some(span)
    }

    /// Extends the span to cover the file.
    pub fn include(&mut self, order: &UserOrder, meta: &FileMeta) {
        if order.compare(meta.smallest_user_key(), &self.start).is_lt() {
            self.start = meta.smallest_user_key().to_vec();
        }
        let ends = order.compare(meta.largest_user_key(), &self.end);
        if ends.is_gt() {
            self.end = meta.largest_user_key().to_vec();
            self.end_is_exclusive = meta.largest_is_exclusive();
        } else if ends.is_eq() {
            self.end_is_exclusive &= meta.largest_is_exclusive();
        }
    }

    /// Whether every key of the span is below `user_key`.
    fn ends_before(&self, order: &UserOrder, user_key: &[u8]) -> bool {
        let end = order.compare(&self.end, user_key);
        end.is_lt() || (end.is_eq() && self.end_is_exclusive)
    }

    /// Whether the span contains `user_key`. Requires a key not before the span.
    pub fn reaches(&self, order: &UserOrder, user_key: &[u8]) -> bool {
        !self.ends_before(order, user_key)
    }

    pub fn overlaps(&self, order: &UserOrder, other: &Span) -> bool {
        !self.ends_before(order, &other.start) && !other.ends_before(order, &self.start)
    }

    pub fn overlaps_file(&self, order: &UserOrder, meta: &FileMeta) -> bool {
        !self.ends_before(order, meta.smallest_user_key()) && !ends_before(order, meta, &self.start)
    }

    /// Positions of the files overlapping the span, in a sorted level.
    pub fn places_in(&self, order: &UserOrder, files: &[Arc<TableFile>]) -> Range<usize> {
        let first = files.partition_point(|file| ends_before(order, &file.meta, &self.start));
        let rest = files.get(first..).unwrap_or(&[]);
        let count = rest.partition_point(|file| !self.ends_before(order, file.smallest_user_key()));
        first..first + count
    }
}

/// Widens a run of positions until no user key has versions on both sides of an end: a *clean cut*.
pub fn clean_cut(order: &UserOrder, files: &[Arc<TableFile>], run: Range<usize>) -> Range<usize> {
    let share_a_key = |left: usize| match (files.get(left), files.get(left + 1)) {
        (Some(left), Some(right)) => !ends_before(order, &left.meta, right.smallest_user_key()),
        _ => false,
    };
    let Range { mut start, mut end } = run;
    if start == end {
        return start..end;
    }
    while start > 0 && share_a_key(start - 1) {
        start -= 1;
    }
    while share_a_key(end - 1) {
        end += 1;
    }
    start..end
}

/// Widens key bounds to hold the keys from `first` to `last`.
pub(crate) fn widen(
    bounds: &mut Option<(Vec<u8>, Vec<u8>)>,
    first: &[u8],
    last: &[u8],
    compare: impl Fn(&[u8], &[u8]) -> Ordering,
) {
    let (smallest, largest) = bounds.get_or_insert_with(|| (first.to_vec(), last.to_vec()));
    if compare(first, smallest).is_lt() {
        first.clone_into(smallest);
    }
    if compare(last, largest).is_gt() {
        last.clone_into(largest);
    }
}

/// Total bytes of the files.
pub fn bytes_of<'a>(files: impl IntoIterator<Item = &'a Arc<TableFile>>) -> u64 {
    files.into_iter().map(|file| file.meta.file_bytes).sum()
}

/// Sorts spans and merges overlapping ones.
pub(crate) fn merged(order: &UserOrder, mut spans: Vec<Span>) -> Vec<Span> {
    if spans.len() < 2 {
        return spans;
    }
    spans.sort_by(|a, b| order.compare(&a.start, &b.start));
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match merged.last_mut() {
            Some(last) if last.overlaps(order, &span) => {
                let ends = order.compare(&span.end, &last.end);
                if ends.is_gt() || (ends.is_eq() && last.end_is_exclusive) {
                    (last.end, last.end_is_exclusive) = (span.end, span.end_is_exclusive);
                }
            }
            _ => merged.push(span),
        }
    }
    merged
}
