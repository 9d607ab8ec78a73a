//! Cursors over the batches in the log: every write once and in order, also beside writers; and what is no batch there.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod archived;
mod beside_writers;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::engine::vfs::{MemoryVfs, Vfs};
use testkit::engine::{
    Change, Db, ErrorKind, FamilyOptions, IngestOptions, IngestProgress, IngestRequest, LockLimits, LockTable,
    LogCursor, OpenOptions, Patience, Pessimistic, SeqNo, TableWriter, Track, Transaction, Update, ValueKind,
    WriteBatch, WriteOptions,
};

fn options(vfs: Arc<dyn Vfs>) -> OpenOptions {
    let mut options = OpenOptions { vfs, ..OpenOptions::create_if_missing() };
    options.db.large_batch_bytes = 16 << 10;
    options.db.log_file_bytes = 64 << 10;
    options
}

fn open() -> (Arc<MemoryVfs>, Db) {
    let vfs = MemoryVfs::new(5);
    let db = Db::open("/db", &options(vfs.clone())).unwrap();
    (vfs, db)
}

fn put(db: &Db, key: &str, value: &[u8]) -> SeqNo {
    write(db, WriteOptions::default(), |batch| batch.put(db.default_family().id(), key.as_bytes(), value))
}

fn write(db: &Db, options: WriteOptions, fill: impl FnOnce(&mut WriteBatch)) -> SeqNo {
    let mut batch = WriteBatch::new();
    fill(&mut batch);
    db.write(&batch, &options).unwrap()
}

const UNLOGGED: WriteOptions = WriteOptions {
    sync: false,
    disable_wal: true,
    flush_after: false,
    no_slowdown: false,
    ignore_missing_column_families: false,
};

const LOCKING: Pessimistic =
    Pessimistic { patience: Patience { wait_max: None, deadlock_depth: None }, expires_after: None };

fn cursor(db: &Db, seq: u64) -> LogCursor {
    db.updates_since(SeqNo(seq), false).unwrap()
}

/// The first numbers of all batches from here on.
fn numbers(cursor: &mut LogCursor) -> Vec<u64> {
    updates(cursor).iter().map(|update| update.sequence_number().0).collect()
}

fn updates(cursor: &mut LogCursor) -> Vec<Update> {
    std::iter::from_fn(|| cursor.read().unwrap()).collect()
}

fn refused(cursor: &mut LogCursor, expected: &str) {
    for _ in 0..2 {
        let error = cursor.read().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotLogged, "{error}");
        assert!(error.message().contains(expected), "{error}");
    }
}

#[test]
fn a_cursor_begins_with_the_batch_of_its_number_and_goes_on_when_more_was_written() {
    let (_vfs, db) = open();
    assert_eq!(numbers(&mut cursor(&db, 0)), [0; 0]);
    let mut early = cursor(&db, 1);
    assert_eq!(numbers(&mut early), [0; 0]);
    put(&db, "a", b"1");
    let last = write(&db, WriteOptions::default(), |batch| {
        (0..3).for_each(|n| batch.put(db.default_family().id(), &[n], b"v"));
    });
    assert_eq!(last, SeqNo(4));
    put(&db, "b", b"2");
    for (seq, expected) in
        [(0, &[1, 2, 5][..]), (1, &[1, 2, 5]), (2, &[2, 5]), (3, &[2, 5]), (4, &[2, 5]), (5, &[5]), (6, &[])]
    {
        assert_eq!(numbers(&mut cursor(&db, seq)), expected, "{seq}");
    }
    assert_eq!(numbers(&mut early), [1, 2, 5]);
    put(&db, "c", b"3");
    assert_eq!(numbers(&mut early), [6]);
    assert_eq!(db.updates_since(SeqNo(8), false).err().unwrap().kind(), ErrorKind::InvalidArgument);
    db.close().unwrap();
    assert_eq!(early.read().unwrap_err().kind(), ErrorKind::Closed);
}

