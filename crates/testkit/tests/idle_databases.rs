//! Threads of many idle databases. Alone in its process: it counts them.
#![allow(clippy::disallowed_methods, reason = "a test of threads needs threads")]

use std::time::Duration;

use testkit::engine::{Db, Env, EnvOptions, OpenOptions, ReadOptions, WriteOptions};
use testkit::threads::{wait_for, within};
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

fn has(db: &Db, key: &[u8]) -> bool {
    db.get(&db.default_family(), key, &ReadOptions::default()).expect("readable").is_some()
}

/// Spillway's threads in this process, counted by name.
fn spillway_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux has it").flatten();
    let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default()); // or it has ended
    names.filter(|name| name.starts_with("spillway-")).count()
}

#[test]
fn a_thousand_idle_databases_have_sixteen_threads_at_most() {
    within(LIMIT, || {
        let env = Env::new(EnvOptions::default().flush_threads(4).compaction_threads(4));
        let options = options(&env);
        let mut databases = Vec::new();
        for number in 0..1000 {
            let db = Db::open(format!("/db{number}"), &options).expect("opened");
            put(&db, b"key", &WriteOptions::default());
            databases.push(db);
            if [1, 50, 1000].contains(&databases.len()) {
                wait_for("threads are the Env's", || spillway_threads() == env.threads());
                assert!(env.threads() <= 16, "{} databases: {} threads", databases.len(), env.threads());
            }
        }
        for db in &databases {
            put(db, b"another", &WriteOptions { disable_wal: true, ..WriteOptions::default() });
        }
        databases.iter().for_each(|db| db.flush(&[&db.default_family()]).expect("flushed"));
        assert!(spillway_threads() <= 16, "{} threads", spillway_threads());
        drop(databases);
        let again = Db::open("/db999", &options).expect("opened");
        assert!(has(&again, b"key") && has(&again, b"another"));
    });
}
