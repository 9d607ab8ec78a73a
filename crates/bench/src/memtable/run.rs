//! Runs one benchmark on one memtable: makes the keys, times the loop.

use std::sync::Arc;
use std::time::Duration;

use base::{Error, FamilyId, InternalOrder, Result};
use memtable::{Memtable, MemtableConfig, MemtableFactory};
use vfs::Vfs;

use super::flags::MemtableFlags;
use super::keys::KeyList;
use super::record::MemtableRecord;
use super::work::{Benchmark, Keys, Task};
use crate::flags::name_of;
use crate::machine::processor_time;
use crate::workload::{Rng, Values};

/// Capacity of a probe memtable, made only to ask for the needs of its kind; none of its pages is touched.
const PROBE_BYTES: usize = 64 << 20;

/// Largest capacity of a memtable: the reach of 32-bit references to units of 8 bytes.
const CAPACITY_MAX_BYTES: usize = 32 << 30;

/// Seed for the keys of lookups.
const DRAWS_SEED: u64 = 0xD6E8_FEB8_6659_FD93;

/// A memtable under test.
pub struct Contender {
    option: String,
    factory: Arc<dyn MemtableFactory>,
    memtable: Option<Arc<dyn Memtable>>,
}

impl Contender {
    pub fn new(option: &str, factory: Arc<dyn MemtableFactory>) -> Self {
        Contender { option: option.to_owned(), factory, memtable: None }
    }

    /// Makes a new memtable with room for all the keys.
    fn renew(&mut self, keys: &KeyList, value_bytes: usize) -> Result<()> {
        self.memtable = None;
        let make = |bytes: usize| {
            self.factory.create(&MemtableConfig::new(InternalOrder::default(), FamilyId::DEFAULT, bytes))
        };
        let probe = make(PROBE_BYTES)?;
        let entries = keys.len() + 1;
        let payload = keys.bytes() + keys.len() * value_bytes;
        // Entries differ in size: one unit of allocation for each covers the cost of rounding.
        let of_entry = probe.worst_case_bytes(1, payload.div_ceil(entries).next_multiple_of(8) + 8).next_multiple_of(8);
        let all = (entries + 1).saturating_mul(of_entry);
        let spare = all / 32 + probe.reserved_bytes() + (1 << 20);
        self.memtable = Some(make(all.saturating_add(spare).min(CAPACITY_MAX_BYTES))?);
        Ok(())
    }
}

pub struct Runner<'a> {
    flags: &'a MemtableFlags,
    vfs: &'a dyn Vfs,
    values: Values,
}

impl<'a> Runner<'a> {
    pub fn new(flags: &'a MemtableFlags, vfs: &'a dyn Vfs) -> Self {
        Runner { flags, vfs, values: Values::new(&mut Rng::new(301), flags.item_size, 1.0) }
    }

    /// Makes the keys of a benchmark, the same for every memtable.
    pub fn prepare(&self, benchmark: &Benchmark) -> KeyList {
        let (count, shape) = (u64::from(self.flags.num_operations), self.flags.key_shape);
        let mut draws = Rng::new(DRAWS_SEED);
        let mut drawn = |draws_count: u64| KeyList::new(shape, (0..draws_count).map(|_| draws.below(count)));
        match benchmark.keys {
            Keys::None => drawn(0),
            Keys::One => drawn(1),
            Keys::Drawn => drawn(self.flags.lookups()),
            Keys::Mixed => drawn(self.flags.lookups() + self.flags.writes_max()),
            Keys::InOrder => KeyList::new(shape, 0..count),
            Keys::Shuffled => KeyList::new(shape, shuffled(count)),
        }
    }

    /// Runs a benchmark on a memtable. `None`: it did nothing.
    ///
    /// # Errors
    /// `InvalidArgument`: no benchmark filled a memtable yet, or the memtable cannot hold so many entries.
    pub fn measure(
        &mut self,
        benchmark: &Benchmark,
        keys: &KeyList,
        contender: &mut Contender,
    ) -> Result<Option<MemtableRecord>> {
        if benchmark.is_new() {
            contender.renew(keys, self.flags.item_size)?;
        }
        let memtable = contender.memtable.as_ref();
        let memtable = memtable.ok_or_else(|| Error::invalid_argument("no benchmark made a memtable yet"))?;
        let mut task = Task { flags: self.flags, memtable, keys, values: &mut self.values, vfs: self.vfs };
        let (cpu_before, started) = (processor_time(), self.vfs.now());
        let counts = (benchmark.body)(&mut task)?;
        let (wall, cpu) = (self.vfs.now().saturating_sub(started), processor_time().saturating_sub(cpu_before));
        if counts.ops == 0 {
            return Ok(None);
        }
        let (wall_s, ops) = (wall.as_secs_f64().max(1e-9), counts.ops as f64);
        let us_per = |time: Duration, count: u64| (count > 0).then(|| time.as_secs_f64() * 1e6 / count as f64);
        Ok(Some(MemtableRecord {
            bench: benchmark.name.to_owned(),
            memtable: contender.option.clone(),
            keys: name_of(self.flags.key_shape),
            threads: counts.threads,
            entries: memtable.entries(),
            us_per_op: wall_s * 1e6 * counts.threads as f64 / ops,
            write_us_per_op: us_per(counts.write_time.unwrap_or(wall), counts.writes),
            read_us_per_op: us_per(wall, counts.reads),
            ops_per_s: counts.ops as f64 / wall_s,
            bytes_per_entry: memtable.memory_bytes() as f64 / memtable.entries().max(1) as f64,
            ops: counts.ops,
            wall_s,
            cpu_us_per_op: cpu.as_secs_f64() * 1e6 / ops,
            mb_per_s: counts.bytes as f64 / f64::from(1 << 20) / wall_s,
            found: matches!(benchmark.keys, Keys::Drawn | Keys::Mixed).then_some(counts.found),
            ..MemtableRecord::default()
        }))
    }
}

/// The numbers below `count` in a random order.
fn shuffled(count: u64) -> Vec<u64> {
    let (mut numbers, mut random): (Vec<u64>, Rng) = ((0..count).collect(), Rng::new(0));
    for at in (1..numbers.len()).rev() {
        numbers.swap(at, random.below(at as u64 + 1) as usize);
    }
    numbers
}
