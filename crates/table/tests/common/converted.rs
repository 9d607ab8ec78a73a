//! Memtables and the tables that they become.

use std::path::Path;
use std::sync::Arc;

use base::tombstone::RangeTombstone;
use base::{FamilyId, FileNumber, InternalOrder, ParsedKey, Result, SeqNo, ValueKind};
use memtable::{ImageFile, Memtable, MemtableConfig, factory_from_option_string};
use table::{AnyTable, ConvertConfig, ConvertedTable, TableContext, TableOrigin, TableSummary, convert, open_any};
use vfs::{IfExists, IoClass, MemoryVfs, Vfs};

use super::Entry;

pub const REPRESENTATIONS: [&str; 2] = ["trie", "skip_list"];

pub const TABLE: &str = "/000007.sst";
pub const IMAGE: &str = "/000007.spmem";

/// How a table is made of a memtable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    /// Memory is written out.
    Dump,
    /// The memtable lies in the file.
    Mapped,
}

pub const HOWS: [How; 2] = [How::Dump, How::Mapped];

/// A generator that one seed decides.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

/// A memtable with `entries`, inserted the last first, and `tombstones`; not sealed.
pub fn memtable_of(
    vfs: &Arc<dyn Vfs>,
    (option, how): (&str, How),
    order: &InternalOrder,
    entries: &[Entry],
    tombstones: &[RangeTombstone],
) -> Arc<dyn Memtable> {
    let option = format!(r#"{option}:{{"convert_to_sst":"kDumpMem"}}"#);
    let payload: usize = entries.iter().map(|(key, value)| key.len() + value.len() + 300).sum();
    let mut config = MemtableConfig::new(order.clone(), FamilyId(3), (64 << 10) + 2 * payload);
    if how == How::Mapped {
        config.image = Some(ImageFile::new(vfs.clone(), IMAGE));
    }
    let memtable = factory_from_option_string(&option).expect("known").create(&config).expect("created");
    let insert = |user_key: &[u8], seq, kind, value: &[u8]| {
        assert!(memtable.try_reserve(memtable.worst_case_bytes(1, user_key.len() + value.len())));
        memtable.insert(memtable::Entry { user_key, seq, kind, value });
    };
    for (key, value) in entries.iter().rev() {
        let entry = ParsedKey::parse(key).expect("well formed");
        insert(entry.user_key, entry.seq, entry.kind, value);
    }
    for RangeTombstone { start, end, seq } in tombstones {
        insert(start, *seq, ValueKind::RangeDeletion, end);
    }
    memtable
}

pub fn config(order: &InternalOrder) -> ConvertConfig {
    let origin = TableOrigin {
        value_times: false,
        family: Some(FamilyId(3)),
        family_name: "third".into(),
        db_id: "db".into(),
        session_id: "0123456789ABCDEFGHIJ".into(),
        host_id: "host".into(),
        file_number: FileNumber(7),
        creation_time_s: 1_700_000_000,
        oldest_key_time_s: 1_700_000_001,
        file_creation_time_s: 1_700_000_002,
    };
    ConvertConfig {
        order: order.clone(),
        merge_operator: "uint64add".into(),
        origin,
        smallest_seq: SeqNo::ZERO,
        largest_seq: SeqNo::MAX,
        references: None,
        sync: true,
        path: TABLE.into(),
        class: IoClass::Other,
    }
}

/// Converts a memtable, as a flush does: the file that it lies in is renamed.
pub fn converted(
    vfs: &Arc<dyn Vfs>,
    memtable: &Arc<dyn Memtable>,
    order: &InternalOrder,
) -> Result<(Arc<ConvertedTable>, TableSummary)> {
    memtable.seal();
    let is_mapped = memtable.image().is_some_and(|image| image.file.is_some());
    let file = match is_mapped {
        true => vfs.open_append(Path::new(IMAGE))?,
        false => vfs.create(Path::new(TABLE), IfExists::Fail)?,
    };
    let summary = convert(memtable, file, &config(order))?;
    if let Some(file) = memtable.image().and_then(|image| image.file) {
        vfs.rename(Path::new(IMAGE), Path::new(TABLE))?;
        file.keep();
    }
    vfs.sync_dir(Path::new("/"))?;
    let file = vfs.open(Path::new(TABLE))?;
    let table = ConvertedTable::of_memtable(
        memtable.clone(),
        &summary,
        file,
        Path::new(TABLE),
        &TableContext { order: order.clone(), ..TableContext::default() },
    )?;
    Ok((table, summary))
}

pub fn context(order: &InternalOrder) -> TableContext {
    TableContext { order: order.clone(), ..TableContext::default() }
}

/// Opens the table's file.
pub fn reopened(vfs: &dyn Vfs, order: &InternalOrder) -> Result<Arc<ConvertedTable>> {
    let file = vfs.open(Path::new(TABLE))?;
    let bytes = file.len()?;
    match open_any(vfs, file, Path::new(TABLE), bytes, &context(order))? {
        AnyTable::Converted(table) => Ok(table),
        AnyTable::BlockBased(_) | AnyTable::Fast(_) | AnyTable::Zip(_) => panic!("a table of another kind"),
    }
}

/// A converted table in memory, as it is at first and as it is opened.
pub struct Made {
    pub vfs: Arc<MemoryVfs>,
    pub live: Arc<ConvertedTable>,
    pub opened: Arc<ConvertedTable>,
    pub summary: TableSummary,
}

pub fn make(what: (&str, How), order: &InternalOrder, entries: &[Entry], tombstones: &[RangeTombstone]) -> Made {
    let memory = MemoryVfs::new(1);
    let vfs: Arc<dyn Vfs> = memory.clone();
    let memtable = memtable_of(&vfs, what, order, entries, tombstones);
    let (live, summary) = converted(&vfs, &memtable, order).expect("converts");
    let opened = reopened(&*vfs, order).expect("opens");
    Made { vfs: memory, live, opened, summary }
}

/// Entries of many shapes, in order: versions, deletions, merges, long values, keys that share much.
pub fn random_entries(random: &mut Random, count: u64, order: &InternalOrder) -> Vec<Entry> {
    let kinds = [ValueKind::Value, ValueKind::Value, ValueKind::Deletion, ValueKind::Merge, ValueKind::SingleDeletion];
    let mut all: Vec<Entry> = (0..count)
        .map(|i| {
            let mut key: Vec<u8> = if random.below(2) == 0 { b"a shared beginning ".to_vec() } else { Vec::new() };
            key.extend((0..random.below(7)).map(|_| b"aAb\xff\0"[random.below(5) as usize]));
            let kind = kinds[random.below(5) as usize];
            let len = if random.below(20) == 0 { 3000 } else { random.below(40) };
            let value = vec![random.below(256) as u8; if kind == ValueKind::Value { len as usize } else { 0 }];
            (base::key::encode(&key, base::SeqNo(1 + i), kind), value)
        })
        .collect();
    all.sort_by(|a, b| order.compare(&a.0, &b.0));
    all
}

pub fn random_tombstones(random: &mut Random, count: u64, order: &InternalOrder) -> Vec<RangeTombstone> {
    let mut name = || vec![b"aAb\xff\0"[random.below(5) as usize], random.below(256) as u8];
    let mut tombstone = |seq| {
        let (a, b) = (name(), name());
        let (start, end) = if order.user.compare(&a, &b).is_lt() { (a, b) } else { (b, a) };
        RangeTombstone { start, end, seq: base::SeqNo(seq) }
    };
    (1..=count).map(&mut tombstone).filter(|t| t.start != t.end).collect()
}
