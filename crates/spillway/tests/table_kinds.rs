//! Tables of other kinds than RocksDB's: what writes them, what reads them, and what they may not become part of.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use base::options::apply_string;
use table::TableFormat;
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::export::ExportOptions;
use testkit::engine::{
    CompactRangeOptions, Db, ErrorKind, FamilyOptions, IngestOptions, IngestRequest, OpenOptions, ReadOptions,
    TableWriter, WriteOptions,
};
use vfs::memory::MemoryVfs;
use vfs::{IoClass, Vfs};

/// Level 0 fast, level 1 blocks, the others zip.
const BY_LEVEL: &str = "table_factory=DispatcherTable:{\"default\":\"SingleFastTable\",\"level_writers\":\
    [\"SingleFastTable\",\"BlockBasedTable\",{\"class\":\"ToplingZipTable\",\"params\":{\"memory_bytes\":65536}}]}";

const SMALL: &str = "write_buffer_size=64K;target_file_size_base=16K;max_bytes_for_level_base=64K;num_levels=4;\
    max_bytes_for_level_multiplier=3;level_compaction_dynamic_level_bytes=false;level0_file_num_compaction_trigger=2;\
    paranoid_file_checks=true;compression=kNoCompression";

const DIR: &str = "/db";

fn family(text: &str) -> FamilyOptions {
    let mut family = FamilyOptions::default();
    apply_string(&mut family, SMALL).unwrap();
    apply_string(&mut family, text).unwrap();
    family
}

fn open(vfs: &Arc<MemoryVfs>, dir: &str, text: &str) -> Db {
    let mut options = OpenOptions::create_if_missing().family("default", family(text));
    options.vfs = vfs.clone();
    Db::open(dir, &options).unwrap()
}

/// Nothing that an open or `set_options` takes is refused by the writer of a table, which would end all writes.
#[test]
fn options_that_are_taken_write_tables() {
    const ALONE: [&str; 6] = [
        "block_based_table_factory={index_type=kHashSearch}",
        "block_based_table_factory={index_type=kHashSearch};prefix_extractor=fixed:4",
        "block_based_table_factory={partition_filters=true;filter_policy=bloomfilter:10:false}",
        "block_based_table_factory={index_type=kTwoLevelIndexSearch;partition_filters=true}",
        "compression=kSnappyCompression;compression_opts={max_dict_bytes=4096}",
        "compression=kLZ4HCCompression;compression_opts={level=-9000}",
    ];
    let zlib =
        (-15..16).map(|bits| format!("compression=kZlibCompression;compression_opts={{window_bits={bits};level=300}}"));
    let (mut taken, mut refused) = (0, 0);
    for text in ALONE.map(str::to_owned).into_iter().chain(zlib) {
        let vfs = MemoryVfs::new(1);
        let mut options = OpenOptions::create_if_missing().family("default", family(&text));
        options.vfs = vfs.clone();
        let db = match Db::open(DIR, &options) {
            Ok(db) => db,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{text}: {error}");
                refused += 1;
                continue;
            }
        };
        let model = fill(&db, 500);
        db.flush(&[&db.default_family()]).unwrap_or_else(|error| panic!("{text}: {error}"));
        db.compact_range(&db.default_family(), None, None, &CompactRangeOptions::default()).unwrap();
        for (key, value) in &model {
            let found = db.get(&db.default_family(), key, &ReadOptions::default()).unwrap();
            assert_eq!(found.as_deref(), Some(&**value), "{text}");
        }
        taken += 1;
    }
    assert_eq!((taken, refused), (36, 1));
}

fn key(n: u64) -> Vec<u8> {
    format!("user{:08}", n * 2_654_435_761 % 100_000_007).into_bytes()
}

/// Writes so many entries, some of them twice or deleted, and returns what is there then.
fn fill(db: &Db, entries: u64) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let (family, options) = (db.default_family(), WriteOptions::default());
    let mut model = BTreeMap::new();
    for n in 0..entries {
        let value = format!("{n}-").repeat(1 + n as usize % 40).into_bytes();
        db.put(&family, &key(n), &value, &options).unwrap();
        model.insert(key(n), value);
        if n % 7 == 3 {
            db.delete(&family, &key(n / 2), &options).unwrap();
            model.remove(&key(n / 2));
        }
        if n % 1000 == 999 {
            let (start, end) = (format!("user{:08}", n).into_bytes(), format!("user{:08}", n + 1_000_000).into_bytes());
            db.delete_range(&family, &start, &end, &options).unwrap();
            model.retain(|key, _| *key < start || *key >= end);
        }
    }
    model
}

fn check_contents(db: &Db, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let (family, options) = (db.default_family(), ReadOptions::default());
    let mut entries = db.iter(&family, &options).unwrap();
    let mut valid = entries.seek_to_first();
    for (key, value) in model {
        assert!(valid && entries.key() == key && entries.value() == value, "{}", key.escape_ascii());
        valid = entries.next();
    }
    entries.status().unwrap();
    assert!(!valid);
    for (key, value) in model.iter().step_by(17) {
        assert_eq!(db.get(&family, key, &options).unwrap().as_deref(), Some(&value[..]));
    }
}

