//! A walk over a batch's keys alone: each with its newest change.

use std::ops::Bound;

use base::{FamilyId, UserOrder, ValueKind};

use super::{Move, SharedBatch};

/// An iterator over a family's keys in a batch. Each move shows the batch's present contents; the entry is a copy.
pub struct Entries {
    batch: SharedBatch,
    /// The family's place in the batch's index.
    slot: usize,
    entry: Option<Entry>,
}

struct Entry {
    key: Vec<u8>,
    kind: ValueKind,
    value: Vec<u8>,
}

impl Entries {
    /// A walk without a position. `order` is the family's.
    pub fn new(batch: &SharedBatch, family: FamilyId, order: impl FnOnce() -> UserOrder) -> Entries {
        let slot = batch.write().slot(family, order);
        Entries { batch: batch.clone(), slot, entry: None }
    }

    /// True on an entry.
    pub fn valid(&self) -> bool {
        self.entry.is_some()
    }

    /// Moves. A step off entries does nothing.
    pub fn go(&mut self, to: Move<'_>) {
        let last = self.entry.take();
        let (from, forward) = match (&to, &last) {
            (Move::First, _) => (Bound::Unbounded, true),
            (Move::Last, _) => (Bound::Unbounded, false),
            (Move::To(key), _) => (Bound::Included(*key), true),
            (Move::ToOrBefore(key), _) => (Bound::Included(*key), false),
            (Move::Next, Some(entry)) => (Bound::Excluded(&*entry.key), true),
            (Move::Prev, Some(entry)) => (Bound::Excluded(&*entry.key), false),
            (Move::Next | Move::Prev, None) => return,
        };
        self.entry = self.find(from, forward);
    }

    fn find(&self, from: Bound<&[u8]>, forward: bool) -> Option<Entry> {
        let batch = self.batch.read();
        let (index, bytes) = (&batch.index, batch.batch.as_bytes());
        let found =
            if forward { index.first_from(self.slot, from, bytes) } else { index.last_to(self.slot, from, bytes) };
        let (_, node) = found?;
        let (kind, value) = index.newest(self.slot, node, bytes)?;
        Some(Entry { key: index.key(self.slot, node, bytes).to_vec(), kind, value: value.to_vec() })
    }

    /// The kind of the newest change; `None` off entries.
    pub fn kind(&self) -> Option<ValueKind> {
        self.entry.as_ref().map(|entry| entry.kind)
    }

    /// The user key; empty off entries.
    pub fn key(&self) -> &[u8] {
        self.entry.as_ref().map_or(&[], |entry| &entry.key)
    }

    /// The value or operand; empty for deletions and off entries.
    pub fn value(&self) -> &[u8] {
        self.entry.as_ref().map_or(&[], |entry| &entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_shows_its_newest_change() {
        let batch = SharedBatch::default();
        let order = UserOrder::default;
        let add = |family, kind, key: &[u8], value: &[u8]| batch.write().add(FamilyId(family), order, kind, key, value);
        add(0, ValueKind::Value, b"b", b"1");
        add(0, ValueKind::Deletion, b"a", b"");
        add(1, ValueKind::Value, b"a", b"another family's");
        let mut entries = Entries::new(&batch, FamilyId::DEFAULT, order);
        assert!(!entries.valid());
        entries.go(Move::Next);
        assert!(!entries.valid(), "a step needs a place");
        entries.go(Move::First);
        assert_eq!((entries.key(), entries.kind()), (&b"a"[..], Some(ValueKind::Deletion)));
        add(0, ValueKind::Merge, b"b", b"2");
        entries.go(Move::Next);
        assert_eq!((entries.key(), entries.kind(), entries.value()), (&b"b"[..], Some(ValueKind::Merge), &b"2"[..]));
        entries.go(Move::Next);
        assert!(!entries.valid());
        entries.go(Move::ToOrBefore(b"az"));
        assert_eq!(entries.key(), b"a");
        entries.go(Move::To(b"az"));
        assert_eq!(entries.key(), b"b");
        entries.go(Move::Prev);
        assert_eq!(entries.key(), b"a");
        entries.go(Move::Last);
        assert_eq!(entries.key(), b"b");
    }
}
