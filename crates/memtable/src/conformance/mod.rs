//! Requirements on every representation. A new one is covered once it is in the registry.

mod lazy;
mod model;
mod order;
mod shapes;
mod stress;

use std::cmp::Ordering;
use std::path::Path;
use std::sync::Arc;

use base::{Comparator, Cursor, FamilyId, InternalOrder, LookupKey, SeqNo, UserOrder, ValueKind};

use vfs::{MemoryVfs, Vfs};

use crate::image;
use crate::{Entry, ImageFile, Memtable, MemtableConfig, factory_from_option_string, names};

/// Option strings under test: every name, and arguments changing the algorithm or the memory's place.
fn options() -> Vec<String> {
    let others = [
        "skip_list:4",
        "vector:100",
        r#"sorted_hash:{"bucket_count":7,"run_entries":64}"#,
        r#"trie:{"use_vm":false}"#,
        r#"trie:{"use_hugepage":true,"vm_explicit_commit":true}"#,
        r#"trie:{"accurate_memsize":true}"#,
        IN_A_FILE,
        r#"trie:{"convert_to_sst":"kDumpMem"}"#,
        r#"skip_list:{"convert_to_sst":"kDumpMem"}"#,
    ];
    names().chain(others).map(str::to_owned).collect()
}

/// Made in a file.
const IN_A_FILE: &str = r#"trie:{"convert_to_sst":"kFileMmap"}"#;

/// True if memory is counted as allocated; else by pages or steps, or all of it at once.
fn tells_every_byte(option: &str) -> bool {
    !["use_vm", "vm_explicit_commit", "accurate_memsize"].iter().any(|key| option.contains(key))
}

fn config(order: UserOrder, capacity_bytes: usize) -> MemtableConfig {
    MemtableConfig::new(InternalOrder::new(order), FamilyId::DEFAULT, capacity_bytes)
}

fn make(option: &str, config: &MemtableConfig) -> Arc<dyn Memtable> {
    let mut config = config.clone();
    if option == IN_A_FILE {
        config.image = Some(ImageFile::new(MemoryVfs::new(1), "/image"));
    }
    factory_from_option_string(option).expect("known").create(&config).expect("created")
}

/// The memtable reopened from a file with the image of `sealed`; `None` if it has no image.
pub(crate) fn reopened(sealed: &dyn Memtable, order: &UserOrder) -> Option<Arc<dyn Memtable>> {
    let image = sealed.image()?;
    let (vfs, path) = (MemoryVfs::new(1), Path::new("/image"));
    vfs.write_file(path, image.bytes).expect("written");
    let mapping = vfs.map_read(path).expect("mapped");
    Some(image::reopen(mapping, image.bytes.len() as u64, order).expect("whole").memtable)
}

pub(crate) use self::lazy::LazyMemtable;

/// Reserves and inserts; false if the memtable is full.
pub(crate) fn put(memtable: &dyn Memtable, key: &[u8], seq: u64, kind: ValueKind, value: &[u8]) -> bool {
    let fits = memtable.try_reserve(memtable.worst_case_bytes(1, key.len() + value.len()));
    if fits {
        memtable.insert(Entry { user_key: key, seq: SeqNo(seq), kind, value });
    }
    fits
}

/// All versions of a key at or below `seq`.
fn get(memtable: &dyn Memtable, key: &[u8], seq: u64) -> Vec<(u64, ValueKind, Vec<u8>)> {
    let mut found = Vec::new();
    memtable.get(&LookupKey::new(key, SeqNo(seq)), &mut |seq, kind, value| {
        found.push((seq.0, kind, value.to_vec()));
        true
    });
    found
}

fn standing(cursor: &dyn Cursor) -> Option<(Vec<u8>, Vec<u8>)> {
    cursor.valid().then(|| (cursor.key().to_vec(), cursor.value().to_vec()))
}

fn forward(cursor: &mut dyn Cursor) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    let mut more = cursor.seek_to_first();
    while more {
        entries.extend(standing(cursor));
        more = cursor.next();
    }
    entries
}

fn backward(cursor: &mut dyn Cursor) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut entries = Vec::new();
    let mut more = cursor.seek_to_last();
    while more {
        entries.extend(standing(cursor));
        more = cursor.prev();
    }
    entries
}

pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Shorter keys first: an order unrelated to byte order.
pub(crate) struct ShortestFirst;

impl Comparator for ShortestFirst {
    fn name(&self) -> &str {
        "test.ShortestFirst"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

/// Case-insensitive: equal keys can differ.
struct CaseBlind;

impl Comparator for CaseBlind {
    fn name(&self) -> &str {
        "test.CaseBlind"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.to_ascii_lowercase().cmp(&b.to_ascii_lowercase())
    }
    fn equal_keys_can_differ(&self) -> bool {
        true
    }
}

/// Keys end in one byte of time, newer first.
struct Timed;

impl Comparator for Timed {
    fn name(&self) -> &str {
        "test.Timed"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (a, b) = (a.split_last().expect("timed"), b.split_last().expect("timed"));
        a.1.cmp(b.1).then_with(|| b.0.cmp(a.0))
    }
    fn timestamp_bytes(&self) -> usize {
        1
    }
}
