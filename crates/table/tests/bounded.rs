//! A part of a table reads as a table that holds nothing else.
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

extern crate spillway_db_table as table;

mod common;

use std::sync::Arc;

use base::extend::BuiltinPrefix;
use base::options::{FilterPolicy, IndexType};
use base::tombstone::{FragmentedTombstones, RangeTombstone};
use base::{Cursor, InternalOrder, LookupKey, SeqNo, UserOrder, ValueKind};
use common::{Entry, check_reads, forward, get, key, open, put, write_with};
use table::{BoundedTable, ExternalFile, Table, TableBuilder, TableBuilderConfig, TableContext, TablePart};
use table::{TableReadOptions, TableSummary};

/// A generator that one seed decides.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

const KEYS: u64 = 30;

fn name(i: u64) -> String {
    format!("key{i:03}")
}

/// A few versions of some keys, in order.
fn entries(random: &mut Random) -> Vec<Entry> {
    let mut all = Vec::new();
    for i in 0..KEYS {
        let newest = 1 + random.below(90);
        for seq in (newest.saturating_sub(random.below(4))..newest).rev() {
            all.push(match random.below(4) {
                0 => (key(&name(i), seq, ValueKind::Deletion), Vec::new()),
                _ => put(&name(i), seq, &format!("value {i} of {seq}")),
            });
        }
    }
    all
}

fn tombstones(random: &mut Random) -> Vec<RangeTombstone> {
    let tombstone = |random: &mut Random| {
        let start = random.below(KEYS);
        let end = start + 1 + random.below(8);
        RangeTombstone { start: name(start).into(), end: name(end).into(), seq: SeqNo(random.below(100)) }
    };
    (0..random.below(6)).map(|_| tombstone(random)).collect()
}

/// Any two internal keys in order, the second sometimes the end of a tombstone.
fn bounds(random: &mut Random) -> (Vec<u8>, Vec<u8>) {
    let first = random.below(KEYS);
    let last = first + random.below(KEYS + 2 - first);
    let smallest = key(&name(first), random.below(100), ValueKind::RangeDeletion);
    let largest = match random.below(2) {
        0 => key(&name(last + 1), SeqNo::MAX.0, ValueKind::RangeDeletion),
        _ => key(&name(last), random.below(100), ValueKind::Value),
    };
    if InternalOrder::default().compare(&smallest, &largest).is_le() { (smallest, largest) } else { bounds(random) }
}

struct Case {
    whole: Arc<dyn Table>,
    entries: Vec<Entry>,
    tombstones: FragmentedTombstones,
    summary: TableSummary,
}

fn case(random: &mut Random, config: TableBuilderConfig) -> Case {
    let entries = entries(random);
    let ranges = tombstones(random);
    let table = write_with(config, &entries, |builder| ranges.iter().try_for_each(|t| builder.add_tombstone(t)));
    let table = table.expect("written");
    let whole = open(&table.bytes, &TableContext::default()).expect("opens");
    let tombstones = FragmentedTombstones::build(UserOrder::Bytewise, ranges);
    Case { whole, entries, tombstones, summary: table.summary }
}

fn config(index: IndexType) -> TableBuilderConfig {
    let mut config = TableBuilderConfig::new("t.sst");
    config.options.block_size = 64;
    config.options.metadata_block_size = 64;
    config.options.index_type = index;
    config.options.filter_policy = FilterPolicy::bloom(10.0);
    config
}

fn part_of(case: &Case, smallest: &[u8], largest: &[u8]) -> Arc<BoundedTable> {
    let file_bytes = case.summary.file_bytes;
    let (smallest, largest) = (smallest.to_vec(), largest.to_vec());
    let part = TablePart { smallest, largest, bytes: file_bytes / 2, file_bytes };
    BoundedTable::new(case.whole.clone(), InternalOrder::default(), part).expect("opens")
}

#[test]
fn a_part_reads_as_a_table_of_what_is_in_it() {
    let order = InternalOrder::default();
    for seed in 0..120 {
        let mut random = Random(seed);
        let index = [IndexType::BinarySearch, IndexType::TwoLevel, IndexType::BinarySearchWithFirstKey];
        let case = case(&mut random, config(index[seed as usize % 3]));
        for _ in 0..8 {
            let (smallest, largest) = bounds(&mut random);
            let part = part_of(&case, &smallest, &largest);
            let inside = |entry: &&Entry| {
                order.compare(&entry.0, &smallest).is_ge() && order.compare(&entry.0, &largest).is_le()
            };
            let inside: Vec<Entry> = case.entries.iter().filter(inside).cloned().collect();
            check_reads(&part, &inside);
            check_all_keys(&part, &inside);
            check_walks(&part, &inside, &mut random);
            check_tombstones(&part, &case, &smallest, &largest);
            check_estimates(&part, &case, &smallest, &largest);
        }
    }
}

