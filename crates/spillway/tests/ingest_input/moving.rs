//! Copies, links and moves; whole-file checksums; files that change while they are ingested.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base::checksum::crc32c;
use testkit::engine::FileChecksum;
use testkit::engine::vfs::{Fault, FaultCode, FaultVfs, MemoryVfs, Operation, RealVfs, Rule};
use testkit::engine::{ErrorKind, IngestOptions, IngestProgress, IngestRequest, PreparedIngest};

use crate::common::{Forge, Place, default, only_place};

fn linking() -> IngestOptions {
    IngestOptions { link_files: true, ..default() }
}

fn moving() -> IngestOptions {
    IngestOptions { move_files: true, ..default() }
}

fn prepare(place: &Place, file: &Path, options: &IngestOptions) -> PreparedIngest {
    let request = IngestRequest::new(place.family.clone(), vec![file.to_owned()]);
    place.db.prepare_ingest(&[request], options, &IngestProgress::default()).unwrap()
}

fn holds_new(place: &Place) -> bool {
    place.contents().get("k00007").is_some_and(|value| value == "new")
}

#[test]
fn a_copy_is_another_file_and_a_link_is_not() {
    for (options, links) in [(default(), false), (linking(), true)] {
        let place = Place::real();
        let file = place.table("in.sst", 0..10, "new");
        place.ingest_one(&file, &options).unwrap();
        let inside = place.db.live_files()[0].path.clone();
        let inode = |path: &Path| std::fs::metadata(path).unwrap().ino();
        assert_eq!(inode(&inside) == inode(&file), links);
        assert_eq!(std::fs::read(&inside).unwrap(), std::fs::read(&file).unwrap());
        if !links {
            assert_eq!(std::fs::metadata(&inside).unwrap().permissions().mode() & 0o777, 0o600);
        }
        std::fs::remove_file(&file).unwrap();
        assert!(holds_new(&place), "the database has a name of its own for it");
    }
}

#[test]
fn a_moved_file_goes_from_where_it_was_after_the_commit_and_not_before() {
    let place = Place::real();
    let file = place.table("in.sst", 0..10, "new");
    let prepared = prepare(&place, &file, &moving());
    assert!(file.exists());
    drop(prepared);
    assert!(file.exists(), "an abort leaves it");
    let prepared = prepare(&place, &file, &moving());
    place.db.commit_ingest(prepared).unwrap();
    assert!(!file.exists() && holds_new(&place));
}

#[test]
fn a_refused_move_leaves_every_file() {
    let place = Place::real();
    let good = place.table("good.sst", 0..10, "new");
    let bad = place.path("bad.sst");
    place.write(&bad, b"no table");
    place.refused(&[good.clone(), bad.clone()], &bad, &moving());
    assert!(good.exists() && bad.exists());
}

#[test]
fn another_file_that_came_under_a_moved_name_stays() {
    let place = Place::real();
    let file = place.table("in.sst", 0..10, "new");
    let prepared = prepare(&place, &file, &moving());
    std::fs::rename(place.table("other.sst", 0..10, "other"), &file).unwrap();
    place.db.commit_ingest(prepared).unwrap();
    assert!(holds_new(&place));
    place.ingest_one(&file, &default()).unwrap();
    assert_eq!(place.contents()["k00007"], "other");
}

#[test]
fn an_empty_file_that_is_moved_goes_with_the_others() {
    let place = Place::real();
    let empty = place.path("empty.sst");
    place.write(&empty, &Forge::new().bytes(&[], &[]));
    let file = place.table("in.sst", 0..10, "new");
    place.ingest(&[empty.clone(), file.clone()], &moving()).unwrap();
    assert!(!empty.exists() && !file.exists());
}

#[test]
fn empty_files_that_are_moved_go_where_there_are_no_others() {
    let place = Place::real();
    let empty = place.path("empty.sst");
    place.write(&empty, &Forge::new().bytes(&[], &[]));
    place.ingest_one(&empty, &moving()).unwrap();
    assert!(!empty.exists());
}

#[test]
fn other_contents_of_a_file_that_was_copied_to_move_it_stay() {
    let faulty = FaultVfs::new(MemoryVfs::new(1));
    let place = Place::on(faulty.clone(), Path::new("/work"));
    let file = place.table("in.sst", 0..10, "new");
    faulty.inject(Rule::new(Fault::Error(FaultCode::OtherDevice)).on(Operation::Link).sticky());
    let prepared = prepare(&place, &file, &moving());
    let mut again = place.vfs.open_append(&file).unwrap();
    again.append(b"the next export", vfs::IoClass::Other).unwrap();
    drop(again);
    place.db.commit_ingest(prepared).unwrap();
    assert!(holds_new(&place) && place.vfs.exists(&file).unwrap());
}

