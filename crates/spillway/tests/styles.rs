//! Compaction styles over whole databases: what stands in which level, what FIFO compaction deletes, what age does.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::options::apply_string;
use testkit::engine::vfs::{MemoryVfs, Vfs};
use testkit::engine::{CompactRangeOptions, Db, FamilyOptions, OpenOptions, ReadOptions, WriteOptions};

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
