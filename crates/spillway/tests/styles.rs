//! Compaction styles over whole databases: what stands in which level, what FIFO compaction deletes, what age does; and
//! compactions that options and callers ask for.
#![allow(clippy::disallowed_methods, reason = "tests read what RocksDB wrote from the real file system")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use base::options::apply_string;
use testkit::engine::vfs::{IfExists, IoClass, MemoryVfs, Vfs};
use testkit::engine::{
    CompactFilesOptions, CompactRangeOptions, Db, ErrorKind, FamilyOptions, OpenOptions, ReadOptions, WriteOptions,
};

const VALUE_BYTES: usize = 1000;

fn options(vfs: &Arc<MemoryVfs>, text: &str) -> OpenOptions {
    let mut family = FamilyOptions::default();
    apply_string(&mut family, "compression=kNoCompression").expect("an option");
    apply_string(&mut family, text).expect("options");
    OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() }.family("default", family)
}

fn open(vfs: &Arc<MemoryVfs>, text: &str) -> Db {
    Db::open("/db", &options(vfs, text)).expect("opens")
}

fn key(number: usize) -> Vec<u8> {
    format!("key{number:06}").into_bytes()
}

/// Writes a table of level 0 with these keys.
fn write(db: &Db, keys: impl IntoIterator<Item = usize>, byte: u8) {
    let family = db.default_family();
    for number in keys {
        db.put(&family, &key(number), &[byte; VALUE_BYTES], &WriteOptions::default()).expect("written");
    }
    db.flush(&[&family]).expect("flushed");
    db.wait_for_compaction().expect("compacted");
}

fn get(db: &Db, number: usize) -> Option<u8> {
    let found = db.get(&db.default_family(), &key(number), &ReadOptions::default()).expect("read");
    found.map(|value| value.first().copied().expect("a byte"))
}

/// Tables by level.
fn levels(db: &Db) -> BTreeMap<usize, usize> {
    let mut levels = BTreeMap::new();
    db.live_files().iter().for_each(|file| *levels.entry(file.level).or_default() += 1);
    levels
}

fn bytes(db: &Db) -> u64 {
    db.live_files().iter().map(|file| file.bytes).sum()
}

/// Tables of level 0 and deeper levels with any.
fn sorted_runs(db: &Db) -> usize {
    levels(db).iter().map(|(level, files)| if *level == 0 { *files } else { 1 }).sum()
}

#[test]
fn universal_compaction_keeps_runs_few_and_every_newest_value() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, "compaction_style=kCompactionStyleUniversal;target_file_size_base=16K");
    for round in 0..40 {
        write(&db, (0..60).map(|i| (i * 7 + round * 13) % 400), round as u8);
        assert!(sorted_runs(&db) <= 4, "{:?}", levels(&db));
    }
    let newest = |number: usize| (0..40).rev().find(|round| (0..60).any(|i| (i * 7 + round * 13) % 400 == number));
    (0..400).for_each(|number| assert_eq!(get(&db, number), newest(number).map(|round| round as u8), "{number}"));
    assert!(bytes(&db) < 400 * 1100 * 3, "two hundred percent of the oldest run at most");

    db.compact_range(&db.default_family(), Some(&key(3)), Some(&key(4)), &CompactRangeOptions::default()).expect("all");
    assert_eq!(levels(&db).into_keys().collect::<Vec<_>>(), [6], "whatever the range");
    (0..400).for_each(|number| assert_eq!(get(&db, number), newest(number).map(|round| round as u8), "{number}"));
}

/// What RocksDB 11.8 reads of a family of its universal directory.
fn of_rocksdb(family: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let bytes = |hex: &str| -> Vec<u8> {
        hex.as_bytes().chunks(2).map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
    };
    let text = std::fs::read_to_string(format!("{FIXTURES}/db-universal.expected")).unwrap();
    let words = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    words.filter(|words| words[0] == family).map(|words| (bytes(words[1]), bytes(words[2]))).collect()
}

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/fixtures");

