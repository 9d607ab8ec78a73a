//! What a database tells about itself while it works: statistics and events.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};

use testkit::engine::extend::{Event, EventListener};
use testkit::engine::metrics::{Histogram, Statistics, Ticker};
use testkit::engine::{CompactRangeOptions, Db, FamilyOptions, OpenOptions, ReadOptions, WriteBatch, WriteOptions};
use vfs::{MemoryVfs, Vfs};

/// A listener that keeps everything it is told.
#[derive(Default)]
struct Recorder(Mutex<Vec<Event>>);

impl EventListener for Recorder {
    fn on_event(&self, event: &Event) {
        self.0.lock().expect("not poisoned").push(event.clone());
    }
}

impl Recorder {
    /// What `wanted` makes of the events since the last call.
    fn take<T>(&self, wanted: impl Fn(&Event) -> Option<T>) -> Vec<T> {
        std::mem::take(&mut *self.0.lock().expect("not poisoned")).iter().filter_map(wanted).collect()
    }
}

fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    let mut options = OpenOptions { vfs: vfs.clone() as Arc<dyn Vfs>, ..OpenOptions::create_if_missing() };
    options.db.statistics = true;
    options
}

fn put(db: &Db, key: &str) {
    db.put(&db.default_family(), key.as_bytes(), &[b'v'; 100], &WriteOptions::default()).expect("put");
}

fn counted(statistics: &Statistics, tickers: &[Ticker]) -> Vec<u64> {
    tickers.iter().map(|&ticker| statistics.count(ticker)).collect()
}

#[test]
fn writes_are_counted() {
    use Ticker::*;
    let db = Db::open("/db", &options(&MemoryVfs::new(1))).expect("open");
    let statistics = db.statistics().expect("asked for");
    let family = db.default_family();
    let mut batch = WriteBatch::new();
    batch.put(family.id(), b"a", b"1");
    batch.delete(family.id(), b"b");
    db.write(&batch, &WriteOptions::synced()).expect("write");
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    db.write(&batch, &unlogged).expect("write");
    db.write(&WriteBatch::new(), &WriteOptions::default()).expect("an empty batch writes nothing");
    let bytes = batch.len() as u64;
    assert_eq!(counted(&statistics, &[NumberKeysWritten, BytesWritten]), [4, 2 * bytes]);
    assert_eq!(counted(&statistics, &[WriteWithWal, WalFileBytes, WriteDoneBySelf]), [1, bytes, 2]);
    assert!(statistics.count(WalFileSynced) >= 1);
    assert_eq!(statistics.distribution(Histogram::WalFileSync).count(), statistics.count(WalFileSynced));
    assert_eq!(statistics.distribution(Histogram::DbWrite).count(), 2);
    assert_eq!(statistics.distribution(Histogram::BytesPerWrite).sum(), 2 * bytes);
    db.flush(&[&family]).expect("flush");
    assert!(counted(&statistics, &[FlushWriteBytes, MemtablePayloadBytesAtFlush]).iter().all(|&bytes| bytes > 0));
    assert_eq!(statistics.distribution(Histogram::FlushTime).count(), 1);
}

