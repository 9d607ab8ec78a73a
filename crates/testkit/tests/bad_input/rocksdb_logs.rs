//! Damage in one of several RocksDB WALs. Later WALs count only if they continue at the damage, as after a RocksDB open
//! in spite of it.
#![expect(clippy::indexing_slicing, reason = "helpers of tests are tests")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{FileNumber, SeqNo};
use testkit::engine::options::WalRecoveryMode;
use testkit::engine::{Db, Error, ErrorKind, OpenOptions, OtherFamilies, ReadOptions};
use testkit::run::DIR;
use vfs::{IfExists, IoClass, MemoryVfs, Vfs};
use wal::framed::{FramedReader, FramedWriter};

use crate::doubts::salvage_with;
use crate::moved_logs::rocksdbs;

/// First and last sequence number of each batch in the fixture's WAL.
fn batches(vfs: &MemoryVfs) -> Vec<(SeqNo, SeqNo)> {
    let mut reader = FramedReader::open(vfs, &log(16), Some(16), IoClass::Log).unwrap();
    let mut batches = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        let first = u64::from_le_bytes(record.payload[..8].try_into().unwrap());
        let count = u32::from_le_bytes(record.payload[8..12].try_into().unwrap());
        batches.push((SeqNo(first), SeqNo(first + u64::from(count) - 1)));
    }
    batches
}

fn log(number: u64) -> PathBuf {
    Path::new(DIR).join(format!("{}.log", FileNumber(number)))
}

/// Adds a WAL with one batch, a put of "k".
fn add_log(vfs: &MemoryVfs, first: SeqNo) {
    let mut batch = first.0.to_le_bytes().to_vec();
    batch.extend(1u32.to_le_bytes());
    batch.extend([1, 1, b'k', 1, b'v']);
    let file = vfs.create(&log(20), IfExists::Fail).unwrap();
    let mut writer = FramedWriter::new(file, IoClass::Log);
    writer.append(&batch).unwrap();
    writer.sync().unwrap();
}

/// Whether "k" is there.
fn has_k(vfs: &Arc<MemoryVfs>, mode: WalRecoveryMode) -> Result<bool, Error> {
    let other_families = OtherFamilies::OpenWith(Box::default());
    let mut options = OpenOptions { vfs: vfs.clone(), other_families, ..OpenOptions::default() };
    options.db.wal_recovery_mode = mode;
    let found = |db: Db| db.get(&db.default_family(), b"k", &ReadOptions::default()).map(|value| value.is_some());
    let first = found(Db::open(DIR, &options)?)?;
    assert_eq!(found(Db::open(DIR, &options)?)?, first, "a second open differs");
    Ok(first)
}

fn database(first_of_second_log: impl Fn(&[(SeqNo, SeqNo)]) -> SeqNo, damaged: bool) -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    rocksdbs(&vfs, DIR, None);
    let batches = batches(&vfs);
    assert!(batches.len() > 1);
    add_log(&vfs, first_of_second_log(&batches));
    if damaged {
        let bits = vfs.read_file(&log(16)).unwrap().len() as u64 * 8;
        vfs.flip_bit(&log(16), bits - 4).unwrap();
    }
    vfs
}

fn behind_the_last(batches: &[(SeqNo, SeqNo)]) -> SeqNo {
    SeqNo(batches.last().unwrap().1.0 + 1)
}

#[test]
fn a_log_behind_a_whole_one_is_replayed() {
    for mode in [WalRecoveryMode::PointInTime, WalRecoveryMode::AbsoluteConsistency] {
        assert!(has_k(&database(behind_the_last, false), mode).unwrap());
        // Numbers in between may have gone to no log.
        assert!(has_k(&database(|batches| SeqNo(behind_the_last(batches).0 + 9), false), mode).unwrap());
    }
}

#[test]
fn a_log_behind_a_damaged_one_is_no_history() {
    let damaged = || database(behind_the_last, true);
    assert!(!has_k(&damaged(), WalRecoveryMode::PointInTime).unwrap());
    assert!(has_k(&damaged(), WalRecoveryMode::SkipAnyCorruptedRecords).unwrap());
    for mode in [WalRecoveryMode::AbsoluteConsistency, WalRecoveryMode::TolerateCorruptedTailRecords] {
        let error = has_k(&damaged(), mode).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*log(16))), "{error:?}");
    }
}

