//! The memory of memtables: what they hold, what a flush leaves of it, and the limit on all of them together.
#![allow(clippy::disallowed_methods, reason = "tests use threads as other programs do")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use testkit::engine::stall::StallCause;
use testkit::engine::vfs::{MemoryVfs, Vfs};
use testkit::engine::{Db, ErrorKind, Family, FamilyOptions, OpenOptions, ReadOptions, WriteBatch, WriteOptions};

/// Bytes by which memtable memory can exceed `limit_bytes` (`db_write_buffer_size`), besides empty memtables and
/// batches larger than the limit: an eighth of the limit for lists that double when they grow (`vector`), and 1 MiB.
const fn slack_bytes(limit_bytes: usize) -> usize {
    limit_bytes / 8 + (1 << 20)
}

fn in_memory(memtable: &str) -> (Db, Arc<Family>) {
    let family = FamilyOptions { memtable_factory: memtable.into(), ..FamilyOptions::default() };
    let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
    let options = OpenOptions { vfs, ..OpenOptions::create_if_missing() }.family("default", family);
    let db = Db::open("/db", &options).expect("open");
    let family = db.default_family();
    (db, family)
}

fn number(db: &Db, family: &Family, name: &str) -> u64 {
    db.int_property(family, name).expect("a property")
}

/// Bytes of the memtables of all families, those included that only readers keep.
fn memtable_bytes(db: &Db) -> u64 {
    db.families().iter().map(|family| number(db, family, "rocksdb.size-all-mem-tables")).sum()
}

/// Versions of a hot key that nobody can see any more do not reach the table.
#[test]
fn overwritten_versions_stay_out_of_the_flushed_table() {
    for memtable in memtable::names() {
        for with_snapshot in [false, true] {
            let (db, family) = in_memory(memtable);
            let mut held = None;
            for i in 0..100_000u64 {
                if i == 50_000 && with_snapshot {
                    held = Some(db.snapshot());
                }
                let key = format!("hot{}", i % 10);
                db.put(&family, key.as_bytes(), &i.to_le_bytes(), &WriteOptions::default()).expect("put");
            }
            assert_eq!(number(&db, &family, "rocksdb.num-entries-active-mem-table"), 100_000);
            db.flush(&[&family]).expect("flush");
            let expected = if with_snapshot { 20 } else { 10 };
            assert_eq!(number(&db, &family, "rocksdb.estimate-num-keys"), expected, "{memtable}");
            assert!(db.live_files().iter().all(|file| file.bytes < 4096), "{memtable}");
            let options = ReadOptions { snapshot: held, ..ReadOptions::default() };
            let value = db.get(&family, b"hot7", &options).expect("readable").expect("there");
            let last: u64 = if with_snapshot { 49_997 } else { 99_997 };
            assert_eq!(&*value, last.to_le_bytes(), "{memtable}");
        }
    }
}

#[test]
fn a_family_tells_which_memtable_it_has() {
    let (db, family) = in_memory("vector");
    assert_eq!(db.property(&family, "spillway.memtable").expect("a property"), "vector");
    assert!(db.property(&family, "rocksdb.stats").expect("a property").contains("Memtable: vector, 0 entries"));
}

/// What a reader keeps is counted among all memtables, and no longer among those to be flushed.
#[test]
fn memory_that_a_reader_keeps_is_told() {
    let (db, family) = in_memory("skip_list");
    for i in 0..1000u32 {
        db.put(&family, &i.to_be_bytes(), &[1; 1000], &WriteOptions::default()).expect("put");
    }
    let mut iter = db.iter(&family, &ReadOptions::default()).expect("iterator");
    assert!(iter.seek_to_first());
    db.flush(&[&family]).expect("flush");
    let (current, all) =
        (number(&db, &family, "rocksdb.cur-size-all-mem-tables"), number(&db, &family, "rocksdb.size-all-mem-tables"));
    assert!(current < 100_000 && all > 1_000_000, "{current} {all}");
    drop(iter);
    assert!(number(&db, &family, "rocksdb.size-all-mem-tables") < 200_000);
}

/// Iterators over one state are one report; what the family still has is not kept for them alone.
#[test]
fn what_old_iterators_keep_is_told_with_its_age() {
    let vfs = MemoryVfs::new(1);
    let db = Db::open("/db", &OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() }).expect("open");
    let family = db.default_family();
    let put = |from: u32| {
        for i in from..from + 1000 {
            db.put(&family, &i.to_be_bytes(), &[1; 1000], &WriteOptions::default()).expect("put");
        }
    };
    let options = ReadOptions { snapshot: Some(db.snapshot()), ..ReadOptions::default() };
    put(0);
    let held = [0, 1].map(|_| db.iter(&family, &ReadOptions::default()).expect("iterator"));
    assert!(db.pins().is_empty(), "all of it is the family's");
    db.flush(&[&family]).expect("flush");
    vfs.sleep(std::time::Duration::from_secs(100));
    let pins = db.pins();
    assert_eq!(pins.len(), 1, "{pins:?}");
    assert_eq!((pins[0].readers, pins[0].memtables, pins[0].tables, pins[0].age.as_secs()), (2, 1, 0, 100), "{pins:?}");
    assert!(pins[0].memtable_bytes > 1_000_000);
    let later = db.iter(&family, &ReadOptions::default()).expect("iterator");
    put(500);
    db.flush(&[&family]).expect("flush");
    db.compact_range(&family, None, None, &Default::default()).expect("compact");
    let told = db.property(&family, "spillway.pins").expect("a property");
    assert!(told.contains("iterators: 1 readers, older than 0 s, 1 memtables"), "{told}");
    assert!(told.contains("snapshot of 0: 100 s old"), "{told}");
    assert!(db.pins().iter().any(|pin| pin.tables == 1), "{:?}", db.pins());
    drop((held, later, options));
    assert!(db.pins().is_empty() && db.property(&family, "spillway.pins").expect("a property").is_empty());
}

