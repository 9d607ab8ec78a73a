//! Logs in the archive: what is kept, for how long, and for whom.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use testkit::engine::vfs::{CrashPolicy, MemoryVfs, Vfs};
use testkit::engine::{Db, OpenOptions, WriteOptions};

use super::{cursor, numbers, options, put, refused, write};

fn archiving(vfs: Arc<dyn Vfs>, ttl_s: u64, limit_mb: u64) -> OpenOptions {
    let mut options = options(vfs);
    (options.db.wal_ttl_seconds, options.db.wal_size_limit_mb) = (ttl_s, limit_mb);
    options
}

fn archived(vfs: &MemoryVfs) -> Vec<String> {
    vfs.read_dir(Path::new("/db/archive")).unwrap_or_default()
}

/// Writes 100 KB in ten batches, the last one in a file of its own, and flushes.
fn write_round(db: &Db) {
    (0..9).for_each(|n| {
        put(db, &n.to_string(), &[n; 9000]);
    });
    put(db, "large", &[9; 19_000]);
    db.flush(&[&db.default_family()]).unwrap();
}

#[test]
fn archived_logs_are_read_across_crashes_and_opens() {
    let mut vfs = MemoryVfs::new(7);
    for round in 1..=6u64 {
        let db = Db::open("/db", &archiving(vfs.clone(), 3600, 0)).unwrap();
        write_round(&db);
        write(&db, WriteOptions::synced(), |batch| batch.put(db.default_family().id(), b"synced", b"v"));
        let last = db.latest_sequence_number().0;
        assert_eq!(last, 11 * round);
        assert!(numbers(&mut cursor(&db, 1)).into_iter().eq(1..=last), "{round}");
        assert!(numbers(&mut cursor(&db, 7)).into_iter().eq(7..=last), "{round}");
        if round % 2 == 0 {
            let policy = if round == 4 { CrashPolicy::NothingUnsyncedKept } else { CrashPolicy::AllKept };
            let crashed = vfs.crash_clone(round, policy);
            drop(db);
            vfs = crashed;
        } else {
            db.close().unwrap();
        }
    }
    assert!(archived(&vfs).iter().any(|name| name.ends_with(".spbatch")), "{:?}", archived(&vfs));
    Db::destroy("/db", None, &(vfs.clone() as Arc<dyn Vfs>)).unwrap();
    assert_eq!(vfs.all_files().iter().filter(|path| path.starts_with("/db")).count(), 0);
}

#[test]
fn without_the_options_nothing_is_archived_and_what_was_goes() {
    let vfs = MemoryVfs::new(7);
    let db = Db::open("/db", &archiving(vfs.clone(), 0, 0)).unwrap();
    write_round(&db);
    assert_eq!(archived(&vfs), [""; 0]);
    db.set_db_options(&[("WAL_ttl_seconds", "60")]).unwrap();
    write_round(&db);
    assert!(!archived(&vfs).is_empty(), "at run time");
    db.close().unwrap();
    let db = Db::open("/db", &archiving(vfs.clone(), 0, 0)).unwrap();
    put(&db, "key", b"v");
    assert!(archived(&vfs).iter().all(|name| name.ends_with(".spbatch")), "{:?}", archived(&vfs));
}

#[test]
fn archived_logs_are_deleted_by_size_the_oldest_first() {
    let vfs = MemoryVfs::new(7);
    let db = Db::open("/db", &archiving(vfs.clone(), 0, 1)).unwrap();
    for _ in 0..30 {
        write_round(&db);
        let bytes: u64 =
            archived(&vfs).iter().map(|name| vfs.metadata(&Path::new("/db/archive").join(name)).unwrap().len).sum();
        assert!(bytes <= (1 << 20) + (128 << 10), "{bytes}");
    }
    let seen = numbers(&mut db.updates_since(testkit::engine::SeqNo(1), true).unwrap());
    let last = db.latest_sequence_number().0;
    assert!(seen[0] > 1 && seen.len() > 60 && seen.iter().copied().eq(seen[0]..=last), "{seen:?}");
    refused(&mut cursor(&db, 1), &format!("numbers 1 to {} are not in the log", seen[0] - 1));
}

#[test]
fn archived_logs_are_deleted_by_age_but_not_under_a_cursor() {
    let vfs = MemoryVfs::new(7);
    let db = Db::open("/db", &archiving(vfs.clone(), 100, 0)).unwrap();
    write_round(&db);
    write_round(&db);
    let mut slow = cursor(&db, 1);
    slow.read().unwrap().unwrap();
    let before = archived(&vfs).len();
    assert!(before >= 2);
    vfs.sleep(Duration::from_secs(99));
    put(&db, "key", b"v");
    assert_eq!(archived(&vfs).len(), before, "younger");
    vfs.sleep(Duration::from_secs(60));
    put(&db, "key", b"v");
    assert_eq!(archived(&vfs).len(), before, "a cursor is in the oldest");
    assert!(numbers(&mut slow).into_iter().eq(2..=22));
    drop(slow);
    vfs.sleep(Duration::from_secs(60));
    put(&db, "key", b"v");
    assert!(archived(&vfs).len() < before, "{:?}", archived(&vfs));
    refused(&mut cursor(&db, 1), "numbers 1 to");
}
