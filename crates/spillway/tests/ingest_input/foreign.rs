//! Tables that others made: for another order of keys, another family, another version, or for no ingest at all.

use std::path::PathBuf;
use std::sync::Arc;

use base::ValueKind::{Deletion, Merge, RangeDeletion, SingleDeletion, Value};
use base::{Comparator, FamilyId, InternalOrder, SeqNo, UserOrder, ValueKind, key};
use table::TableOrigin;
use testkit::engine::merge::UInt64AddOperator;
use testkit::engine::{ErrorKind, FamilyOptions, IngestOptions};
use vfs::MemoryVfs;

use crate::common::{Entry, Forge, Place, any, default, only_place, set_property, verifying};

const VERSION: &str = "rocksdb.external_sst_file.version";
const NUMBER: &str = "rocksdb.external_sst_file.global_seqno";

const PLAIN: [Entry<'static>; 3] = [("a", 0, Value, "1"), ("b", 0, Deletion, ""), ("c", 0, Value, "3")];

fn forged(place: &Place, bytes: &[u8]) -> PathBuf {
    let path = place.path("forged.sst");
    place.write(&path, bytes);
    path
}

struct Named(&'static str);

impl Comparator for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn compare(&self, a: &[u8], b: &[u8]) -> std::cmp::Ordering {
        a.cmp(b)
    }
}

#[test]
fn the_order_of_keys_must_be_the_familys() {
    let place = Place::in_memory();
    for (order, kind) in [
        (UserOrder::ReverseBytewise, ErrorKind::InvalidArgument),
        (UserOrder::Custom(Arc::new(Named("mine"))), ErrorKind::InvalidArgument),
        (UserOrder::Custom(Arc::new(Named(""))), ErrorKind::InvalidArgument),
        (UserOrder::Custom(Arc::new(Named("leveldb.BytewiseComparator.u64ts"))), ErrorKind::Unsupported),
    ] {
        let mut forge = Forge::new();
        forge.config.order = InternalOrder::new(order.clone());
        let path = forged(&place, &forge.bytes(&PLAIN[..1], &[]));
        let error = place.refused_one(&path, &default());
        assert_eq!(error.kind(), kind, "{error}");
        assert!(error.message().contains(order.name()), "{error}");
    }
}

#[test]
fn a_table_made_for_another_family_is_refused_unless_any_is_taken() {
    let place = Place::in_memory();
    let mut forge = Forge::new();
    forge.config.origin =
        TableOrigin { family: Some(FamilyId(7)), family_name: "far".into(), ..TableOrigin::default() };
    let path = forged(&place, &forge.bytes(&PLAIN, &[]));
    let error = place.refused_one(&path, &default());
    assert!(error.message().contains("\"far\" (id 7)"), "{error}");
    place.ingest_one(&path, &any()).unwrap();
    forge.config.origin.family = Some(place.family.id());
    let path = forged(&place, &forge.bytes(&PLAIN, &[]));
    place.ingest_one(&path, &default()).unwrap();
}

#[test]
fn versions_other_than_two_are_rewritten_or_refused() {
    let place = Place::in_memory();
    let bytes = Forge::new().bytes(&PLAIN, &[("x", "y", 0)]);
    let version = |version: u32| {
        let mut bytes = bytes.clone();
        set_property(&mut bytes, VERSION, &version.to_le_bytes());
        bytes
    };
    let path = forged(&place, &version(3));
    let error = place.refused_one(&path, &any());
    assert!(error.message().contains("version 3"), "{error}");
    let path = forged(&place, &version(1));
    let wanted = IngestOptions { write_global_seqno: true, ..default() };
    assert!(place.refused_one(&path, &wanted).message().contains("write_global_seqno"));
    place.put("b", "old");
    place.put("xx", "old");
    let report = place.ingest_one(&path, &default()).unwrap();
    assert_eq!(report.tables, 1);
    let all = place.contents();
    assert_eq!((all.get("a").map(String::as_str), all.get("b"), all.get("xx")), (Some("1"), None, None));
    assert_eq!(place.bytes(&path), version(1), "the caller's file is as it was");
    // Without the number that version 2 has a place for.
    let mut bytes = bytes.clone();
    set_property(&mut bytes, &NUMBER[..NUMBER.len() - 1], b"x");
    let path = forged(&place, &bytes);
    let error = place.refused_one(&path, &default());
    assert_eq!(error.kind(), ErrorKind::Corruption);
    assert!(error.message().contains("global_seqno"), "{error}");
}

#[test]
fn a_table_that_has_a_number_already_is_rewritten_or_refused() {
    let place = Place::in_memory();
    let mut bytes = Forge::new().bytes(&PLAIN, &[]);
    set_property(&mut bytes, NUMBER, &77u64.to_le_bytes());
    let path = forged(&place, &bytes);
    let error = place.refused_one(&path, &default());
    assert!(error.message().contains("77") && error.message().contains("allow_db_generated_files"), "{error}");
    place.ingest_one(&path, &any()).unwrap();
    assert_eq!(place.contents()["c"], "3");
}

/// Gives an entry of a table with whole keys a number, which no writer of tables for ingest does.
fn set_number(bytes: &mut [u8], user_key: &str, kind: ValueKind, number: u64) {
    let whole = |number: u64| key::encode(user_key.as_bytes(), SeqNo(number), kind);
    let at = only_place(bytes, &whole(0));
    let numbered = whole(number);
    bytes[at..at + numbered.len()].copy_from_slice(&numbered);
}

#[test]
fn entries_with_numbers_are_found_at_the_ends_and_by_a_scan_anywhere() {
    let place = Place::in_memory();
    let mut forge = Forge::new();
    forge.config.options.block_restart_interval = 1;
    let entries = [("first", 0, Value, ""), ("inside", 0, Value, ""), ("last", 0, Value, "")];
    let whole = forge.bytes(&entries, &[("start", "stop", 0)]);
    for (user_key, kind, needs_scan) in
        [("first", Value, false), ("last", Value, false), ("start", RangeDeletion, false), ("inside", Value, true)]
    {
        let mut bytes = whole.clone();
        set_number(&mut bytes, user_key, kind, 9);
        let path = forged(&place, &bytes);
        let error =
            place.refused_one(&path, &IngestOptions { verify_checksums_before_ingest: needs_scan, ..default() });
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("(9)"), "{error}");
    }
    let twice = [("a", 0, Value, ""), ("b", 0, Value, ""), ("b", 0, Deletion, ""), ("c", 0, Value, "")];
    let path = forged(&place, &Forge::new().bytes(&twice, &[]));
    assert!(place.refused_one(&path, &verifying()).message().contains("twice"));
}