#[test]
fn lookups_are_counted_by_where_they_ended() {
    use Ticker::*;
    let mut family = FamilyOptions::default();
    family.table.filter_policy = testkit::engine::options::FilterPolicy::bloom(10.0);
    let db = Db::open("/db", &options(&MemoryVfs::new(2)).family("default", family)).expect("open");
    let (statistics, family) = (db.statistics().expect("asked for"), db.default_family());
    (0..100).for_each(|i| put(&db, &format!("key{:03}", 2 * i)));
    db.flush(&[&family]).expect("flush");
    put(&db, "memory");
    let get = |key: &[u8]| db.get(&family, key, &ReadOptions::default()).expect("readable");
    assert!(get(b"memory").is_some() && get(b"key002").is_some() && get(b"key002").is_some());
    assert!((0..20).all(|i| get(format!("key{:03}", 2 * i + 1).as_bytes()).is_none()));
    assert_eq!(counted(&statistics, &[NumberKeysRead, BytesRead]), [23, 300]);
    assert_eq!(counted(&statistics, &[MemtableHit, MemtableMiss, GetHitL0, GetHitL1]), [1, 22, 2, 0]);
    assert_eq!(statistics.distribution(Histogram::DbGet).count(), 23);
    // A filter may let an absent key pass, not many of them.
    let [useful, positive, true_positive] =
        [BloomFilterUseful, BloomFilterFullPositive, BloomFilterFullTruePositive].map(|t| statistics.count(t));
    assert_eq!((useful + positive, true_positive), (22, 2));
    assert!(useful >= 18, "{useful}");
    let [hits, misses, adds] = [BlockCacheDataHit, BlockCacheDataMiss, BlockCacheDataAdd].map(|t| statistics.count(t));
    assert!(hits >= 1 && misses >= 1 && adds == misses, "{hits} {misses} {adds}");
    assert_eq!(counted(&statistics, &[BlockCacheHit, BlockCacheMiss]), [hits, misses]);
    assert_eq!(statistics.count(FileOpens), 1);
    assert_eq!(statistics.distribution(Histogram::TableOpenIo).count(), 1);
    assert!(statistics.distribution(Histogram::SstRead).count() > misses);
    assert_eq!(counted(&statistics, &[BlockChecksumMismatch, FileErrors]), [0, 0]);

    let keys: [&[u8]; 3] = [b"memory", b"key000", b"none"];
    db.multi_get(&family, &keys, &ReadOptions::default()).expect("open");
    let multi_get = [NumberMultigetCalls, NumberMultigetKeysRead, NumberMultigetKeysFound, NumberMultigetBytesRead];
    assert_eq!(counted(&statistics, &multi_get), [1, 3, 2, 200]);
}

#[test]
fn iterators_count_when_they_are_dropped() {
    use Ticker::*;
    let db = Db::open("/db", &options(&MemoryVfs::new(3))).expect("open");
    let (statistics, family) = (db.statistics().expect("asked for"), db.default_family());
    (0..10).for_each(|i| put(&db, &format!("key{i}")));
    db.delete(&family, b"key5", &WriteOptions::default()).expect("delete");
    let mut iterator = db.iter(&family, &ReadOptions::default()).expect("open");
    assert!(iterator.seek_to_first());
    while iterator.next() {}
    assert!(!iterator.seek(b"z"));
    assert!(iterator.seek_to_last() && iterator.prev());
    assert_eq!(counted(&statistics, &[IteratorCreated, IteratorDeleted, NumberDbNext]), [1, 0, 0]);
    drop(iterator);
    assert_eq!(counted(&statistics, &[IteratorDeleted, NumberDbSeek, NumberDbSeekFound]), [1, 3, 2]);
    assert_eq!(counted(&statistics, &[NumberDbNext, NumberDbNextFound]), [9, 8]);
    assert_eq!(counted(&statistics, &[NumberDbPrev, NumberDbPrevFound]), [1, 1]);
    assert_eq!(statistics.count(IterBytesRead), 11 * 104);
    // The deletion and the value under it.
    assert_eq!(statistics.count(NumberIterSkip), 2);
    assert_eq!(statistics.distribution(Histogram::DbSeek).count(), 3);
}

#[test]
fn nothing_is_counted_unless_asked_for() {
    let mut options = options(&MemoryVfs::new(4));
    options.db.statistics = false;
    let db = Db::open("/db", &options).expect("open");
    put(&db, "key");
    assert!(db.statistics().is_none());
    assert_eq!(db.property(&db.default_family(), "rocksdb.options-statistics"), Some(String::new()));
}

#[test]
fn listeners_hear_of_tables_that_come_and_go() {
    let (vfs, recorder) = (MemoryVfs::new(5), Arc::new(Recorder::default()));
    let mut options = options(&vfs);
    options.db.listeners.push(recorder.clone());
    let db = Db::open("/db", &options).expect("open");
    let family = db.default_family();
    for _ in 0..2 {
        put(&db, "a");
        put(&db, "b");
        db.flush(&[&family]).expect("flush");
    }
    let created = recorder.take(|event| match event {
        Event::TableCreated { path, bytes, .. } => Some((path.clone(), *bytes)),
        _ => None,
    });
    let live: Vec<_> = db.live_files().into_iter().map(|file| (file.path, file.bytes)).collect();
    assert_eq!(created.len(), 2);
    assert!(created.iter().all(|table| live.contains(table)), "{created:?} {live:?}");
    db.compact_range(&family, None, None, &CompactRangeOptions::default()).expect("compact");
    put(&db, "upkeep comes after a write");
    let deleted = recorder.take(|event| match event {
        Event::FileDeleted { path } => Some(path.clone()),
        _ => None,
    });
    assert!(created.iter().all(|(path, _)| deleted.contains(path)), "{deleted:?}");
    assert!(deleted.iter().all(|path| !vfs.exists(Path::new(path)).expect("asked")));
    assert!(db.statistics().expect("asked for").count(Ticker::FilesDeletedImmediately) >= 2);
}