/// A link to another file system, as the real one has it where the machine has one, and as a fault has it anyway.
#[test]
fn what_cannot_be_linked_is_copied_or_refused() {
    let faulty = FaultVfs::new(MemoryVfs::new(1));
    let place = Place::on(faulty.clone(), Path::new("/work"));
    let file = place.table("in.sst", 0..10, "new");
    faulty.inject(Rule::new(Fault::Error(FaultCode::OtherDevice)).on(Operation::Link).sticky());
    check_unlinkable(&place, &file);

    let place = Place::real();
    let far = tempfile::tempdir_in("/dev/shm");
    let device = |path: &Path| std::fs::metadata(path).unwrap().dev();
    match far {
        Ok(far) if device(far.path()) != device(&place.path("db")) => {
            let file = far.path().join("in.sst");
            std::fs::copy(place.table("in.sst", 0..10, "new"), &file).unwrap();
            check_unlinkable(&place, &file);
        }
        _ => println!("there is no second file system here: a real link across two is not tried"),
    }
}

fn check_unlinkable(place: &Place, file: &Path) {
    for options in [linking(), moving()] {
        let strict = IngestOptions { failed_move_fall_back_to_copy: false, ..options };
        let error = place.refused_one(file, &strict);
        assert!(error.message().contains("failed_move_fall_back_to_copy"), "{error}");
    }
    place.ingest_one(file, &linking()).unwrap();
    assert!(holds_new(place) && place.vfs.exists(file).unwrap());
    place.ingest_one(file, &moving()).unwrap();
    assert!(holds_new(place) && !place.vfs.exists(file).unwrap(), "it is moved all the same");
}

/// A file that may only be read cannot be opened to be synced.
#[test]
fn a_file_that_may_only_be_read_is_ingested() {
    let place = Place::real();
    let file = place.table("in.sst", 0..10, "new");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o400)).unwrap();
    place.ingest_one(&file, &linking()).unwrap();
    assert!(holds_new(&place));
}

#[test]
fn a_failed_link_is_no_reason_to_copy() {
    let faulty = FaultVfs::new(MemoryVfs::new(1));
    let place = Place::on(faulty.clone(), Path::new("/work"));
    let file = place.table("in.sst", 0..10, "new");
    faulty.inject(Rule::new(Fault::Error(FaultCode::Io)).on(Operation::Link));
    assert_eq!(place.refused_one(&file, &linking()).kind(), ErrorKind::Io);
}

#[test]
fn a_linked_file_that_changes_before_the_commit_is_not_ingested() {
    let place = Place::real();
    type Change = fn(&Path);
    let changes: [(&str, Change); 3] = [
        ("grown", |path| append(path, b"more")),
        ("rewritten", |path| {
            // The clock of file times may be coarse.
            let before = std::fs::metadata(path).unwrap().modified().unwrap();
            let bytes = std::fs::read(path).unwrap();
            while std::fs::metadata(path).unwrap().modified().unwrap() == before {
                std::fs::write(path, &bytes).unwrap();
            }
        }),
        ("emptied", |path| std::fs::write(path, b"").unwrap()),
    ];
    for (name, change) in changes {
        let file = place.table(name, 0..10, "new");
        let (before, listing) = (place.contents(), place.listing());
        let prepared = prepare(&place, &file, &linking());
        change(&file);
        let error = place.db.commit_ingest(prepared).unwrap_err();
        assert_eq!((error.kind(), error.path()), (ErrorKind::InvalidArgument, Some(file.as_path())), "{error}");
        assert_eq!((place.contents(), place.listing()), (before, listing), "{name}");
        assert!(file.exists());
    }
}

fn append(path: &Path, bytes: &[u8]) {
    let mut file = testkit::engine::vfs::Vfs::open_append(&*RealVfs::new(), path).unwrap();
    file.append(bytes, vfs::IoClass::Other).unwrap();
}

#[test]
fn what_was_copied_or_linked_needs_its_old_name_no_more() {
    for options in [default(), linking(), moving()] {
        let place = Place::real();
        let file = place.table("in.sst", 0..10, "new");
        let prepared = prepare(&place, &file, &options);
        std::fs::remove_file(&file).unwrap();
        place.db.commit_ingest(prepared).unwrap();
        assert!(holds_new(&place));
    }
}

#[test]
fn a_prepared_table_that_is_gone_from_the_directory_is_not_ingested() {
    let place = Place::real();
    let file = place.table("in.sst", 0..10, "new");
    let (before, listing) = (place.contents(), place.listing());
    let prepared = prepare(&place, &file, &default());
    let made = place.listing().into_iter().find(|name| !listing.contains(name)).unwrap();
    std::fs::remove_file(place.path("db").join(made)).unwrap();
    assert_eq!(place.db.commit_ingest(prepared).unwrap_err().path(), Some(file.as_path()));
    assert_eq!((place.contents(), place.listing()), (before, listing));
}

/// The database may be closed, and be opened again, before what was prepared is dropped.
#[test]
fn what_is_dropped_late_removes_no_file_of_another() {
    let place = Place::real();
    let file = place.table("in.sst", 0..10, "new");
    let listing = place.listing();
    let prepared = prepare(&place, &file, &default());
    let made = place.listing().into_iter().find(|name| !listing.contains(name)).unwrap();
    place.db.close().unwrap();
    let made = place.path("db").join(made);
    std::fs::rename(&file, &made).unwrap(); // the same number, given to another table
    drop(prepared);
    assert!(made.exists());
}

