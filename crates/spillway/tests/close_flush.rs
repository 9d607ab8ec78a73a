//! A flush that runs on a writer's own thread, and a database that is closed meanwhile.
#![allow(clippy::disallowed_methods, reason = "a test of threads needs threads")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use testkit::engine::extend::{Event, EventListener};
use testkit::engine::vfs::MemoryVfs;
use testkit::engine::{Db, ErrorKind, OpenOptions, WriteBatch, WriteOptions};

/// Holds up the first flush that begins until it is let go.
#[derive(Default)]
struct Gate {
    reached: AtomicBool,
    open: Mutex<bool>,
    opened: Condvar,
}

impl EventListener for Gate {
    fn on_event(&self, event: &Event) {
        if matches!(event, Event::FlushBegin { .. }) && !self.reached.swap(true, Ordering::SeqCst) {
            let mut open = self.open.lock().expect("no panic");
            while !*open {
                open = self.opened.wait(open).expect("no panic");
            }
        }
    }
}

#[test]
fn closing_waits_for_a_flush_on_a_writers_thread() {
    let vfs = MemoryVfs::new(7);
    let mut options = OpenOptions::create_if_missing();
    options.vfs = vfs.clone();
    let gate = Arc::new(Gate::default());
    let mut gated = options.clone();
    gated.db.listeners.push(gate.clone());
    let db = Db::open("/db", &gated).unwrap();
    let eager = WriteOptions { flush_after: true, ..WriteOptions::default() };
    let batch = |key: &[u8], db: &Db| {
        let mut batch = WriteBatch::new();
        batch.put(db.default_family().id(), key, b"value");
        batch
    };
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| db.write(&batch(b"key", &db), &eager));
        while !gate.reached.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        let closed = AtomicBool::new(false);
        std::thread::scope(|inner| {
            inner.spawn(|| {
                db.close().unwrap();
                closed.store(true, Ordering::SeqCst);
            });
            std::thread::sleep(std::time::Duration::from_millis(100));
            assert!(!closed.load(Ordering::SeqCst), "closed while a flush runs");
            *gate.open.lock().unwrap() = true;
            gate.opened.notify_all();
        });
        if let Err(error) = writer.join().unwrap() {
            assert_eq!(error.kind(), ErrorKind::Closed, "{error}"); // written and flushed, though it could not wait for that
        }
    });
    let next = Db::open("/db", &options).unwrap();
    next.write(&batch(b"other", &next), &eager).unwrap();
    let family = next.default_family();
    assert_eq!(next.get(&family, b"key", &Default::default()).unwrap().as_deref(), Some(&b"value"[..]));
}
