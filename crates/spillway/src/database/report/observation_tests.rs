use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use base::extend::{Event, EventListener};
use parking_lot::Mutex;
use vfs::MemoryVfs;

use crate::internal::{Database, FamilyOptions, OpenOptions, ReadOptions, WriteOptions};
use crate::observe::*;

const HOSTILE: &str = "a \"b\"\n\\{x=\u{7}}";

fn options(statistics: bool) -> OpenOptions {
    let mut options = OpenOptions { vfs: MemoryVfs::new(1), ..OpenOptions::create_if_missing() };
    (options.db.statistics, options.db.create_missing_column_families) = (statistics, true);
    let family = FamilyOptions { write_buffer_size: 1 << 20, ..FamilyOptions::default() };
    options.family(HOSTILE, family)
}

fn put(db: &Database, family: &str, keys: std::ops::Range<u32>) {
    let family = db.family(family).expect("there");
    for key in keys {
        db.put(&family, &key.to_be_bytes(), b"value", &WriteOptions::default()).expect("put");
    }
}

#[test]
fn a_reading_has_what_was_done() {
    let db = Database::open("/db", &options(true)).expect("opened");
    let family = db.family(HOSTILE).expect("there");
    put(&db, HOSTILE, 0..100);
    db.flush(&[&family]).expect("flushed");
    put(&db, HOSTILE, 50..60);
    for key in [1u32, 55, 1000] {
        db.get(&family, &key.to_be_bytes(), &ReadOptions::default()).expect("read");
    }
    let _snapshot = db.snapshot();
    put(&db, "default", 0..5);
    let seen = db.observe();
    let writes = seen.writes.as_ref().expect("of a writer");
    assert_eq!((writes.writes, writes.keys, writes.logged), (115, 115, 115));
    assert_eq!(writes.latency_us.as_ref().map(|times| times.count), Some(115));
    assert_eq!(writes.stalls.len(), crate::StallCause::ALL.len());
    let reads = seen.reads.as_ref().expect("with statistics");
    let answers = &reads.answers;
    assert_eq!((reads.gets, answers.memtables, answers.level0 + answers.deeper, answers.nowhere), (3, 1, 1, 1));
    let family = seen.family(HOSTILE).expect("there");
    assert_eq!((family.tables, family.memtables.mutable_entries, family.flushes.jobs), (1, 10, 1));
    assert_eq!((seen.disk.flushed_bytes, seen.disk.compacted_bytes), (family.table_bytes, 0));
    let shown: u64 = family.levels.iter().flat_map(|level| &level.spans).map(|span| span.tables).sum();
    assert_eq!(shown, 1);
    assert_eq!(seen.ended.flushes, 1);
    assert_eq!((seen.snapshots.count, seen.snapshots.oldest.as_ref().map(|oldest| oldest.changes_since)), (1, Some(5)));
    assert!(seen.jobs.is_empty());
    let changed: Vec<_> = seen.options.iter().map(|option| (option.family.as_deref(), option.name.as_str())).collect();
    assert!(changed.contains(&(Some(HOSTILE), "write_buffer_size")) && changed.contains(&(None, "statistics")));
    assert_eq!(seen.health.gate, WriteGate::Free);
    assert!(seen.memory.memtables_bytes > 0 && seen.logs.live_bytes > 0);
}

#[test]
fn without_statistics_there_is_a_sample() {
    let dir = tempfile::tempdir().expect("made");
    let options = OpenOptions { vfs: vfs::RealVfs::new(), ..options(false) };
    let db = Database::open(dir.path(), &options).expect("opened");
    let family = db.default_family();
    put(&db, "default", 0..6_400);
    for key in 0..6_400u32 {
        if key % 100 == 0 {
            db.flush(&[&family]).expect("flushed");
        }
        let key = if key % 2 == 0 { key } else { key + 100_000 };
        db.get(&family, &key.to_be_bytes(), &ReadOptions::default()).expect("read");
        db.iter(&family, &ReadOptions::default()).expect("made").seek_to_first();
    }
    let sample = db.observe().sample.expect("no statistics");
    let estimate = |count: u64| (count * sample.one_in) as f64;
    // The standard deviation is 6 in 100, of halves 12.
    for count in [sample.write_us.count, sample.get_us.count, sample.seek_us.count, sample.answers.all()] {
        assert!((3_800.0..9_000.0).contains(&estimate(count)), "{sample:?}");
    }
    assert_eq!(sample.answers.all(), sample.get_us.count);
    let (found, nowhere) = (sample.answers.level0 + sample.answers.deeper, sample.answers.nowhere);
    assert!([found, nowhere].iter().all(|count| (1_200.0..5_200.0).contains(&estimate(*count))), "{sample:?}");
    db.close().expect("closed");
    let counted = self::options(true);
    assert!(Database::open("/db", &counted).expect("opened").observe().sample.is_none(), "all are timed");
}

#[test]
fn what_is_not_measured_is_none() {
    let options = options(false);
    let db = Database::open("/db", &options).expect("opened");
    put(&db, "default", 0..5);
    let seen = db.observe();
    assert!(seen.reads.is_none() && seen.statistics.is_none() && seen.cache.kinds.is_none());
    assert!(seen.writes.expect("of a writer").latency_us.is_none());
    db.close().expect("closed");
    let reader = Database::open("/db", &OpenOptions { read_only: true, ..options }).expect("opened");
    let seen = reader.observe();
    assert_eq!(
        (seen.process.observed_by, seen.writes, seen.health.gate),
        (ObservedBy::Reader, None, WriteGate::Refused)
    );
    assert_eq!(seen.families[0].memtables.mutable_entries + seen.families[0].memtables.sealed, 5);
}

