//! Replays a life and stores the resulting directory.

use std::path::Path;
use std::sync::Arc;

use testkit::engine::{Db, OpenOptions, WriteOptions};
use testkit::model::Model;
use testkit::ops::Op;
use testkit::run::Runner;
use vfs::{CrashPolicy, MemoryVfs};

use crate::life::{DIR, Life};
use crate::open::contents;
use crate::store;

pub fn write(folder: &Path) {
    let life = Life::of(folder);
    let (vfs, contents) = match &life.from {
        None => run(&life),
        Some(name) => adopt(&life, name),
    };
    store::save(folder, &vfs, &contents);
}

fn run(life: &Life) -> (Arc<MemoryVfs>, String) {
    let vfs = MemoryVfs::new(1);
    let mut runner = Runner::open(vfs.clone(), life.profile, Model::default()).unwrap();
    for op in life.script.ops.iter().chain([&Op::Check]) {
        runner.step(op).unwrap_or_else(|failure| panic!("{op}: {failure}"));
    }
    let contents = contents(runner.db());
    let killed = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
    runner.abandon();
    (if life.is_killed { killed } else { vfs }, contents)
}

/// Adopts a RocksDB directory and continues writing.
fn adopt(life: &Life, name: &str) -> (Arc<MemoryVfs>, String) {
    let vfs = MemoryVfs::new(1);
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/fixtures").join(name);
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        vfs.write_file(&Path::new(DIR).join(path.file_name().unwrap()), &std::fs::read(&path).unwrap()).unwrap();
    }
    let options = OpenOptions { adopt_rocksdb: true, ..life.options(&vfs, true) };
    let db = Db::open(DIR, &options).unwrap();
    let family = db.default_family();
    let put = |key: &str| db.put(&family, key.as_bytes(), &7u64.to_le_bytes(), &WriteOptions::default()).unwrap();
    put("later in a table");
    db.flush(&[&family]).unwrap();
    put("later in the log");
    let contents = contents(&db);
    let killed = vfs.crash_clone(1, CrashPolicy::ProcessKilled);
    db.close().unwrap();
    (if life.is_killed { killed } else { vfs }, contents)
}
