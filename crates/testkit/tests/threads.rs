//! Databases share the threads of an Env, and may be closed on those threads.
#![allow(clippy::disallowed_methods, reason = "a test of threads needs threads")]

use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use testkit::engine::extend::{Event, EventListener};
use testkit::engine::{CompactRangeOptions, Db, Env, EnvOptions, OpenOptions, ReadOptions, WriteOptions};
use testkit::threads::{start, wait_for, within};
use vfs::MemoryVfs;

const LIMIT: Duration = Duration::from_secs(120);

fn options(env: &Env) -> OpenOptions {
    let vfs = MemoryVfs::new(1);
    vfs.set_runs_inline(false);
    let mut options = OpenOptions { vfs, env: env.clone(), ..OpenOptions::create_if_missing() };
    options.db.log_file_bytes = 64 << 10;
    options
}

fn put(db: &Db, key: &[u8], options: &WriteOptions) {
    db.put(&db.default_family(), key, b"value", options).expect("written");
}

fn unlogged() -> WriteOptions {
    WriteOptions { disable_wal: true, ..WriteOptions::default() }
}

fn has(db: &Db, key: &[u8]) -> bool {
    db.get(&db.default_family(), key, &ReadOptions::default()).expect("readable").is_some()
}

type Action = Box<dyn FnMut(&Event) + Send>;

/// Does something at every event.
#[derive(Default)]
struct Does(Mutex<Option<Action>>);

impl Does {
    fn set(&self, action: impl FnMut(&Event) + Send + 'static) {
        *self.0.lock().expect("no panic") = Some(Box::new(action));
    }
}

impl EventListener for Does {
    fn on_event(&self, event: &Event) {
        let action = self.0.lock().expect("no panic").take();
        if let Some(mut action) = action {
            action(event);
            self.0.lock().expect("no panic").get_or_insert(action);
        }
    }
}

/// A database with a listener, initially without an action.
fn open_heard(path: &str, options: &OpenOptions) -> (Arc<Db>, Arc<Does>) {
    let listener = Arc::<Does>::default();
    let mut heard = options.clone();
    heard.db.listeners.push(listener.clone());
    (Arc::new(Db::open(path, &heard).expect("opened")), listener)
}

/// Runs operations on a database until the event is reported.
fn bring_about(db: &Db, is_told: impl Fn() -> bool) {
    for round in 0u32.. {
        if is_told() {
            return;
        }
        // Closed meanwhile, or will be.
        let key = round.to_be_bytes();
        let _ = db.put(&db.default_family(), &key, b"value", &WriteOptions::default());
        let _ = db.begin_flush(&[&db.default_family()]);
        if round % 8 == 7 {
            let _ = db.compact_range(&db.default_family(), None, None, &CompactRangeOptions::default());
        }
    }
}

/// Reopens the directory while a close on another thread is about to release it.
fn reopen(path: &str, options: &OpenOptions) -> Db {
    let mut opened = None;
    wait_for("the directory", || {
        opened = Db::open(path, options).ok();
        opened.is_some()
    });
    opened.expect("waited for")
}

fn close_in_a_listener(options: &OpenOptions, is_it: fn(&Event) -> bool) {
    let (db, listener) = open_heard("/db", options);
    put(&db, b"logged", &WriteOptions::default());
    put(&db, b"unlogged", &unlogged());
    let (weak, told): (Weak<Db>, Arc<Mutex<bool>>) = (Arc::downgrade(&db), Arc::default());
    let seen = told.clone();
    listener.set(move |event| {
        let on_our_thread = std::thread::current().name().is_some_and(|name| name.starts_with("spillway-"));
        let is_first = !*seen.lock().expect("no panic");
        if let Some(db) = weak.upgrade().filter(|_| is_it(event) && on_our_thread && is_first) {
            db.close().expect("begun");
            put(&db, b"late", &WriteOptions::default());
            *seen.lock().expect("no panic") = true;
        }
    });
    bring_about(&db, || *told.lock().expect("no panic"));
    let next = reopen("/db", options);
    assert!(has(&next, b"logged") && has(&next, b"unlogged") && has(&next, b"late"));
    assert!(db.put(&db.default_family(), b"key", b"value", &WriteOptions::default()).is_err(), "closed");
    db.close().expect("a second time");
}

