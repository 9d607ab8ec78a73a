//! The index of a batch: for each key its changes, newest first, as places in the batch's bytes.
//!
//! # Invariants
//! - A record's `before` is its key's newest record when it came: the chain of a key's changes, and what a rollback
//!   restores.
//! - A node is made by the first record of its key. So records and nodes go in the reverse order of their coming.

use std::ops::{Bound, Range};
use std::sync::Arc;

use base::{FamilyId, UserOrder, ValueKind};
use smallvec::SmallVec;

use super::ranges::Ranges;
use super::sorted::{Entry, Prefix, SortedKeys, Spot};
use crate::batch::Placed;

/// The outcome of a key's changes: `operands`, oldest first, over `base`.
pub struct Said<'a> {
    pub(crate) base: Base<'a>,
    pub(crate) operands: SmallVec<[&'a [u8]; 4]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base<'a> {
    /// As in the database.
    Below,
    Deleted,
    Value(&'a [u8]),
}

impl Said<'_> {
    /// Whether the value depends on the database.
    pub fn needs_below(&self) -> bool {
        self.base == Base::Below
    }

    fn deleted<'a>() -> Said<'a> {
        Said { base: Base::Deleted, operands: SmallVec::new() }
    }
}

/// Bytes in the batch.
#[derive(Clone, Copy)]
struct Piece {
    at: u32,
    len: u32,
}

impl Piece {
    const NONE: Piece = Piece { at: 0, len: 0 };

    fn of(at: usize, len: usize) -> Option<Piece> {
        Some(Piece { at: u32::try_from(at).ok()?, len: u32::try_from(len).ok()? })
    }

    #[inline]
    fn within(self, bytes: &[u8]) -> &[u8] {
        let start = self.at as usize;
        bytes.get(start..start + self.len as usize).unwrap_or_default()
    }
}

/// No record.
const NONE: u32 = u32::MAX;

struct Record {
    /// The family's place in [`Index::families`].
    slot: u32,
    node: u32,
    before: u32,
    kind: ValueKind,
    value: Piece,
}

struct Node {
    key: Piece,
    /// The key's newest record.
    newest: u32,
}

struct FamilyIndex {
    id: FamilyId,
    order: UserOrder,
    keys: SortedKeys,
    nodes: Vec<Node>,
    ranges: Arc<Ranges>,
}

/// A savepoint of the index.
pub(super) struct Savepoint {
    records: usize,
    /// By family; those that came later had none.
    ranges: Vec<Arc<Ranges>>,
}

/// The indexes of a batch's families.
#[derive(Default)]
pub(super) struct Index {
    families: Vec<FamilyIndex>,
    records: Vec<Record>,
}

impl Index {
    /// Forgets all changes; the families stay.
    pub fn clear(&mut self) {
        self.records.clear();
        for family in &mut self.families {
            family.keys.clear();
            family.nodes.clear();
            family.ranges = Arc::default();
        }
    }

    pub fn slot_of(&self, id: FamilyId) -> Option<usize> {
        self.families.iter().position(|family| family.id == id)
    }

    /// The place of a family; a new one sorts by `order`.
    pub fn slot(&mut self, id: FamilyId, order: impl FnOnce() -> UserOrder) -> usize {
        self.slot_of(id).unwrap_or_else(|| {
            let (keys, nodes) = (SortedKeys::default(), Vec::new());
            self.families.push(FamilyIndex { id, order: order(), keys, nodes, ranges: Arc::default() });
            self.families.len() - 1
        })
    }

    pub fn order(&self, slot: usize) -> Option<&UserOrder> {
        self.families.get(slot).map(|family| &family.order)
    }

    pub fn savepoint(&self) -> Savepoint {
        let has_ranges = self.families.iter().any(|family| !family.ranges.is_empty());
        let ranges = self.families.iter().filter(|_| has_ranges).map(|family| family.ranges.clone()).collect();
        Savepoint { records: self.records.len(), ranges }
    }

    /// `bytes` are the batch's, still with what goes.
    pub fn roll_back(&mut self, savepoint: Savepoint, bytes: &[u8]) {
        while self.records.len() > savepoint.records {
            let Some(record) = self.records.pop() else { break };
            if let Some(family) = self.families.get_mut(record.slot as usize) {
                family.undo(&record, bytes);
            }
        }
        let mut ranges = savepoint.ranges.into_iter();
        self.families.iter_mut().for_each(|family| family.ranges = ranges.next().unwrap_or_default());
    }

    /// Adds a change that stands in the batch at `placed`. A batch too large for the index cannot be written either.
    pub fn add(&mut self, slot: usize, kind: ValueKind, placed: &Placed, bytes: &[u8]) {
        let Index { families, records } = self;
        let Some(family) = families.get_mut(slot) else { return };
        let pieces = (Piece::of(placed.key_at, placed.key_len), Piece::of(placed.value_at, placed.value_len));
        let (Some(key), Some(value)) = pieces else { return };
        let slot = slot as u32;
        if kind == ValueKind::RangeDeletion {
            let range = Range { start: key.within(bytes), end: value.within(bytes) };
            return family.delete_range(slot, records, range, bytes);
        }
        let node = family.node(slot, kind, key, records, bytes);
        family.push(records, Record { slot, node, before: NONE, kind, value });
    }

    /// The outcome of a key's changes; `None` if the batch has none.
    pub fn get<'a>(&'a self, slot: usize, key: &[u8], bytes: &'a [u8]) -> Option<Said<'a>> {
        let family = self.families.get(slot)?;
        match family.find(key, bytes) {
            Ok(spot) => {
                let (_, node) = family.keys.first_from(spot)?;
                Some(self.said(slot, node, bytes))
            }
            Err(_) => family.ranges.hold(&family.order, key).then(Said::deleted),
        }
    }

    /// Whether a deleted range hides the database's value of a key without an entry here.
    pub fn hides(&self, slot: usize, key: &[u8]) -> bool {
        self.families.get(slot).is_some_and(|family| family.ranges.hold(&family.order, key))
    }

    pub fn said<'a>(&'a self, slot: usize, node: u32, bytes: &'a [u8]) -> Said<'a> {
        let node = self.families.get(slot).and_then(|family| family.nodes.get(node as usize));
        let mut at = node.map_or(NONE, |node| node.newest);
        let mut said = Said { base: Base::Below, operands: SmallVec::new() };
        while let Some(record) = self.records.get(at as usize) {
            match record.kind {
                ValueKind::Merge => said.operands.push(record.value.within(bytes)),
                ValueKind::Value => {
                    said.base = Base::Value(record.value.within(bytes));
                    break;
                }
                _ => {
                    said.base = Base::Deleted;
                    break;
                }
            }
            at = record.before;
        }
        said.operands.reverse();
        said
    }

    /// A key's newest change.
    pub fn newest<'a>(&self, slot: usize, node: u32, bytes: &'a [u8]) -> Option<(ValueKind, &'a [u8])> {
        let newest = self.families.get(slot)?.nodes.get(node as usize)?.newest;
        self.records.get(newest as usize).map(|record| (record.kind, record.value.within(bytes)))
    }

    /// The first entry at `from` or behind it, with its place.
    pub fn first_from(&self, slot: usize, from: Bound<&[u8]>, bytes: &[u8]) -> Option<(Spot, u32)> {
        let family = self.families.get(slot)?;
        family.keys.first_from(family.bound(from, false, bytes))
    }

    /// The last entry at `to` or before it.
    pub fn last_to(&self, slot: usize, to: Bound<&[u8]>, bytes: &[u8]) -> Option<(Spot, u32)> {
        let family = self.families.get(slot)?;
        family.keys.last_before(family.bound(to, true, bytes))
    }

    /// The entry behind the one at `spot`, or before it. The index has not changed since `spot` was found.
    pub fn beside(&self, slot: usize, spot: Spot, forward: bool) -> Option<(Spot, u32)> {
        let keys = &self.families.get(slot)?.keys;
        if forward { keys.first_from(SortedKeys::behind(spot)) } else { keys.last_before(spot) }
    }

    pub fn key<'a>(&self, slot: usize, node: u32, bytes: &'a [u8]) -> &'a [u8] {
        let node = self.families.get(slot).and_then(|family| family.nodes.get(node as usize));
        node.map_or(&[], |node| node.key.within(bytes))
    }
}

