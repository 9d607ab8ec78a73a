//! Records in memory, sorted through slots of offsets.

use super::RecordOrder;

/// Place of a record, with the key's first bytes in comparable form. Most comparisons end at this prefix, in memory
/// read anyway.
#[derive(Clone, Copy)]
struct Slot {
    prefix: u64,
    /// Offset of the key in the bytes; the value follows. Grows with each record.
    offset: u64,
    key_len: u32,
    value_len: u32,
}

const SLOT_BYTES: usize = size_of::<Slot>();

/// First allocation, in bytes or slots.
const GROWTH_MIN: usize = 4096;

/// Records in insertion order or, once sorted, in key order.
pub struct Buffer {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    limit_bytes: usize,
    /// Bytes of the slots' keys and values.
    payload_bytes: u64,
}

impl Buffer {
    /// Allocates as records come: the limit may exceed the machine's memory.
    pub fn new(limit_bytes: usize) -> Buffer {
        Buffer { bytes: Vec::new(), slots: Vec::new(), limit_bytes, payload_bytes: 0 }
    }

    /// Whether a record of `record_bytes` fits. An empty buffer takes any record.
    pub fn has_room(&self, record_bytes: usize) -> bool {
        let used = self.bytes.len() + (self.slots.len() + 1) * SLOT_BYTES;
        self.slots.is_empty() || used.saturating_add(record_bytes) <= self.limit_bytes
    }

    /// Adds a record.
    ///
    /// # Panics
    /// A key or a value of 4 GiB or more.
    pub fn push(&mut self, order: &impl RecordOrder, key: &[u8], value: &[u8]) {
        let len = |bytes: &[u8]| u32::try_from(bytes.len()).expect("who sorts bounds records");
        let (key_len, value_len) = (len(key), len(value));
        grow(&mut self.bytes, key.len() + value.len(), self.limit_bytes);
        grow(&mut self.slots, 1, self.limit_bytes / SLOT_BYTES);
        self.slots.push(Slot { prefix: order.prefix(key), offset: self.bytes.len() as u64, key_len, value_len });
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.payload_bytes += (key.len() + value.len()) as u64;
    }

    /// Sorts by keys. Of records with equal keys, keeps the one added last.
    pub fn sort(&mut self, order: &impl RecordOrder) {
        let bytes = &self.bytes;
        self.slots.sort_unstable_by(|a, b| {
            let by_prefix = a.prefix.cmp(&b.prefix);
            by_prefix
                .then_with(|| order.compare(key_of(bytes, a), key_of(bytes, b)))
                .then_with(|| a.offset.cmp(&b.offset))
        });
        self.slots.dedup_by(|later, kept| {
            let same = later.prefix == kept.prefix && order.compare(key_of(bytes, later), key_of(bytes, kept)).is_eq();
            if same {
                *kept = *later;
            }
            same
        });
        let lens = self.slots.iter().map(|slot| u64::from(slot.key_len) + u64::from(slot.value_len));
        self.payload_bytes = lens.sum();
    }

    /// Removes all records and keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(self.limit_bytes); // frees the excess of an oversized record
        self.slots.clear();
        self.payload_bytes = 0;
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// True without records.
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Bytes of keys and values.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    /// Key and value at an index.
    pub fn get(&self, at: usize) -> Option<(&[u8], &[u8])> {
        let slot = self.slots.get(at)?;
        let start = slot.offset as usize + slot.key_len as usize;
        Some((key_of(&self.bytes, slot), self.bytes.get(start..start + slot.value_len as usize)?))
    }

    /// Keys and values, in order of their indexes.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.len()).map_while(|at| self.get(at))
    }

    /// Index of the first key at or after `key`. The buffer must be sorted.
    pub fn lower_bound(&self, order: &impl RecordOrder, key: &[u8]) -> usize {
        self.slots.partition_point(|slot| order.compare(key_of(&self.bytes, slot), key).is_lt())
    }
}

/// Makes room for `more`. Doubles the capacity, but passes the limit only if necessary: a full buffer takes little more
/// than its limit.
fn grow<T>(vec: &mut Vec<T>, more: usize, limit: usize) {
    let need = vec.len() + more;
    if need > vec.capacity() {
        let wanted = vec.capacity().saturating_mul(2).max(GROWTH_MIN).min(limit).max(need);
        vec.reserve_exact(wanted - vec.len());
    }
}

fn key_of<'a>(bytes: &'a [u8], slot: &Slot) -> &'a [u8] {
    let start = slot.offset as usize;
    bytes.get(start..start + slot.key_len as usize).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use base::UserOrder;

    use super::*;

    #[test]
    fn a_buffer_takes_memory_as_it_is_used_and_little_beyond_its_limit() {
        let mut vast = Buffer::new(usize::MAX);
        vast.push(&UserOrder::Bytewise, b"k", b"v");
        assert_eq!(vast.get(0), Some((&b"k"[..], &b"v"[..])));
        let limit = 100_000;
        let mut full = Buffer::new(limit);
        while full.has_room(101) {
            full.push(&UserOrder::Bytewise, b"k", &[0; 100]);
        }
        assert!(full.bytes.capacity() <= limit && full.slots.capacity() <= limit / SLOT_BYTES);
    }

    #[test]
    fn a_buffer_counts_its_slots_too() {
        let mut buffer = Buffer::new(1000);
        let mut count = 0;
        while buffer.has_room(2) {
            buffer.push(&UserOrder::Bytewise, b"k", b"v");
            count += 1;
        }
        assert_eq!(count, 1000 / (24 + 2));
        assert!(Buffer::new(10).has_room(1 << 30), "an empty one takes anything");
    }
}