/// Keys that are in the file and not in the part are not found, asked for one by one or together.
fn check_all_keys(part: &Arc<BoundedTable>, inside: &[Entry]) {
    let keys: Vec<LookupKey> = (0..KEYS + 3).map(|i| LookupKey::new(name(i).as_bytes(), SeqNo(50))).collect();
    let refs: Vec<&LookupKey> = keys.iter().collect();
    let expected = |key: &LookupKey| {
        let of_key = inside.iter().filter(|(at, _)| base::key::user_key(at) == key.user_key());
        of_key.filter(|(at, _)| base::ParsedKey::parse(at).expect("whole").seq <= SeqNo(50)).count()
    };
    let mut together = vec![0; keys.len()];
    let count = &mut |nth: usize, _, _, _: table::TableValue<'_>| {
        together[nth] += 1;
        true
    };
    part.multi_get(&refs, &TableReadOptions::default(), count).expect("reads");
    for (i, key) in keys.iter().enumerate() {
        assert_eq!(get(part, key.user_key(), SeqNo(50)).expect("reads").len(), expected(key));
        assert_eq!(together[i], expected(key));
    }
}

/// A walk that turns about, beside a position in a list.
fn check_walks(part: &Arc<BoundedTable>, inside: &[Entry], random: &mut Random) {
    let mut cursor = part.clone().cursor(&TableReadOptions::default());
    let order = InternalOrder::default();
    let mut at: Option<usize> = None;
    for _ in 0..60 {
        let target = key(&name(random.below(KEYS + 2)), random.below(100), ValueKind::Value);
        let moved = match (random.below(6), at) {
            (0, _) => {
                at = Some(inside.partition_point(|(key, _)| order.compare(key, &target).is_lt()));
                cursor.seek(&target)
            }
            (1, _) => {
                at = inside.partition_point(|(key, _)| order.compare(key, &target).is_le()).checked_sub(1);
                cursor.seek_for_prev(&target)
            }
            (_, None) => {
                at = inside.len().checked_sub(1);
                cursor.seek_to_last()
            }
            (2 | 3, Some(place)) => {
                at = Some(place + 1);
                cursor.next()
            }
            (_, Some(place)) => {
                at = place.checked_sub(1);
                cursor.prev()
            }
        };
        let expected = at.and_then(|place| inside.get(place));
        at = at.filter(|_| expected.is_some());
        assert_eq!(moved, expected.is_some());
        assert_eq!(cursor.valid(), moved);
        assert_eq!((cursor.key(), cursor.value()), expected.map_or((&[][..], &[][..]), |(k, v)| (&k[..], &v[..])));
        cursor.status().expect("no damage");
    }
}

fn check_tombstones(part: &Arc<BoundedTable>, case: &Case, smallest: &[u8], largest: &[u8]) {
    let (first, last) = (base::key::user_key(smallest), base::key::user_key(largest));
    let ends_before_last = base::key::is_exclusive_end(largest);
    let found = part.tombstones();
    for i in 0..KEYS + 10 {
        for key in [name(i).into_bytes(), [name(i).as_bytes(), b"\0"].concat()] {
            let inside = &key[..] >= first && (&key[..] < last || (&key[..] == last && !ends_before_last));
            let expected = case.tombstones.covering(&key, SeqNo(60)).filter(|_| inside);
            assert_eq!(found.as_ref().and_then(|all| all.covering(&key, SeqNo(60))), expected);
        }
    }
    assert!(found.is_none_or(|all| !all.is_empty()), "none at all, rather than an empty list");
}

