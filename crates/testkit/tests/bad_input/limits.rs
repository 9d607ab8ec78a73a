//! Keys, values and batches at their size limits.

use testkit::engine::{Db, ErrorKind, ReadOptions, WriteBatch, WriteOptions};
use testkit::profile;
use testkit::run::DIR;
use vfs::MemoryVfs;

use crate::common::profile;

fn check_reopened(vfs: &std::sync::Arc<MemoryVfs>, profile: profile::Profile, pairs: &[(Vec<u8>, Vec<u8>)]) {
    for flush in [false, true] {
        let db = Db::open(DIR, &profile.open_options(vfs.clone(), ["users"])).unwrap();
        if flush {
            db.flush(&db.families().iter().collect::<Vec<_>>()).unwrap();
        }
        for family in db.families() {
            for (key, value) in pairs {
                let found = db.get(&family, key, &ReadOptions::default()).unwrap();
                assert!(found.as_deref() == Some(&**value), "a key of {} bytes, {} of value", key.len(), value.len());
            }
            let mut iterator = db.iter(&family, &ReadOptions::default()).unwrap();
            let mut count = usize::from(iterator.seek_to_first());
            while iterator.next() {
                count += 1;
            }
            iterator.status().unwrap();
            assert_eq!(count, pairs.len());
        }
    }
}

#[test]
fn empty_and_huge_keys_and_values_come_back() {
    for profile in profile::ALL {
        let vfs = MemoryVfs::new(1);
        let mut pairs = vec![
            (Vec::new(), Vec::new()),
            (vec![0], vec![0; 1 << 20]),
            (vec![0; 70_000], b"long key of zeros".to_vec()),
            (vec![0xff; 300_000], vec![1; 5 << 20]),
            (b"k".to_vec(), vec![7; 24 << 20]),
        ];
        pairs.sort();
        let db = Db::open(DIR, &profile.open_options(vfs.clone(), ["users"])).unwrap();
        for (key, value) in &pairs {
            let mut batch = WriteBatch::new();
            db.families().iter().for_each(|family| batch.put(family.id(), key, value));
            db.write(&batch, &WriteOptions::default()).unwrap();
        }
        drop(db);
        check_reopened(&vfs, profile, &pairs);
    }
}

#[test]
fn a_batch_larger_than_memtable_and_log_is_whole() {
    for profile in profile::ALL {
        let vfs = MemoryVfs::new(1);
        let pairs: Vec<_> = (0..1500u32).map(|n| (n.to_be_bytes().to_vec(), vec![n as u8; 1000])).collect();
        let db = Db::open(DIR, &profile.open_options(vfs.clone(), ["users"])).unwrap();
        let mut batch = WriteBatch::new();
        for family in db.families() {
            pairs.iter().for_each(|(key, value)| batch.put(family.id(), key, value));
        }
        db.write(&batch, &WriteOptions::synced()).unwrap();
        let after = vfs.crash_clone(1, vfs::CrashPolicy::NothingUnsyncedKept);
        drop(db);
        check_reopened(&after, profile, &pairs);
        check_reopened(&vfs, profile, &pairs);
    }
}

#[test]
fn a_value_of_4_gib_is_refused_and_nothing_of_its_batch_written() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &profile().open_options(vfs, ["users"])).unwrap();
    let family = db.default_family();
    let mut batch = WriteBatch::new();
    batch.put(family.id(), b"beside", b"1");
    batch.put(family.id(), b"huge", &vec![0; 1 << 32]); // never touched, so never in memory
    let error = db.write(&batch, &WriteOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error:?}");
    assert!(db.get(&family, b"beside", &ReadOptions::default()).unwrap().is_none());
    db.put(&family, b"goes on", b"1", &WriteOptions::default()).unwrap();
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &profile().open_options(vfs, ["users"])).unwrap();
    let family = db.default_family();
    let refused =
        |result: testkit::engine::Result<()>| assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidArgument);
    let options = WriteOptions::default();
    refused(db.delete_range(&family, b"b", b"a", &options));
    refused(db.put(&family, b"k", b"v", &WriteOptions { sync: true, disable_wal: true, ..options }));
    let mut batch = WriteBatch::new();
    batch.put(base::FamilyId(77), b"k", b"v");
    refused(db.write(&batch, &options).map(drop));
    refused(db.drop_family(&family));
    refused(db.create_family("users", profile().family_options("users")).map(drop));
}
