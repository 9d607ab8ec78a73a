//! A part of a table: the entries between two internal keys, read as if they were the whole file.
//!
//! Whole tables are never wrapped and pay nothing.

use std::sync::Arc;

use base::key::{is_exclusive_end, pack_trailer, split, user_key};
use base::tombstone::FragmentedTombstones;
use base::{Cursor, InternalOrder, LookupKey, Result, SeqNo, ValueKind};

use crate::{Properties, Table, TableReadOptions, TableValue, Visit};

/// The bounds of a part of a table.
#[derive(Clone, Debug)]
pub struct TablePart {
    /// The first internal key of the part.
    pub smallest: Vec<u8>,
    /// The last internal key. If it is a range tombstone's end (`SeqNo::MAX`, `RangeDeletion`), its user key is
    /// outside.
    pub largest: Vec<u8>,
    /// Approximate bytes of the part.
    pub bytes: u64,
    /// Bytes of the whole file.
    pub file_bytes: u64,
}

/// A table restricted to a part.
pub struct BoundedTable {
    whole: Arc<dyn Table>,
    bounds: Arc<Bounds>,
    /// Clipped to the part.
    tombstones: Option<Arc<FragmentedTombstones>>,
    /// The whole table's properties, with counts and sizes scaled to the part's bytes.
    properties: Properties,
    /// Approximate file offset of the part.
    offset: u64,
}

struct Bounds {
    order: InternalOrder,
    smallest: Vec<u8>,
    largest: Vec<u8>,
}

/// Position of a user key relative to the part.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    Inside,
    /// The key is a bound's user key: each version must be compared.
    OnEdge,
    Behind,
}

impl Bounds {
    fn place_of(&self, key: &[u8]) -> Place {
        let order = &self.order.user;
        let from_start = order.compare(key, user_key(&self.smallest));
        let from_end = order.compare(key, user_key(&self.largest));
        if from_start.is_lt() {
            Place::Before
        } else if from_end.is_gt() || (from_end.is_eq() && is_exclusive_end(&self.largest)) {
            Place::Behind
        } else if from_start.is_eq() || from_end.is_eq() {
            Place::OnEdge
        } else {
            Place::Inside
        }
    }

    /// Whether a version of a bound's user key is inside. Newer versions come first.
    fn hold_version(&self, key: &[u8], seq: SeqNo, kind: ValueKind) -> bool {
        let trailer = pack_trailer(seq, kind as u8);
        let (first, newest) = split(&self.smallest).unwrap_or_default();
        let (last, oldest) = split(&self.largest).unwrap_or_default();
        let order = &self.order.user;
        (trailer <= newest || !order.equal(first, key)) && (trailer >= oldest || !order.equal(last, key))
    }

    fn begin_after(&self, internal_key: &[u8]) -> bool {
        self.order.compare(internal_key, &self.smallest).is_lt()
    }

    fn end_before(&self, internal_key: &[u8]) -> bool {
        self.order.compare(internal_key, &self.largest).is_gt()
    }
}

impl BoundedTable {
    /// # Errors
    /// Errors of reading the table's index.
    pub fn new(whole: Arc<dyn Table>, order: InternalOrder, part: TablePart) -> Result<Arc<BoundedTable>> {
        let TablePart { smallest, largest, bytes, file_bytes } = part;
        let tombstones = whole
            .tombstones()
            .map(|all| all.clipped(user_key(&smallest), user_key(&largest), is_exclusive_end(&largest)));
        let tombstones = tombstones.filter(|inside| !inside.is_empty());
        let mut properties = whole.properties().in_proportion(bytes, file_bytes);
        if tombstones.is_none() {
            properties.deletions -= properties.range_deletions.min(properties.deletions);
            properties.entries -= properties.range_deletions.min(properties.entries);
            properties.range_deletions = 0;
        }
        let offset = whole.approximate_offset(&smallest)?;
        let bounds = Arc::new(Bounds { order, smallest, largest });
        Ok(Arc::new(BoundedTable { whole, bounds, tombstones, properties, offset }))
    }

    /// Converts an offset in the file to an offset in the part.
    fn offset_inside(&self, offset: u64) -> u64 {
        offset.saturating_sub(self.offset).min(self.properties.data_bytes)
    }
}

impl Table for BoundedTable {
    fn get(&self, key: &LookupKey, options: &TableReadOptions, visit: Visit<'_>) -> Result<()> {
        match self.bounds.place_of(key.user_key()) {
            Place::Before | Place::Behind => Ok(()),
            Place::Inside => self.whole.get(key, options, visit),
            Place::OnEdge => self.whole.get(key, options, &mut |seq, kind, value| {
                !self.bounds.hold_version(key.user_key(), seq, kind) || visit(seq, kind, value)
            }),
        }
    }

