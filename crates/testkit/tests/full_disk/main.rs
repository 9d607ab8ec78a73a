//! Full disks: real ones of 32 MiB (tmpfs, and ext4 on a loop device, if the machine permits the mount) and one in
//! memory. Writes fail with an error, never with a signal. Acknowledged writes stay readable and are there once space
//! is back.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod passing;
mod reserve;
mod threads;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use testkit::engine::{
    Db, ErrorKind, Family, IngestMode, IngestOptions, IngestProgress, IngestRequest, OpenOptions, ReadOptions,
    TableWriter, WriteOptions,
};
use testkit::profile::{self, Profile};
use testkit::random::Random;
use testkit::threads::within;
use vfs::{CrashPolicy, MemoryVfs, RealVfs, Vfs};

const LIMIT: Duration = Duration::from_secs(120);
const DISK_MIB: usize = 32;
const VALUE_BYTES: usize = 20_000;

/// Incompressible bytes.
fn value(number: u64) -> Vec<u8> {
    let mut random = Random::new(number);
    (0..VALUE_BYTES / 8).flat_map(|_| random.draw().to_le_bytes()).collect()
}

fn open(vfs: &Arc<dyn Vfs>, dir: &Path, profile: Profile) -> Db {
    Db::open(dir, &profile.open_options(vfs.clone(), ["other"])).unwrap()
}

fn check(db: &Db, written: u64) {
    let family = db.default_family();
    for number in 0..written {
        let found = db.get(&family, &number.to_be_bytes(), &ReadOptions::default()).unwrap();
        assert!(found.as_deref() == Some(&value(number)[..]), "write {number} of {written} is lost");
    }
}

/// Writes until a write fails; returns the number of successful writes.
fn fill(db: &Db, from: u64) -> u64 {
    let family = db.default_family();
    let most = ((4 * DISK_MIB) << 20) / VALUE_BYTES;
    for number in from..from + most as u64 {
        let options = WriteOptions { sync: number % 8 == 0, no_slowdown: true, ..WriteOptions::default() };
        while let Err(error) = db.put(&family, &number.to_be_bytes(), &value(number), &options) {
            match error.kind() {
                ErrorKind::NoSpace => return number,
                // It would wait for space, or for jobs that have some.
                ErrorKind::Busy if waits_for_space(db) => return number,
                ErrorKind::Busy => std::thread::sleep(Duration::from_millis(1)),
                _ => panic!("an error of another kind: {error:?}"),
            }
        }
    }
    panic!("the disk of {DISK_MIB} MiB took {} MiB", 4 * DISK_MIB);
}

fn waits_for_space(db: &Db) -> bool {
    db.int_property(&db.default_family(), "rocksdb.background-errors") != Some(0)
}

/// Fills the disk, frees space by `make_room`, and continues, without a reopen and after one.
fn fill_and_go_on(vfs: Arc<dyn Vfs>, dir: &Path, profile: Profile, make_room: impl Fn()) {
    let db = open(&vfs, dir, profile);
    let mut written = fill(&db, 0);
    assert!(written > 50, "full after {written} writes");
    check(&db, written);
    make_room();
    db.resume().unwrap();
    let family = db.default_family();
    for number in written..written + 20 {
        db.put(&family, &number.to_be_bytes(), &value(number), &WriteOptions::synced()).unwrap();
    }
    written += 20;
    check(&db, written);
    db.flush(&[&family]).unwrap();
    drop(db);
    let db = open(&vfs, dir, profile);
    check(&db, written);
    let family = db.default_family();
    db.put(&family, &written.to_be_bytes(), &value(written), &WriteOptions::synced()).unwrap();
    db.flush(&[&family]).unwrap();
    drop(db);
    check(&open(&vfs, dir, profile), written + 1);
}

/// A mounted file system, gone when dropped.
struct Mount(PathBuf);

impl Mount {
    fn run(command: &str, arguments: &[&str]) -> bool {
        Command::new(command).args(arguments).output().is_ok_and(|output| output.status.success())
    }