#[test]
fn a_close_in_a_listener_is_done_when_the_job_is() {
    within(LIMIT, || {
        let small = Env::new(EnvOptions::default().flush_threads(1).compaction_threads(1));
        for env in [&small, &Env::default()] {
            close_in_a_listener(&options(env), |event| matches!(event, Event::FlushBegin { .. }));
            close_in_a_listener(&options(env), |event| matches!(event, Event::FlushEnd { .. }));
            close_in_a_listener(&options(env), |event| matches!(event, Event::CompactionEnd { .. }));
            close_in_a_listener(&options(env), |event| matches!(event, Event::FileDeleted { .. }));
        }
    });
}

/// The last handle may be dropped on any thread.
#[test]
fn a_handle_may_be_dropped_in_a_listener() {
    within(LIMIT, || {
        let options = options(&Env::new(EnvOptions::default().flush_threads(1)));
        let (db, listener) = open_heard("/db", &options);
        put(&db, b"key", &unlogged());
        let family = db.default_family();
        let mut last = Some(db.clone());
        db.begin_flush(&[&family]).expect("begun");
        put(&db, b"another", &unlogged());
        listener.set(move |event| {
            if matches!(event, Event::FlushEnd { .. }) {
                drop(last.take());
            }
        });
        let _ = db.begin_flush(&[&family]);
        drop(db);
        drop(family);
        let next = reopen("/db", &options);
        assert!(has(&next, b"key") && has(&next, b"another"));
    });
}

/// With one thread per kind of job: the flush thread is in the listener, and the database it waits for needs one.
#[test]
fn a_listener_may_wait_for_another_database() {
    within(LIMIT, || {
        let options = options(&Env::new(EnvOptions::default().flush_threads(1).compaction_threads(1)));
        let (first, listener) = open_heard("/first", &options);
        let second = Arc::new(Db::open("/second", &options).expect("opened"));
        put(&second, b"key", &unlogged());
        let (other, told): (Arc<Db>, Arc<Mutex<usize>>) = (second.clone(), Arc::default());
        let seen = told.clone();
        listener.set(move |event| {
            if matches!(event, Event::FlushEnd { .. }) && *seen.lock().expect("no panic") == 0 {
                other.flush(&[&other.default_family()]).expect("flushed");
                put(&other, b"another", &unlogged());
                other.close().expect("closed"); // which flushes, too
                *seen.lock().expect("no panic") += 1;
            }
        });
        put(&first, b"key", &WriteOptions::default());
        first.flush(&[&first.default_family()]).expect("flushed");
        wait_for("the listener", || *told.lock().expect("no panic") == 1);
        let next = Db::open("/second", &options).expect("closed before");
        assert!(has(&next, b"key") && has(&next, b"another"));
    });
}

/// Many threads open, write, flush and close databases at once.
#[test]
fn many_come_and_go() {
    within(LIMIT, || {
        let options = options(&Env::new(EnvOptions::default().flush_threads(2).compaction_threads(1)));
        let threads: Vec<_> = (0..6)
            .map(|thread| {
                let options = options.clone();
                start(move || {
                    for round in 0..20u32 {
                        let db = Db::open(format!("/db{thread}"), &options).expect("opened");
                        assert!(round == 0 || has(&db, &(round - 1).to_be_bytes()));
                        let how = if round % 2 == 0 { unlogged() } else { WriteOptions::default() };
                        put(&db, &round.to_be_bytes(), &how);
                        if round % 3 == 0 {
                            db.begin_flush(&[&db.default_family()]).expect("begun");
                        }
                        if round % 4 == 0 {
                            db.close().expect("closed");
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
}
