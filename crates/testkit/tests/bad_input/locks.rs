//! A database is open at most once, across threads, processes and paths.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use testkit::engine::{Db, ErrorKind, OpenOptions};
use testkit::threads::start;
use vfs::{RealVfs, Vfs};

use crate::common::profile;

const DIR_VARIABLE: &str = "SPILLWAY_LOCK_DIR";

fn options() -> OpenOptions {
    profile().open_options(RealVfs::new(), [] as [&str; 0])
}

fn busy(dir: &Path) {
    let error = Db::open(dir, &options()).map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error:?}");
    assert!(error.path().is_some(), "{error:?}");
}

#[test]
fn a_directory_is_opened_once() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("db");
    let linked = temporary.path().join("link");
    std::os::unix::fs::symlink(&dir, &linked).unwrap();
    let db = Db::open(&dir, &options()).unwrap();
    busy(&dir);
    busy(&linked);
    busy(&dir.join("../db/."));
    let vfs: Arc<dyn Vfs> = RealVfs::new();
    assert_eq!(Db::destroy(&dir, None, &vfs).unwrap_err().kind(), ErrorKind::Busy);
    start({
        let dir = dir.clone();
        move || busy(&dir)
    })
    .join()
    .unwrap();
    db.close().unwrap();
    drop(Db::open(&linked, &options()).unwrap());
    Db::open(&dir, &options()).unwrap();
}

#[test]
fn many_threads_race_for_one_directory() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("db");
    let racers: Vec<_> = (0..8)
        .map(|_| {
            let dir = dir.clone();
            start(move || Db::open(&dir, &options()).map_err(|error| error.kind()))
        })
        .collect();
    let outcomes: Vec<_> = racers.into_iter().map(|racer| racer.join().unwrap()).collect();
    assert_eq!(outcomes.iter().filter(|outcome| outcome.is_ok()).count(), 1);
    assert!(outcomes.iter().all(|outcome| !matches!(outcome, Err(kind) if *kind != ErrorKind::Busy)));
}

/// The second process: it succeeds if the open is refused.
#[test]
#[ignore = "run by the test below, in a process of its own"]
fn second_process() {
    busy(Path::new(&std::env::var(DIR_VARIABLE).unwrap()));
}

#[test]
fn a_directory_is_opened_by_one_process() {
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("db");
    let _db = Db::open(&dir, &options()).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "locks::second_process", "--ignored"])
        .env(DIR_VARIABLE, &dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn files_are_for_their_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let temporary = tempfile::tempdir().unwrap();
    let dir = temporary.path().join("db");
    let db = Db::open(&dir, &options()).unwrap();
    let family = db.default_family();
    db.put(&family, b"k", b"v", &Default::default()).unwrap();
    db.flush(&[&family]).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for entry in std::fs::read_dir(&dir).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}