#[test]
fn a_batch_has_the_bytes_that_were_written_whatever_is_in_it_and_wherever_it_lies() {
    let (_vfs, db) = open();
    db.set_db_options(&[("WAL_size_limit_MB", "100")]).unwrap(); // or files of large batches go with their flush
    let second = db.create_family("second", FamilyOptions::default()).unwrap();
    let first = db.default_family();
    let mut written = Vec::new();
    let mut cursor = cursor(&db, 1);
    let mut seen = Vec::new();
    for n in 0..60u64 {
        let mut batch = WriteBatch::new();
        batch.put(first.id(), &n.to_be_bytes(), &vec![n as u8; if n % 7 == 3 { 30_000 } else { 2000 }]);
        batch.put_log_data(b"kept");
        batch.delete(second.id(), &n.to_be_bytes());
        batch.single_delete(first.id(), b"one");
        batch.delete_range(second.id(), &n.to_be_bytes(), &(n + 3).to_be_bytes());
        let last = db.write(&batch, &WriteOptions::default()).unwrap();
        written.push((last.0 - 3, batch.as_bytes()[12..].to_vec()));
        if n % 10 == 0 {
            seen.extend(updates(&mut cursor));
        }
    }
    seen.extend(updates(&mut cursor));
    let seen: Vec<_> = seen
        .iter()
        .map(|update| {
            let bytes = update.as_bytes();
            assert_eq!(bytes[..8], update.sequence_number().0.to_le_bytes());
            assert_eq!(bytes[8..12], 4u32.to_le_bytes());
            (update.sequence_number().0, bytes[12..].to_vec())
        })
        .collect();
    assert!(seen == written, "{} of {}", seen.len(), written.len());
}

#[test]
fn writes_that_no_log_has_are_told_and_a_cursor_behind_them_goes_on() {
    let (_vfs, db) = open();
    put(&db, "a", b"1");
    let mut one = cursor(&db, 1);
    assert_eq!(numbers(&mut one), [1]);
    write(&db, UNLOGGED, |batch| batch.put(db.default_family().id(), b"b", b"2"));
    refused(&mut one, "numbers 2 to 2 are not in the log");
    put(&db, "c", b"3");
    refused(&mut one, "numbers 2 to 2 are not in the log: they were written without a log");
    assert_eq!(numbers(&mut cursor(&db, 3)), [3]);
    let mut or_later = db.updates_since(SeqNo(2), true).unwrap();
    assert_eq!(numbers(&mut or_later), [3], "as in RocksDB");
}

#[test]
fn logs_that_are_gone_are_told() {
    let (vfs, db) = open();
    let unflushed = db.create_family("unflushed", FamilyOptions::default()).unwrap();
    let mut slow = cursor(&db, 1);
    (0..40).for_each(|n| {
        put(&db, &n.to_string(), &[7; 6000]);
    });
    db.flush(&[&db.default_family(), &unflushed]).unwrap();
    put(&db, "late", b"v");
    db.flush(&[&db.default_family()]).unwrap();
    let logs = vfs.all_files().iter().filter(|path| path.extension().is_some_and(|kind| kind == "splog")).count();
    assert!(logs <= 1, "{logs}");
    let first = db.updates_since(SeqNo(0), false).unwrap().read().unwrap().unwrap().sequence_number();
    assert!(first > SeqNo(1), "{first}");
    refused(&mut slow, &format!("numbers 1 to {} are not in the log", first.0 - 1));
    assert_eq!(numbers(&mut db.updates_since(SeqNo(1), true).unwrap())[0], first.0);
    assert_eq!(*numbers(&mut cursor(&db, first.0)).last().unwrap(), 41);
}

#[test]
fn a_log_stays_while_a_cursor_is_in_it() {
    let (_vfs, db) = open();
    (0..5).for_each(|n| {
        put(&db, &n.to_string(), &[7; 6000]);
    });
    let mut cursor = cursor(&db, 1);
    assert_eq!(cursor.read().unwrap().unwrap().sequence_number(), SeqNo(1));
    (5..40).for_each(|n| {
        put(&db, &n.to_string(), &[7; 6000]);
    });
    db.flush(&[&db.default_family()]).unwrap();
    let seen: Vec<u64> = std::iter::from_fn(|| cursor.read().ok().flatten().map(|u| u.sequence_number().0)).collect();
    assert!(seen.len() >= 4 && seen.iter().copied().eq(2..2 + seen.len() as u64), "{seen:?}");
}

fn table(vfs: &Arc<MemoryVfs>, key: &[u8]) -> PathBuf {
    let path = PathBuf::from("/in.sst");
    let _ = vfs.remove_file(&path);
    let mut table = TableWriter::create(vfs.clone(), &path, &FamilyOptions::default()).unwrap();
    table.put(key, b"in").unwrap();
    table.finish().unwrap();
    path
}