impl FamilyIndex {
    #[inline]
    fn find(&self, key: &[u8], bytes: &[u8]) -> Result<Spot, Spot> {
        let of_node = |node: u32| self.nodes.get(node as usize).map_or(&[][..], |node| node.key.within(bytes));
        self.keys.find(Prefix::of(&self.order, key), |node| self.order.compare(of_node(node), key))
    }

    /// The place behind all entries before the bound, or through it if `is_upper`.
    fn bound(&self, bound: Bound<&[u8]>, is_upper: bool, bytes: &[u8]) -> Spot {
        let (key, takes_in) = match bound {
            Bound::Unbounded if is_upper => return self.keys.end(),
            Bound::Unbounded => return SortedKeys::START,
            Bound::Included(key) => (key, is_upper),
            Bound::Excluded(key) => (key, !is_upper),
        };
        match self.find(key, bytes) {
            Ok(spot) if takes_in => SortedKeys::behind(spot),
            Ok(spot) | Err(spot) => spot,
        }
    }

    /// The node of a key, made if there is none.
    fn node(&mut self, slot: u32, kind: ValueKind, key: Piece, records: &mut Vec<Record>, bytes: &[u8]) -> u32 {
        let user_key = key.within(bytes);
        let spot = match self.find(user_key, bytes) {
            Ok(spot) => return self.keys.first_from(spot).map_or(NONE, |(_, node)| node),
            Err(spot) => spot,
        };
        let node = self.nodes.len() as u32;
        self.nodes.push(Node { key, newest: NONE });
        self.keys.insert(spot, Entry { prefix: Prefix::of(&self.order, user_key), node });
        if kind == ValueKind::Merge && self.ranges.hold(&self.order, user_key) {
            self.push(records, deletion(slot, node));
        }
        node
    }

