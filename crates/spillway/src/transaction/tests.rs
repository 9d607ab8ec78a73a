use std::thread;

use base::ErrorKind;
use vfs::MemoryVfs;

use super::*;
use crate::internal::{CompactRangeOptions, FamilyOptions, OpenOptions};

fn open() -> Database {
    let mut options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
    options.db.large_batch_bytes = 1 << 20;
    Database::open("/db", &options).expect("opened")
}

fn put(db: &Database, key: &str, value: &str) {
    db.put(&db.default_family(), key.as_bytes(), value.as_bytes(), &WriteOptions::default()).expect("put");
}

fn get(db: &Database, key: &str) -> Option<String> {
    let found = db.get(&db.default_family(), key.as_bytes(), &ReadOptions::default()).expect("read");
    found.map(|value| String::from_utf8_lossy(&value).into_owned())
}

fn set<'a>(key: &'a [u8], value: &'a [u8]) -> Change<'a> {
    Change { kind: ValueKind::Value, key, value }
}

fn write(db: &Database, transaction: &mut Transaction, key: &str, value: &str) {
    let change = set(key.as_bytes(), value.as_bytes());
    transaction.write(db, &db.default_family(), change, Track::Tracked).expect("written");
}

fn read_for_update(db: &Database, transaction: &mut Transaction, key: &str) -> Option<String> {
    let found =
        transaction.get_for_update(db, &db.default_family(), key.as_bytes(), Mode::Exclusive, &ReadOptions::default());
    found.expect("read").map(|value| String::from_utf8_lossy(&value).into_owned())
}

fn commit(db: &Database, transaction: &mut Transaction) -> bool {
    match transaction.commit(db, &WriteOptions::default()) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            false
        }
    }
}

fn flush(db: &Database) {
    db.flush(&[&db.default_family()]).expect("flushed");
}

fn compact(db: &Database) {
    db.compact_range(&db.default_family(), None, None, &CompactRangeOptions::default()).expect("compacted");
}

