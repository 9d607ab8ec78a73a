//! What the tests of this folder share: tables that never open, edits at random, and golden files.

mod codec;
mod crash;
mod damage;
mod excise;
mod excised_database;
mod golden;
mod history;
mod model;
mod open_files;
mod shared_files;

use std::path::Path;
use std::sync::Arc;

use base::{Error, FamilyId, FileNumber, InternalOrder, Result, SeqNo, ValueKind, key};
use table::Table;

use super::edit::VersionEdit;
use super::purge::PurgeQueue;
use super::snapshot::{FamilySnapshot, ManifestSnapshot};
use super::table_file::FileMeta;
use super::table_store::{OpenSlots, TableOpener, TableStore};
use super::version::Version;

const DIR: &str = "/db";
const COMPARATOR: &str = "leveldb.BytewiseComparator";

fn dir() -> &'static Path {
    Path::new(DIR)
}

/// For tests that never read a table.
struct NoTables;

impl TableOpener for NoTables {
    fn open(&self, meta: &FileMeta) -> Result<Arc<dyn Table>> {
        Err(Error::unsupported(format!("table {} is a name only", meta.number)))
    }
}

fn store() -> (Arc<TableStore>, Arc<PurgeQueue>) {
    let purge = PurgeQueue::new();
    (
        TableStore::new(
            Box::new(NoTables),
            OpenSlots::new(-1),
            crate::version::log_life::LogLives::new(vfs::MemoryVfs::new(1), "/logs".into(), purge.clone()),
        ),
        purge,
    )
}

/// A table over user keys `first` through `last`, written as numbers.
fn table(number: u64, first: u64, last: u64, epoch: u64) -> FileMeta {
    FileMeta {
        number: FileNumber(number),
        file_bytes: 100 + number,
        smallest: key::encode(format!("{first:06}").as_bytes(), SeqNo(number), ValueKind::Value),
        largest: key::encode(format!("{last:06}").as_bytes(), SeqNo(number), ValueKind::Value),
        smallest_seq: SeqNo(number),
        largest_seq: SeqNo(number),
        epoch_number: epoch,
        ..FileMeta::default()
    }
}

fn empty_version() -> Version {
    Version::empty(InternalOrder::default(), 7)
}

/// A version with these tables, by level.
fn version_of(tables: &[(usize, FileMeta)]) -> Arc<Version> {
    let (store, _) = store();
    let base = empty_version();
    let mut builder = super::builder::VersionBuilder::new(&base, &store);
    builder.apply(&VersionEdit { added: tables.to_vec(), ..VersionEdit::default() }).unwrap();
    Arc::new(builder.build().unwrap().version)
}

fn family(id: u32, name: &str, tables: &[(usize, FileMeta)]) -> FamilySnapshot {
    FamilySnapshot {
        id: FamilyId(id),
        value_times: false,
        name: name.into(),
        comparator: COMPARATOR.into(),
        log_number: FileNumber(0),
        flushed_through: SeqNo(10),
        linked_ingests: Vec::new(),
        version: version_of(tables),
    }
}

fn snapshot(families: Vec<FamilySnapshot>) -> ManifestSnapshot {
    ManifestSnapshot {
        db_id: Some("5a6f0c1e-0000-4000-8000-000000000001".into()),
        next_file: FileNumber(100),
        last_seq: SeqNo(50),
        min_log_to_keep: FileNumber(0),
        max_family: 1,
        log_ends: Vec::new(),
        wal_range: None,
        log_frontiers: None,
        log_dir: String::new(),
        home: String::new(),
        sessions: Vec::new(),
        options_file: None,
        families,
    }
}

/// A small generator of numbers, the same ones for the same seed.
struct Random(u64);

impl Random {
    /// One of `0 .. bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % bound
    }

    fn chance(&mut self, one_in: u64) -> bool {
        self.below(one_in) == 0
    }
}