    fn multi_get(
        &self,
        keys: &[&LookupKey],
        options: &TableReadOptions,
        visit: &mut dyn FnMut(usize, SeqNo, ValueKind, TableValue<'_>) -> bool,
    ) -> Result<()> {
        let place_of = |key: &LookupKey| self.bounds.place_of(key.user_key());
        let first = keys.partition_point(|key| place_of(key) == Place::Before);
        let end = keys.partition_point(|key| place_of(key) != Place::Behind);
        let inside = keys.get(first..end).unwrap_or(&[]);
        if inside.is_empty() {
            return Ok(());
        }
        self.whole.multi_get(inside, options, &mut |nth, seq, kind, value| {
            let holds = |key: &&LookupKey| self.bounds.hold_version(key.user_key(), seq, kind);
            !inside.get(nth).is_some_and(holds) || visit(first + nth, seq, kind, value)
        })
    }

    fn cursor(self: Arc<Self>, options: &TableReadOptions) -> Box<dyn Cursor> {
        let whole = self.whole.clone().cursor(options);
        Box::new(BoundedCursor { whole, bounds: self.bounds.clone(), valid: false })
    }

    fn is_mapped(&self) -> bool {
        self.whole.is_mapped()
    }

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.tombstones.clone()
    }

    fn properties(&self) -> &Properties {
        &self.properties
    }

    /// Relative to the part's start. Past its end: the part's approximate data bytes.
    fn approximate_offset(&self, internal_key: &[u8]) -> Result<u64> {
        if self.bounds.end_before(internal_key) {
            return Ok(self.properties.data_bytes);
        }
        if self.bounds.begin_after(internal_key) {
            return Ok(0);
        }
        Ok(self.offset_inside(self.whole.approximate_offset(internal_key)?))
    }

    fn anchors(&self, max: usize) -> Result<Vec<(Vec<u8>, u64)>> {
        let mut anchors = self.whole.anchors(max)?;
        anchors.retain(|(key, _)| matches!(self.bounds.place_of(key), Place::Inside | Place::OnEdge));
        anchors.iter_mut().for_each(|(_, bytes)| *bytes = self.offset_inside(*bytes));
        Ok(anchors)
    }

    /// Verifies the whole file: checksums and counts cover all of it.
    fn verify(&self) -> Result<()> {
        self.whole.verify()
    }

    fn memory_bytes(&self) -> usize {
        let bounds = self.bounds.smallest.capacity() + self.bounds.largest.capacity();
        size_of::<Self>() + bounds + self.whole.memory_bytes()
    }
}

/// Walks the entries of the part.
struct BoundedCursor {
    whole: Box<dyn Cursor>,
    bounds: Arc<Bounds>,
    valid: bool,
}

impl BoundedCursor {
    /// After a move from inside or before the part: only its end can have been passed.
    fn stand_forward(&mut self, found: bool) -> bool {
        self.valid = found && !self.bounds.end_before(self.whole.key());
        self.valid
    }

    fn stand_backward(&mut self, found: bool) -> bool {
        self.valid = found && !self.bounds.begin_after(self.whole.key());
        self.valid
    }
}

impl Cursor for BoundedCursor {
    #[inline]
    fn valid(&self) -> bool {
        self.valid
    }

    fn seek_to_first(&mut self) -> bool {
        let found = self.whole.seek(&self.bounds.smallest);
        self.stand_forward(found)
    }

    fn seek_to_last(&mut self) -> bool {
        let found = self.whole.seek_for_prev(&self.bounds.largest);
        self.stand_backward(found)
    }

    fn seek(&mut self, target: &[u8]) -> bool {
        if self.bounds.begin_after(target) {
            return self.seek_to_first();
        }
        let found = self.whole.seek(target);
        self.stand_forward(found)
    }

    fn seek_in_prefix(&mut self, target: &[u8]) -> bool {
        // The part's start may have a different prefix than `target`, or one absent from the file.
        if self.bounds.begin_after(target) {
            return self.seek_to_first();
        }
        let found = self.whole.seek_in_prefix(target);
        self.stand_forward(found)
    }

    fn seek_for_prev(&mut self, target: &[u8]) -> bool {
        if self.bounds.end_before(target) {
            return self.seek_to_last();
        }
        let found = self.whole.seek_for_prev(target);
        self.stand_backward(found)
    }

    #[inline]
    fn next(&mut self) -> bool {
        let found = self.whole.next();
        self.stand_forward(found)
    }

    #[inline]
    fn prev(&mut self) -> bool {
        let found = self.whole.prev();
        self.stand_backward(found)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        if self.valid { self.whole.key() } else { &[] }
    }

    #[inline]
    fn value(&self) -> &[u8] {
        if self.valid { self.whole.value() } else { &[] }
    }

    fn status(&self) -> Result<()> {
        self.whole.status()
    }
}
