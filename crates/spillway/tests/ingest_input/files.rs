//! Which files are looked at at all.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use testkit::engine::{ErrorKind, IngestOptions, IngestRequest};

use crate::common::{Place, default};

#[test]
fn only_regular_files_are_taken_and_nothing_else_is_opened() {
    let place = Place::real();
    let table = place.table("in.sst", 0..10, "new");
    let path = |name: &str| place.path(name);
    symlink(&table, path("link")).unwrap();
    symlink(path("nowhere"), path("dangling")).unwrap();
    std::fs::create_dir(path("directory")).unwrap();
    let _socket = UnixListener::bind(path("socket")).unwrap();
    assert!(Command::new("mkfifo").arg(path("fifo")).status().unwrap().success());
    let mut refused: Vec<PathBuf> = ["directory", "socket", "fifo"].map(path).into();
    refused.push(PathBuf::from("/dev/zero"));
    let links = ["link", "dangling"].map(path);
    for (options, links) in [(default(), &[][..]), (linking(), &links[..])] {
        for file in refused.iter().chain(links) {
            let error = place.refused(&[table.clone(), file.clone()], file, &options);
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            assert!(error.message().contains("name the table"), "{error}");
        }
        let missing = path("missing.sst");
        assert!(place.refused_one(&missing, &options).is_not_found());
    }
    assert!(place.refused_one(&path("dangling"), &default()).is_not_found());
    let twice = place.refused(&[table.clone(), path("link")], &table, &default());
    assert!(twice.message().contains("named twice"), "{twice}");
    place.ingest_one(&path("link"), &default()).unwrap();
    assert!(table.is_file() && path("link").is_symlink(), "both stay where they are");
}

fn linking() -> IngestOptions {
    IngestOptions { link_files: true, ..default() }
}

#[test]
fn the_databases_own_files_are_not_ingested_into_it() {
    let place = Place::real();
    place.db.flush(&[&place.family]).unwrap();
    let db = place.path("db");
    let live = place.db.live_files()[0].path.clone();
    std::fs::copy(&live, db.join("999999.sst")).unwrap();
    std::fs::create_dir(db.join("sub")).unwrap();
    symlink(&db, place.path("other-way")).unwrap();
    let name = live.file_name().unwrap();
    let ways = [live.clone(), db.join("999999.sst"), db.join("sub/..").join(name), place.path("other-way").join(name)];
    for file in ways {
        let error = place.refused_one(&file, &IngestOptions { allow_db_generated_files: true, ..default() });
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.message().contains("own directory"), "{error}");
    }
    // A name that no file of a database has is the caller's, and so is a folder.
    let mine = db.join("mine.sst");
    std::fs::rename(place.table("mine.sst", 20..30, "new"), &mine).unwrap();
    place.ingest_one(&mine, &default()).unwrap();
    let inside = db.join("sub/in.sst");
    std::fs::rename(place.table("in.sst", 0..10, "new"), &inside).unwrap();
    place.ingest_one(&inside, &default()).unwrap();
}

#[test]
fn a_file_is_taken_once_whatever_it_is_called() {
    let place = Place::real();
    let table = place.table("in.sst", 0..10, "new");
    let second = place.path("second-name.sst");
    std::fs::hard_link(&table, &second).unwrap();
    let error = place.refused(&[table.clone(), table.clone()], &table, &default());
    assert!(error.message().contains("named twice"), "{error}");
    let error = place.refused(&[table.clone(), second.clone()], &second, &default());
    assert!(error.message().contains("same file as") && error.message().contains("in.sst"), "{error}");
    let other = place.db.family("second").unwrap();
    let requests = [
        IngestRequest::new(place.family.clone(), vec![table.clone()]),
        IngestRequest::new(other, vec![second.clone()]),
    ];
    place.refused_all(&requests, &second, &default());
    let twice = [requests[0].clone(), IngestRequest { files: Vec::new(), ..requests[0].clone() }];
    place.refused_all(&twice, Path::new("\"default\" is named twice"), &default());
    place.ingest_one(&table, &default()).unwrap();
    place.ingest_one(&second, &default()).unwrap(); // later it may come again
}

#[test]
fn a_file_of_nothing_is_no_table() {
    let place = Place::in_memory();
    for bytes in [&b""[..], b"short", &[0; 53], &[0; 1000]] {
        let path = place.path("no.sst");
        place.write(&path, bytes);
        assert_eq!(place.refused_one(&path, &default()).kind(), ErrorKind::Corruption);
        assert_eq!(place.bytes(&path), bytes);
    }
}
