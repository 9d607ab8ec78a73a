//! Tables read through a mapping: as read by calls, and never a wrong answer once a page fails.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the real file system as other programs do"
)]
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

extern crate spillway_db_table as table;

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::options::CompressionKind;
use base::{Cursor, ErrorKind, LookupKey, Result, SeqNo};
use common::{Entry, forward, get, mapping_of, open, put, write};
use table::{BlockBasedTable, Lane, Table, TableBuilderConfig, TableContext, TableReadOptions, look_up_together};

fn entries() -> Vec<Entry> {
    (0..2000).map(|i| put(&format!("key{i:05}"), 9, &format!("value {i} ").repeat(1 + i % 9))).collect()
}

fn config() -> TableBuilderConfig {
    let mut config = TableBuilderConfig::new("t.sst");
    config.compression = CompressionKind::None;
    config.options.block_size = 1024;
    config
}

/// Looks keys up together. The results in the order of the keys.
fn together(table: &BlockBasedTable, keys: &[LookupKey]) -> Vec<Result<Option<Vec<u8>>>> {
    let lanes: Vec<Lane<'_>> = keys.iter().map(|key| Lane { table, key }).collect();
    let mut found: Vec<Result<Option<Vec<u8>>>> = keys.iter().map(|_| Ok(None)).collect();
    let mut failed = Vec::new();
    let mut visit = |nth: usize, _, _, value: table::TableValue<'_>| {
        found[nth] = Ok(Some(value.bytes.to_vec()));
        false
    };
    look_up_together(&lanes, &TableReadOptions::default(), &mut visit, &mut |nth, error| failed.push((nth, error)));
    failed.into_iter().for_each(|(nth, error)| found[nth] = Err(error));
    found
}

fn lookups() -> Vec<LookupKey> {
    (0..2200).step_by(7).map(|i| LookupKey::new(format!("key{i:05}").as_bytes(), SeqNo::MAX)).collect()
}

#[test]
fn a_mapped_table_reads_like_any_other() {
    let all = entries();
    let bytes = write(config(), &all).expect("writes").bytes;
    let context = TableContext { mapping: Some(mapping_of(&bytes)), ..TableContext::default() };
    let table = open(&bytes, &context).expect("opens");
    assert!(table.is_mapped());
    for round in 0..2 {
        assert_eq!(forward(&table).expect("reads"), all, "round {round}: the second finds all blocks checked");
        for (i, found) in together(&table, &lookups()).into_iter().enumerate() {
            let expected = all.get(i * 7).map(|(_, value)| value.clone());
            assert_eq!(found.expect("reads"), expected);
        }
    }
    table.verify().expect("verifies");
}

#[test]
fn damage_in_a_mapping_is_found_at_the_first_read() {
    let all = entries();
    let bytes = write(config(), &all).expect("writes").bytes;
    let mut damaged = bytes.clone();
    damaged[300] ^= 1;
    let context = TableContext { mapping: Some(mapping_of(&damaged)), ..TableContext::default() };
    let table = open(&bytes, &context).expect("opens");
    for _ in 0..2 {
        let error = get(&table, b"key00001", SeqNo::MAX).expect_err("its block is damaged");
        assert_eq!(error.kind(), ErrorKind::Corruption);
    }
    assert_eq!(get(&table, b"key01000", SeqNo::MAX).expect("another block").len(), 1);
}

#[test]
fn once_a_page_failed_nothing_is_answered() {
    let all = entries();
    let bytes = write(config(), &all).expect("writes").bytes;
    let mapping = mapping_of(&bytes);
    let context = TableContext { mapping: Some(mapping.clone()), ..TableContext::default() };
    let table = open(&bytes, &context).expect("opens");
    let mut cursor = table.clone().cursor(&TableReadOptions::default());
    assert!(cursor.seek_to_first());
    mapping.failed.store(true, Ordering::Relaxed);
    let mut steps = 0;
    while cursor.next() {
        steps += 1;
    }
    assert!(steps < 100, "{steps} steps: the block in hand was copied before, the next one is refused");
    assert_eq!(cursor.status().expect_err("the page").kind(), ErrorKind::Io);
    assert_eq!(get(&table, b"key00001", SeqNo::MAX).expect_err("the page").kind(), ErrorKind::Io);
    assert_eq!(get(&table, b"key00001x", SeqNo::MAX).expect_err("absence is an answer too").kind(), ErrorKind::Io);
    assert!(together(&table, &lookups()[..200]).into_iter().all(|found| found.is_err()));
}

/// A real file, shortened behind its reader's back.
#[test]
#[cfg(unix)]
fn a_file_shortened_under_its_mapping_is_an_error() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("t.sst");
    let all = entries();
    let bytes = write(config(), &all).expect("writes").bytes;
    std::fs::write(&path, &bytes).expect("written");
    let vfs = vfs::RealVfs::new();
    let context = TableContext { maps_reads: true, ..TableContext::default() };
    let file = vfs.open(&path).expect("opens");
    let table = table::open_any(&*vfs, file, &path, bytes.len() as u64, &context).expect("opens").into_table();
    let keys = lookups();
    let shortened = std::fs::OpenOptions::new().write(true).open(&path).expect("opened");
    shortened.set_len(0).expect("shortened");
    for key in &keys {
        let mut shown = 0;
        let result = table.get(key, &TableReadOptions::default(), &mut |_, _, _| {
            shown += 1;
            false
        });
        let beyond = key.user_key() > &b"key02"[..];
        assert!(beyond || result.is_err(), "{key:?}: {shown} entries of a file that is gone");
    }
    let mut cursor = Arc::clone(&table).cursor(&TableReadOptions::default());
    assert!(!cursor.seek_to_first());
    assert_eq!(cursor.status().expect_err("the page").kind(), ErrorKind::Io);
}
