use std::collections::BTreeMap;

use spillway::internal::ErrorKind;
use spillway::internal::vfs::{Fault, FaultCode, FaultVfs, Operation, RealVfs, Rule};
use tempfile::TempDir;

use super::*;

/// Where a test spills.
struct Disk {
    dir: TempDir,
    vfs: Arc<dyn Vfs>,
}

impl Disk {
    fn new() -> Disk {
        Disk { dir: tempfile::tempdir().unwrap(), vfs: RealVfs::new() }
    }

    fn settings(&self, order: &UserOrder, memory_bytes: u64, threads: usize) -> SortSettings {
        SortSettings { order: order.clone(), memory_bytes, threads, spill_dir: self.dir.path().to_owned() }
    }

    fn sort(&self, settings: SortSettings, records: &[Pair]) -> Result<Sorted> {
        let mut sorter = Sorter::new(self.vfs.clone(), settings, Interrupt::default());
        records.iter().try_for_each(|(key, value)| sorter.add(key, value))?;
        assert_eq!(sorter.records(), records.len() as u64);
        sorter.finish(|_| {})
    }

    /// Files that have a name.
    fn files(&self) -> Vec<String> {
        self.vfs.read_dir(self.dir.path()).unwrap()
    }
}

/// Sorts by bytes.
fn sort(memory_bytes: u64, records: &[Pair]) -> Sorted {
    let disk = Disk::new();
    disk.sort(disk.settings(&UserOrder::Bytewise, memory_bytes, 2), records).unwrap()
}

/// A small generator of numbers, so that each run is the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

type Pair = (Vec<u8>, Vec<u8>);

/// Records of which many have the same key, some an empty one, some a key that is the beginning of another.
fn records(count: u64) -> Vec<Pair> {
    let mut numbers = Numbers(count);
    let record = |i| {
        let key = match numbers.below(20) {
            0 => vec![b'k'; numbers.below(12) as usize],
            1 => vec![0; numbers.below(12) as usize],
            _ => format!("key {:07}", numbers.below(count)).into_bytes(),
        };
        (key, format!("{i} {}", "v".repeat(numbers.below(80) as usize)).into_bytes())
    };
    (0..count).map(record).collect()
}

fn merged(sorted: &Sorted, part: &Part) -> Vec<Pair> {
    let mut merge = sorted.merge(part).unwrap();
    let mut found = Vec::new();
    while merge.advance().unwrap() {
        found.push((merge.key().to_vec(), merge.value().to_vec()));
    }
    found
}

fn expected(records: &[Pair], order: &UserOrder) -> Vec<Pair> {
    let newest: BTreeMap<_, _> = records.iter().cloned().collect();
    let mut newest: Vec<_> = newest.into_iter().collect();
    newest.sort_by(|a, b| order.compare(&a.0, &b.0));
    newest
}

#[test]
fn records_come_back_sorted_and_the_newest_of_each_key_whatever_the_memory() {
    let records = records(30_000); // 1.6 MiB
    for order in [UserOrder::Bytewise, UserOrder::ReverseBytewise] {
        let expected = expected(&records, &order);
        for (memory_bytes, threads, spills, passes) in
            [(64 << 20, 2, false, 0), (3 << 20, 3, true, 0), (1 << 20, 2, true, 0), (MEMORY_BYTES_MIN, 1, true, 3)]
        {
            let disk = Disk::new();
            let sorted = disk.sort(disk.settings(&order, memory_bytes, threads), &records).unwrap();
            assert_eq!(sorted.runs > 0, spills, "{memory_bytes}: {}", sorted.runs);
            assert!(sorted.passes >= passes && (passes > 0 || sorted.passes == 0), "{memory_bytes}: {}", sorted.passes);
            assert!(merged(&sorted, &Part::default()) == expected, "{order:?}, {memory_bytes}, {threads}");
            assert_eq!(disk.files(), Vec::<String>::new(), "what is spilled has no name");
        }
    }
}

#[test]
fn parts_together_are_the_whole_and_of_similar_size() {
    let records = records(30_000);
    let expected = expected(&records, &UserOrder::Bytewise);
    for memory_bytes in [64 << 20, 1 << 20] {
        let sorted = sort(memory_bytes, &records);
        for count in [1, 2, 5] {
            let parts = sorted.parts(count);
            assert!(parts.len() == count && parts[0].from.is_none() && parts[count - 1].to.is_none());
            assert!(parts.windows(2).all(|pair| pair[0].to.is_some() && pair[0].to == pair[1].from));
            let found: Vec<_> = parts.iter().map(|part| merged(&sorted, part)).collect();
            let fair = expected.len() / count;
            assert!(found.iter().all(|part| part.len() > fair / 2 && part.len() < fair * 2), "{memory_bytes}, {count}");
            assert!(found.concat() == expected, "{memory_bytes}, {count}");
        }
    }
    let one = sort(1 << 20, &records[..1]);
    assert_eq!(one.parts(8), [Part::default()], "one key cannot be cut");
    let none = sort(1 << 20, &[]);
    assert_eq!(merged(&none, &none.parts(4)[0]), []);
}

#[test]
fn records_larger_than_the_memory_are_taken() {
    let large = |byte: u8| vec![byte; 200 << 10];
    let mut records = records(2_000);
    for byte in 0..6 {
        records.insert(300 * usize::from(byte), (large(byte), large(byte)));
    }
    let sorted = sort(MEMORY_BYTES_MIN, &records);
    assert!(sorted.passes > 0);
    assert!(merged(&sorted, &Part::default()) == expected(&records, &UserOrder::Bytewise));
}

#[test]
fn records_larger_than_a_block_leave_memory_for_fewer_threads() {
    let records: Vec<_> = (0..40).map(|byte| (vec![byte], vec![byte; 300 << 10])).collect();
    let disk = Disk::new();
    let sorted = disk.sort(disk.settings(&UserOrder::Bytewise, 4 << 20, 64), &records).unwrap();
    assert!(sorted.block_bytes_max() > 300 << 10 && sorted.pass_threads() == 1, "{}", sorted.block_bytes_max());
}

#[test]
fn a_full_disk_and_an_interrupt_end_the_sort() {
    let records = records(20_000);
    for (operation, nth) in
        [(Operation::Write, 1), (Operation::Write, 20), (Operation::Read, 5), (Operation::Create, 1)]
    {
        let faults = FaultVfs::new(RealVfs::new());
        faults.inject(Rule::new(Fault::Error(FaultCode::NoSpace)).on(operation).nth(nth));
        let disk = Disk { vfs: faults, ..Disk::new() };
        let settings = disk.settings(&UserOrder::Bytewise, MEMORY_BYTES_MIN, 2);
        let error = disk.sort(settings, &records).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::NoSpace, "{operation:?} {nth}");
        assert!(error.path().is_some_and(|path| path.starts_with(disk.dir.path())), "the directory is told: {error}");
        assert_eq!(disk.files(), Vec::<String>::new());
    }
    let (interrupt, disk) = (Interrupt::default(), Disk::new());
    let mut sorter = Sorter::new(disk.vfs.clone(), disk.settings(&UserOrder::Bytewise, 1 << 20, 2), interrupt.clone());
    let mut added = records.iter().map(|(key, value)| sorter.add(key, value));
    assert!(added.next().unwrap().is_ok());
    interrupt.ask();
    assert_eq!(added.find_map(Result::err).unwrap().kind(), ErrorKind::Closed);
}
