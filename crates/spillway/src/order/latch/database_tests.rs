//! Latches in a database: behaviour of writes and other ingest modes while a latch is held.

use std::path::Path;
use std::sync::Arc;

use base::ErrorKind;
use vfs::{MemoryVfs, Vfs};

use super::*;
use crate::internal::{
    Database, Family, FamilyOptions, IngestOptions, OpenOptions, ReadOptions, TableWriter, WriteBatch, WriteOptions,
};
use crate::order::stall::StallCause;

const DIR: &str = "/db";

fn open() -> (Arc<dyn Vfs>, Database) {
    let vfs = MemoryVfs::new(1);
    vfs.set_runs_inline(false);
    let mut options = OpenOptions::create_if_missing().family("other", FamilyOptions::default());
    options.db.create_missing_column_families = true;
    options.db.large_batch_bytes = 4096;
    options.vfs = vfs.clone();
    (vfs, Database::open(DIR, &options).expect("a new database"))
}

fn latch<'a>(db: &'a Database, family: &Family, start: &str, end: &str) -> LatchGuard<'a> {
    let span = Span { start: start.into(), end: end.into(), end_is_exclusive: true };
    let span = LatchSpan { family: family.id(), order: family.order().user.clone(), span };
    let core = db.core();
    let barrier = || drop(core.commit.lock());
    core.latches.acquire(Reach::of(vec![span]), &|| core.check_writable(), barrier).expect("it is open")
}

fn queued(db: &Database) -> usize {
    db.core().latches.lock().entries.len()
}

fn waits(db: &Database) -> u64 {
    db.stalls().iter().filter(|stall| stall.cause == StallCause::Ingest).map(|stall| stall.waits).sum()
}

fn impatient() -> WriteOptions {
    WriteOptions { no_slowdown: true, ..WriteOptions::default() }
}

fn batch(add: impl FnOnce(&mut WriteBatch)) -> WriteBatch {
    let mut batch = WriteBatch::new();
    add(&mut batch);
    batch
}

#[test]
fn only_what_overlaps_would_have_to_wait() {
    let (_, db) = open();
    let (family, other) = (db.default_family(), db.family("other").expect("made at open"));
    let _latch = latch(&db, &other, "d", "k");
    let numbered = |add: &dyn Fn(&mut WriteBatch)| match db.write(&batch(add), &impatient()) {
        Ok(_) => true,
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Busy);
            assert!(e.to_string().contains("wait for an ingest"), "{e}");
            false
        }
    };
    assert!(numbered(&|b| b.put(family.id(), b"e", b"another family's")));
    assert!(numbered(&|b| b.put(other.id(), b"k", b"behind the span")));
    assert!(numbered(&|b| b.put(other.id(), b"c", &[7; 8192])), "a large batch");
    assert!(!numbered(&|b| b.put(other.id(), b"d", b"")));
    assert!(!numbered(&|b| b.put(other.id(), b"e", &[7; 8192])), "a large batch");
    assert!(!numbered(&|b| b.delete_range(other.id(), b"a", b"z")), "around the span");
    assert!(!numbered(&|b| {
        b.put(family.id(), b"e", b"another family's");
        b.delete(other.id(), b"j");
    }));
    assert_eq!(waits(&db), 0, "nobody waited");
    assert_eq!(queued(&db), 1);
}

#[test]
fn writes_that_overlap_come_after_the_latch_and_are_counted() {
    let (_, db) = open();
    let family = db.default_family();
    let held = latch(&db, &family, "d", "k");
    let before = db.latest_sequence_number();
    std::thread::scope(|scope| {
        for value in [vec![7; 8], vec![7; 8192]] {
            let (db, family) = (&db, &family);
            scope.spawn(move || db.put(family, b"e", &value, &WriteOptions::default()).expect("after the latch"));
        }
        while queued(&db) < 3 {
            std::thread::yield_now();
        }
        assert_eq!(db.core().commit.lock().last_seq, before, "no number was given out");
        db.put(&family, b"z", b"elsewhere", &WriteOptions::default()).expect("it need not wait");
        drop(held);
    });
    assert!(db.get(&family, b"e", &ReadOptions::default()).expect("open").is_some());
    assert_eq!((waits(&db), queued(&db)), (2, 0));
}

#[test]
fn an_ingest_of_another_way_waits_only_where_it_overlaps() {
    let (vfs, db) = open();
    let family = db.default_family();
    let table = |key: &[u8]| {
        let path = Path::new(DIR).with_file_name(format!("{}.sst", key.escape_ascii()));
        let mut table = TableWriter::create(vfs.clone(), path.clone(), &FamilyOptions::default()).expect("a new file");
        table.put(key, b"ingested").expect("the only key");
        table.finish().expect("written");
        [path]
    };
    let (inside, outside) = (table(b"e"), table(b"x"));
    let held = latch(&db, &family, "d", "k");
    std::thread::scope(|scope| {
        let ingest = scope.spawn(|| db.ingest(&family, &inside, &IngestOptions::default()));
        while queued(&db) < 2 {
            std::thread::yield_now();
        }
        db.ingest(&family, &outside, &IngestOptions::default()).expect("it passes the one that waits");
        let read = |key: &[u8]| db.get(&family, key, &ReadOptions::default()).expect("open").is_some();
        assert!(read(b"x") && !read(b"e"));
        drop(held);
        ingest.join().expect("no panic").expect("after the latch");
        assert!(read(b"e"));
    });
    assert_eq!((waits(&db), queued(&db)), (0, 0), "it is no writer that waited");
}

#[test]
fn a_spare_memtable_is_kept_from_nobody_over_a_wait() {
    let (_, db) = open();
    let family = db.default_family();
    let spare = || db.core().state.lock().families[&family.id()].spare.as_ref().map(|spare| spare.memtable().clone());
    assert!(spare().is_none(), "nobody needs one yet");
    let held = latch(&db, &family, "d", "k");
    let kept = std::thread::scope(|scope| {
        // Needs a fresh memtable above it.
        scope.spawn(|| db.put(&family, b"e", &[7; 8192], &WriteOptions::default()).expect("after the latch"));
        while queued(&db) < 2 {
            std::thread::yield_now();
        }
        let kept = spare().expect("left to others as long as the write waits");
        drop(held);
        kept
    });
    // Upkeep may have made another since.
    assert!(Arc::ptr_eq(family.view_full().mutable.memtable(), &kept), "it was taken after all");
}

#[test]
fn waits_end_when_the_database_closes_or_fails() {
    for closes in [true, false] {
        let (_, db) = open();
        let family = db.default_family();
        let held = latch(&db, &family, "a", "z");
        std::thread::scope(|scope| {
            let write = scope.spawn(|| db.put(&family, b"e", b"", &WriteOptions::default()));
            while queued(&db) < 2 {
                std::thread::yield_now();
            }
            if closes {
                db.close().expect("nothing keeps it open");
            } else {
                db.core().fail(&base::Error::read_only("for this test"));
            }
            let error = write.join().expect("no panic").expect_err("no latch was freed");
            assert_eq!(error.kind(), if closes { ErrorKind::Closed } else { ErrorKind::ReadOnly });
        });
        drop(held);
    }
}