    fn tmpfs(at: &Path, mib: usize) -> Option<Mount> {
        let path = at.to_str()?;
        let size = format!("size={mib}m");
        Self::run("mount", &["-t", "tmpfs", "-o", &size, "tmpfs", path]).then(|| Mount(at.to_owned()))
    }

    fn ext4(at: &Path, image: &Path) -> Option<Mount> {
        std::fs::write(image, vec![0; DISK_MIB << 20]).ok()?;
        let (path, image) = (at.to_str()?, image.to_str()?);
        let mounted = Self::run("mkfs.ext4", &["-q", "-F", image]) && Self::run("mount", &["-o", "loop", image, path]);
        mounted.then(|| Mount(at.to_owned()))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let path = self.0.to_string_lossy().into_owned();
        assert!(Mount::run("umount", &[&path]) || std::thread::panicking(), "cannot unmount {path}");
    }
}

fn fill_a_real_disk(kind: &'static str, mount: fn(&Path, &Path) -> Option<Mount>) {
    within(LIMIT, move || {
        for name in ["tiny", "vector", "converted"] {
            let dir = tempfile::tempdir().unwrap();
            let at = dir.path().join("mounted");
            std::fs::create_dir(&at).unwrap();
            let Some(mounted) = mount(&at, &dir.path().join("image")) else {
                println!("skipped: {kind} cannot be mounted here");
                return;
            };
            let ballast = at.join("ballast");
            std::fs::write(&ballast, vec![1; 8 << 20]).unwrap();
            let profile = profile::by_name(name).unwrap();
            fill_and_go_on(RealVfs::new(), &at.join("db"), profile, || std::fs::remove_file(&ballast).unwrap());
            drop(mounted);
        }
    });
}

#[test]
fn a_full_tmpfs() {
    fill_a_real_disk("tmpfs", |at, _| Mount::tmpfs(at, DISK_MIB));
}

/// Opens a database with default options, writes some, and continues after a reopen.
fn live_on_a_small_disk(vfs: &Arc<dyn Vfs>, dir: &Path) {
    for life in 0..2u64 {
        let db = Db::open(dir, &OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() }).unwrap();
        let family = db.default_family();
        check(&db, life * 100);
        for number in life * 100..(life + 1) * 100 {
            db.put(&family, &number.to_be_bytes(), &value(number), &WriteOptions::synced()).unwrap();
        }
        if life == 0 {
            db.flush(&[&family]).unwrap();
        }
        check(&db, (life + 1) * 100);
    }
}

#[test]
fn a_file_system_of_16_mib_is_enough() {
    const SMALL_MIB: usize = 16;
    let memory = MemoryVfs::new(1);
    memory.set_capacity(Some((SMALL_MIB as u64) << 20));
    live_on_a_small_disk(&(memory as Arc<dyn Vfs>), Path::new("/db"));
    let dir = tempfile::tempdir().unwrap();
    match Mount::tmpfs(dir.path(), SMALL_MIB) {
        Some(_mounted) => live_on_a_small_disk(&(RealVfs::new() as Arc<dyn Vfs>), &dir.path().join("db")),
        None => println!("skipped: tmpfs cannot be mounted here"),
    }
}

#[test]
fn a_full_ext4() {
    fill_a_real_disk("ext4 on a loop device", Mount::ext4);
}

