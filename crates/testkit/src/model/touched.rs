//! Keys and ranges ever written to a family, visible or not. Ingests behind lie under them, and `numberless` or
//! `bottommost` ingests conflict with them.

use std::collections::{BTreeMap, BTreeSet};

use base::UserOrder;

use crate::ingest::File;
use crate::ops::{Action, Key};

/// Key range of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub start: Key,
    pub end: Key,
    /// `end` is exclusive: it ends a range deletion.
    pub end_is_exclusive: bool,
}

impl Span {
    /// `None` if the table has no entries.
    pub fn of_file(file: &File, order: &UserOrder) -> Option<Span> {
        let of_action = |action: Action| match action {
            Action::DeleteRange(start, end) => Span { start, end, end_is_exclusive: true },
            point => Span { start: point.key().clone(), end: point.key().clone(), end_is_exclusive: false },
        };
        file.changes(order).into_iter().map(|change| of_action(change.action)).reduce(|all, one| all.with(one, order))
    }

    fn with(mut self, other: Span, order: &UserOrder) -> Span {
        if order.compare(&other.start, &self.start).is_lt() {
            self.start = other.start;
        }
        let ends = order.compare(&other.end, &self.end);
        if ends.is_gt() || (ends.is_eq() && self.end_is_exclusive) {
            (self.end, self.end_is_exclusive) = (other.end, other.end_is_exclusive);
        }
        self
    }

    fn is_before(&self, key: &[u8], order: &UserOrder) -> bool {
        let end = order.compare(&self.end, key);
        end.is_lt() || (end.is_eq() && self.end_is_exclusive)
    }

    pub fn overlaps(&self, other: &Span, order: &UserOrder) -> bool {
        !self.is_before(&other.start, order) && !other.is_before(&self.start, order)
    }

    pub fn holds(&self, key: &[u8], order: &UserOrder) -> bool {
        order.compare(&self.start, key).is_le() && !self.is_before(key, order)
    }
}

/// Write history of a family's keys.
#[derive(Clone, Debug, Default)]
pub(super) struct Touched {
    /// Keys with an entry that hides everything under it.
    settled: BTreeSet<Key>,
    /// Merge operands of keys without a base entry, oldest first.
    floating: BTreeMap<Key, Vec<Vec<u8>>>,
    /// Deleted ranges.
    deleted: Vec<(Key, Key)>,
    /// Single-deleted keys: older versions under them are undefined.
    deleted_singly: BTreeSet<Key>,
    /// Key ranges of tables ingested behind.
    behind: Vec<Span>,
}

impl Touched {
    /// Whether nothing was ever written.
    pub fn is_empty(&self) -> bool {
        self.settled.is_empty() && self.floating.is_empty() && self.deleted.is_empty() && self.behind.is_empty()
    }

    pub fn has_behind(&self) -> bool {
        !self.behind.is_empty()
    }

    /// Whether `action` adds nothing to the history.
    pub fn knows(&self, action: &Action) -> bool {
        match action {
            Action::Put(key, _) | Action::Delete(key) => self.settled.contains(key),
            Action::Merge(key, _) => self.settled.contains(key),
            Action::SingleDelete(key) => self.deleted_singly.contains(key),
            Action::DeleteRange(start, end) => self.deleted.iter().any(|(s, e)| (s, e) == (start, end)),
        }
    }

    /// Records a write on top of everything.
    pub fn note(&mut self, action: &Action, order: &UserOrder) {
        match action {
            Action::Put(key, _) | Action::Delete(key) => self.settle(key),
            Action::SingleDelete(key) => {
                self.settle(key);
                self.deleted_singly.insert(key.clone());
            }
            Action::Merge(key, operand) => {
                if !self.hides(key, order) {
                    self.floating.entry(key.clone()).or_default().push(operand.bytes());
                }
            }
            Action::DeleteRange(start, end) => {
                self.deleted.push((start.clone(), end.clone()));
                self.floating.retain(|key, _| !is_within(key, start, end, order));
            }
        }
    }