fn format_of(vfs: &dyn Vfs, path: &Path) -> TableFormat {
    let file = vfs.open(path).unwrap();
    TableFormat::of(&*file, file.len().unwrap(), IoClass::Other).unwrap()
}

/// What the files of each level are.
fn formats(vfs: &dyn Vfs, db: &Db) -> BTreeMap<usize, BTreeSet<String>> {
    let mut formats: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
    for file in db.live_files() {
        formats.entry(file.level).or_default().insert(format!("{:?}", format_of(vfs, &file.path)));
    }
    formats
}

#[test]
fn levels_hold_what_their_writers_write() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, DIR, BY_LEVEL);
    let model = fill(&db, 6000);
    db.flush(&[&db.default_family()]).unwrap();
    db.wait_for_compaction().unwrap();
    let more = key(5);
    db.put(&db.default_family(), &more, b"again", &WriteOptions::default()).unwrap();
    db.flush(&[&db.default_family()]).unwrap();
    let mut model = model;
    model.insert(more, b"again".to_vec());
    check_contents(&db, &model);
    for (level, found) in formats(&*vfs, &db) {
        let expected = ["Fast", "BlockBased", "Zip"][level.min(2)];
        assert_eq!(found, BTreeSet::from([expected.to_owned()]), "level {level}");
    }
    assert!(formats(&*vfs, &db).contains_key(&2), "the data goes down so far");
    db.close().unwrap();
    let report =
        check(Path::new(DIR), &CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() }, &mut |_| {}).unwrap();
    assert!(report.is_whole(), "{report:?}");

    // Another choice reads what is there, and writes in its own way.
    let db = open(&vfs, DIR, "table_factory=BlockBasedTable");
    check_contents(&db, &model);
    db.compact_range(&db.default_family(), None, None, &CompactRangeOptions::default()).unwrap();
    check_contents(&db, &model);
}

#[test]
fn exports_are_rocksdbs_whatever_the_database_has() {
    for text in [BY_LEVEL, "table_factory=BlockBasedTable"] {
        let vfs = MemoryVfs::new(1);
        let db = open(&vfs, DIR, text);
        let mut model = fill(&db, 4000);
        db.flush(&[&db.default_family()]).unwrap();
        db.wait_for_compaction().unwrap();
        // What is left of tables that straddle the span are parts of files.
        let (start, end) = (b"user2".to_vec(), b"user20005".to_vec());
        let excise = IngestRequest { excise: Some((start.clone(), end.clone())), ..request(&db) };
        db.ingest_all(&[excise], &IngestOptions::default()).unwrap();
        model.retain(|key, _| *key < start || *key >= end);
        db.flush(&[&db.default_family()]).unwrap();
        assert!(db.live_files().iter().any(|file| file.is_virtual), "{text}");

        db.export("/export", &ExportOptions::default()).unwrap();
        check_contents(&db, &model);
        let options = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
        let report = check(Path::new("/export"), &options, &mut |_| {}).unwrap();
        assert!(report.is_whole() && report.is_rocksdbs, "{report:?}");
        let exported = open(&vfs, "/export", "table_factory=BlockBasedTable");
        check_contents(&exported, &model);
        for file in exported.live_files() {
            assert_eq!((format_of(&*vfs, &file.path), file.is_virtual), (TableFormat::BlockBased, false));
        }
    }
}

fn request(db: &Db) -> IngestRequest {
    IngestRequest::new(db.default_family(), Vec::new())
}

#[test]
fn tables_of_private_kinds_are_not_ingested() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, DIR, "table_factory=SingleFastTable");
    fill(&db, 100);
    db.flush(&[&db.default_family()]).unwrap();
    let path = db.live_files()[0].path.clone();
    let other = open(&vfs, "/other", "");
    let options = IngestOptions { allow_db_generated_files: true, ..IngestOptions::default() };
    let error = other.ingest(&other.default_family(), &[path], &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.message().contains("a fast table"), "{error}");
}

#[test]
fn a_table_that_sorts_takes_keys_in_any_order() {
    let vfs: Arc<MemoryVfs> = MemoryVfs::new(1);
    let db = open(&vfs, DIR, "");
    let options = family("table_factory=VecAutoSortTable:{\"memory_bytes\":65536}");
    let mut table = TableWriter::create(vfs.clone(), "/sorted.sst", &options).unwrap();
    let mut model = BTreeMap::new();
    for n in (0..5000).chain(100..200) {
        let value = format!("{n}, {}", model.len()).into_bytes();
        table.put(&key(n), &value).unwrap();
        model.insert(key(n), value);
    }
    table.delete(&key(7)).unwrap();
    model.remove(&key(7));
    let written = table.finish().unwrap();
    assert_eq!((written.entries, &written.smallest), (5000, model.keys().next().unwrap()));
    assert_eq!(format_of(&*vfs, &written.path), TableFormat::BlockBased);
    db.ingest(&db.default_family(), &[written.path], &IngestOptions::default()).unwrap();
    check_contents(&db, &model);
}
