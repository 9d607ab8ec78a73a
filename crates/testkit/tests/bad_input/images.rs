//! Memtables' images beside damaged logs: an image knows how far a log had come.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::UserOrder;
use testkit::engine::check::{CheckOptions, check};
use testkit::engine::options::WalRecoveryMode;
use testkit::engine::{Db, ErrorKind, OpenOptions, ReadOptions, WriteOptions, repair};
use testkit::run::DIR;
use vfs::{MemoryVfs, Vfs};

use crate::common::{copy, files, manifest};
use crate::cut_repairs::cut_off_at_each_call_with;
use crate::doubts::salvage_with;

fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    let mut options = testkit::profile::by_name("tiny trie-file").unwrap().open_options(vfs.clone(), [""; 0]);
    options.families.iter_mut().for_each(|(_, family)| family.write_buffer_size = 8 << 20);
    options.db.log_file_bytes = 8 << 20;
    options
}

/// Killed with 3000 writes in its log and in an image.
fn killed() -> (Arc<MemoryVfs>, PathBuf) {
    killed_after(|_| ())
}

fn killed_after(look: impl FnOnce(&MemoryVfs)) -> (Arc<MemoryVfs>, PathBuf) {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &options(&vfs)).unwrap();
    look(&vfs);
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
    let ends = [used / 4, used / 2, used - used / 4].into_iter();
    for (end, is_cut) in ends.flat_map(|end| [(end, true), (end, false)]) {
        let vfs = copy(&whole);
        match is_cut {
            true => vfs.truncate(&log, end).unwrap(),
            false => {
                let mut bytes = whole.read_file(&log).unwrap();
                bytes.get_mut(end..).unwrap().fill(0);
                vfs.write_file(&log, &bytes).unwrap();
            }
        }
        assert!(!checked(&vfs).is_whole(), "{end}");
        let report = repair(DIR, &options(&copy(&vfs))).unwrap();
        assert!(!report.lost_nothing(), "{end}: {report}");
        let opened = copy(&vfs);
        let doubts = Db::open(DIR, &options(&opened)).unwrap().recovery_doubts();
        assert!(!doubts.is_empty(), "{end}");
        assert!(keys(&opened) > 2400, "{end}: the image has what the log lost");
        let reader = OpenOptions { read_only: true, ..options(&copy(&vfs)) };
        let error = Db::open(DIR, &reader).err().expect("a reader has no use for the image");
        assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*log)), "{end}: {error}");
        assert!(!salvage_with(reader).recovery_doubts().is_empty(), "{end}");
        let mut strict = options(&copy(&vfs));
        strict.db.wal_recovery_mode = WalRecoveryMode::AbsoluteConsistency;
        assert_eq!(Db::open(DIR, &strict).err().map(|error| error.kind()), Some(ErrorKind::Corruption), "{end}");
    }
}

/// The MANIFEST notes a log some time after its first record. An image knows it before.
#[test]
fn log_that_only_an_image_knows_is_told_when_it_is_missing() {
    let mut before = Vec::new();
    let (vfs, log) = killed_after(|vfs| {
        let manifests = [vec![manifest(vfs)], files(vfs, ".spmanifest")].concat();
        before.extend(manifests.into_iter().map(|path| (vfs.read_file(&path).unwrap(), path)));
    });
    before.iter().for_each(|(bytes, path)| vfs.write_file(path, bytes).unwrap());
    assert!(checked(&vfs).is_whole() && keys(&copy(&vfs)) == 3000);
    vfs.remove_file(&log).unwrap();
    assert!(!checked(&vfs).is_whole());
    assert!(!repair(DIR, &options(&copy(&vfs))).unwrap().lost_nothing());
    let reader = OpenOptions { read_only: true, ..options(&copy(&vfs)) };
    assert_eq!(Db::open(DIR, &reader).err().map(|error| error.kind()), Some(ErrorKind::Corruption));
    assert!(!Db::open(DIR, &options(&copy(&vfs))).unwrap().recovery_doubts().is_empty());
    assert!(keys(&vfs) > 2400, "the image has what the log had");
}