/// Opens in salvage mode and returns whether any key is in doubt.
fn leaves_doubts(vfs: &Arc<MemoryVfs>) -> bool {
    let other_families = OtherFamilies::OpenWith(Box::default());
    let options = OpenOptions { vfs: vfs.clone(), other_families, ..OpenOptions::default() };
    !salvage_with(options).recovery_doubts().is_empty()
}

#[test]
fn a_salvage_doubts_what_a_damaged_log_held() {
    assert!(!leaves_doubts(&database(behind_the_last, false)), "it is whole");
    assert!(leaves_doubts(&database(behind_the_last, true)));
    assert!(!leaves_doubts(&database(|batches| batches.last().unwrap().0, true)), "the history goes on there");
    // A prepare takes no number: of a database that can have one, the damaged record may have been it.
    let vfs = database(|batches| batches.last().unwrap().0, true);
    let stored = vfs.read_dir(Path::new(DIR)).unwrap().into_iter().rfind(|name| name.starts_with("OPTIONS")).unwrap();
    let stored = Path::new(DIR).join(stored);
    let options = String::from_utf8(vfs.read_file(&stored).unwrap()).unwrap();
    let prepares = options.replace("allow_2pc=false", "allow_2pc=true");
    assert_ne!(options, prepares);
    vfs.write_file(&stored, prepares.as_bytes()).unwrap();
    assert!(leaves_doubts(&vfs));
    let vfs = database(behind_the_last, true);
    vfs.remove_file(&log(20)).unwrap();
    assert!(leaves_doubts(&vfs), "nothing tells that the last record was not written whole");
    // The damaged record lies between others.
    let vfs = database(behind_the_last, false);
    vfs.flip_bit(&log(16), 20 * 8).unwrap();
    assert!(leaves_doubts(&vfs));
}

#[test]
fn a_log_that_goes_on_where_the_damage_is_is_replayed() {
    let vfs = database(|batches| batches.last().unwrap().0, true);
    assert!(has_k(&vfs, WalRecoveryMode::PointInTime).unwrap());
}

/// Every block of the only log is damaged in turn. An open and a repair tell it, in whichever family, and the log is kept.
#[test]
fn damaged_log_is_told_and_kept_by_an_open_and_a_repair() {
    let whole = MemoryVfs::new(1);
    rocksdbs(&whole, DIR, None);
    let bytes = whole.read_file(&log(16)).unwrap();
    for at in (20..bytes.len() - 8).step_by(97) {
        for repairs in [false, true] {
            let vfs = crate::common::copy(&whole);
            vfs.flip_bit(&log(16), 8 * at as u64).unwrap();
            let damaged = vfs.read_file(&log(16)).unwrap();
            let merge_operator = base::merge::by_name("uint64add");
            let family = testkit::engine::FamilyOptions { merge_operator, ..Default::default() };
            let other_families = OtherFamilies::OpenWith(Box::new(family));
            let options =
                OpenOptions { vfs: vfs.clone(), adopt_rocksdb: true, other_families, ..OpenOptions::default() };
            let is_told = match repairs {
                true => !testkit::engine::repair(DIR, &options).unwrap().lost_nothing(),
                false => !Db::open(DIR, &options).unwrap().recovery_doubts().is_empty(),
            };
            // A crash of RocksDB's can leave its last record so.
            let is_last = batch_starts(&whole).last().is_some_and(|last| at as u64 >= *last);
            assert!(is_told || is_last, "byte {at}, repair: {repairs}");
            let kept = Path::new(DIR).join("lost/000016.log");
            assert!(!is_told || vfs.read_file(&kept).unwrap() == damaged, "byte {at}, repair: {repairs}");
        }
    }
}

/// Where each batch of the fixture's WAL begins, in bytes.
fn batch_starts(vfs: &MemoryVfs) -> Vec<u64> {
    let mut reader = FramedReader::open(vfs, &log(16), Some(16), IoClass::Log).unwrap();
    let mut starts = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        starts.push(record.offset);
    }
    starts
}
