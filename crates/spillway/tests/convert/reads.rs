//! Every read of converted tables is that of a database that rewrites.

use std::sync::Arc;

use testkit::engine::{
    BottommostLevelCompaction, CompactRangeOptions, Db, IngestOptions, IngestRequest, ReadOptions, Snapshot,
    WriteOptions,
};

use crate::common::{Place, REWRITTEN, WAYS, change, contents, flush, get, is_converted, put};

/// Two databases that were told the same.
struct Pair {
    place: Place,
    memtable: &'static str,
    converting: Db,
    rewriting: Db,
}

impl Pair {
    fn new(place: Place, memtable: &'static str) -> Pair {
        let (converting, rewriting) = (place.open(memtable), Place::memory().open(REWRITTEN));
        Pair { place, memtable, converting, rewriting }
    }

    fn both(&self, act: impl Fn(&Db)) {
        act(&self.converting);
        act(&self.rewriting);
    }

    /// What both hold now, or held.
    fn compare(&self, snapshots: Option<&(Snapshot, Snapshot)>) {
        let options =
            |snapshot: Option<&Snapshot>| ReadOptions { snapshot: snapshot.cloned(), ..ReadOptions::default() };
        let (ours, others) = (options(snapshots.map(|s| &s.0)), options(snapshots.map(|s| &s.1)));
        let expected = contents(&self.rewriting, &others);
        assert_eq!(contents(&self.converting, &ours), expected, "{}", self.memtable);
        let family = self.converting.default_family();
        let keys: Vec<Vec<u8>> = (0..520).map(|i| format!("key{i:04}").into_bytes()).collect();
        let borrowed: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        let together = self.converting.multi_get(&family, &borrowed, &ours).unwrap();
        for (key, multi) in keys.iter().zip(together) {
            let single = self.converting.get(&family, key, &ours).unwrap();
            assert_eq!(single.as_deref(), expected.get(key).map(Vec::as_slice), "{}", key.escape_ascii());
            assert_eq!(multi.unwrap().as_deref(), single.as_deref());
        }
    }

    fn reopen(&mut self) {
        self.converting.close().unwrap();
        self.converting = self.place.open(self.memtable);
    }
}

#[test]
fn what_is_read_is_what_was_written() {
    for place in WAYS.into_iter().flat_map(|way| Place::both().map(|place| (place, way))) {
        let mut pair = Pair::new(place.0, place.1);
        let mut snapshots = Vec::new();
        for round in 0..5 {
            pair.both(|db| change(db, &db.default_family(), round));
            snapshots.push((pair.converting.snapshot(), pair.rewriting.snapshot()));
            pair.both(|db| change(db, &db.default_family(), round + 10));
            pair.compare(None);
            pair.both(flush);
            snapshots.iter().for_each(|snapshots| pair.compare(Some(snapshots)));
            pair.compare(None);
        }
        let report = pair.converting.flushes();
        assert_eq!((report.rewritten, report.fallen_back), (0, 0), "{report:?}");
        assert!(report.converted >= 5, "{report:?}");
        let files = pair.converting.live_files();
        assert!(files.iter().all(|file| is_converted(&pair.place.vfs, &file.path) && file.level == 0), "{files:?}");
        pair.place.check();
        drop(snapshots);
        pair.reopen();
        pair.compare(None);
        pair.place.check();
        let family = pair.converting.default_family();
        pair.converting.compact_range(&family, None, None, &CompactRangeOptions::default()).unwrap();
        pair.compare(None);
        let files = pair.converting.live_files();
        assert!(!files.is_empty() && !files.iter().any(|file| is_converted(&pair.place.vfs, &file.path)), "{files:?}");
        pair.reopen();
        pair.compare(None);
        pair.place.check();
    }
}