#[test]
fn listeners_hear_of_stalls_and_of_their_end() {
    for (stop, held_up) in [("36", (true, false)), ("4", (false, true))] {
        let recorder = Arc::new(Recorder::default());
        let mut options = options(&MemoryVfs::new(6));
        options.db.listeners.push(recorder.clone());
        let db = Db::open("/db", &options).expect("open");
        let family = db.default_family();
        let triggers = [("level0_slowdown_writes_trigger", "4"), ("level0_stop_writes_trigger", stop)];
        db.set_options(&family, &triggers).expect("mutable");
        let flush = |key: &str| {
            put(&db, key);
            db.flush(&[&family]).expect("flush");
            recorder.take(|event| match event {
                Event::StallChanged { family, cause, delayed, stopped, .. } => {
                    assert_eq!((family.as_str(), *cause), ("default", "l0-file-count"));
                    Some((*delayed, *stopped))
                }
                _ => None,
            })
        };
        for key in ["a", "b", "c"] {
            assert_eq!(flush(key), []);
        }
        // The fourth table holds writers up until it has been compacted with the others.
        assert_eq!(flush("d"), [held_up, (false, false)]);
    }
}

#[test]
fn listeners_hear_what_a_flush_and_a_compaction_were_of() {
    let recorder = Arc::new(Recorder::default());
    let mut options = options(&MemoryVfs::new(8));
    options.db.listeners.push(recorder.clone());
    let db = Db::open("/db", &options).expect("open");
    let family = db.default_family();
    put(&db, "a");
    db.delete(&family, b"b", &WriteOptions::default()).expect("delete");
    db.flush(&[&family]).expect("flush");
    put(&db, "upkeep comes after a write");
    let told = recorder.take(|event| match event {
        Event::MemtableSealed { family, first_seq, entries, deletions } => {
            Some(format!("{family}: sealed, from {}, {entries} entries, {deletions} deletions", first_seq.0))
        }
        Event::FlushBegin { by_hand, .. } => Some(format!("flush by hand: {by_hand}")),
        Event::TableBegin { by_flush, .. } => Some(format!("a table begins, by flush: {by_flush}")),
        Event::TableCreated { by_flush, .. } => Some(format!("a table is done, by flush: {by_flush}")),
        Event::FlushEnd { smallest_seq, largest_seq, .. } => Some(format!("{} to {}", smallest_seq.0, largest_seq.0)),
        _ => None,
    });
    for line in [
        "default: sealed, from 1, 2 entries, 1 deletions",
        "flush by hand: true",
        "a table begins, by flush: true",
        "a table is done, by flush: true",
        "1 to 2",
    ] {
        assert!(told.iter().any(|told| told == line), "{line}: {told:?}");
    }
    let live = |db: &Db| db.live_files().into_iter().map(|file| file.number).collect::<BTreeSet<_>>();
    db.flush(&[&family]).expect("flush");
    let before = live(&db);
    db.compact_range(&family, None, None, &CompactRangeOptions::default()).expect("compact");
    let compacted = recorder.take(|event| match event {
        Event::CompactionEnd { reason, input_tables, output_tables, .. } => {
            Some((*reason, input_tables.clone(), output_tables.clone()))
        }
        _ => None,
    });
    assert_eq!(compacted.last().map(|(reason, ..)| *reason), Some("manual"));
    let inputs: Vec<_> = compacted.iter().flat_map(|(_, inputs, _)| inputs).collect();
    assert!(before.iter().all(|table| inputs.contains(&table)), "{before:?} {compacted:?}");
    let outputs = compacted.last().map(|(.., outputs)| outputs.iter().copied().collect());
    assert_eq!(outputs, Some(live(&db)));
}