/// Its runs stay what they are, and are compacted as runs.
#[test]
fn a_universal_directory_of_rocksdb_goes_on() {
    let vfs = MemoryVfs::new(1);
    vfs.create_dir_all(Path::new("/db")).unwrap();
    for file in std::fs::read_dir(format!("{FIXTURES}/db-universal")).unwrap() {
        let (path, bytes) = (file.as_ref().unwrap().path(), std::fs::read(file.unwrap().path()).unwrap());
        let mut copy = vfs.create(&Path::new("/db").join(path.file_name().unwrap()), IfExists::Fail).unwrap();
        copy.append(&bytes, IoClass::Other).unwrap();
        copy.sync(IoClass::Other).unwrap();
    }
    let text = "compaction_style=kCompactionStyleUniversal;compaction_options_universal={max_size_amplification_percent=100000}";
    let mut options = options(&vfs, text);
    let second = options.families[0].1.clone();
    options = options.family("second", second);
    options.adopt_rocksdb = true;
    options.db.atomic_flush = true;
    let db = Db::open("/db", &options).unwrap();
    let pairs = |name: &str| {
        let mut iterator = db.iter(&db.family(name).unwrap(), &ReadOptions::default()).unwrap();
        let (mut pairs, mut valid) = (Vec::new(), iterator.seek_to_first());
        while valid {
            pairs.push((iterator.key().to_vec(), iterator.value().to_vec()));
            valid = iterator.next();
        }
        pairs
    };
    let of = |name: &str| {
        db.live_files().iter().filter(|file| file.family == name).map(|file| file.level).collect::<Vec<_>>()
    };
    assert_eq!((of("default"), of("second")), (vec![0, 5, 6, 6, 6, 6], vec![0, 5, 6, 6, 6]));
    assert!(pairs("default") == of_rocksdb("default") && pairs("second") == of_rocksdb("second"));
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    for round in 0..6u8 {
        for family in db.families() {
            db.put(&family, b"zzz", &[round; 100], &unlogged).unwrap();
        }
        db.flush(&[&db.default_family()]).unwrap();
        db.wait_for_compaction().unwrap();
    }
    let levels = of("default");
    assert!(levels.contains(&6) && levels.len() < 12, "{levels:?}: new runs were merged, the old one was not");
    for name in ["default", "second"] {
        db.compact_range(&db.family(name).unwrap(), None, None, &CompactRangeOptions::default()).unwrap();
        let mut now = pairs(name);
        assert_eq!(now.pop(), Some((b"zzz".to_vec(), vec![5; 100])));
        assert!(now == of_rocksdb(name) && of(name).iter().all(|level| *level == 6), "{name}");
    }
}

#[test]
fn a_single_level_of_runs_drops_what_is_deleted() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, "compaction_style=kCompactionStyleUniversal;num_levels=1");
    write(&db, 0..100, 1);
    let family = db.default_family();
    (0..100).for_each(|number| db.delete(&family, &key(number), &WriteOptions::default()).expect("deleted"));
    db.flush(&[&family]).expect("flushed");
    db.compact_range(&family, None, None, &CompactRangeOptions::default()).expect("compacted");
    assert_eq!(levels(&db), BTreeMap::new());
}

#[test]
fn styles_follow_each_other() {
    let vfs = MemoryVfs::new(1);
    let (universal, by_level) =
        ("compaction_style=kCompactionStyleUniversal", "compaction_style=kCompactionStyleLevel");
    for (round, style) in [by_level, universal, by_level, universal].iter().enumerate() {
        let text =
            format!("{style};target_file_size_base=16K;max_bytes_for_level_base=64K;max_bytes_for_level_multiplier=2");
        let db = open(&vfs, &text);
        (0..12).for_each(|part| write(&db, (0..50).map(|i| i * 12 + part), (round * 12 + part) as u8));
        for number in 0..600 {
            assert_eq!(get(&db, number), Some((round * 12 + number % 12) as u8), "{style}");
        }
        db.close().expect("closes");
    }
}

