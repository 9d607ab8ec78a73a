//! What a table of any kind must do as a block-based one of the same entries does.

use std::cmp::Ordering;
use std::sync::Arc;

use base::key::user_key;
use base::tombstone::RangeTombstone;
use base::{Comparator, Cursor, InternalOrder, LookupKey, SeqNo, UserOrder, ValueKind};
use table::{BlockBasedTable, Properties, Table, TableBuilder, TableBuilderConfig, TableReadOptions};

use super::converted::{Random, config, context};
use super::{Entry, write_with};

/// Shorter keys first: an order that bytes say nothing about.
struct ShortestFirst;

impl Comparator for ShortestFirst {
    fn name(&self) -> &str {
        "test.ShortestFirst"
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        a.len().cmp(&b.len()).then_with(|| a.cmp(b))
    }
}

pub fn orders() -> [InternalOrder; 3] {
    [UserOrder::Bytewise, UserOrder::ReverseBytewise, UserOrder::Custom(Arc::new(ShortestFirst))]
        .map(InternalOrder::new)
}

pub fn block_based(order: &InternalOrder, entries: &[Entry], tombstones: &[RangeTombstone]) -> Arc<BlockBasedTable> {
    let mut builder = TableBuilderConfig::new("t.sst");
    builder.order = order.clone();
    builder.options.block_size = 512;
    let config = config(order);
    (builder.origin, builder.merge_operator) = (config.origin, config.merge_operator);
    let written = write_with(builder, entries, |b| tombstones.iter().try_for_each(|t| b.add_tombstone(t)));
    super::open(&written.expect("written").bytes, &context(order)).expect("opens")
}

fn standing(cursor: &dyn Cursor) -> Option<Entry> {
    cursor.valid().then(|| (cursor.key().to_vec(), cursor.value().to_vec()))
}

/// The same steps on both, from places that exist and places that do not.
pub fn compare_cursors(a: &Arc<dyn Table>, b: &Arc<dyn Table>, entries: &[Entry], random: &mut Random) {
    let options = TableReadOptions::default();
    let (mut a, mut b) = (a.clone().cursor(&options), b.clone().cursor(&options));
    for _ in 0..200 {
        let mut target = entries[random.below(entries.len() as u64) as usize].0.clone();
        if random.below(3) == 0 {
            let (key, len) = (user_key(&target).to_vec(), user_key(&target).len() as u64);
            let cut = key[..random.below(len + 1) as usize].to_vec();
            target = base::key::encode(&cut, SeqNo(random.below(2000)), ValueKind::Merge);
        }
        match random.below(6) {
            0 => assert_eq!(a.seek_to_first(), b.seek_to_first()),
            1 => assert_eq!(a.seek_to_last(), b.seek_to_last()),
            2 | 3 => assert_eq!(a.seek(&target), b.seek(&target)),
            _ => assert_eq!(a.seek_for_prev(&target), b.seek_for_prev(&target)),
        }
        for _ in 0..random.below(30) {
            assert_eq!(standing(&*a), standing(&*b));
            if !a.valid() {
                break;
            }
            match random.below(3) {
                0 => assert_eq!(a.prev(), b.prev()),
                _ => assert_eq!(a.next(), b.next()),
            }
        }
    }
    assert!(a.status().is_ok());
}

/// Every key and one behind it, one by one and together, as seen at several numbers.
pub fn compare_lookups(a: &Arc<dyn Table>, b: &Arc<dyn Table>, entries: &[Entry], order: &InternalOrder) {
    let mut keys: Vec<Vec<u8>> = entries.iter().map(|(key, _)| user_key(key).to_vec()).collect();
    keys.extend(keys.clone().into_iter().map(|key| [&key[..], b"~"].concat()));
    keys.sort_by(|a, b| order.user.compare(a, b));
    keys.dedup();
    for seq in [SeqNo::MAX, SeqNo(100), SeqNo::ZERO] {
        let lookups: Vec<LookupKey> = keys.iter().map(|key| LookupKey::new(key, seq)).collect();
        let lookups: Vec<&LookupKey> = lookups.iter().collect();
        let found = |table: &Arc<dyn Table>| {
            let mut single = Vec::new();
            for (i, key) in lookups.iter().enumerate() {
                let mut visit = |seq, kind, value: table::TableValue<'_>| {
                    single.push((i, seq, kind, value.pin().to_vec()));
                    true
                };
                table.get(key, &TableReadOptions::default(), &mut visit).expect("reads");
            }
            let mut many = Vec::new();
            let mut visit = |i, seq, kind, value: table::TableValue<'_>| {
                many.push((i, seq, kind, value.bytes.to_vec()));
                true
            };
            table.multi_get(&lookups, &TableReadOptions::default(), &mut visit).expect("reads");
            assert_eq!(single, many);
            single
        };
        assert_eq!(found(a), found(b));
    }
}

/// But for what only blocks have.
pub fn compare_properties(other: &Properties, block_based: &Properties) {
    let common = |properties: &Properties| Properties {
        data_bytes: 0,
        index_bytes: 0,
        data_blocks: 0,
        format_version: 0,
        index_key_is_user_key: false,
        index_value_is_delta: false,
        whole_key_filtering: false,
        compression_options: String::new(),
        ..properties.clone()
    };
    assert_eq!(common(other), common(block_based));
}

/// Offset, sixteen bytes, the same as text.
pub fn hexdump(bytes: &[u8], from: usize) -> String {
    let mut dump = String::new();
    for (line, at) in bytes[from..].chunks(16).zip((from..).step_by(16)) {
        let hex: Vec<String> = line.iter().map(|byte| format!("{byte:02x}")).collect();
        let text: String =
            line.iter().map(|&b| if b.is_ascii_graphic() || b == b' ' { char::from(b) } else { '.' }).collect();
        dump.push_str(&format!("{at:06x}  {:47}  |{text}|\n", hex.join(" ")));
    }
    dump
}