/// An ingest without enough disk space leaves nothing, and succeeds once space is back.
#[test]
fn an_ingest_onto_a_full_disk() {
    within(LIMIT, || {
        let memory = MemoryVfs::new(1);
        let vfs: Arc<dyn Vfs> = memory.clone();
        let profile = profile::by_name("tiny").unwrap();
        let db = open(&vfs, Path::new("/db"), profile);
        let family = db.default_family();
        db.put(&family, b"k", b"old", &WriteOptions::synced()).unwrap();
        let file = Path::new("/file.sst").to_owned();
        let mut table = TableWriter::create(vfs.clone(), &file, &family.options()).unwrap();
        (0..100u64).for_each(|number| table.put(&number.to_be_bytes(), &value(number)).unwrap());
        let bytes = table.finish().unwrap().file_bytes;
        let used: u64 = memory.all_files().iter().map(|path| vfs.metadata(path).unwrap().len).sum();
        let before = memory.all_files();
        for room in [0, 1000, bytes / 2, bytes - 1] {
            memory.set_capacity(Some(used + room));
            let error = db.ingest(&family, std::slice::from_ref(&file), &IngestOptions::default()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NoSpace, "{error:?}");
            assert_eq!(memory.all_files(), before, "{room} bytes were free");
        }
        db.put(&family, b"k", b"new", &WriteOptions::synced()).unwrap();
        memory.set_capacity(None);
        db.ingest(&family, &[file], &IngestOptions::default()).unwrap();
        check(&db, 100);
    });
}

const DIR: &str = "/db";
const MODES: [IngestMode; 4] =
    [IngestMode::Flushable, IngestMode::Blocking, IngestMode::FlushFirst, IngestMode::Direct];

/// Keys that are written, and that an ingest brings anew.
const KEYS: u64 = 100;

fn write_old(db: &Db) {
    let family = db.default_family();
    for key in 0..KEYS {
        db.put(&family, &key.to_be_bytes(), b"old", &WriteOptions::default()).unwrap();
    }
    db.sync_log().unwrap();
}

fn new_table(vfs: &Arc<dyn Vfs>, family: &Family) -> PathBuf {
    let path = PathBuf::from("/new.sst");
    let mut table = TableWriter::create(vfs.clone(), &path, &family.options()).unwrap();
    (0..KEYS).for_each(|key| table.put(&key.to_be_bytes(), b"new").unwrap());
    table.finish().unwrap();
    path
}

/// Whether the ingest is there. It must have all of its keys or none.
fn is_ingested(db: &Db) -> bool {
    let family = db.default_family();
    let get = |key: u64| db.get(&family, &key.to_be_bytes(), &ReadOptions::default()).unwrap();
    let count = |value: &[u8]| (0..KEYS).filter(|key| get(*key).as_deref() == Some(value)).count() as u64;
    let counts = [count(b"old"), count(b"new")];
    assert!(counts == [KEYS, 0] || counts == [0, KEYS], "{counts:?} of {KEYS} are old and new");
    counts == [0, KEYS]
}

/// Leaves `bytes` of the disk free.
fn leave_room(memory: &MemoryVfs, bytes: u64) {
    let used: u64 = memory.all_files().iter().map(|path| memory.metadata(path).unwrap().len).sum();
    memory.set_capacity(Some(used + bytes));
}

fn check_is_full(error: &testkit::engine::Error) {
    assert!(matches!(error.kind(), ErrorKind::NoSpace | ErrorKind::ReadOnly), "an error of another kind: {error:?}");
}

/// Checks that the database takes writes and flushes again.
fn go_on(db: &Db) {
    db.put(&db.default_family(), b"k", b"v", &WriteOptions::synced()).unwrap();
    db.flush(&[&db.default_family()]).unwrap();
}

/// Commits an ingest with `room` bytes free, over a memtable with all of its keys. False if the commit or the following
/// flush failed.
fn commit_with_room(profile: Profile, mode: IngestMode, room: u64) -> bool {
    let memory = MemoryVfs::new(1);
    let vfs: Arc<dyn Vfs> = memory.clone();
    let db = open(&vfs, Path::new(DIR), profile);
    let family = db.default_family();
    write_old(&db);
    let request = [IngestRequest::new(family.clone(), vec![new_table(&vfs, &family)])];
    let options = IngestOptions { mode, ..IngestOptions::default() };
    let prepared = db.prepare_ingest(&request, &options, &IngestProgress::default()).unwrap();
    leave_room(&memory, room);
    let committed = db.commit_ingest(prepared);
    committed.as_ref().err().into_iter().for_each(check_is_full);
    let was_there = is_ingested(&db);
    assert!(was_there || committed.is_err(), "it was acknowledged");
    let lacks_space = committed.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace);
    assert!(!was_there || !lacks_space, "it is there, and was refused");
    let went_through = committed.is_ok() && db.int_property(&family, "rocksdb.background-errors") == Some(0);
    memory.set_capacity(None);
    let power_lost = memory.crash_clone(1, CrashPolicy::NothingUnsyncedKept);
    drop(db);
    for left in [memory, power_lost] {
        let left: Arc<dyn Vfs> = left;
        let db = open(&left, Path::new(DIR), profile);
        assert!(is_ingested(&db) || !was_there, "it was seen before");
        go_on(&db);
    }
    went_through
}

