//! Guarded mappings of real files: what happens when pages cannot be read.
#![cfg(unix)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "tests use the real file system as other programs do"
)]
#![allow(clippy::indexing_slicing, reason = "in a test, a bad index is a failure")]

use std::fs::{File, OpenOptions};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use spillway_db_vfs::{GuardedMapping, RealVfs};

const PAGES: usize = 64;
const PAGE_BYTES: usize = 16 << 10; // the largest of common systems

/// A file of `PAGES` pages of sevens, mapped.
fn map(dir: &Path, name: &str) -> (File, Arc<dyn GuardedMapping>) {
    let path = dir.join(name);
    std::fs::write(&path, vec![7; PAGES * PAGE_BYTES]).expect("written");
    let mapping = RealVfs::new().map_guarded(&path).expect("mapped");
    (OpenOptions::new().write(true).open(&path).expect("opened"), mapping)
}

fn byte_of(mapping: &Arc<dyn GuardedMapping>, page: usize) -> u8 {
    std::hint::black_box((**mapping).as_ref()[page * PAGE_BYTES + 5])
}

#[test]
fn pages_lost_under_a_mapping_are_zeros_and_an_error() {
    let dir = tempfile::tempdir().expect("a folder");
    let (file, mapping) = map(dir.path(), "shortened");
    let (_, other) = map(dir.path(), "whole");
    assert_eq!(byte_of(&mapping, 63), 7);
    mapping.check().expect("whole");
    file.set_len((10 * PAGE_BYTES) as u64).expect("shortened");
    let threads: Vec<_> = (0..4)
        .map(|nth| {
            let mapping = mapping.clone();
            std::thread::spawn(move || (10..PAGES).skip(nth).map(|page| byte_of(&mapping, page)).max())
        })
        .collect();
    for thread in threads {
        assert_eq!(thread.join().expect("no signal"), Some(0));
    }
    assert_eq!(byte_of(&mapping, 9), 7);
    let error = mapping.check().expect_err("pages failed");
    assert_eq!(error.kind(), base::ErrorKind::Io);
    assert!(error.to_string().contains("shortened"), "{error}");
    assert_eq!(byte_of(&other, 63), 7);
    other.check().expect("another mapping is as before");
    // Its place in the handler's list is taken by the next mapping, which begins without a mark.
    drop(mapping);
    let (_, next) = map(dir.path(), "next");
    next.check().expect("whole");
}

#[test]
fn a_removed_file_stays_readable() {
    let dir = tempfile::tempdir().expect("a folder");
    let (_, mapping) = map(dir.path(), "removed");
    std::fs::remove_file(dir.path().join("removed")).expect("removed");
    assert_eq!((0..PAGES).map(|page| byte_of(&mapping, page)).min(), Some(7));
    mapping.check().expect("whole");
}

/// The rest runs in processes of its own: a handler is the process's.
const PART: &str = "GUARDED_TEST_PART";

fn run_part(part: &str) -> std::process::ExitStatus {
    let program = std::env::current_exe().expect("this program");
    let mut command = Command::new(program);
    command.args(["--exact", "part", "--nocapture"]).env(PART, part).output().expect("run").status
}

/// Touches a mapping of its own, not guarded, behind the file's end.
fn touch_another(dir: &Path) {
    let path = dir.join("another");
    std::fs::write(&path, vec![7; PAGES * PAGE_BYTES]).expect("written");
    let mapping = RealVfs::new().map_read(&path).expect("mapped");
    OpenOptions::new().write(true).open(&path).expect("opened").set_len(0).expect("shortened");
    std::hint::black_box((*mapping).as_ref()[5]);
}

extern "C" fn exit_with_43(_signal: i32) {
    // SAFETY: `_exit` may be called in a signal handler.
    unsafe { libc::_exit(43) }
}

#[test]
fn part() {
    let Ok(part) = std::env::var(PART) else { return };
    let dir = tempfile::tempdir().expect("a folder");
    if part == "handler" {
        // SAFETY: the handler calls `_exit` alone.
        unsafe { libc::signal(libc::SIGBUS, exit_with_43 as *const () as libc::sighandler_t) };
    }
    let _guarded = map(dir.path(), "guarded");
    touch_another(dir.path());
}

#[test]
fn signals_of_others_go_where_they_went() {
    assert_eq!(run_part("default").signal(), Some(libc::SIGBUS), "the process ends as it would have");
    assert_eq!(run_part("handler").code(), Some(43), "the handler that was there before is called");
}