#[cfg(feature = "observe")]
#[test]
fn json_leads_back() {
    let db = Database::open("/db", &options(true)).expect("opened");
    put(&db, HOSTILE, 0..100);
    db.flush(&[&db.family(HOSTILE).expect("there")]).expect("flushed");
    let seen = db.observe();
    let json = seen.to_json();
    assert!(!json.contains('\n') && json.contains(r#""gate":"free""#), "{json}");
    assert_eq!(Observation::from_json(&json).expect("its own"), seen);
    let other = r#"{"process":{"pid":7,"later":1},"families":[{"name":"x"}]}"#;
    let read = Observation::from_json(other).expect("of another version");
    assert_eq!((read.process.pid, read.families[0].name.as_str(), read.writes), (7, "x", None));
    Observation::from_json("7").expect_err("no reading");
}

/// Observes the database while a table is written.
#[derive(Default)]
struct Watcher {
    db: OnceLock<Weak<Database>>,
    seen: Mutex<Vec<ObservedJob>>,
}

impl EventListener for Watcher {
    fn on_event(&self, event: &Event) {
        if let (Event::TableCreated { .. }, Some(db)) = (event, self.db.get().and_then(Weak::upgrade)) {
            self.seen.lock().extend(db.observe().jobs);
        }
    }
}

#[test]
fn jobs_are_seen_while_they_run() {
    let (watcher, mut options) = (Arc::new(Watcher::default()), options(false));
    options.db.listeners.push(watcher.clone());
    let db = Arc::new(Database::open("/db", &options).expect("opened"));
    watcher.db.set(Arc::downgrade(&db)).expect("once");
    for _ in 0..2 {
        put(&db, "default", 0..1000);
        db.flush(&[&db.default_family()]).expect("flushed");
    }
    db.compact_range(&db.default_family(), None, None, &Default::default()).expect("compacted");
    let seen = std::mem::take(&mut *watcher.seen.lock());
    let of = |kind| seen.iter().filter(|job| job.kind == kind).collect::<Vec<_>>();
    let (flushes, compactions) = (of(ObservedJobKind::Flush), of(ObservedJobKind::Compaction));
    assert_eq!((flushes.len(), compactions.len()), (2, 1), "{seen:?}");
    assert!(seen.iter().all(|job| job.family == "default" && job.total_bytes > 0), "{seen:?}");
    assert_eq!((compactions[0].level, compactions[0].reason.as_str()), (Some(0), "manual"));
    assert_eq!(compactions[0].done_bytes, compactions[0].total_bytes, "its table is written");
    let after = db.observe();
    assert!(after.jobs.is_empty());
    assert_eq!(after.disk.compacted_bytes, after.families[0].table_bytes);
}

#[test]
fn writers_that_wait_are_seen_while_they_do() {
    let dir = tempfile::tempdir().expect("made");
    let options = OpenOptions { vfs: vfs::RealVfs::new(), ..options(false) };
    let db = Database::open(dir.path(), &options).expect("opened");
    let seen = || {
        let stalls = db.observe().writes.expect("of a writer").stalls;
        stalls.into_iter().find(|stall| stall.cause == "l0-file-count").expect("all are there")
    };
    let stall = &db.core().stall;
    stall.set_debt(crate::order::stall::Debt { level: 1.0, cause: crate::StallCause::Level0 });
    std::thread::scope(|scope| {
        let writers = [0u32, 1].map(|key| {
            scope.spawn({
                let db = &db;
                move || put(db, "default", key..key + 1)
            })
        });
        while seen().waiting < 2 {
            options.vfs.sleep(Duration::from_millis(1));
        }
        let (earlier, later) = (seen(), seen());
        assert!(later.waiting_us >= earlier.waiting_us, "{earlier:?} {later:?}");
        assert_eq!((later.waits, later.micros), (0, 0), "none has ended");
        stall.set_debt(crate::order::stall::Debt::NONE);
        writers.into_iter().for_each(|writer| writer.join().expect("written"));
    });
    let ended = seen();
    assert_eq!((ended.waits, ended.stops, ended.waiting, ended.waiting_us), (2, 2, 0, 0));
    assert!(ended.micros > 0);
}

#[test]
fn spans_are_ranks_in_any_order_of_keys() {
    let mut options = options(false);
    let order = base::UserOrder::ReverseBytewise;
    options =
        options.family("back", FamilyOptions { order, disable_auto_compactions: true, ..FamilyOptions::default() });
    let db = Database::open("/db", &options).expect("opened");
    for keys in [0..10, 20..30] {
        put(&db, "back", keys);
        db.flush(&[&db.family("back").expect("there")]).expect("flushed");
    }
    let seen = db.observe();
    let spans = &seen.family("back").expect("there").levels[0].spans;
    let places: Vec<_> = spans.iter().map(|span| (span.from, span.to)).collect();
    assert_eq!(places, [(0.0, 1.0 / 3.0), (2.0 / 3.0, 1.0)], "newest first");
    assert_eq!((spans[1].smallest.as_str(), spans[1].largest.as_str()), ("\\x00\\x00\\x00\\t", "\\x00\\x00\\x00\\x00"));
}

#[test]
#[ignore = "prints how long a reading takes"]
fn cost() {
    let mut options = options(true);
    for family in 0..100 {
        options = options.family(format!("f{family}"), FamilyOptions::default());
    }
    let db = Database::open("/db", &options).expect("opened");
    for family in 0..100 {
        for _ in 0..3 {
            put(&db, &format!("f{family}"), 0..100);
            db.flush(&[&db.family(&format!("f{family}")).expect("there")]).expect("flushed");
        }
    }
    let clock = vfs::RealVfs::new();
    for _ in 0..5 {
        let start = clock.now();
        let seen = db.observe();
        let took = clock.now() - start;
        println!("{took:?}, {} families", seen.families.len());
    }
}
