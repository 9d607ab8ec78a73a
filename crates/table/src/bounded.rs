//! A part of a table: what lies between two internal keys, read as if it were all that the file holds.
//!
//! A table that counts whole is never wrapped, and pays nothing.

use std::sync::Arc;

use base::key::{is_exclusive_end, pack_trailer, split, user_key};
use base::tombstone::FragmentedTombstones;
use base::{Cursor, InternalOrder, LookupKey, Result, SeqNo, ValueKind};

use crate::{Properties, Table, TableReadOptions, TableValue, Visit};

/// Which part of a table counts.
#[derive(Clone, Debug)]
pub struct TablePart {
    /// The first internal key that counts.
    pub smallest: Vec<u8>,
    /// The last one. Where it is the end of a range tombstone (`SeqNo::MAX`, `RangeDeletion`), its user key is outside.
    pub largest: Vec<u8>,
    /// Bytes of the part, about.
    pub bytes: u64,
    /// Bytes of the whole file.
    pub file_bytes: u64,
}

/// A table of which only a part counts.
pub struct BoundedTable {
    whole: Arc<dyn Table>,
    bounds: Arc<Bounds>,
    /// Cut to the part.
    tombstones: Option<Arc<FragmentedTombstones>>,
    /// The whole table's, its counts and sizes in proportion to the part's bytes.
    properties: Properties,
    /// Where in the file the part begins, about.
    offset: u64,
}

struct Bounds {
    order: InternalOrder,
    smallest: Vec<u8>,
    largest: Vec<u8>,
}

/// Where a user key lies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    Inside,
    /// The bounds are versions of it, so that each version is to be compared.
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

    /// Whether a version of an edge's user key counts. Newer versions come first.
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
    /// What reading the table's index yields.
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

    /// An offset in the file as one in the part.
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

    fn tombstones(&self) -> Option<Arc<FragmentedTombstones>> {
        self.tombstones.clone()
    }

    fn properties(&self) -> &Properties {
        &self.properties
    }

    /// From where the part begins; about the bytes of its data behind its end.
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

    /// The whole file: what does not count is checked too, since checksums and counts are the file's.
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
    /// After a move that came from inside or before: only the end can have been passed.
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
        // The part's beginning may have another prefix, or none in the file.
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