#[test]
fn an_ingest_is_told_and_its_batch_is_shown() {
    let (vfs, db) = open();
    put(&db, "a", b"1");
    let mut one = cursor(&db, 1);
    assert_eq!(numbers(&mut one), [1]);
    let ingest = |key: &[u8]| {
        let request = IngestRequest::new(db.default_family(), vec![table(&vfs, key)]);
        db.prepare_ingest(&[request], &IngestOptions::default(), &IngestProgress::default()).unwrap()
    };
    db.commit_ingest(ingest(b"b")).unwrap();
    refused(&mut one, "numbers 2 to 2 are not in the log: they are of ingested tables");
    assert_eq!(numbers(&mut cursor(&db, 3)), [0; 0]);
    assert_eq!(numbers(&mut db.updates_since(SeqNo(2), true).unwrap()), [0; 0]);
    let mut batch = WriteBatch::new();
    batch.put(db.default_family().id(), b"c", b"3");
    db.write_with_ingest(&batch, ingest(b"d")).unwrap();
    refused(&mut cursor(&db, 3), "numbers 3 to 3 are not in the log: they are of ingested tables");
    assert_eq!(numbers(&mut cursor(&db, 4)), [4]);
    assert_eq!(numbers(&mut db.updates_since(SeqNo(2), true).unwrap()), [4]);
}

#[test]
fn a_history_that_recovery_cut_off_is_not_shown() {
    let (vfs, db) = open();
    (0..8).for_each(|n| {
        put(&db, &n.to_string(), &[n; 9000]);
    });
    std::mem::forget(db);
    let mut logs: Vec<_> = vfs.all_files();
    logs.retain(|path| path.extension().is_some_and(|kind| kind == "splog"));
    logs.sort();
    // The last record of the first log is torn. What is in the log behind was never acknowledged.
    let crashed = vfs.crash_clone(1, testkit::engine::vfs::CrashPolicy::AllKept);
    let len = crashed.read_file(&logs[0]).unwrap().iter().rposition(|&byte| byte != 0).unwrap();
    crashed.flip_bit(&logs[0], (len as u64 - 100) * 8).unwrap();
    crashed.set_mount(Some(99));
    let db = Db::open("/db", &options(crashed.clone())).unwrap();
    let last = db.latest_sequence_number().0;
    assert!(last < 8, "{last}");
    let added = put(&db, "new", b"v");
    assert_eq!(added.0, last + 1);
    let all = updates(&mut cursor(&db, 1));
    assert!(all.iter().map(|update| update.sequence_number().0).eq(1..=added.0));
    assert!(all.last().unwrap().as_bytes().windows(3).any(|bytes| bytes == b"new"));
    assert!(Path::new("/db").is_absolute());
}

/// What a transaction changed is shown where it was committed, whether the cursor has read its prepare or not.
#[test]
fn prepared_transactions_are_shown_once_they_are_committed() {
    let vfs = MemoryVfs::new(5);
    let db = Db::open("/db", &options(vfs)).unwrap();
    let locks = Arc::new(LockTable::of(&db, LockLimits::default()));
    let prepare = |name: &str, key: &str| {
        let mut transaction = Transaction::pessimistic(&locks, LOCKING);
        if !key.is_empty() {
            let change = Change { kind: ValueKind::Value, key: key.as_bytes(), value: b"1" };
            transaction.write(&db, &db.default_family(), change, Track::Tracked).unwrap();
        }
        transaction.set_name(&db, name.as_bytes()).unwrap();
        transaction.prepare(&db, &WriteOptions::default()).unwrap();
        transaction
    };
    let mut early = cursor(&db, 1);
    let (mut one, mut two, mut none) = (prepare("one", "a"), prepare("two", "b"), prepare("none", ""));
    put(&db, "between", b"1"); // 4
    for round in 0..3u8 {
        (0..20).for_each(|n| _ = put(&db, &format!("{round}-{n}"), &[7; 6000])); // into later logs
    }
    let filled = db.latest_sequence_number().0;
    two.rollback(&db, &WriteOptions::default()).unwrap();
    none.commit(&db, &WriteOptions::default()).unwrap();
    one.commit(&db, &WriteOptions::default()).unwrap();
    put(&db, "behind", b"1");
    let shown = updates(&mut early);
    assert_eq!(shown.first().map(|update| update.sequence_number().0), Some(4));
    let last: Vec<u64> = shown.iter().rev().take(3).map(|update| update.sequence_number().0).collect();
    assert_eq!(last, [filled + 4, filled + 3, filled]);
    let committed = &shown[shown.len() - 2];
    let mut expected = WriteBatch::new();
    expected.put(db.default_family().id(), b"a", b"1");
    assert_eq!(committed.as_bytes()[12..], expected.as_bytes()[12..]);
    let late = updates(&mut cursor(&db, filled + 1));
    assert_eq!(late, shown[shown.len() - 2..], "the prepare's log is found");
}
