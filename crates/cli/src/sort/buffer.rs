//! Records in memory, sorted by sorting slots that say where they are.

use spillway::UserOrder;

/// Where a record is. The key's first bytes stand beside, in a form that compares as the keys do: most comparisons end
/// there, in memory that is read anyway.
#[derive(Clone, Copy)]
struct Slot {
    prefix: u64,
    /// Of the key in the bytes; the value follows. Grows with each record.
    offset: u64,
    key_len: u32,
    value_len: u32,
}

const SLOT_BYTES: usize = size_of::<Slot>();

/// Records, in the order in which they came or, once sorted, in that of their keys.
pub(super) struct Buffer {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    limit_bytes: usize,
    /// Keys and values of the slots.
    payload_bytes: u64,
}

impl Buffer {
    /// Takes no more memory than what is used: of the memory reserved the system gives pages when they are written to.
    pub fn new(limit_bytes: usize) -> Buffer {
        let (bytes, slots) = (Vec::with_capacity(limit_bytes), Vec::with_capacity(limit_bytes / SLOT_BYTES));
        Buffer { bytes, slots, limit_bytes, payload_bytes: 0 }
    }

    /// Whether a record of so many bytes goes in. An empty buffer takes any.
    pub fn has_room(&self, record_bytes: usize) -> bool {
        let used = self.bytes.len() + (self.slots.len() + 1) * SLOT_BYTES;
        self.slots.is_empty() || used.saturating_add(record_bytes) <= self.limit_bytes
    }

    /// Adds a record of less than 4 GiB.
    pub fn push(&mut self, order: &UserOrder, key: &[u8], value: &[u8]) {
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).expect("the sorter bounds records");
        let (key_len, value_len) = (len(key), len(value));
        self.slots.push(Slot { prefix: prefix(order, key), offset: self.bytes.len() as u64, key_len, value_len });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.payload_bytes += (key.len() + value.len()) as u64;
    }

    /// Sorts by keys, and keeps of each key the record added last.
    pub fn sort(&mut self, order: &UserOrder) {
        let bytes = &self.bytes;
        self.slots.sort_unstable_by(|a, b| {
            let by_prefix = a.prefix.cmp(&b.prefix);
            by_prefix
                .then_with(|| order.compare(key_of(bytes, a), key_of(bytes, b)))
                .then_with(|| a.offset.cmp(&b.offset))
        });
        self.slots.dedup_by(|later, kept| {
            let same = later.prefix == kept.prefix && order.equal(key_of(bytes, later), key_of(bytes, kept));
            if same {
                *kept = *later;
            }
            same
        });
        let lens = self.slots.iter().map(|slot| u64::from(slot.key_len) + u64::from(slot.value_len));
        self.payload_bytes = lens.sum();
    }

    pub fn len(&self) -> usize {
        self.slots.len()
    }

    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Key and value of a place.
    pub fn get(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let slot = self.slots.get(at)?;
        let start = slot.offset as usize + slot.key_len as usize;
        Some((key_of(&self.bytes, slot), self.bytes.get(start..start + slot.value_len as usize)?))
    }

    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.len()).map_while(|at| self.get(at))
    }

    /// The first place whose key is not before `key`. The buffer is sorted.
    pub fn lower_bound(&self, order: &UserOrder, key: &[u8]) -> usize {
        self.slots.partition_point(|slot| order.compare(key_of(&self.bytes, slot), key).is_lt())
    }
}

fn key_of<'a>(bytes: &'a [u8], slot: &Slot) -> &'a [u8] {
    let start = slot.offset as usize;
    bytes.get(start..start + slot.key_len as usize).unwrap_or_default()
}

/// A number that compares as the keys do, as far as it reaches: where two differ, so do the keys.
pub(super) fn prefix(order: &UserOrder, key: &[u8]) -> u64 {
    let first = || {
        let mut padded = [0; 8];
        key.iter().zip(&mut padded).for_each(|(from, to)| *to = *from);
        u64::from_be_bytes(padded)
    };
    match order {
        UserOrder::Bytewise => first(),
        UserOrder::ReverseBytewise => !first(),
        UserOrder::Custom(_) => 0,
    }
}
