//! Files that came from elsewhere beside whole ones: another MANIFEST under the number of the last, and files in the form of
//! RocksDB's logs.

use std::path::Path;
use std::sync::Arc;

use base::FileNumber;
use testkit::engine::check::{CheckOptions, CheckReport, check};
use testkit::engine::{Db, ErrorKind, FamilyOptions, IngestOptions, OpenOptions, WriteOptions, repair};
use testkit::run::DIR;
use vfs::MemoryVfs;

use crate::common::{Contents, INGESTS, PLAIN, Subject, copy, files, manifest, read_with};

fn options(vfs: &Arc<MemoryVfs>) -> OpenOptions {
    OpenOptions { vfs: vfs.clone(), ..OpenOptions::create_if_missing() }
}

fn checked(vfs: &Arc<MemoryVfs>) -> CheckReport {
    check(Path::new(DIR), &CheckOptions { vfs: vfs.clone(), ..CheckOptions::default() }, &mut |_| {}).unwrap()
}

fn contents(subject: Subject, vfs: &Arc<MemoryVfs>) -> Contents {
    subject.read(vfs).unwrap()
}

#[test]
fn files_in_the_form_of_rocksdbs_logs_are_left_alone() {
    for subject in [PLAIN, INGESTS] {
        let whole = subject.database();
        let expected = contents(subject, &copy(&whole));
        for name in ["000001.log", "000099.log", "20261129.log"] {
            for bytes in [&b""[..], b"a line of a program's own log\n", &[0; 40_000]] {
                let stray = Path::new(DIR).join(name);
                let with_stray = copy(&whole);
                with_stray.write_file(&stray, bytes).unwrap();
                let report = checked(&with_stray);
                let is_noted = report.notes.iter().any(|note| note.contains(name));
                assert!(report.is_whole() && report.superfluous.is_empty() && is_noted, "{name}: {:?}", report.notes);
                for repairs in [false, true] {
                    let vfs = copy(&with_stray);
                    if repairs {
                        let report = repair(DIR, &subject.options(&vfs)).unwrap();
                        assert!(report.lost_nothing(), "{name}: {report}");
                    }
                    assert_eq!(contents(subject, &vfs), expected, "{name}, repaired: {repairs}");
                    assert_eq!(vfs.read_file(&stray).unwrap(), bytes);
                }
            }
        }
    }
}

/// RocksDB's logs have no id: in a directory of logs that several databases share, they are not ours to delete.
#[test]
fn logs_in_rocksdbs_form_stay_in_a_shared_directory() {
    let (vfs, stray) = (MemoryVfs::new(1), Path::new("/logs/000001.log"));
    let mut elsewhere = options(&vfs);
    elsewhere.db.wal_dir = "/logs".to_owned();
    for _ in 0..2 {
        let db = Db::open(DIR, &elsewhere).unwrap();
        vfs.write_file(stray, b"another database's").unwrap();
        db.put(&db.default_family(), b"k", b"v", &WriteOptions::default()).unwrap();
        db.close().unwrap();
    }
    Db::destroy(DIR, Some(Path::new("/logs")), &elsewhere.vfs).unwrap();
    assert_eq!(vfs.all_files(), [stray]);
}

/// One table, of a database made with this seed.
fn flushed(seed: u64) -> Arc<MemoryVfs> {
    let vfs = MemoryVfs::new(seed);
    go_on(&vfs, &seed.to_string());
    vfs
}

/// A life that puts one key and flushes it.
fn go_on(vfs: &Arc<MemoryVfs>, key: &str) {
    let db = Db::open(DIR, &options(vfs)).unwrap();
    let family = db.default_family();
    db.put(&family, key.as_bytes(), b"v", &WriteOptions::default()).unwrap();
    db.flush(&[&family]).unwrap();
    db.close().unwrap();
}

/// The MANIFEST is another one; the copy beside it stays.
fn with_manifest_of(vfs: &Arc<MemoryVfs>, other: &Arc<MemoryVfs>) -> Arc<MemoryVfs> {
    let mixed = copy(vfs);
    let manifest = manifest(&mixed);
    mixed.write_file(&manifest, &other.read_file(&manifest).unwrap()).unwrap();
    mixed
}

