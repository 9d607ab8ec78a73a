//! A batch without changes is asked for what it does to writes before it: `sync` is the cheap way to sync the log.

use std::sync::Arc;

use testkit::engine::{Db, OpenOptions, ReadOptions, WriteBatch, WriteOptions};
use vfs::{CrashPolicy, MemoryVfs, Vfs};

fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    let mut options = OpenOptions { vfs: vfs.clone() as Arc<dyn Vfs>, ..OpenOptions::create_if_missing() };
    options.db.log_file_bytes = 64 << 10;
    options
}

/// What a power loss leaves of a write without sync that `batch`, written with `how`, comes after.
fn left_of_a_write_before(batch: &WriteBatch, how: &WriteOptions, before: &WriteOptions) -> Option<Vec<u8>> {
    let vfs = MemoryVfs::new(1);
    let db = Db::open("/db", &options(&vfs)).expect("done");
    db.put(&db.default_family(), b"key", b"value", before).expect("done");
    let last = db.write(batch, how).expect("done");
    assert_eq!(last, db.latest_sequence_number(), "it takes no number");
    let after = vfs.crash_clone(1, CrashPolicy::NothingUnsyncedKept);
    drop(db);
    let db = Db::open("/db", &options(&after)).expect("done");
    db.get(&db.default_family(), b"key", &ReadOptions::default()).expect("done").map(|value| value.to_vec())
}

#[test]
fn a_batch_without_changes_syncs_and_flushes_what_was_written_before_it() {
    let (plain, unlogged) = (WriteOptions::default(), WriteOptions { disable_wal: true, ..WriteOptions::default() });
    let flushing = WriteOptions { flush_after: true, ..plain };
    let mut of_log_data = WriteBatch::new();
    of_log_data.put_log_data(b"a blob");
    let mut taken_back = WriteBatch::new();
    taken_back.set_savepoint();
    taken_back.put(testkit::engine::FamilyId::DEFAULT, b"key", b"never");
    taken_back.rollback_to_savepoint();
    let value = Some(b"value".to_vec());
    for batch in [WriteBatch::new(), of_log_data, taken_back] {
        assert_eq!(left_of_a_write_before(&batch, &plain, &plain), None, "a power loss takes what is not synced");
        assert_eq!(left_of_a_write_before(&batch, &WriteOptions::synced(), &plain), value);
        assert_eq!(left_of_a_write_before(&batch, &WriteOptions::synced(), &unlogged), None, "it is in no log");
        assert_eq!(left_of_a_write_before(&batch, &flushing, &plain), value);
        assert_eq!(left_of_a_write_before(&batch, &flushing, &unlogged), value);
    }
}

#[test]
fn a_sync_without_a_log_is_refused_however_little_the_batch_holds() {
    let db = Db::open("/db", &options(&MemoryVfs::new(1))).unwrap();
    let both = WriteOptions { disable_wal: true, ..WriteOptions::synced() };
    let error = db.write(&WriteBatch::new(), &both).unwrap_err();
    assert_eq!(error.kind(), testkit::engine::ErrorKind::InvalidArgument);
}