/// What may happen to the tracked key "k" between the read and the commit, and whether it is a conflict. Each is tried
/// as it is, flushed, and compacted.
type Between = (&'static str, fn(&Database), bool);

const BETWEEN: [Between; 9] = [
    ("nothing", |_| (), false),
    ("another key", |db| put(db, "l", "1"), false),
    ("a put", |db| put(db, "k", "2"), true),
    ("the same value", |db| put(db, "k", "1"), true),
    ("a deletion", |db| db.delete(&db.default_family(), b"k", &WriteOptions::default()).expect("deleted"), true),
    (
        "a range deletion",
        |db| db.delete_range(&db.default_family(), b"a", b"z", &WriteOptions::default()).expect("deleted"),
        true,
    ),
    (
        "a range deletion beside",
        |db| db.delete_range(&db.default_family(), b"a", b"k", &WriteOptions::default()).expect("deleted"),
        false,
    ),
    (
        "a large batch",
        |db| {
            let mut batch = WriteBatch::new();
            batch.put(db.default_family().id(), b"a", &vec![7; 2 << 20]);
            batch.put(db.default_family().id(), b"k", b"2");
            db.write(&batch, &WriteOptions::default()).map(drop).expect("written");
        },
        true,
    ),
    (
        "a large batch beside",
        |db| {
            let mut batch = WriteBatch::new();
            batch.put(db.default_family().id(), b"a", &vec![7; 2 << 20]);
            db.write(&batch, &WriteOptions::default()).map(drop).expect("written");
        },
        false,
    ),
];

type Afterwards = (&'static str, fn(&Database));

const AFTERWARDS: [Afterwards; 3] = [
    ("in memory", |_| ()),
    ("flushed", flush),
    ("compacted", |db| {
        flush(db);
        compact(db);
    }),
];

#[test]
fn a_commit_fails_if_a_key_changed_wherever_the_change_is() {
    for (what, happens, is_conflict) in BETWEEN {
        for (place, settle) in AFTERWARDS {
            for is_read in [false, true] {
                let db = open();
                put(&db, "k", "1");
                compact(&db);
                let mut transaction = Transaction::default();
                if is_read {
                    assert_eq!(read_for_update(&db, &mut transaction, "k").as_deref(), Some("1"));
                    write(&db, &mut transaction, "other", "mine");
                } else {
                    write(&db, &mut transaction, "k", "mine");
                }
                happens(&db);
                settle(&db);
                assert_eq!(commit(&db, &mut transaction), !is_conflict, "{what}, {place}, read: {is_read}");
                let written = get(&db, if is_read { "other" } else { "k" });
                assert_eq!(written.as_deref() == Some("mine"), !is_conflict, "{what}, {place}");
            }
        }
    }
}

#[test]
fn a_key_that_was_absent_is_tracked_too() {
    for (place, settle) in AFTERWARDS {
        let db = open();
        put(&db, "a", "1");
        let mut transaction = Transaction::default();
        assert_eq!(read_for_update(&db, &mut transaction, "k"), None);
        put(&db, "k", "2");
        settle(&db);
        write(&db, &mut transaction, "l", "mine");
        assert!(!commit(&db, &mut transaction), "{place}");
        transaction.rollback(&db, &WriteOptions::default()).expect("rolled back");
        assert_eq!(read_for_update(&db, &mut transaction, "k").as_deref(), Some("2"));
        write(&db, &mut transaction, "l", "mine");
        assert!(commit(&db, &mut transaction), "{place}: again");
    }
}

#[test]
fn a_transaction_of_reads_alone_is_checked() {
    let db = open();
    let mut transaction = Transaction::default();
    read_for_update(&db, &mut transaction, "k");
    assert!(commit(&db, &mut transaction));
    read_for_update(&db, &mut transaction, "k");
    put(&db, "k", "1");
    assert!(!commit(&db, &mut transaction));
}

#[test]
fn snapshots_say_since_when_keys_must_stand() {
    let db = open();
    put(&db, "k", "1");
    let mut transaction = Transaction::default();
    transaction.set_snapshot(&db);
    put(&db, "k", "2");
    write(&db, &mut transaction, "k", "mine");
    assert!(!commit(&db, &mut transaction), "changed since the snapshot");
    transaction.rollback(&db, &WriteOptions::default()).expect("rolled back");

    transaction.set_snapshot_on_next_operation();
    put(&db, "k", "3");
    assert!(transaction.snapshot().is_none());
    write(&db, &mut transaction, "k", "mine");
    assert!(transaction.snapshot().is_some());
    assert!(commit(&db, &mut transaction), "taken at the write");
    assert!(transaction.snapshot().is_none(), "as new");

    // A read at a snapshot of the caller's tracks since then.
    let options = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
    put(&db, "k", "4");
    let family = db.default_family();
    let seen = transaction.get_for_update(&db, &family, b"k", Mode::Exclusive, &options).expect("read");
    assert_eq!(seen.as_deref(), Some(&b"mine"[..]));
    drop(options);
    flush(&db);
    compact(&db);
    write(&db, &mut transaction, "l", "mine");
    assert!(!commit(&db, &mut transaction), "though the caller released the snapshot");
}

#[test]
fn savepoints_take_back_keys_changes_and_snapshots() {
    let db = open();
    let family = db.default_family();
    let mut transaction = Transaction::default();
    write(&db, &mut transaction, "a", "1");
    transaction.set_savepoint();
    write(&db, &mut transaction, "b", "1");
    write(&db, &mut transaction, "a", "2");
    transaction.set_snapshot(&db);
    assert_eq!((transaction.counts().puts, transaction.num_keys()), (3, 2));
    assert!(transaction.rollback_to_savepoint());
    assert_eq!((transaction.counts().puts, transaction.num_keys()), (1, 1));
    assert!(transaction.snapshot().is_none());
    assert!(transaction.tracked_since(&family, b"a").is_some() && transaction.tracked_since(&family, b"b").is_none());
    put(&db, "b", "theirs");
    assert!(commit(&db, &mut transaction), "b is nobody's");
    assert_eq!((get(&db, "a").as_deref(), get(&db, "b").as_deref()), (Some("1"), Some("theirs")));
    assert!(!transaction.rollback_to_savepoint() && !transaction.pop_savepoint());
}

#[test]
fn reads_and_iterators_show_the_changes_and_nobody_else_sees_them() {
    let db = open();
    let family = db.default_family();
    ["a", "b", "c"].into_iter().for_each(|key| put(&db, key, "below"));
    let mut transaction = Transaction::default();
    write(&db, &mut transaction, "b", "mine");
    let deletion = Change { kind: ValueKind::Deletion, key: b"c", value: b"" };
    transaction.write(&db, &family, deletion, Track::Untracked).expect("written");
    let options = ReadOptions::default();
    let mut iterator = transaction.iter(&db, &family, &options).expect("made");
    write(&db, &mut transaction, "d", "mine");
    let mut seen = Vec::new();
    iterator.go(indexed::Move::First);
    while iterator.valid() {
        seen.push(format!("{}={}", String::from_utf8_lossy(iterator.key()), String::from_utf8_lossy(iterator.value())));
        iterator.go(indexed::Move::Next);
    }
    assert_eq!(seen.join(" "), "a=below b=mine d=mine");
    assert_eq!(transaction.get(&db, &family, b"c", &options).expect("read"), None);
    assert_eq!(get(&db, "c").as_deref(), Some("below"));
    put(&db, "c", "theirs");
    transaction.set_indexing(false);
    write(&db, &mut transaction, "e", "mine");
    assert_eq!(transaction.get(&db, &family, b"e", &options).expect("read"), None, "not indexed");
    assert!(commit(&db, &mut transaction), "the deletion was untracked");
    assert_eq!((get(&db, "c"), get(&db, "e").as_deref()), (None, Some("mine")));
}

#[test]
fn a_large_transaction_is_checked_too() {
    let db = open();
    for is_conflict in [false, true] {
        let mut transaction = Transaction::default();
        write(&db, &mut transaction, "k", "mine");
        write(&db, &mut transaction, "large", &"v".repeat(3 << 20));
        if is_conflict {
            put(&db, "k", "theirs");
        }
        assert_eq!(commit(&db, &mut transaction), !is_conflict);
        assert_eq!(get(&db, "k").as_deref(), Some(if is_conflict { "theirs" } else { "mine" }));
    }
}

#[test]
fn families_are_tracked_apart() {
    let db = open();
    let other = db.create_family("other", FamilyOptions::default()).expect("made");
    let mut transaction = Transaction::default();
    write(&db, &mut transaction, "k", "mine");
    transaction.write(&db, &other, set(b"l", b"mine"), Track::Tracked).expect("written");
    db.put(&other, b"k", b"theirs", &WriteOptions::default()).expect("put");
    put(&db, "l", "theirs");
    assert!(commit(&db, &mut transaction));
    transaction.write(&db, &other, set(b"k", b"mine"), Track::Tracked).expect("written");
    db.put(&other, b"k", b"theirs", &WriteOptions::default()).expect("put");
    assert!(!commit(&db, &mut transaction));
}

/// Transfers between accounts beside plain writers, flushes and compactions: the sum stays.
#[test]
fn money_is_neither_made_nor_lost() {
    const ACCOUNTS: u64 = 16;
    let vfs = MemoryVfs::new(1);
    vfs.set_runs_inline(false);
    let db = Database::open("/db", &OpenOptions { vfs, ..OpenOptions::create_if_missing() }).expect("opened");
    let amount =
        |found: Option<Pinned>| found.map_or(0, |value| value.as_ref().try_into().map_or(0, u64::from_le_bytes));
    let family = db.default_family();
    for n in 0..ACCOUNTS {
        db.put(&family, &[n as u8], &1000u64.to_le_bytes(), &WriteOptions::default()).expect("put");
    }
    let transfer = |seed: u64| {
        let (mut random, mut done, mut conflicts) = (seed, 0, 0);
        let (mut transaction, options) = (Transaction::default(), ReadOptions::default());
        while done < 400 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (from, to) = ([(random >> 40) as u8 % ACCOUNTS as u8], [(random >> 50) as u8 % ACCOUNTS as u8]);
            if from == to {
                continue;
            }
            let mut read = |key| {
                let found = transaction.get_for_update(&db, &family, key, Mode::Exclusive, &options);
                amount(found.expect("read"))
            };
            let (a, b) = (read(&from), read(&to));
            let moved = a.min(random >> 60);
            if done % 16 == 0 {
                thread::yield_now();
            }
            for (key, value) in [(&from, a - moved), (&to, b + moved)] {
                let value = value.to_le_bytes();
                transaction.write(&db, &family, set(key, &value), Track::Tracked).expect("written");
            }
            if commit(&db, &mut transaction) {
                done += 1;
            } else {
                conflicts += 1;
                transaction.rollback(&db, &WriteOptions::default()).expect("rolled back");
            }
        }
        conflicts
    };
    let conflicts: u64 = thread::scope(|scope| {
        let all: Vec<_> = (1..=4).map(|seed| scope.spawn(move || transfer(seed))).collect();
        scope.spawn(|| {
            for n in 0..300u64 {
                db.put(&family, &[200, n as u8], &n.to_le_bytes(), &WriteOptions::default()).expect("put");
                if n % 50 == 0 {
                    db.flush(&[&family]).expect("flushed");
                    compact(&db);
                }
            }
        });
        all.into_iter().map(|one| one.join().expect("no panic")).sum()
    });
    let sum: u64 =
        (0..ACCOUNTS).map(|n| amount(db.get(&family, &[n as u8], &ReadOptions::default()).expect("read"))).sum();
    assert_eq!(sum, ACCOUNTS * 1000);
    assert!(conflicts > 0, "the threads never met");
}

#[test]
fn a_read_that_was_undone_is_no_conflict() {
    let db = open();
    put(&db, "k", "1");
    let (mut undone, mut written) = (Transaction::default(), Transaction::default());
    for transaction in [&mut undone, &mut written] {
        read_for_update(&db, transaction, "k");
    }
    write(&db, &mut written, "k", "2");
    for transaction in [&mut undone, &mut written] {
        transaction.undo_get_for_update(&db.default_family(), b"k");
        write(&db, transaction, "other", "x");
    }
    put(&db, "k", "3");
    assert!(!commit(&db, &mut written), "it wrote the key");
    written.rollback(&db, &WriteOptions::default()).expect("as new");
    assert!(commit(&db, &mut undone));
    read_for_update(&db, &mut undone, "k");
    undone.set_savepoint();
    undone.undo_get_for_update(&db.default_family(), b"k");
    write(&db, &mut undone, "other", "y");
    put(&db, "k", "4");
    assert!(!commit(&db, &mut undone), "the read was before the savepoint");
}
