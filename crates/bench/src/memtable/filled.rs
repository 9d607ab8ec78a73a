//! A memtable under test: made with room for what is to come, and filled as the engine fills one: a reservation, then
//! entries with growing sequence numbers.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base::{Error, FamilyId, InternalOrder, Result, SeqNo, ValueKind};
use memtable::{Entry, Memtable, MemtableConfig, MemtableFactory};

use super::keys::KeyList;
use crate::workload::{Rng, Values};

/// Capacity of the memtable that is asked what its kind needs; no page of it is touched.
const PROBE_BYTES: usize = 64 << 20;

/// What memtables can have at most: what 32-bit references to units of 8 bytes reach.
const CAPACITY_MAX_BYTES: usize = 32 << 30;

/// What a memtable is to take.
#[derive(Clone, Copy, Debug)]
pub struct Need {
    pub entries: usize,
    /// Bytes of all keys and values.
    pub payload_bytes: usize,
    /// Entries that are reserved together.
    pub batch: usize,
}

impl Need {
    /// Bytes of a memtable that is sure to take it.
    fn capacity_bytes(&self, probe: &dyn Memtable) -> usize {
        let batches = self.entries.div_ceil(self.batch).max(1);
        // Batches differ in size: one unit of allocation each covers what rounding costs.
        let payload = self.payload_bytes.div_ceil(batches).next_multiple_of(8) + 8;
        let of_batch = probe.worst_case_bytes(self.batch, payload).next_multiple_of(8);
        let entries = batches.saturating_add(1).saturating_mul(of_batch);
        let spare = entries / 32 + probe.reserved_bytes() + (1 << 20);
        entries.saturating_add(spare).min(CAPACITY_MAX_BYTES)
    }
}

/// The bytes that values are cut from, in turn.
pub struct Pool {
    bytes: Vec<u8>,
    size: usize,
}

impl Pool {
    pub fn new(size: usize) -> Self {
        const POOL_BYTES: usize = 1 << 20;
        let bytes = Values::new(&mut Rng::new(301), POOL_BYTES.max(size), 1.0).next().to_vec();
        Pool { bytes, size }
    }

    pub fn value_bytes(&self) -> usize {
        self.size
    }

    /// The value at `at`, which moves on to the next.
    #[inline]
    fn take(&self, at: &mut usize) -> &[u8] {
        let start = if *at + self.size <= self.bytes.len() { *at } else { 0 };
        *at = start + self.size;
        self.bytes.get(start..*at).unwrap_or_default()
    }
}

/// A memtable and how far it is filled.
pub struct Filled {
    pub memtable: Arc<dyn Memtable>,
    last_seq: AtomicU64,
    /// Held while inserting into a memtable that takes one thread at a time, as the engine does.
    one_by_one: Option<Mutex<()>>,
}

impl Filled {
    /// An empty memtable of `capacity_bytes`, or where that is 0, of what `need` asks for.
    ///
    /// # Errors
    /// Those of the memtable's making.
    pub fn empty(factory: &dyn MemtableFactory, need: &Need, capacity_bytes: usize) -> Result<Self> {
        let make =
            |bytes: usize| factory.create(&MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, bytes));
        let capacity = if capacity_bytes > 0 { capacity_bytes } else { need.capacity_bytes(&*make(PROBE_BYTES)?) };
        let memtable = make(capacity)?;
        let one_by_one = (!memtable.concurrent_insert()).then(|| Mutex::new(()));
        Ok(Filled { memtable, last_seq: AtomicU64::new(0), one_by_one })
    }

    /// Inserts the keys in `places` as one batch; false where there is no room for it. `value_at` is this thread's place in
    /// the pool.
    #[inline]
    pub fn insert(&self, keys: &KeyList, places: Range<usize>, values: &Pool, value_at: &mut usize) -> bool {
        let count = places.len();
        let payload = keys.bytes_in(&places) + count * values.value_bytes();
        if !self.memtable.try_reserve(self.memtable.worst_case_bytes(count, payload)) {
            return false;
        }
        let _alone = self.one_by_one.as_ref().map(|alone| alone.lock().unwrap_or_else(PoisonError::into_inner));
        let first = self.last_seq.fetch_add(count as u64, Ordering::Relaxed) + 1;
        let entry = |(at, seq): (usize, u64)| Entry {
            user_key: keys.key(at),
            seq: SeqNo(seq),
            kind: ValueKind::Value,
            value: values.take(value_at),
        };
        self.memtable.insert_all(&mut places.zip(first..).map(entry));
        true
    }

    /// The error of a fill that found no room.
    pub fn full(&self) -> Error {
        Error::invalid_argument(format!(
            "the memtable {} was full after {} entries and {} reserved bytes; --write_buffer_size gives it more room",
            self.memtable.name(),
            self.memtable.entries(),
            self.memtable.reserved_bytes()
        ))
    }

    pub fn bytes_per_entry(&self) -> f64 {
        self.memtable.memory_bytes() as f64 / self.memtable.entries().max(1) as f64
    }
}
