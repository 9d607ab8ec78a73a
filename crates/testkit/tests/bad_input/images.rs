//! Memtables' images beside damaged logs: an image knows how far a log had come.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use testkit::engine::check::{CheckOptions, check};
use testkit::engine::{Db, OpenOptions, ReadOptions, WriteOptions, repair};
use testkit::run::DIR;
use vfs::MemoryVfs;

use crate::common::{copy, files};

fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    let mut options = testkit::profile::by_name("tiny trie-file").unwrap().open_options(vfs.clone(), [""; 0]);
    options.families.iter_mut().for_each(|(_, family)| family.write_buffer_size = 8 << 20);
    options.db.log_file_bytes = 8 << 20;
    options
}

/// Killed with 3000 writes in its log and in an image.
fn killed() -> (Arc<MemoryVfs>, PathBuf) {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    for key in 0..3000u32 {
        db.put(&db.default_family(), &key.to_be_bytes(), &[7; 1000], &WriteOptions::default()).unwrap();
    }
    let killed = copy(&vfs);
    drop(db);
    assert!(!files(&killed, ".spmem").is_empty());
    let log =
        files(&killed, ".splog").into_iter().rfind(|log| killed.read_file(log).unwrap().iter().any(|byte| *byte != 0));
    (killed, log.unwrap())
}

fn checked(vfs: &Arc<MemoryVfs>) -> testkit::engine::check::CheckReport {
    let options = CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() };
    check(Path::new(DIR), &options, &mut |_| ()).unwrap()
}

fn keys(vfs: &Arc<MemoryVfs>) -> usize {
    let db = Db::open(DIR, &options(vfs)).unwrap();
    let found = |key: u32| db.get(&db.default_family(), &key.to_be_bytes(), &ReadOptions::default()).unwrap().is_some();
    (0..3000).filter(|key| found(*key)).count()
}

#[test]
fn log_that_ends_before_an_image_is_told() {
    let (whole, log) = killed();
    let report = checked(&whole);
    assert!(report.is_whole() && report.superfluous.is_empty(), "{report:#?}");
    assert!(repair(DIR, &options(&copy(&whole))).unwrap().lost_nothing());
    assert!(Db::open(DIR, &options(&copy(&whole))).unwrap().recovery_doubts().is_empty());
    let used = whole.read_file(&log).unwrap().iter().rposition(|byte| *byte != 0).unwrap();
    for end in [used / 4, used / 2, used - used / 4] {
        let vfs = copy(&whole);
        vfs.truncate(&log, end).unwrap();
        assert!(!checked(&vfs).is_whole(), "{end}");
        let report = repair(DIR, &options(&copy(&vfs))).unwrap();
        assert!(!report.lost_nothing(), "{end}: {report}");
        let opened = copy(&vfs);
        let doubts = Db::open(DIR, &options(&opened)).unwrap().recovery_doubts();
        assert!(!doubts.is_empty(), "{end}");
        assert!(keys(&opened) > 2400, "{end}: the image has what the log lost");
    }
}