fn check_estimates(part: &Arc<BoundedTable>, case: &Case, smallest: &[u8], largest: &[u8]) {
    let bytes = part.properties().data_bytes;
    assert!(bytes <= case.whole.properties().data_bytes.div_ceil(2));
    let offset = |at: &[u8]| part.approximate_offset(at).expect("reads");
    let offsets: Vec<u64> = (0..KEYS + 10).map(|i| offset(&key(&name(i), 50, ValueKind::Value))).collect();
    assert!(offsets.is_sorted() && offsets.iter().all(|offset| *offset <= bytes));
    assert_eq!((offset(smallest), offset(&key("z", 0, ValueKind::Value))), (0, bytes));
    let anchors = part.anchors(100).expect("reads");
    assert!(anchors.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
    let (first, last) = (base::key::user_key(smallest), base::key::user_key(largest));
    assert!(anchors.iter().all(|(key, end)| &key[..] >= first && &key[..] <= last && *end <= bytes));
    let (of_part, of_whole) = (part.properties(), case.whole.properties());
    assert!(of_part.entries <= of_whole.entries.div_ceil(2) && of_part.deletions <= of_part.entries);
    assert_eq!(of_part.comparator, of_whole.comparator);
    part.verify().expect("the whole file is sound");
}

/// In a table made to be ingested every key takes the number of the ingest, the bounds' keys too.
#[test]
fn a_part_of_an_ingested_table_goes_by_its_global_number() {
    let mut config = config(IndexType::BinarySearch);
    config.ingestable = true;
    let entries: Vec<Entry> = (0..KEYS).map(|i| put(&name(i), 0, "value")).collect();
    let written = write_with(config, &entries, |_| Ok(())).expect("written");
    let context = TableContext { largest_seq: Some(SeqNo(77)), ..TableContext::default() };
    let whole = open(&written.bytes, &context).expect("opens");
    assert_eq!(whole.properties().external.map(|external| external.version), Some(ExternalFile::VERSION));
    let part = TablePart {
        smallest: key(&name(4), 77, ValueKind::Value),
        largest: key(&name(9), 77, ValueKind::Value),
        bytes: 100,
        file_bytes: written.summary.file_bytes,
    };
    let part = BoundedTable::new(whole, InternalOrder::default(), part).expect("opens");
    let expected: Vec<Entry> = (4..=9).map(|i| put(&name(i), 77, "value")).collect();
    assert_eq!(forward(&part).expect("reads"), expected);
    check_reads(&part, &expected);
}

/// Where a part begins there may be no key: an excise cut a range tombstone there.
#[test]
fn a_part_begins_whatever_the_prefix_of_its_bound() {
    let mut config = config(IndexType::BinarySearch);
    config.options.whole_key_filtering = false;
    config.prefix_extractor = Some(Arc::new(BuiltinPrefix::Fixed(4)));
    let entries: Vec<Entry> = (0..KEYS).map(|i| put(&name(i), 5, "value")).collect();
    let written = write_with(config.clone(), &entries, |_| Ok(())).expect("written");
    let context = TableContext { prefix_extractor: config.prefix_extractor, ..TableContext::default() };
    let part = TablePart {
        smallest: key("absent", 7, ValueKind::RangeDeletion),
        largest: entries[9].0.clone(),
        bytes: 100,
        file_bytes: written.summary.file_bytes,
    };
    let whole = open(&written.bytes, &context).expect("opens");
    let part = BoundedTable::new(whole, InternalOrder::default(), part).expect("opens");
    let mut cursor = part.cursor(&TableReadOptions { prefix_same_as_start: true, ..Default::default() });
    assert!(cursor.seek_to_first() && cursor.key() == entries[0].0);
    assert!(!cursor.seek_in_prefix(&key("kez", 5, ValueKind::Value)), "behind all");
    assert!(cursor.seek_in_prefix(&entries[4].0) && cursor.key() == entries[4].0);
}

/// Damage in what counts is an error; damage beside it is `verify`'s to find, and no read's.
#[test]
fn damage_outside_the_part_is_found_by_verify_alone() {
    let entries: Vec<Entry> = (0..KEYS).map(|i| put(&name(i), 5, &"value".repeat(20))).collect();
    let written = write_with(config(IndexType::BinarySearch), &entries, |_| Ok(())).expect("written");
    let part = |bytes: &[u8], first: u64, last: u64| {
        let part = TablePart {
            smallest: key(&name(first), 5, ValueKind::Value),
            largest: key(&name(last), 5, ValueKind::Value),
            bytes: 100,
            file_bytes: bytes.len() as u64,
        };
        let whole = open(bytes, &TableContext::default()).expect("opens");
        BoundedTable::new(whole, InternalOrder::default(), part).expect("opens")
    };
    let mut damaged = written.bytes.clone();
    damaged[10] ^= 1; // in the first block
    let right = part(&damaged, 20, 25);
    check_reads(&right, &entries[20..=25]);
    assert!(right.verify().is_err());
    let left = part(&damaged, 0, 5);
    let mut cursor = left.cursor(&TableReadOptions::default());
    assert!(!cursor.seek_to_first() && cursor.status().is_err());
}
