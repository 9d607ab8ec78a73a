//! Images of real memtables, whole and damaged.

pub(crate) mod contents;
mod damage;
pub(crate) mod lazy;
mod reopened;
#[cfg(not(miri))]
mod steps;
mod watermark;
#[cfg(not(miri))]
mod whole;

use std::path::Path;
use std::sync::Arc;

use base::{FamilyId, InternalOrder, SeqNo, UserOrder, ValueKind, key};
use vfs::MemoryVfs;

use self::contents::Image;
use crate::conformance::{Random, put};
use crate::{ImageFile, Memtable, MemtableConfig, factory_from_option_string};

const PAGE: &str = include_str!("../../../../../docs/format/image.md");

pub(crate) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Start, end, number.
type Ranges = Vec<(Vec<u8>, Vec<u8>, SeqNo)>;

/// An entry to insert.
type Op = (Vec<u8>, u64, ValueKind, Vec<u8>);

/// A memtable in an in-memory file.
struct Subject {
    memtable: Arc<dyn Memtable>,
    vfs: Arc<MemoryVfs>,
    order: InternalOrder,
    ops: Vec<Op>,
}

impl Subject {
    fn new(option: &str, order: UserOrder, capacity: usize) -> Self {
        let vfs = MemoryVfs::new(1);
        let mut config = MemtableConfig::new(InternalOrder::new(order), FamilyId::DEFAULT, capacity);
        config.image = Some(ImageFile::new(vfs.clone(), "/image"));
        let memtable = factory_from_option_string(option).expect("known").create(&config).expect("created");
        Subject { memtable, vfs, order: config.order, ops: Vec::new() }
    }

    fn insert(&mut self, (key, seq, kind, value): Op) {
        assert!(put(&*self.memtable, &key, seq, kind, &value));
        self.ops.push((key, seq, kind, value));
    }

    fn insert_all(&mut self, ops: impl IntoIterator<Item = Op>) {
        ops.into_iter().for_each(|op| self.insert(op));
    }

    /// The file as it is.
    fn image(&self) -> Vec<u8> {
        self.vfs.read_file(Path::new("/image")).expect("there")
    }

    /// The allocated part of the image, before and after the seal.
    fn images(&self) -> (Vec<u8>, Vec<u8>) {
        let mut open = self.image();
        self.memtable.seal();
        let mut sealed = self.image();
        let header = super::Header::read(&sealed).expect("a header");
        let end = header.sealed.expect("sealed").allocated_bytes as usize;
        open.truncate(end);
        sealed.truncate(end);
        (open, sealed)
    }

    fn user_order(&self) -> &UserOrder {
        &self.order.user
    }

    /// Point entries in order. Of equal internal keys the later comes first.
    fn points(&self) -> Pairs {
        let points = self.ops.iter().rev().filter(|(_, _, kind, _)| *kind != ValueKind::RangeDeletion);
        let mut pairs: Pairs =
            points.map(|(key, seq, kind, value)| (key::encode(key, SeqNo(*seq), *kind), value.clone())).collect();
        pairs.sort_by(|a, b| self.order.compare(&a.0, &b.0));
        pairs
    }

    fn ranges(&self) -> Ranges {
        let ranges = self.ops.iter().rev().filter(|(_, _, kind, _)| *kind == ValueKind::RangeDeletion);
        ranges.map(|(start, seq, _, end)| (start.clone(), end.clone(), SeqNo(*seq))).collect()
    }
}

fn pairs(image: &Image<'_>) -> Pairs {
    image.entries().into_iter().map(|(key, value)| (key.to_vec(), value.to_vec())).collect()
}

fn ranges(image: &Image<'_>) -> Ranges {
    image.range_deletions().into_iter().map(|(start, end, seq)| (start.to_vec(), end.to_vec(), seq)).collect()
}

fn value_op(key: &[u8], seq: u64, value: &[u8]) -> Op {
    (key.to_vec(), seq, ValueKind::Value, value.to_vec())
}

/// A bit of everything: the empty key, keys that begin others, versions with jumps, numbers out of order, nodes of two
/// kinds, a range deletion.
fn a_few_of_each() -> Vec<Op> {
    let mut ops = vec![
        value_op(b"", 7, b"empty"),
        value_op(b"ab", 1, b"one"),
        (b"ab".to_vec(), 5, ValueKind::Deletion, Vec::new()),
        value_op(b"abc", 3, b"three"),
        (b"a".to_vec(), 9, ValueKind::RangeDeletion, b"abb".to_vec()),
        (b"ab".to_vec(), 4, ValueKind::Merge, b"+".to_vec()),
        value_op(b"abd", 6, b"six"),
    ];
    ops.extend((10..15).map(|seq| value_op(b"ab", seq, b"again")));
    ops.extend((0..6).map(|i| value_op(&[b'x', b'y', i * 37], 20 + u64::from(i), b"fan")));
    ops.push((b"b".to_vec(), 30, ValueKind::RangeDeletion, b"c".to_vec()));
    ops
}

/// Entries of many shapes: few letters, so that keys share long prefixes, and a key followed by all 256 bytes.
fn random_ops(random: &mut Random, count: u64) -> Vec<Op> {
    let mut ops: Vec<Op> = (0..count)
        .map(|_| {
            let mut key: Vec<u8> = Vec::new();
            if random.below(2) == 0 {
                key.extend_from_slice(b"a prefix that many keys share");
            }
            key.extend((0..random.below(8)).map(|_| b"aAb\xff\0"[random.below(5) as usize]));
            let kinds = [ValueKind::Value, ValueKind::Deletion, ValueKind::Merge, ValueKind::SingleDeletion];
            let value = vec![random.below(256) as u8; random.below(30) as usize];
            (key, random.below(50), kinds[random.below(4) as usize], value)
        })
        .collect();
    if count > 100 {
        ops.extend((0..=255).map(|byte| value_op(&[b'f', byte], 3, b"")));
        ops.push(value_op(b"f", 4, b"own"));
        ops.push((b"f".to_vec(), 5, ValueKind::RangeDeletion, b"g".to_vec()));
    }
    ops
}
