//! Compactions and flushes that run the caller's code, which panics, or takes so long that the database is closed
//! meanwhile.
#![allow(clippy::disallowed_methods, reason = "a test of threads needs threads")]

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use testkit::engine::extend::{CompactionFilter, Event, EventListener, FilterDecision, MergeOperator};
use testkit::engine::vfs::{MemoryVfs, Vfs};
use testkit::engine::{CompactRangeOptions, Db, ErrorKind, FamilyOptions, OpenOptions, ReadOptions, WriteOptions};

fn options(vfs: Arc<MemoryVfs>, family: FamilyOptions) -> OpenOptions {
    vfs.set_runs_inline(false);
    OpenOptions { vfs, ..OpenOptions::create_if_missing() }.family("default", family)
}

/// Appends, and panics once where it is armed.
#[derive(Default)]
struct Armed(AtomicBool);

impl MergeOperator for Armed {
    fn name(&self) -> &str {
        "test.Armed"
    }

    fn full_merge(&self, _key: &[u8], existing: Option<&[u8]>, operands: &[&[u8]]) -> Option<Vec<u8>> {
        assert!(!self.0.swap(false, Ordering::SeqCst), "it was armed");
        Some([existing.unwrap_or_default(), &operands.concat()].concat())
    }
}

fn with_operator(operator: &Arc<Armed>) -> FamilyOptions {
    FamilyOptions {
        merge_operator: Some(operator.clone()),
        disable_auto_compactions: true,
        level0_file_num_compaction_trigger: 4,
        target_file_size_base: 8 << 10,
        ..FamilyOptions::default()
    }
}

fn merge_all(db: &Db) {
    let options = WriteOptions::default();
    (0..1000u32).for_each(|i| db.merge(&db.default_family(), &i.to_be_bytes(), &[7; 50], &options).expect("merged"));
}

fn check_all(db: &Db, bytes: usize) {
    for i in 0..1000u32 {
        let value = db.get(&db.default_family(), &i.to_be_bytes(), &ReadOptions::default()).expect("get");
        assert_eq!(value.as_deref(), Some(&vec![7; bytes][..]));
    }
}

/// What follows a panic: the database takes no writes, and can be closed and opened again.
fn check_failed(db: Db, options: &OpenOptions, bytes: usize) {
    let refused = db.put(&db.default_family(), b"key", b"value", &WriteOptions::default()).expect_err("read-only");
    assert_eq!(refused.kind(), ErrorKind::ReadOnly);
    assert!(refused.to_string().contains("it was armed"), "{refused}");
    let _ = db.close(); // in whatever way, it returns
    drop(db);
    let db = Db::open("/db", options).expect("open");
    check_all(&db, bytes);
    db.compact_range(&db.default_family(), None, None, &CompactRangeOptions::default()).expect("compacted");
    check_all(&db, bytes);
}

#[test]
fn a_compaction_whose_merge_operator_panics_fails() {
    for parts in [1, 4] {
        let operator = Arc::<Armed>::default();
        let mut options = options(MemoryVfs::new(1), with_operator(&operator));
        options.db.max_subcompactions = parts;
        let db = Db::open("/db", &options).expect("open");
        for _ in 0..4 {
            merge_all(&db);
            db.flush(&[&db.default_family()]).expect("flushed");
        }
        operator.0.store(true, Ordering::SeqCst);
        db.set_options(&db.default_family(), &[("disable_auto_compactions", "false")]).expect("set");
        let error = db.wait_for_compaction().expect_err("a background error");
        assert!(error.to_string().contains("panicked: it was armed"), "{error}");
        check_failed(db, &options, 200);
    }
}

#[test]
fn a_flush_whose_merge_operator_panics_fails() {
    let operator = Arc::<Armed>::default();
    let options = options(MemoryVfs::new(2), with_operator(&operator));
    let db = Db::open("/db", &options).expect("open");
    let family = db.default_family();
    (0..1000u32).for_each(|i| db.put(&family, &i.to_be_bytes(), &[7; 50], &WriteOptions::default()).expect("put"));
    merge_all(&db);
    operator.0.store(true, Ordering::SeqCst);
    let error = db.flush(&[&family]).expect_err("a background error");
    assert!(error.to_string().contains("panicked: it was armed"), "{error}");
    check_failed(db, &options, 100);
}