#[test]
fn a_databases_own_table_is_taken_for_what_it_shows() {
    let place = Place::in_memory();
    ["a", "b", "c", "d", "e"].iter().for_each(|key| place.put(key, "before"));
    let mut forge = Forge::new();
    forge.config.ingestable = false;
    let entries = [
        ("a", 9, Value, "newest"),
        ("a", 4, Value, "hidden"),
        ("b", 9, Deletion, ""),
        ("b", 4, Value, "hidden"),
        ("c", 3, Value, "covered"),
        ("d", 8, Value, "above the tombstone"),
    ];
    let path = forged(&place, &forge.bytes(&entries, &[("c", "e", 5)]));
    let error = place.refused_one(&path, &default());
    assert!(error.message().contains("allow_db_generated_files"), "{error}");
    let older = place.db.snapshot();
    for options in [any(), IngestOptions { verify_checksums_before_ingest: true, ..any() }] {
        place.ingest_one(&path, &options).unwrap();
        let all = place.contents();
        let found: Vec<_> = ["a", "b", "c", "d", "e"].iter().map(|key| all.get(*key).map(String::as_str)).collect();
        assert_eq!(found, [Some("newest"), None, None, Some("above the tombstone"), Some("before")]);
    }
    place.db.flush(&[&place.family]).unwrap();
    let before = testkit::engine::ReadOptions { snapshot: Some(older), ..Default::default() };
    let found = place.db.get(&place.family, b"c", &before).unwrap();
    assert_eq!(found.as_deref(), Some(&b"before"[..]), "an older snapshot does not see it");
}

#[test]
fn nothing_is_left_of_a_table_whose_entries_take_each_other_back() {
    let place = Place::in_memory();
    let mut forge = Forge::new();
    forge.config.ingestable = false;
    let path = forged(&place, &forge.bytes(&[("a", 9, SingleDeletion, ""), ("a", 4, Value, "")], &[]));
    let (listing, report) = (place.listing(), place.ingest_one(&path, &any()).unwrap());
    assert_eq!((report.tables, report.bytes, place.listing()), (0, 0, listing));
}

#[test]
fn operands_are_merged_by_the_familys_operator_or_refused() {
    let sum = |numbers: &[u64]| -> Vec<String> {
        numbers.iter().map(|number| String::from_utf8(number.to_le_bytes().to_vec()).unwrap()).collect()
    };
    let operands = sum(&[2, 3]);
    let entries = [("n", 9, Merge, &*operands[0]), ("n", 4, Merge, &*operands[1])];
    let mut forge = Forge::new();
    forge.config.ingestable = false;
    let bytes = forge.bytes(&entries, &[]);
    let adding = FamilyOptions { merge_operator: Some(Arc::new(UInt64AddOperator)), ..FamilyOptions::default() };
    let place = Place::with(MemoryVfs::new(1), "/work".as_ref(), adding);
    place.put("n", &sum(&[10])[0]);
    place.ingest(&[forged(&place, &bytes)], &any()).unwrap();
    assert_eq!(place.contents()["n"], sum(&[15])[0]);
    let without = Place::in_memory();
    let path = forged(&without, &bytes);
    let error = without.refused_one(&path, &any());
    assert!(error.message().contains("\"n\"") && error.message().contains("compact"), "{error}");
}

/// RocksDB does not ask for which operator a table's operands were written.
#[test]
fn operands_made_for_another_operator_are_the_familys_to_merge() {
    let place = Place::in_memory();
    let mut forge = Forge::new();
    forge.config.merge_operator = "another".into();
    let path = forged(&place, &forge.bytes(&[("m", 0, Merge, "x")], &[]));
    place.ingest_one(&path, &default()).unwrap();
    let found = place.db.get(&place.family, b"m", &Default::default());
    assert_eq!(found.unwrap_err().kind(), ErrorKind::InvalidArgument, "the family has none");
}