fn checksum(bytes: &[u8]) -> FileChecksum {
    FileChecksum { function: "FileChecksumCrc32c".to_owned(), value: crc32c(bytes).to_be_bytes().to_vec() }
}

#[test]
fn checksums_of_whole_files_are_compared_where_they_are_stated() {
    for options in [default(), linking(), IngestOptions { write_global_seqno: true, ..default() }] {
        let place = Place::in_memory();
        let files = vec![place.table("1.sst", 0..10, "new"), place.table("2.sst", 20..5000, "new")];
        let right: Vec<FileChecksum> = files.iter().map(|file| checksum(&place.bytes(file))).collect();
        let request = |checksums: Vec<FileChecksum>| {
            [IngestRequest { checksums, ..IngestRequest::new(place.family.clone(), files.clone()) }]
        };
        let mut wrong = right.clone();
        wrong[1].value[2] ^= 1;
        let error = place.refused_all(&request(wrong.clone()), &files[1], &options);
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.message().contains("checksum"), "{error}");
        let mut unknown = right.clone();
        unknown[0].function = "FileChecksumXxh3".to_owned();
        let error = place.refused_all(&request(unknown), &files[0], &options);
        assert!(error.message().contains("FileChecksumXxh3"), "{error}");
        place.refused_all(&request(right[..1].to_vec()), Path::new("1 checksums for the 2 files"), &options);
        let trusting = IngestOptions { verify_file_checksum: false, ..options.clone() };
        let prepared = place.db.prepare_ingest(&request(wrong), &trusting, &IngestProgress::default());
        drop(prepared.unwrap());
        place.db.ingest_all(&request(right.clone()), &options).unwrap();
        assert!(holds_new(&place));
    }
}

/// Each layer's number is in its files, where readers of the files alone find it, and they are read as before.
#[test]
fn a_number_is_written_into_the_copies_where_that_is_asked_for() {
    let place = Place::real();
    let files = [place.table("1.sst", 0..10, "new"), place.table("2.sst", 5..3000, "newer")];
    let originals = files.clone().map(|file| place.bytes(&file));
    let options = IngestOptions { write_global_seqno: true, ..default() };
    let report = place.ingest(&files, &options).unwrap();
    assert_eq!(report.last.0, report.first.0 + 1, "they overlap");
    let name = b"rocksdb.external_sst_file.global_seqno";
    for (live, number) in place.db.live_files().iter().zip([report.first, report.last]) {
        let bytes = place.bytes(&live.path);
        let at = only_place(&bytes, name) + name.len();
        assert_eq!(bytes[at..at + 8], number.0.to_le_bytes());
        assert_eq!((live.smallest_seq, live.largest_seq), (number, number));
    }
    assert_eq!(files.map(|file| place.bytes(&file)), originals);
    let check = |all: crate::common::Contents| {
        assert_eq!((all.len(), &*all["k00004"], &*all["k00005"]), (3001, "new", "newer"));
    };
    check(place.contents());
    place.db.flush(&[&place.family]).unwrap();
    check(place.contents());
    place.db.close().unwrap();
    let mut options = testkit::engine::OpenOptions::default().family("second", Default::default());
    options.vfs = place.vfs.clone();
    let db = testkit::engine::Db::open(place.path("db"), &options).unwrap();
    check(crate::common::contents(&db, &db.default_family()));
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    let place = Place::in_memory();
    let file: PathBuf = place.table("in.sst", 0..10, "new");
    for options in [
        IngestOptions { link_files: true, ..moving() },
        IngestOptions { write_global_seqno: true, ..moving() },
        IngestOptions { write_global_seqno: true, ..linking() },
    ] {
        let error = place.ingest_one(&file, &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}

#[test]
fn a_small_table_is_prepared_by_few_calls() {
    let faulty = FaultVfs::new(MemoryVfs::new(1));
    let place = Place::on(faulty.clone(), Path::new("/work"));
    let file = place.table("in.sst", 0..100, "new");
    let counts = || Operation::ALL.map(|operation| faulty.calls(operation));
    let before = counts();
    let prepared = prepare(&place, &file, &linking());
    let made = Operation::ALL.into_iter().zip(before).zip(counts());
    let made: Vec<_> = made.map(|((operation, before), now)| (operation, now - before)).collect();
    let expected = [
        (Operation::Open, 1),
        (Operation::OpenAppend, 1), // to sync it
        (Operation::Read, 1),       // all that is looked at, in one
        (Operation::Sync, 1),
        // Of the caller's directory and file, of ours before and after the sync, and its size where it is read.
        (Operation::Metadata, 5),
        (Operation::SyncDir, 1),
        (Operation::Link, 1),
    ];
    assert_eq!(made.into_iter().filter(|(_, calls)| *calls > 0).collect::<Vec<_>>(), expected);
    drop(prepared);
}