    fn settle(&mut self, key: &Key) {
        self.floating.remove(key);
        self.settled.insert(key.clone());
    }

    /// Whether an entry ingested behind stays hidden.
    pub fn hides(&self, key: &Key, order: &UserOrder) -> bool {
        let is_deleted = |(start, end): &(Key, Key)| is_within(key, start, end, order);
        self.settled.contains(key) || self.deleted.iter().any(is_deleted)
    }

    /// Operands merged without a base entry.
    pub fn operands(&self, key: &Key) -> &[Vec<u8>] {
        self.floating.get(key).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn was_deleted_singly(&self, key: &Key) -> bool {
        self.deleted_singly.contains(key)
    }

    /// Records a table ingested behind.
    pub fn record_behind(&mut self, file: &File, order: &UserOrder) {
        self.behind.extend(Span::of_file(file, order));
    }

    /// Whether `span` overlaps an earlier table ingested behind.
    pub fn meets_behind(&self, span: &Span, order: &UserOrder) -> bool {
        self.behind.iter().any(|before| before.overlaps(span, order))
    }

    /// Whether any write ever touched `span`.
    pub fn meets(&self, span: &Span, order: &UserOrder) -> bool {
        let of_range = |(start, end): &(Key, Key)| {
            Span { start: start.clone(), end: end.clone(), end_is_exclusive: true }.overlaps(span, order)
        };
        self.settled.iter().chain(self.floating.keys()).any(|key| span.holds(key, order))
            || self.deleted.iter().any(of_range)
            || self.meets_behind(span, order)
    }
}

/// Whether a key is in `[start, end)`.
pub(super) fn is_within(key: &[u8], start: &[u8], end: &[u8], order: &UserOrder) -> bool {
    order.compare(start, key).is_le() && order.compare(key, end).is_lt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::Value;

    const ORDER: UserOrder = UserOrder::Bytewise;

    fn file(entries: &[Action]) -> File {
        File { family: "f".to_owned(), entries: entries.to_vec() }
    }

    fn put(key: &str) -> Action {
        Action::Put(key.into(), Value::text("v"))
    }

    #[test]
    fn a_table_reaches_to_its_last_key_and_up_to_the_end_of_its_last_range() {
        let range = Action::DeleteRange(b"c".to_vec(), b"e".to_vec());
        let span = Span::of_file(&file(&[put("b"), range.clone()]), &ORDER).unwrap();
        assert!(span.holds(b"b", &ORDER) && span.holds(b"dz", &ORDER));
        assert!(!span.holds(b"e", &ORDER) && !span.holds(b"a", &ORDER));
        let through = Span::of_file(&file(&[put("b"), range, put("e")]), &ORDER).unwrap();
        assert!(through.holds(b"e", &ORDER));
        let next = Span::of_file(&file(&[put("e"), put("f")]), &ORDER).unwrap();
        assert!(!span.overlaps(&next, &ORDER) && through.overlaps(&next, &ORDER));
        assert_eq!(Span::of_file(&file(&[]), &ORDER), None);
    }

    #[test]
    fn operands_float_until_something_lies_under_them() {
        let mut touched = Touched::default();
        let merge = |key: &str| Action::Merge(key.into(), Value::text("1"));
        [merge("a"), merge("a"), merge("b"), put("c"), merge("c")].iter().for_each(|a| touched.note(a, &ORDER));
        assert_eq!(touched.operands(&b"a".to_vec()).len(), 2);
        assert!(touched.operands(&b"c".to_vec()).is_empty() && touched.hides(&b"c".to_vec(), &ORDER));
        touched.note(&Action::DeleteRange(b"a".to_vec(), b"b".to_vec()), &ORDER);
        touched.note(&merge("a"), &ORDER);
        assert!(touched.operands(&b"a".to_vec()).is_empty() && touched.hides(&b"a".to_vec(), &ORDER));
        assert!(!touched.hides(&b"b".to_vec(), &ORDER));
    }
}