/// Two families with images. `users` has unlogged writes, and `default` a large value that is in the log alone.
fn two_families(vfs: &Arc<MemoryVfs>, profile: &str) -> OpenOptions {
    let mut options = testkit::profile::by_name(profile).unwrap().open_options(vfs.clone(), ["users"]);
    options.families.iter_mut().for_each(|(_, family)| family.write_buffer_size = 8 << 20);
    options.db.log_file_bytes = 8 << 20;
    options
}

const LARGE: [u8; 1100] = [0xBA; 1100];

fn with_unlogged(profile: &str) -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &two_families(&vfs, profile)).unwrap();
    let (default, users) = (db.default_family(), db.family("users").unwrap());
    let unlogged = WriteOptions { disable_wal: true, ..WriteOptions::default() };
    (0..100u32).for_each(|key| db.put(&users, format!("u{key:03}").as_bytes(), b"v", &unlogged).unwrap());
    db.put(&default, b"large", &LARGE, &WriteOptions::default()).unwrap();
    for key in 0..1500u32 {
        db.put(&default, &key.to_be_bytes(), &[7; 1000], &WriteOptions::default()).unwrap();
        db.put(&users, &key.to_be_bytes(), &[7; 1000], &WriteOptions::default()).unwrap();
    }
    copy(&vfs)
}

fn unlogged(db: &Db) -> usize {
    let users = db.family("users").unwrap();
    let has = |key: &u32| db.get(&users, format!("u{key:03}").as_bytes(), &ReadOptions::default()).unwrap().is_some();
    (0..100).filter(has).count()
}

#[test]
fn repair_tells_of_writes_that_only_an_image_has() {
    let vfs = with_unlogged("converted");
    assert_eq!(unlogged(&Db::open(DIR, &two_families(&copy(&vfs), "converted")).unwrap()), 100);
    let report = repair(DIR, &two_families(&vfs, "converted")).unwrap();
    let in_doubt = |family, key: &[u8]| report.is_in_doubt(family, key, &UserOrder::Bytewise);
    assert!((0..100).all(|key| in_doubt("users", format!("u{key:03}").as_bytes())), "{report}");
    assert!(!in_doubt("users", b"a") && !in_doubt("users", b"z") && !in_doubt("default", b"u000"), "{report}");
    assert!(vfs.all_files().iter().any(|path| path.starts_with(Path::new(DIR).join("lost")) && is_image(path)));
}

fn is_image(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "spmem")
}

/// A byte of a log is damaged to which an image of `default` refers. Its image is kept, and that of `users` goes on.
#[test]
fn damaged_value_in_a_log_costs_no_other_family_its_image() {
    let vfs = with_unlogged("referring");
    let log = files(&vfs, ".splog").into_iter().find_map(|log| {
        let at = vfs.read_file(&log).unwrap().windows(LARGE.len()).position(|window| window == LARGE)?;
        Some((log, at))
    });
    let (log, at) = log.unwrap();
    vfs.flip_bit(&log, (at as u64 + 50) * 8).unwrap();
    let before: Vec<_> = vfs.all_files().into_iter().filter(|path| is_image(path)).collect();
    let db = Db::open(DIR, &two_families(&vfs, "referring")).unwrap();
    let error = db.flush(&[&db.default_family()]).unwrap_err().to_string(); // as the flush after the open failed
    assert!(error.contains(&*log.to_string_lossy()), "{error}");
    let doubts = db.recovery_doubts();
    assert!(doubts.iter().all(|doubt| doubt.family.as_deref() == Some("default")) && !doubts.is_empty(), "{doubts:?}");
    let vfs = copy(&vfs);
    drop(db);
    let lost = Path::new(DIR).join("lost");
    let is_there =
        |path: &PathBuf| vfs.exists(path).unwrap() || vfs.exists(&lost.join(path.file_name().unwrap())).unwrap();
    assert!(before.iter().all(is_there), "{before:?}, {:?}", vfs.all_files());
    assert!(String::from_utf8(vfs.read_file(&lost.join("REPORT")).unwrap()).unwrap().contains("\"default\""));
    let error = Db::open(DIR, &two_families(&copy(&vfs), "referring")).err().expect("the log is replayed");
    assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(&*log)), "{error}");
    assert_eq!(unlogged(&salvage_with(two_families(&vfs, "referring"))), 100);
}

