use spillway::{Db, ErrorKind, IngestFiles, IngestOptions, IngestProgress};

#[test]
fn tables_are_ingested_into_families_with_a_batch() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let users = db.family("users").unwrap();
    users.put("old", "").unwrap();
    let write = |name: &str, keys: &[&str]| {
        let path = dir.path().join(name);
        let mut table = users.table_writer(&path).unwrap();
        keys.iter().for_each(|key| table.put(key, "ingested").unwrap());
        assert_eq!(table.finish().unwrap().entries, keys.len() as u64);
        path
    };
    users.ingest([write("first.sst", &["a", "b"])]).unwrap();
    assert_eq!(crate::keys(users.iter()), ["a", "b", "old"]);

    let files = IngestFiles::new(&users, [write("second.sst", &["c"])]).replacing("a".."z");
    let others = IngestFiles::new(db.default_family(), [write("third.sst", &["d"])]);
    let options = IngestOptions::new().move_files(true);
    let prepared = db.prepare_ingest([files, others], &options, &IngestProgress::default()).unwrap();
    assert_eq!(prepared.files(), 2);
    let mut batch = db.batch();
    batch.put(&users, "c", "of the batch");
    prepared.commit_with_batch(batch).unwrap();
    assert_eq!(crate::keys(users.iter()), ["c"]);
    assert_eq!(users.get("c").unwrap().as_deref(), Some(b"of the batch".as_slice()), "newer than the tables");
    assert_eq!(crate::keys(db.iter()), ["d"]);
    assert!(!dir.path().join("second.sst").exists());

    let error = users.ingest([dir.path().join("missing.sst")]).unwrap_err();
    assert!(error.to_string().contains("missing.sst"), "{error}");
    let mut table = users.table_writer(dir.path().join("unordered.sst")).unwrap();
    table.put("b", "").unwrap();
    assert_eq!(table.put("a", "").unwrap_err().kind(), ErrorKind::InvalidArgument);
    drop(table);
    assert!(!dir.path().join("unordered.sst").exists(), "an unfinished table goes");
}

#[test]
fn copies_open_as_databases() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let users = db.family("users").unwrap();
    users.put("k", "v").unwrap();
    db.checkpoint(dir.path().join("copy")).unwrap();
    assert_eq!(db.export(dir.path().join("export")).unwrap().families, 2);
    users.put("k", "later").unwrap();
    for name in ["copy", "export"] {
        let copy = Db::open(dir.path().join(name)).unwrap();
        assert_eq!(copy.family("users").unwrap().get("k").unwrap().as_deref(), Some(b"v".as_slice()), "{name}");
    }
}
