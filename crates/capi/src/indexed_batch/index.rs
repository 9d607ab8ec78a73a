//! A batch's net changes by key, sorted.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use parking_lot::RwLock;
use spillway::internal::{FamilyId, UserOrder, ValueKind};

/// A batch's families. Iterators share them: each move shows the batch's current contents, and iterators can outlive
/// the batch.
pub struct Index {
    families: BTreeMap<FamilyId, Arc<RwLock<FamilyIndex>>>,
}

/// A batch's net changes of one family.
pub struct FamilyIndex {
    order: UserOrder,
    keys: BTreeMap<OrderedKey, Said>,
    /// Deleted ranges, disjoint: the exclusive end by the start. An entry in `keys` overrides them.
    ranges: BTreeMap<OrderedKey, Arc<[u8]>>,
}

/// The outcome of a key's changes: `operands`, oldest first, over `base`.
#[derive(Clone)]
pub struct Said {
    pub base: Base,
    pub operands: Vec<Arc<[u8]>>,
}

#[derive(Clone)]
pub enum Base {
    /// As in the database.
    Below,
    Deleted,
    Value(Arc<[u8]>),
}

/// A key sorted by its family's order.
#[derive(Clone)]
struct OrderedKey {
    order: UserOrder,
    bytes: Arc<[u8]>,
}

/// A key to look for, without a copy of it.
struct Probe<'a> {
    order: &'a UserOrder,
    bytes: &'a [u8],
}

trait Sorted {
    fn order(&self) -> &UserOrder;
    fn bytes(&self) -> &[u8];
}

impl Sorted for OrderedKey {
    fn order(&self) -> &UserOrder {
        &self.order
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Sorted for Probe<'_> {
    fn order(&self) -> &UserOrder {
        self.order
    }

    fn bytes(&self) -> &[u8] {
        self.bytes
    }
}

impl<'a> Borrow<dyn Sorted + 'a> for OrderedKey {
    fn borrow(&self) -> &(dyn Sorted + 'a) {
        self
    }
}

impl Ord for dyn Sorted + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().compare(self.bytes(), other.bytes())
    }
}

impl PartialOrd for dyn Sorted + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for dyn Sorted + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for dyn Sorted + '_ {}

impl Ord for OrderedKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.compare(&self.bytes, &other.bytes)
    }
}

impl PartialOrd for OrderedKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for OrderedKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for OrderedKey {}

impl Index {
    pub fn new() -> Index {
        Index { families: BTreeMap::new() }
    }

    /// Forgets all changes; the orders of the families stay.
    pub fn forget_changes(&mut self) {
        for family in self.families.values() {
            let mut family = family.write();
            family.keys.clear();
            family.ranges.clear();
        }
    }

    /// The change of a key; `None` if the batch has none.
    pub fn get(&self, id: FamilyId, key: &[u8]) -> Option<Said> {
        self.families.get(&id)?.read().get(key)
    }

    /// The index of a family; a new one sorts by `order`.
    pub fn family(&mut self, id: FamilyId, order: impl FnOnce() -> UserOrder) -> &Arc<RwLock<FamilyIndex>> {
        self.families.entry(id).or_insert_with(|| Arc::new(RwLock::new(FamilyIndex::new(order()))))
    }
}

impl FamilyIndex {
    fn new(order: UserOrder) -> FamilyIndex {
        FamilyIndex { order, keys: BTreeMap::new(), ranges: BTreeMap::new() }
    }

    pub fn order(&self) -> &UserOrder {
        &self.order
    }

    fn key(&self, bytes: &[u8]) -> OrderedKey {
        OrderedKey { order: self.order.clone(), bytes: bytes.into() }
    }