const LIMIT: usize = 4 << 20;

/// A family for each kind of memtable, under one limit.
fn limited(families: usize) -> (tempfile::TempDir, Db, Vec<Arc<Family>>) {
    let dir = tempfile::tempdir().expect("a directory");
    let mut options = OpenOptions::create_if_missing();
    options.db.create_missing_column_families = true;
    options.db.db_write_buffer_size = LIMIT;
    options.db.large_batch_bytes = 1 << 20;
    options.db.log_file_bytes = 4 << 20;
    let memtables: Vec<_> = memtable::names().collect();
    for (i, memtable) in memtables.iter().copied().cycle().take(families).enumerate() {
        let name = if i == 0 { "default".to_owned() } else { format!("f{i}") };
        let family = FamilyOptions {
            write_buffer_size: 2 << 20,
            max_write_buffer_number: 8,
            memtable_factory: memtable.into(),
            disable_auto_compactions: true,
            ..FamilyOptions::default()
        };
        options = options.family(name, family);
    }
    let db = Db::open(dir.path(), &options).expect("open");
    let families = db.families();
    (dir, db, families)
}

/// Writers of all sizes, large batches among them, while a thread looks at what the memtables hold.
#[test]
fn all_memtables_together_stay_within_the_limit() {
    let (_dir, db, families) = limited(6);
    let empty_bytes = memtable_bytes(&db);
    let limit = LIMIT as u64 + 2 * empty_bytes;
    let bound = limit + slack_bytes(LIMIT) as u64;
    let done = AtomicBool::new(false);
    let (most, charged) = std::thread::scope(|scope| {
        let sampler = scope.spawn(|| {
            let (mut most, mut most_charged) = (0, 0);
            while !done.load(Ordering::Acquire) {
                // The families are not seen at one instant, and a thread without a processor keeps for a moment what it
                // looked at: too much counts if it stays.
                let mut seen = memtable_bytes(&db);
                for _ in 0..50 {
                    if seen <= bound {
                        break;
                    }
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    seen = seen.min(memtable_bytes(&db));
                }
                let charged = number(&db, &families[0], "spillway.memtable-bytes-charged");
                (most, most_charged) = (most.max(seen), most_charged.max(charged));
                std::thread::yield_now();
            }
            (most, most_charged)
        });
        let writers: Vec<_> = (0..4u32)
            .map(|writer| {
                let (db, families) = (&db, &families);
                scope.spawn(move || write_much(db, families, writer))
            })
            .collect();
        for writer in writers {
            writer.join().expect("no panic");
        }
        done.store(true, Ordering::Release);
        sampler.join().expect("no panic")
    });
    assert!(most <= bound, "{most} of {bound} bytes, with {empty_bytes} for the empty ones");
    assert!(charged <= limit, "{charged} of {limit} bytes charged");
    assert!(most > LIMIT as u64 / 3, "the limit was never near: {most}");
    for (writer, i) in (0..4u32).flat_map(|writer| (0..300u32).map(move |i| (writer, i))) {
        let family = &families[(writer + i) as usize % families.len()];
        let key = [writer.to_be_bytes(), i.to_be_bytes(), 0u32.to_be_bytes()].concat();
        assert!(db.get(family, &key, &ReadOptions::default()).expect("readable").is_some(), "{writer} {i}");
    }
}

fn write_much(db: &Db, families: &[Arc<Family>], writer: u32) {
    for i in 0..300u32 {
        // Mostly some kilobytes; now and then a batch above `large_batch_bytes`.
        let entries = if i % 50 == 49 { 1200 } else { 20 + i % 100 };
        let family = families.iter().cycle().nth((writer + i) as usize).expect("some");
        let mut batch = WriteBatch::new();
        for entry in 0..entries {
            let key = [writer.to_be_bytes(), i.to_be_bytes(), entry.to_be_bytes()].concat();
            batch.put(family.id(), &key, &[entry as u8; 1000]);
        }
        db.write(&batch, &WriteOptions::default()).expect("write");
    }
}