fn closed_with_images(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    let mut options = two_families(vfs, "converted");
    options.db.avoid_flush_during_shutdown = true;
    options
}

/// Unlogged writes over tables of `users`, closed without a flush: images alone have them.
fn only_in_images() -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(1);
    let db = Db::open(DIR, &closed_with_images(&vfs)).unwrap();
    let users = db.family("users").unwrap();
    let put = |key: &str, disable_wal| {
        let options = WriteOptions { disable_wal, ..WriteOptions::default() };
        db.put(&users, key.as_bytes(), b"v", &options).unwrap();
    };
    for table in ["a", "b"] {
        put(table, false);
        db.flush(&[&users]).unwrap();
    }
    (0..100u32).for_each(|key| put(&format!("u{key:03}"), true));
    db.close().unwrap();
    assert_eq!(unlogged(&Db::open(DIR, &closed_with_images(&copy(&vfs))).unwrap()), 100);
    vfs
}

/// Wherever a repair ends, what only an image has is there, or somebody tells of it.
#[test]
fn repair_that_is_cut_off_tells_what_an_image_had() {
    let mut cut_off = 0;
    cut_off_at_each_call_with(closed_with_images, &only_in_images(), |nth, vfs| {
        if let Ok(db) = Db::open(DIR, &closed_with_images(&copy(&vfs))) {
            let has_report = vfs.exists(&Path::new(DIR).join("lost/REPORT")).unwrap();
            let is_told = has_report || !db.recovery_doubts().is_empty();
            assert!(is_told || unlogged(&db) == 100, "call {nth}: {:?}", vfs.all_files());
        }
        let report = repair(DIR, &closed_with_images(&vfs)).unwrap();
        assert!(!report.lost_nothing(), "call {nth}: {report}");
        cut_off = nth;
    });
    assert!(cut_off > 20, "{cut_off}");
}

/// The point of the way back is older than an image, and the image goes.
#[test]
fn best_efforts_doubts_what_an_image_had() {
    let vfs = only_in_images();
    vfs.remove_file(&files(&vfs, ".sst").pop().unwrap()).unwrap();
    let mut options = closed_with_images(&vfs);
    options.db.best_efforts_recovery = true;
    let db = Db::open(DIR, &options).unwrap();
    let doubts = db.recovery_doubts();
    let in_doubt = |key: &[u8]| doubts.iter().any(|doubt| doubt.covers("users", key, &UserOrder::Bytewise));
    assert!(unlogged(&db) == 100 || (in_doubt(b"u000") && in_doubt(b"u099")), "{doubts:#?}");
    assert!(in_doubt(b"b") && !in_doubt(b"a"), "{doubts:#?}");
}

/// A copied image does not count, and a log is damaged: what the image has of it is kept.
#[test]
fn salvage_keeps_images_that_do_not_count() {
    let (vfs, log) = killed();
    for image in files(&vfs, ".spmem") {
        let bytes = vfs.read_file(&image).unwrap();
        vfs.remove_file(&image).unwrap();
        vfs.write_file(&image, &bytes).unwrap();
    }
    vfs.flip_bit(&log, 8 * 200_000).unwrap();
    let images = files(&vfs, ".spmem");
    assert!(!salvage_with(options(&vfs)).recovery_doubts().is_empty());
    let lost = Path::new(DIR).join("lost");
    let is_kept = |image: &PathBuf| vfs.exists(&lost.join(image.file_name().unwrap())).unwrap();
    assert!(images.iter().all(is_kept), "{:?}", vfs.all_files());
}
