//! Tables in memory, for the tests of this crate.
#![allow(dead_code, reason = "every test file uses another part of it")]
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

pub mod conformance;
pub mod converted;
pub mod fast;
pub mod formats;
pub mod zip;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use base::{Cursor, Error, ErrorKind, LookupKey, ParsedKey, Result, SeqNo, ValueKind};
use table::{BlockBasedTable, BlockBasedTableBuilder, Table, TableBuilder, TableBuilderConfig, TableContext};
use table::{TableReadOptions, TableSummary};
use vfs::{AppendFile, GuardedMapping, IoClass, RandomFile};

/// The bytes of a file.
pub struct Bytes(pub Vec<u8>);

impl RandomFile for Bytes {
    fn read_at(&self, offset: u64, buf: &mut [u8], _class: IoClass) -> Result<usize> {
        let rest = self.0.get(offset as usize..).unwrap_or_default();
        let len = rest.len().min(buf.len());
        buf[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }

    fn len(&self) -> Result<u64> {
        Ok(self.0.len() as u64)
    }
}

/// A file being written; the test keeps a clone to see the bytes.
#[derive(Clone, Default)]
pub struct Shared(pub Arc<Mutex<Vec<u8>>>);

impl AppendFile for Shared {
    fn append(&mut self, bytes: &[u8], _class: IoClass) -> Result<()> {
        self.0.lock().expect("unpoisoned").extend_from_slice(bytes);
        Ok(())
    }

    fn len(&self) -> u64 {
        self.0.lock().expect("unpoisoned").len() as u64
    }