/// Replay fills many memtables where there was one, and flushes them.
#[test]
fn an_open_whose_merge_operator_panics_fails() {
    let operator = Arc::<Armed>::default();
    let mut options = options(MemoryVfs::new(2), with_operator(&operator));
    let db = Db::open("/db", &options).expect("open");
    let family = db.default_family();
    (0..1000u32).for_each(|i| db.put(&family, &i.to_be_bytes(), &[7; 50], &WriteOptions::default()).expect("put"));
    merge_all(&db);
    (0..1000u32).for_each(|i| db.put(&family, &i.to_le_bytes(), &[8; 500], &WriteOptions::default()).expect("put"));
    merge_all(&db);
    db.close().expect("closed");
    options.families[0].1.write_buffer_size = 128 << 10;
    operator.0.store(true, Ordering::SeqCst);
    let error = Db::open("/db", &options).err().expect("no database");
    assert!(error.to_string().contains("panicked: it was armed"), "{error}");
    let db = Db::open("/db", &options).expect("open");
    assert_eq!(
        db.get(&db.default_family(), &999u32.to_be_bytes(), &ReadOptions::default()).expect("get").map(|v| v.len()),
        Some(150)
    );
}

/// Panics whatever it is told, and counts.
#[derive(Default)]
struct Panicking(AtomicUsize);

impl EventListener for Panicking {
    fn on_event(&self, event: &Event) {
        self.0.fetch_add(1, Ordering::SeqCst);
        panic!("told of {event:?}");
    }
}

#[test]
fn a_listener_that_panics_keeps_nobody_from_anything() {
    let listener = Arc::<Panicking>::default();
    let family = FamilyOptions {
        write_buffer_size: 64 << 10,
        level0_file_num_compaction_trigger: 2,
        level0_slowdown_writes_trigger: 3, // writers are slowed, and that is told
        ..FamilyOptions::default()
    };
    let mut options = options(MemoryVfs::new(4), family);
    options.db.listeners = vec![listener.clone() as _];
    let db = Db::open("/db", &options).expect("open");
    let put = |i: u32| db.put(&db.default_family(), &i.to_be_bytes(), &[7; 500], &WriteOptions::default());
    (0..5000).for_each(|i| put(i).expect("put"));
    db.flush(&[&db.default_family()]).expect("flushed");
    db.compact_range(&db.default_family(), None, None, &CompactRangeOptions::default()).expect("compacted");
    db.close().expect("closed");
    assert!(listener.0.load(Ordering::SeqCst) > 10, "it was told of flushes, compactions and tables");
}

/// Holds up whoever asks it until it is let go.
#[derive(Default)]
struct Gate {
    reached: AtomicBool,
    open: Mutex<bool>,
    opened: Condvar,
}

impl CompactionFilter for Gate {
    fn name(&self) -> &str {
        "test.Gate"
    }

    fn filter(&self, _level: usize, _key: &[u8], _value: &[u8]) -> FilterDecision {
        self.reached.store(true, Ordering::SeqCst);
        let open = self.open.lock().expect("no panic");
        drop(self.opened.wait_while(open, |open| !*open).expect("no panic"));
        FilterDecision::Keep
    }
}

#[test]
fn closing_waits_for_a_compaction_on_a_callers_thread() {
    let vfs = MemoryVfs::new(3);
    let gate = Arc::new(Gate::default());
    let family = FamilyOptions { compaction_filter: Some(gate.clone()), ..FamilyOptions::default() };
    let db = Db::open("/db", &options(vfs.clone(), family)).expect("open");
    let family = db.default_family();
    (0..1000u32).for_each(|i| db.put(&family, &i.to_be_bytes(), b"v", &WriteOptions::default()).expect("put"));
    let closed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let compacts = scope.spawn(|| db.compact_range(&family, None, None, &CompactRangeOptions::default()));
        while !gate.reached.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let closes = scope.spawn(|| {
            db.close().expect("closed");
            closed.store(true, Ordering::SeqCst);
            vfs.read_dir(Path::new("/db")).expect("there")
        });
        std::thread::sleep(Duration::from_millis(100));
        let was_closed = closed.load(Ordering::SeqCst);
        *gate.open.lock().expect("no panic") = true;
        gate.opened.notify_all();
        let ended = compacts.join().expect("no panic").expect_err("given up");
        assert_eq!(ended.kind(), ErrorKind::Closed, "{ended}");
        let left = closes.join().expect("no panic");
        assert!(!was_closed, "closed while a compaction runs");
        assert_eq!(vfs.read_dir(Path::new("/db")).expect("there"), left, "a file was made after that");
    });
}