    /// Makes the record its key's newest.
    fn push(&mut self, records: &mut Vec<Record>, mut record: Record) {
        let number = records.len() as u32;
        if let Some(node) = self.nodes.get_mut(record.node as usize) {
            record.before = node.newest;
            node.newest = number;
        }
        records.push(record);
    }

    /// A range is empty if its end is not after its start.
    fn delete_range(&mut self, slot: u32, records: &mut Vec<Record>, range: Range<&[u8]>, bytes: &[u8]) {
        let Range { start, end } = range;
        if self.order.compare(start, end).is_ge() {
            return;
        }
        let mut at = self.bound(Bound::Included(start), false, bytes);
        while let Some((spot, node)) = self.keys.first_from(at) {
            let key = self.nodes.get(node as usize).map_or(&[][..], |node| node.key.within(bytes));
            if self.order.compare(key, end).is_ge() {
                break;
            }
            self.push(records, deletion(slot, node));
            at = SortedKeys::behind(spot);
        }
        Arc::make_mut(&mut self.ranges).add(&self.order, start, end);
    }

    /// Takes back the newest record of all.
    fn undo(&mut self, record: &Record, bytes: &[u8]) {
        let Some(node) = self.nodes.get_mut(record.node as usize) else { return };
        node.newest = record.before;
        if record.before == NONE {
            let key = node.key;
            if let Ok(spot) = self.find(key.within(bytes), bytes) {
                self.keys.remove(spot);
            }
            self.nodes.pop();
        }
    }
}

/// The record of a key under a deleted range.
fn deletion(slot: u32, node: u32) -> Record {
    Record { slot, node, before: NONE, kind: ValueKind::Deletion, value: Piece::NONE }
}