fn assert_told(vfs: &Arc<MemoryVfs>) {
    let error = read_with(&options(vfs), DIR).unwrap_err();
    assert!(error.kind() == ErrorKind::Corruption && error.message().contains("hold different records"), "{error}");
    let report = checked(vfs);
    assert!(
        report.problems.iter().any(|problem| problem.0.message().contains("hold different records")),
        "{:?}",
        report.problems
    );
}

#[test]
fn manifest_of_another_database_is_told_and_its_copy_stands_in() {
    let vfs = flushed(1);
    let expected = read_with(&options(&copy(&vfs)), DIR).unwrap();
    let mixed = with_manifest_of(&vfs, &flushed(2));
    assert_told(&copy(&mixed));
    let best = copy(&mixed);
    let mut best_efforts = options(&best);
    best_efforts.db.best_efforts_recovery = true;
    let db = Db::open(DIR, &best_efforts).unwrap();
    assert!(db.recovery_doubts().is_empty(), "{:?}", db.recovery_doubts());
    db.close().unwrap();
    assert_eq!(read_with(&options(&best), DIR).unwrap(), expected);
    let report = repair(DIR, &options(&mixed)).unwrap();
    assert!(report.lost_nothing(), "{report}");
    assert_eq!(read_with(&options(&mixed), DIR).unwrap(), expected);
}

/// Two copies of a database went on apart: their files have the same names and ids, and nothing tells whose the others are.
#[test]
fn manifest_of_a_twin_puts_all_in_doubt() {
    let first = flushed(1);
    let twin = copy(&first);
    go_on(&twin, "twin");
    go_on(&first, "a");
    let mixed = with_manifest_of(&first, &twin);
    assert_told(&copy(&mixed));
    let report = repair(DIR, &options(&mixed)).unwrap();
    assert!(!report.lost_no_key() && report.doubts.iter().any(|doubt| doubt.family.is_none()), "{report}");
}

/// Another database's OPTIONS file is whole, and its options could delete data.
#[test]
fn options_of_another_database_are_told() {
    let (vfs, other) = (flushed(1), flushed(2));
    let options_file =
        files(&vfs, "").into_iter().filter(|path| path.to_string_lossy().contains("OPTIONS-")).max().unwrap();
    vfs.write_file(&options_file, &other.read_file(&options_file).unwrap()).unwrap();
    let report = checked(&vfs);
    let is_told = |text: &str| text.contains("another database's");
    assert!(report.problems.iter().any(|problem| is_told(problem.0.message())), "{:?}", report.problems);
    let number = file_number(&options_file);
    let error = Db::open(DIR, &OpenOptions { stored_in: Some(number), ..options(&vfs) }).map(drop).unwrap_err();
    assert!(is_told(error.message()), "{error}");
    let report = repair(DIR, &options(&vfs)).unwrap();
    assert!(report.lost_no_key() && report.lost_options.iter().any(|what| is_told(what)), "{report}");
    assert!(checked(&vfs).is_whole());
}

fn file_number(path: &Path) -> FileNumber {
    let digits: String = path.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    FileNumber(digits.parse().unwrap())
}

/// Tables in another database's directory are its own until it lets them go.
#[test]
fn tables_are_not_moved_out_of_a_database() {
    let (from, vfs) = ("/from", flushed(1));
    let db = Db::open(from, &options(&vfs)).unwrap();
    let family = db.default_family();
    db.put(&family, b"k", b"v", &WriteOptions::default()).unwrap();
    db.flush(&[&family]).unwrap();
    let live = db.live_files();
    let to = Db::open(DIR, &options(&vfs)).unwrap();
    let moves = IngestOptions { move_files: true, allow_db_generated_files: true, ..IngestOptions::default() };
    let ingested = to.ingest(&to.default_family(), &[live[0].path.clone()], &moves).map(drop).unwrap_err();
    let imported = to.import_family("one", FamilyOptions::default(), &[&live], true).map(drop).unwrap_err();
    for error in [ingested, imported] {
        assert!(error.kind() == ErrorKind::InvalidArgument && error.message().contains("another database"), "{error}");
    }
    let copies = IngestOptions { move_files: false, ..moves };
    to.ingest(&to.default_family(), &[live[0].path.clone()], &copies).unwrap();
    assert!(vfs.read_file(&live[0].path).is_ok());
}