/// With one set of options a flush merges the ingest and the memtable under it into one table; with the other it links
/// the ingested table.
#[test]
fn a_disk_that_is_full_anywhere_in_a_commit_or_its_flush() {
    within(LIMIT, || {
        for name in ["tiny", "static-levels"] {
            for mode in MODES {
                let profile = profile::by_name(name).unwrap();
                let mut ended = [0; 2];
                for room in (0..).step_by(307) {
                    ended[usize::from(commit_with_room(profile, mode, room))] += 1;
                    if ended[1] > 2 {
                        break;
                    }
                }
                assert!(ended[0] > 5, "{name}, {mode:?}: {ended:?}");
            }
        }
    });
}

/// State of a killed process: an ingest in the WAL, not flushed.
fn with_queued_ingest() -> Arc<MemoryVfs> {
    let memory = MemoryVfs::new(1);
    let vfs: Arc<dyn Vfs> = memory.clone();
    let db = open(&vfs, Path::new(DIR), profile::by_name("queued").unwrap());
    write_old(&db);
    let family = db.default_family();
    db.ingest(&family, &[new_table(&vfs, &family)], &IngestOptions::default()).unwrap();
    assert!(db.live_files().iter().any(|file| file.is_queued));
    memory.crash_clone(1, CrashPolicy::ProcessKilled)
}

/// With one set of options recovery queues the ingest until a requested flush; with the other it flushes at once.
#[test]
fn a_disk_that_is_full_anywhere_in_the_recovery_of_an_ingest() {
    within(LIMIT, || {
        let killed = with_queued_ingest();
        for name in ["queued", "tiny"] {
            let profile = profile::by_name(name).unwrap();
            let mut ended = [0; 2];
            for room in (0..).step_by(509) {
                let memory = killed.crash_clone(2, CrashPolicy::ProcessKilled);
                leave_room(&memory, room);
                let opened = Db::open(DIR, &profile.open_options(memory.clone(), ["other"]));
                let flushed = opened.and_then(|db| {
                    assert!(is_ingested(&db), "{name}, {room} bytes were free");
                    db.flush(&[&db.default_family()])
                });
                flushed.as_ref().err().into_iter().for_each(check_is_full);
                ended[usize::from(flushed.is_ok())] += 1;
                memory.set_capacity(None);
                let vfs: Arc<dyn Vfs> = memory;
                let db = open(&vfs, Path::new(DIR), profile);
                assert!(is_ingested(&db), "{name}, {room} bytes had been free");
                go_on(&db);
                if ended[1] > 2 {
                    break;
                }
            }
            assert!(ended[0] > 5, "{name}: {ended:?}");
        }
    });
}

#[test]
fn a_full_disk_in_memory() {
    within(LIMIT, || {
        for threaded in [false, true] {
            for name in ["tiny", "vector", "partitioned", "converted", "dumped"] {
                let memory = MemoryVfs::new(1);
                memory.set_runs_inline(!threaded);
                memory.set_capacity(Some(8 << 20));
                let profile = profile::by_name(name).unwrap();
                fill_and_go_on(memory.clone(), Path::new("/db"), profile, || memory.set_capacity(None));
            }
        }
    });
}
