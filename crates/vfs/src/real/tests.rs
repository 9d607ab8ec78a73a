#![allow(clippy::disallowed_methods, reason = "the real file system is what is tested")]
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

use base::ErrorKind;
use rustix::fs::{CWD, FlockOperation, Mode, OFlags};

use super::{RealVfs, open_fd};
use crate::{FileKind, IfExists, IoClass, ReadRequest, read_many};

const CLASS: IoClass = IoClass::Other;

fn mode_of(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_is_created_is_the_users_own() {
    let scratch = tempfile::tempdir().unwrap();
    let vfs = RealVfs::new();
    let dir = scratch.path().join("a/b");
    vfs.create_dir_all(&dir).unwrap();
    vfs.create(&dir.join("f"), IfExists::Fail).unwrap();
    vfs.create_shared(&dir.join("s")).unwrap();
    let _lock = vfs.lock(&dir.join("LOCK")).unwrap();
    assert_eq!([mode_of(&dir), mode_of(dir.parent().unwrap())], [0o700; 2]);
    assert_eq!(["f", "s", "LOCK"].map(|name| mode_of(&dir.join(name))), [0o600; 3]);
    assert!(vfs.free_bytes(&dir).unwrap() > 0);
}

#[test]
fn what_is_no_file_is_told_and_never_waited_for() {
    let scratch = tempfile::tempdir().unwrap();
    let vfs = RealVfs::new();
    let [fifo, link] = ["fifo", "link"].map(|name| scratch.path().join(name));
    rustix::fs::mkfifoat(CWD, &fifo, Mode::RWXU).unwrap();
    symlink("nowhere", &link).unwrap();
    assert_eq!(vfs.metadata(&fifo).unwrap().kind, FileKind::Other);
    assert_eq!(vfs.metadata(&link).unwrap().kind, FileKind::Other);
    assert_eq!(vfs.open(&fifo).err().unwrap().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn a_second_path_to_a_lock_is_the_same_lock() {
    let scratch = tempfile::tempdir().unwrap();
    let vfs = RealVfs::new();
    let [dir, other] = ["db", "other"].map(|name| scratch.path().join(name));
    vfs.create_dir_all(&dir).unwrap();
    symlink(&dir, &other).unwrap();
    let held = vfs.lock(&dir.join("LOCK")).unwrap();
    for vfs in [vfs, RealVfs::new()] {
        assert_eq!(vfs.lock(&other.join("LOCK")).err().unwrap().kind(), ErrorKind::Busy);
    }
    drop(held);
    RealVfs::new().lock(&other.join("LOCK")).unwrap();
}

const CHILD_LOCKS: &str = "SPILLWAY_TEST_CHILD_LOCKS";

/// The test runs itself in another process, which tries for the lock in our way and in RocksDB's.
#[test]
fn another_process_finds_the_lock_busy() {
    if let Some(path) = std::env::var_os(CHILD_LOCKS) {
        return try_lock_as_child(Path::new(&path));
    }
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("LOCK");
    let child = || {
        let name = "real::tests::another_process_finds_the_lock_busy";
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args(["--exact", name, "--nocapture"]).env(CHILD_LOCKS, &path).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let held = RealVfs::new().lock(&path).unwrap();
    let said = child();
    assert!(said.contains("ours: another process has the database open"), "{said}");
    assert!(said.contains("posix: refused"), "{said}");
    drop(held);
    let said = child();
    assert!(said.contains("ours: taken") && said.contains("posix: taken"), "{said}");
}

fn try_lock_as_child(path: &Path) {
    match RealVfs::new().lock(path) {
        Ok(_) => println!("ours: taken"),
        Err(e) => println!("ours: {e}"),
    }
    let fd = open_fd("open", path, OFlags::RDWR).unwrap();
    match rustix::fs::fcntl_lock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => println!("posix: taken"),
        Err(_) => println!("posix: refused"),
    }
}

#[test]
fn a_panic_in_a_thread_reaches_whoever_joins_it() {
    let vfs = RealVfs::new();
    let thread = vfs.spawn("doomed", Box::new(|| panic!("on purpose"))).unwrap();
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| thread.join())).is_err());
}

/// Makes the file cold: its pages leave the page cache.
#[cfg(target_os = "linux")]
fn drop_pages(path: &Path) {
    let fd = open_fd("open", path, OFlags::RDONLY).unwrap();
    rustix::fs::fadvise(&fd, 0, None, rustix::fs::Advice::DontNeed).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_cold_batch_reads_what_a_warm_one_does() {
    const BLOCK: usize = 4100;
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("f");
    let bytes: Vec<u8> = (0..1_u32 << 18).flat_map(|i| (i * 7).to_le_bytes()).collect();
    crate::write_all(&*RealVfs::new(), &path, IfExists::Fail, &bytes, CLASS).unwrap();
    let file = RealVfs::new().open(&path).unwrap();
    let offsets = [0, 4100, 8200, 40_000, 700_000, 1_000_000, 1 << 20];
    for is_cold in [true, false] {
        if is_cold {
            drop_pages(&path);
        }
        let mut bufs = vec![[0; BLOCK]; offsets.len()];
        let requests = offsets.iter().zip(&mut bufs);
        let mut reads: Vec<_> = requests.map(|(&at, buf)| ReadRequest::new(&*file, at, buf)).collect();
        read_many(&mut reads, CLASS);
        let read: Vec<usize> = reads.into_iter().map(|read| read.read.unwrap()).collect();
        for (i, at) in offsets.into_iter().enumerate() {
            let wanted = &bytes[at as usize..][..read[i]];
            assert!(bufs[i][..read[i]] == *wanted && (read[i] == BLOCK || at == 1 << 20), "at {at}");
        }
    }
}