    fn sync(&mut self, _class: IoClass) -> Result<()> {
        Ok(())
    }
}

pub struct Written {
    pub bytes: Vec<u8>,
    pub summary: TableSummary,
}

pub type Entry = (Vec<u8>, Vec<u8>);

pub fn key(user_key: &str, seq: u64, kind: ValueKind) -> Vec<u8> {
    base::key::encode(user_key.as_bytes(), SeqNo(seq), kind)
}

pub fn put(user_key: &str, seq: u64, value: &str) -> Entry {
    (key(user_key, seq, ValueKind::Value), value.as_bytes().to_vec())
}

/// Writes `entries` into a table.
pub fn write(config: TableBuilderConfig, entries: &[Entry]) -> Result<Written> {
    write_with(config, entries, |_| Ok(()))
}

pub fn write_with(
    config: TableBuilderConfig,
    entries: &[Entry],
    more: impl FnOnce(&mut BlockBasedTableBuilder) -> Result<()>,
) -> Result<Written> {
    let file = Shared::default();
    let mut builder = Box::new(BlockBasedTableBuilder::new(Box::new(file.clone()), config)?);
    for (key, value) in entries {
        builder.add(key, value)?;
    }
    more(&mut builder)?;
    let summary = builder.finish()?;
    let bytes = std::mem::take(&mut *file.0.lock().expect("unpoisoned"));
    Ok(Written { bytes, summary })
}

pub fn open(bytes: &[u8], context: &TableContext) -> Result<Arc<BlockBasedTable>> {
    BlockBasedTable::open(Arc::new(Bytes(bytes.to_vec())), Path::new("t.sst"), bytes.len() as u64, context)
}

/// A mapping in memory. Its pages fail as soon as `failed` says so.
#[derive(Default)]
pub struct Mapping {
    pub bytes: Vec<u8>,
    pub failed: AtomicBool,
}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl GuardedMapping for Mapping {
    fn check(&self) -> Result<()> {
        if self.failed.load(Ordering::Relaxed) { Err(Error::new(ErrorKind::Io, "a page failed")) } else { Ok(()) }
    }
}

pub fn mapping_of(bytes: &[u8]) -> Arc<Mapping> {
    Arc::new(Mapping { bytes: bytes.to_vec(), ..Mapping::default() })
}

/// All entries from front to back.
pub fn forward<T: Table>(table: &Arc<T>) -> Result<Vec<Entry>> {
    let mut cursor = table.clone().cursor(&TableReadOptions::default());
    let mut all = Vec::new();
    let mut valid = cursor.seek_to_first();
    while valid {
        all.push((cursor.key().to_vec(), cursor.value().to_vec()));
        valid = cursor.next();
    }
    cursor.status()?;
    Ok(all)
}

/// All entries from back to front.
pub fn backward<T: Table>(table: &Arc<T>) -> Result<Vec<Entry>> {
    let mut cursor = table.clone().cursor(&TableReadOptions::default());
    let mut all = Vec::new();
    let mut valid = cursor.seek_to_last();
    while valid {
        all.push((cursor.key().to_vec(), cursor.value().to_vec()));
        valid = cursor.prev();
    }
    cursor.status()?;
    Ok(all)
}

/// Every version of a user key at or below `seq`.
pub fn get<T: Table>(table: &Arc<T>, user_key: &[u8], seq: SeqNo) -> Result<Vec<(SeqNo, ValueKind, Vec<u8>)>> {
    let mut found = Vec::new();
    table.get(&LookupKey::new(user_key, seq), &TableReadOptions::default(), &mut |seq, kind, value| {
        found.push((seq, kind, value.pin().to_vec()));
        true
    })?;
    Ok(found)
}

/// Checks that every way of reading `table` finds `entries` and nothing else.
pub fn check_reads<T: Table>(table: &Arc<T>, entries: &[Entry]) {
    assert_eq!(forward(table).expect("reads"), entries);
    let mut reversed = backward(table).expect("reads");
    reversed.reverse();
    assert_eq!(reversed, entries);
    for (i, (key, value)) in entries.iter().enumerate() {
        let entry = ParsedKey::parse(key).expect("well formed");
        let found = get(table, entry.user_key, entry.seq).expect("reads");
        assert_eq!(found.first(), Some(&(entry.seq, entry.kind, value.clone())));
        let versions = entries[i..].iter().take_while(|(k, _)| base::key::user_key(k) == entry.user_key).count();
        assert_eq!(found.len(), versions, "every older version is shown");
    }
    check_seeks(table, entries);
    check_multi_get(table, entries);
}

fn check_seeks<T: Table>(table: &Arc<T>, entries: &[Entry]) {
    let order = base::InternalOrder::default();
    let mut cursor = table.clone().cursor(&TableReadOptions::default());
    for step in [1, 7] {
        for (key, _) in entries.iter().step_by(step) {
            let (user_key, trailer) = base::key::split(key).expect("well formed");
            let mut targets = vec![key.clone()];
            for (suffix, seq) in [(&b""[..], SeqNo::MAX), (b"", SeqNo::ZERO), (b"~", SeqNo(trailer >> 8))] {
                targets.push(LookupKey::new(&[user_key, suffix].concat(), seq).internal().to_vec());
            }
            for target in targets {
                let at = entries.partition_point(|(k, _)| order.compare(k, &target).is_lt());
                let found = cursor.seek(&target).then(|| cursor.key().to_vec());
                assert_eq!(found.as_ref(), entries.get(at).map(|e| &e.0), "seek");
                if found.is_some() && cursor.prev() {
                    assert_eq!(Some(cursor.key()), at.checked_sub(1).map(|i| &entries[i].0[..]), "prev after seek");
                }
                let after = entries.partition_point(|(k, _)| order.compare(k, &target).is_le());
                let found = cursor.seek_for_prev(&target).then(|| cursor.key().to_vec());
                assert_eq!(found.as_ref(), after.checked_sub(1).map(|i| &entries[i].0), "seek_for_prev");
                if found.is_some() && cursor.next() {
                    assert_eq!(Some(cursor.key()), entries.get(after).map(|e| &e.0[..]), "next after seek_for_prev");
                }
                cursor.status().expect("no damage");
            }
        }
    }
}

fn check_multi_get<T: Table>(table: &Arc<T>, entries: &[Entry]) {
    let mut keys: Vec<LookupKey> =
        entries.iter().map(|(key, _)| LookupKey::new(base::key::user_key(key), SeqNo::MAX)).collect();
    keys.dedup_by(|a, b| a.user_key() == b.user_key());
    let refs: Vec<&LookupKey> = keys.iter().collect();
    let mut found = Vec::new();
    table
        .multi_get(&refs, &TableReadOptions::default(), &mut |i, seq, kind, value| {
            found.push((base::key::encode(refs[i].user_key(), seq, kind), value.bytes.to_vec()));
            true
        })
        .expect("reads");
    assert_eq!(found, entries);
}
