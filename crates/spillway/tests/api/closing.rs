use spillway::{Db, ErrorKind, Options};

use crate::in_memory;

#[test]
fn close_releases_the_directory_and_ends_every_handle() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let users = db.family("users").unwrap();
    for n in 0u8..9 {
        db.put([n], "").unwrap();
    }
    let snapshot = db.snapshot();
    let (mut started, mut fresh) = (db.iter(), db.iter());
    assert!(started.next().unwrap().is_ok());
    let mut cursor = db.cursor(..).unwrap();
    assert!(cursor.first().unwrap());
    let mut batch = db.batch();
    batch.put(&users, "k", "");

    db.close().unwrap();
    let again = Db::open(dir.path()).expect("the directory is free");
    let closed = |error: spillway::Error| assert_eq!(error.kind(), ErrorKind::Closed, "{error}");
    closed(db.put("k", "").unwrap_err());
    closed(users.get("k").unwrap_err());
    closed(batch.commit().unwrap_err());
    closed(snapshot.get(&users, "k").unwrap_err());
    closed(started.next().unwrap().unwrap_err());
    assert!(started.next().is_none(), "fused");
    closed(fresh.next_back().unwrap().unwrap_err());
    closed(cursor.next().unwrap_err());
    assert!(!cursor.is_on_entry());
    closed(db.cursor(..).map(drop).unwrap_err());
    closed(db.iter().next().unwrap().unwrap_err());
    closed(db.family("other").map(drop).unwrap_err());
    closed(db.flush().unwrap_err());
    db.close().expect("a second close does nothing");
    assert_eq!(again.iter().count(), 9);
}

#[test]
fn the_last_handle_closes_whichever_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let is_open = || Db::open(dir.path()).is_err_and(|error| error.kind() == ErrorKind::Busy);
    let db = Db::open(dir.path()).unwrap();
    db.put("k", "v").unwrap();
    let (clone, family, snapshot) = (db.clone(), db.family("users").unwrap(), db.snapshot());
    let (iter, cursor, batch) = (db.iter(), db.cursor(..).unwrap(), db.batch());
    drop(db);
    assert!(is_open());
    drop(clone);
    assert!(is_open());
    drop(family);
    assert!(is_open());
    drop((cursor, batch));
    assert!(is_open());
    drop(snapshot);
    assert!(is_open());
    assert_eq!(std::thread::spawn(move || iter.count()).join().unwrap(), 1);
    assert!(!is_open());
}

#[test]
fn handles_are_shared_by_threads() {
    fn check<T: Send + Sync + Clone>() {}
    fn check_send<T: Send>() {}
    check::<Db>();
    check::<spillway::Family>();
    check::<spillway::Snapshot>();
    check::<Options>();
    check_send::<spillway::Iter>();
    check_send::<spillway::Cursor>();
    check_send::<spillway::Batch>();
    let db = in_memory();
    std::thread::scope(|scope| {
        for n in 0u8..4 {
            let db = &db;
            scope.spawn(move || (0u8..100).for_each(|m| db.put([n, m], "").unwrap()));
        }
    });
    assert_eq!(db.iter().count(), 400);
}