/// What an excise leaves of a converted table is read, checked, opened again and compacted.
#[test]
fn parts_of_converted_tables_are_tables() {
    for way in WAYS {
        let mut pair = Pair::new(Place::memory(), way);
        pair.both(|db| change(db, &db.default_family(), 1));
        pair.both(flush);
        for (start, end) in [("key0100", "key0200"), ("key0150", "key0160"), ("key0480", "z"), ("", "key0003")] {
            pair.both(|db| {
                let mut request = IngestRequest::new(db.default_family(), Vec::new());
                request.excise = Some((start.into(), end.into()));
                db.ingest_all(&[request], &IngestOptions::default()).unwrap();
                flush(db);
            });
            pair.compare(None);
        }
        let files = pair.converting.live_files();
        let parts = files.iter().filter(|file| file.is_virtual && is_converted(&pair.place.vfs, &file.path)).count();
        assert!(parts >= 2, "{files:?}");
        pair.place.check();
        pair.reopen();
        pair.compare(None);
        let options = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            ..CompactRangeOptions::default()
        };
        pair.converting.compact_range(&pair.converting.default_family(), None, None, &options).unwrap();
        assert!(!pair.converting.live_files().iter().any(|file| file.is_virtual));
        pair.compare(None);
        pair.place.check();
    }
}

/// Iterators and values of the memtable and of the table that it became live on, whatever happens to either.
#[test]
fn what_a_reader_holds_outlives_the_table() {
    for (place, way) in WAYS.into_iter().flat_map(|way| Place::both().map(|place| (place, way))) {
        let db = place.open(way);
        let family = db.default_family();
        put(&db, "large", &"v".repeat(5000));
        (0..100).for_each(|i| put(&db, &format!("key{i:04}"), "value"));
        let mut before = db.iter(&family, &ReadOptions::default()).unwrap();
        assert!(before.seek(b"key0050"));
        flush(&db);
        let mut after = db.iter(&family, &ReadOptions::default()).unwrap();
        assert!(after.seek(b"key0050"));
        let pinned = db.get(&family, b"large", &ReadOptions::default()).unwrap().unwrap();
        let options = CompactRangeOptions {
            bottommost_level_compaction: BottommostLevelCompaction::Force,
            ..CompactRangeOptions::default()
        };
        db.compact_range(&family, None, None, &options).unwrap();
        (0..200).for_each(|i| put(&db, &format!("other{i:04}"), &"x".repeat(1000)));
        for iterator in [&mut before, &mut after] {
            for i in 51..100 {
                assert!(iterator.next() && iterator.key() == format!("key{i:04}").as_bytes());
            }
        }
        drop((before, after));
        drop((family, db));
        assert!(pinned.iter().all(|&byte| byte == b'v') && pinned.len() == 5000);
    }
}

/// With few tables open at a time, converted ones are closed, and opened again from their files.
#[test]
fn converted_tables_are_closed_and_opened_again() {
    for way in WAYS {
        let place = Place::real();
        let mut options = crate::common::options(&place.vfs, way);
        options.db.max_open_files = 2;
        let db = Db::open(&place.dir, &options).unwrap();
        for round in 0..8 {
            (0..20).for_each(|i| put(&db, &format!("key{round}{i:02}"), &format!("{round}")));
            flush(&db);
        }
        for round in (0..8).rev().chain(0..8) {
            assert_eq!(get(&db, &format!("key{round}07")), Some(format!("{round}").into_bytes()));
        }
        let open = crate::common::number(&db, "rocksdb.estimate-table-readers-mem");
        assert!(open > 0);
    }
}

/// Several writers beside flushes, and a reader of everything in the end.
#[test]
fn writers_go_on_while_their_memtables_become_tables() {
    for way in WAYS {
        let place = Place::real();
        let db = Arc::new(place.open(way));
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let db = db.clone();
                scope.spawn(move || {
                    for i in 0..3000 {
                        let key = format!("key{writer}-{i:05}");
                        let value = [b'v'; 150];
                        db.put(&db.default_family(), key.as_bytes(), &value, &WriteOptions::default()).unwrap();
                    }
                });
            }
        });
        flush(&db);
        let report = db.flushes();
        assert!(report.converted >= 10 && report.fallen_back == 0 && report.rewritten == 0, "{report:?}");
        assert_eq!(contents(&db, &ReadOptions::default()).len(), 12_000);
        db.close().unwrap();
        place.check();
        assert_eq!(contents(&place.open(way), &ReadOptions::default()).len(), 12_000);
    }
}