/// Answers of lookups before end with the tables.
#[test]
fn fifo_compaction_deletes_the_oldest_tables() {
    let vfs = MemoryVfs::new(1);
    let text = "compaction_style=kCompactionStyleFIFO;compaction_options_fifo={max_table_files_size=100K}";
    let db = open(&vfs, text);
    for part in 0..30 {
        write(&db, part * 10..part * 10 + 10, part as u8);
        (0..part * 10 + 10).for_each(|number| assert!(get(&db, number).is_none_or(|byte| byte == (number / 10) as u8)));
        assert!(bytes(&db) <= 100 << 10);
    }
    assert_eq!((get(&db, 0), get(&db, 299)), (None, Some(29)));
    let kept = (0..300).filter(|&number| get(&db, number).is_some()).count();
    assert!(kept % 10 == 0 && (70..=90).contains(&kept), "whole tables of ten keys, some 11 KiB: {kept}");
    assert_eq!(levels(&db).into_keys().collect::<Vec<_>>(), [0]);
    db.close().expect("closes");
    let db = open(&vfs, text);
    assert_eq!((0..300).filter(|&number| get(&db, number).is_some()).count(), kept);
}

/// As RocksDB 11.8.1, which opens such a directory.
#[test]
fn fifo_compaction_deletes_tables_of_levels_first() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, "");
    write(&db, 0..50, 1);
    db.compact_range(&db.default_family(), None, None, &CompactRangeOptions::default()).expect("compacted");
    assert_eq!(levels(&db), BTreeMap::from([(6, 1)]));
    db.close().expect("closes");
    let db = open(&vfs, "compaction_style=kCompactionStyleFIFO;compaction_options_fifo={max_table_files_size=60K}");
    assert_eq!(get(&db, 0), Some(1));
    write(&db, 100..120, 2);
    assert_eq!((get(&db, 0), get(&db, 100)), (None, Some(2)));
    assert_eq!(levels(&db), BTreeMap::from([(0, 1)]));
}

#[test]
fn fifo_compaction_deletes_what_is_older_than_the_ttl() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, "compaction_style=kCompactionStyleFIFO;ttl=100");
    write(&db, 0..10, 1);
    vfs.sleep(Duration::from_secs(60));
    write(&db, 10..20, 2);
    vfs.sleep(Duration::from_secs(60));
    db.wait_for_compaction().expect("compacted");
    assert_eq!((get(&db, 0), get(&db, 10)), (None, Some(2)));
    db.set_options(&db.default_family(), &[("ttl", "50")]).expect("at run time");
    db.wait_for_compaction().expect("compacted");
    assert_eq!(get(&db, 10), None);
}

#[test]
fn data_older_than_the_ttl_goes_down() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, "level_compaction_dynamic_level_bytes=false;ttl=100");
    write(&db, 0..10, 1);
    db.compact_range(&db.default_family(), None, None, &CompactRangeOptions::default()).expect("compacted");
    assert_eq!(levels(&db), BTreeMap::from([(1, 1)]));
    vfs.sleep(Duration::from_secs(99));
    db.wait_for_compaction().expect("compacted");
    assert_eq!(levels(&db), BTreeMap::from([(1, 1)]));
    vfs.sleep(Duration::from_secs(2));
    db.wait_for_compaction().expect("compacted");
    assert_eq!(levels(&db), BTreeMap::from([(6, 1)]));
}

#[test]
fn tables_past_their_period_are_written_anew() {
    for style in ["Level", "Universal"] {
        let vfs = MemoryVfs::new(1);
        let db = open(&vfs, &format!("compaction_style=kCompactionStyle{style};ttl=0;periodic_compaction_seconds=100"));
        write(&db, 0..10, 1);
        db.compact_range(&db.default_family(), None, None, &CompactRangeOptions::default()).expect("compacted");
        let number = || db.live_files().first().map(|file| (file.level, file.number)).expect("a table");
        let (level, before) = number();
        db.wait_for_compaction().expect("compacted");
        assert_eq!(number(), (level, before));
        for _ in 0..2 {
            vfs.sleep(Duration::from_secs(102));
            db.wait_for_compaction().expect("compacted");
        }
        assert!(level == 6 && number().0 == level && number().1 > before, "{style}: {:?}", number());
        assert_eq!(get(&db, 5), Some(1));
    }
}