    /// Adds a change; for a range deletion, `value` is the end.
    pub fn change(&mut self, kind: ValueKind, key: &[u8], value: &[u8]) {
        match kind {
            ValueKind::Value => self.set(key, Base::Value(value.into())),
            ValueKind::Deletion | ValueKind::SingleDeletion => self.set(key, Base::Deleted),
            ValueKind::RangeDeletion => self.delete_range(key, value),
            ValueKind::Merge => {
                let base = if self.is_deleted(key) { Base::Deleted } else { Base::Below };
                let said = self.keys.entry(self.key(key)).or_insert(Said { base, operands: Vec::new() });
                said.operands.push(value.into());
            }
        }
    }

    fn set(&mut self, key: &[u8], base: Base) {
        self.keys.insert(self.key(key), Said { base, operands: Vec::new() });
    }

    /// A range is empty if its end is not after its start.
    fn delete_range(&mut self, start: &[u8], end: &[u8]) {
        if self.order.compare(start, end).is_ge() {
            return;
        }
        let (start_at, end_at) = (Probe { order: &self.order, bytes: start }, Probe { order: &self.order, bytes: end });
        let within = (Bound::Included(&start_at as &dyn Sorted), Bound::Excluded(&end_at as &dyn Sorted));
        for (_, said) in self.keys.range_mut::<dyn Sorted, _>(within) {
            *said = Said { base: Base::Deleted, operands: Vec::new() };
        }
        let (mut first, mut last) = (self.key(start), Arc::<[u8]>::from(end));
        // Merges overlapping and adjacent ranges.
        while let Some((other, other_end)) =
            self.last_range_before(end).filter(|(_, other_end)| self.order.compare(other_end, start).is_ge())
        {
            let (other, other_end) = (other.clone(), other_end.clone());
            self.ranges.remove(&other);
            first = first.min(other);
            if self.order.compare(&other_end, &last).is_gt() {
                last = other_end;
            }
        }
        self.ranges.insert(first, last);
    }

    fn probe<'a>(&'a self, bytes: &'a [u8]) -> Probe<'a> {
        Probe { order: &self.order, bytes }
    }

    /// Of the deleted ranges starting at or before `key`, the last.
    fn last_range_before(&self, key: &[u8]) -> Option<(&OrderedKey, &Arc<[u8]>)> {
        let through = (Bound::Unbounded, Bound::Included(&self.probe(key) as &dyn Sorted));
        self.ranges.range::<dyn Sorted, _>(through).next_back()
    }

    /// Whether a deleted range hides the database's value of a key without an entry here.
    pub fn is_deleted(&self, key: &[u8]) -> bool {
        self.last_range_before(key).is_some_and(|(_, end)| self.order.compare(key, end).is_lt())
    }

    fn get(&self, key: &[u8]) -> Option<Said> {
        let said = self.keys.get(&self.probe(key) as &dyn Sorted).cloned();
        let deleted = || Said { base: Base::Deleted, operands: Vec::new() };
        said.or_else(|| self.is_deleted(key).then(deleted))
    }

    /// The first entry at `from` or behind it.
    pub fn first_from(&self, from: Bound<&[u8]>) -> Option<(&Arc<[u8]>, &Said)> {
        let probe = self.probe_of(&from);
        let entries = (bound(&from, &probe), Bound::Unbounded);
        self.keys.range::<dyn Sorted, _>(entries).next().map(|(key, said)| (&key.bytes, said))
    }

    /// The last entry at `to` or before it.
    pub fn last_to(&self, to: Bound<&[u8]>) -> Option<(&Arc<[u8]>, &Said)> {
        let probe = self.probe_of(&to);
        let entries = (Bound::Unbounded, bound(&to, &probe));
        self.keys.range::<dyn Sorted, _>(entries).next_back().map(|(key, said)| (&key.bytes, said))
    }

    fn probe_of<'a>(&'a self, at: &Bound<&'a [u8]>) -> Probe<'a> {
        match at {
            Bound::Included(key) | Bound::Excluded(key) => self.probe(key),
            Bound::Unbounded => self.probe(&[]),
        }
    }
}

fn bound<'a>(kind: &Bound<&[u8]>, probe: &'a Probe<'a>) -> Bound<&'a (dyn Sorted + 'a)> {
    kind.map(|_| probe as &(dyn Sorted + 'a))
}