/// Batches that are larger than the limit by themselves go one by one, held iterators or not.
#[test]
fn what_is_larger_than_the_limit_goes_alone() {
    let (_dir, db, families) = limited(2);
    let held: Vec<_> = (0..3u32)
        .map(|i| {
            db.put(&families[0], &i.to_be_bytes(), &vec![1; 800 << 10], &WriteOptions::default()).expect("put");
            let mut iter = db.iter(&families[0], &ReadOptions::default()).expect("iterator");
            assert!(iter.seek_to_first());
            iter
        })
        .collect();
    std::thread::scope(|scope| {
        for writer in 0..3u8 {
            let (db, families) = (&db, &families);
            scope.spawn(move || {
                for i in 0..3u8 {
                    let mut batch = WriteBatch::new();
                    for entry in 0..6u8 {
                        let family = &families[usize::from(entry) % 2];
                        batch.put(family.id(), &[writer, i, entry], &vec![entry; 1 << 20]);
                    }
                    db.write(&batch, &WriteOptions::default()).expect("write");
                }
            });
        }
    });
    drop(held);
    for (writer, i, entry) in [(0, 0, 0), (1, 2, 5), (2, 1, 3u8)] {
        let value = db.get(&families[usize::from(entry) % 2], &[writer, i, entry], &ReadOptions::default());
        assert_eq!(value.expect("readable").expect("there").len(), 1 << 20);
    }
}

/// A write that must not wait is told so where the limit is reached, and goes through once there is room.
#[test]
fn no_slowdown_fails_at_the_limit_and_waits_are_counted() {
    let (_dir, db, families) = limited(1);
    let family = &families[0];
    let hasty = WriteOptions { no_slowdown: true, disable_wal: true, ..WriteOptions::default() };
    let mut busy = 0;
    for i in 0..2000u32 {
        match db.put(family, &i.to_be_bytes(), &[2; 50_000], &hasty) {
            Ok(()) => {}
            Err(e) if e.kind() == ErrorKind::Busy => busy += 1,
            Err(e) => panic!("{e}"),
        }
    }
    assert!(busy > 0, "100 MB were written through 4 MB without a wait");
    for i in 0..2000u32 {
        db.put(family, &i.to_be_bytes(), &[2; 50_000], &WriteOptions::default()).expect("put");
    }
    let waits = db.stalls().iter().find(|stall| stall.cause == StallCause::Memory).map(|stall| stall.waits);
    assert!(waits.is_some_and(|waits| waits > 0), "{:?}", db.stalls());
    assert!(db.property(family, "spillway.stalls").expect("a property").contains("memory-limit: "));
}

/// Opening replays more than the limit lets memtables hold: it flushes on the way.
#[test]
fn recovery_keeps_to_the_limit() {
    let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
    let mut options = OpenOptions { vfs, ..OpenOptions::create_if_missing() };
    options.db.create_missing_column_families = true;
    let names = ["default", "a", "b", "c"];
    options = names.iter().fold(options, |options, name| options.family(*name, FamilyOptions::default()));
    let db = Db::open("/db", &options).expect("open");
    for i in 0..4000u32 {
        let mut batch = WriteBatch::new();
        db.families().iter().for_each(|family| batch.put(family.id(), &i.to_be_bytes(), &[5; 1000]));
        db.write(&batch, &WriteOptions::default()).expect("write");
    }
    drop(db);
    options.db.db_write_buffer_size = LIMIT;
    let db = Db::open("/db", &options).expect("reopen");
    assert!(memtable_bytes(&db) < (LIMIT + slack_bytes(LIMIT)) as u64, "{}", memtable_bytes(&db));
    for family in db.families() {
        for i in (0..4000u32).step_by(97) {
            let value = db.get(&family, &i.to_be_bytes(), &ReadOptions::default()).expect("readable").expect("there");
            assert_eq!(value.len(), 1000);
        }
    }
}

/// A bound that the memtable has itself is told to writes at once, and at recovery as what it is: no damage.
#[test]
fn an_entry_larger_than_mem_cap_names_it() {
    let vfs: Arc<dyn Vfs> = MemoryVfs::new(1);
    let options = |memtable: &str| {
        let family = FamilyOptions { memtable_factory: memtable.into(), ..FamilyOptions::default() };
        OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() }.family("default", family)
    };
    let (capped, large) = (r#"trie:{"mem_cap":"64K"}"#, [7; 100 << 10]);
    let write = |db: &Db, value: &[u8]| db.put(&db.default_family(), b"key", value, &WriteOptions::default());
    let db = Db::open("/db", &options(capped)).expect("open");
    write(&db, b"small").expect("fits");
    for _ in 0..2 {
        let error = write(&db, &large).expect_err("too large");
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("mem_cap (64K)"), "{error}");
    }
    write(&db, b"small").expect("goes on");
    assert_eq!(number(&db, &db.default_family(), "rocksdb.num-immutable-mem-table"), 0, "nothing was switched in vain");
    drop(db);
    let db = Db::open("/db", &options("skip_list")).expect("reopen");
    write(&db, &large).expect("no bound but the arena's");
    drop(db);
    let error = Db::open("/db", &options(capped)).map(drop).expect_err("the log holds more");
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("raise mem_cap"), "{error}");
    Db::open("/db", &options(r#"trie:{"mem_cap":"1M"}"#)).expect("what the error said helps");
}