#[test]
fn tables_end_between_prefixes() {
    let vfs = MemoryVfs::new(1);
    let db = open(&vfs, "sst_partitioner_factory={id=SstPartitionerFixedPrefixFactory;length=8;}");
    for _ in 0..2 {
        write(&db, (0..400).step_by(7), 1); // a prefix for every ten
    }
    db.compact_range(&db.default_family(), None, None, &CompactRangeOptions::default()).unwrap();
    let files = db.live_files();
    let ends: Vec<_> = files.iter().map(|file| (file.smallest[..8].to_vec(), file.largest[..8].to_vec())).collect();
    assert!(ends.len() == 40 && ends.iter().all(|(first, last)| first == last), "{} tables: {ends:?}", ends.len());
    (0..400).for_each(|number| assert_eq!(get(&db, number), number.is_multiple_of(7).then_some(1), "{number}"));
}

#[test]
fn a_table_with_many_deletions_is_compacted_at_once() {
    let deletes = |text: &str| {
        let db = open(&MemoryVfs::new(1), text);
        let family = db.default_family();
        write(&db, 0..400, 1);
        db.compact_range(&family, None, None, &CompactRangeOptions::default()).unwrap();
        for number in 100..150 {
            db.delete(&family, &key(number), &WriteOptions::default()).unwrap();
        }
        write(&db, 300..400, 2);
        assert!((0..400).all(|number| get(&db, number).is_none() == (100..150).contains(&number)));
        levels(&db).contains_key(&0)
    };
    let collector = |numbers: &str| format!("table_properties_collectors=CompactOnDeletionCollector:{numbers}");
    assert!(deletes("compression=kNoCompression"), "one table of level 0 is not worth a compaction");
    assert!(!deletes(&collector("60:50")));
    assert!(deletes(&collector("60:51")) && deletes(&collector("60:50:0:100000000")), "too few, and too small");
    assert!(!deletes(&collector("0:0:0.3")) && deletes(&collector("0:0:0.4")), "a third");
}

#[test]
fn compactions_by_hand_end_when_their_caller_says_so() {
    let db = open(&MemoryVfs::new(1), "compression=kNoCompression");
    let family = db.default_family();
    write(&db, 0..100, 1);
    let canceled = Some(Arc::new(AtomicBool::new(true)));
    let options = CompactRangeOptions { canceled: canceled.clone(), ..CompactRangeOptions::default() };
    let error = db.compact_range(&family, None, None, &options).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Incomplete);
    let named = db.live_files().iter().map(|file| file.number).collect();
    let options = CompactFilesOptions { canceled, ..CompactFilesOptions::default() };
    assert_eq!(db.compact_files(&family, &named, 3, &options).unwrap_err().kind(), ErrorKind::Incomplete);
    assert_eq!(levels(&db), BTreeMap::from([(0, 1)]));
}

#[test]
fn named_tables_go_to_their_level_and_end_at_their_limit() {
    let db = open(&MemoryVfs::new(1), "compression=kNoCompression");
    let family = db.default_family();
    write(&db, 0..100, 1);
    write(&db, 50..100, 2);
    let named = || db.live_files().iter().map(|file| file.number).collect();
    let options = CompactFilesOptions { output_file_size_limit: 20_000, ..CompactFilesOptions::default() };
    let made = db.compact_files(&family, &named(), 3, &options).unwrap();
    assert!(made.len() >= 5 && levels(&db) == BTreeMap::from([(3, made.len())]), "{:?}", levels(&db));
    let moves = CompactFilesOptions { allow_trivial_move: true, ..CompactFilesOptions::default() };
    assert_eq!(db.compact_files(&family, &named(), 5, &moves).unwrap().len(), made.len(), "as they are");
    assert_eq!(db.compact_files(&family, &named(), 5, &CompactFilesOptions::default()).unwrap().len(), 1);
    (0..100).for_each(|number| assert_eq!(get(&db, number), Some(1 + u8::from(number >= 50)), "{number}"));
    assert!(db.compact_files(&family, &named(), 4, &options).unwrap_err().to_string().contains("cannot go up"));
}
