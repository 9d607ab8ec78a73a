use std::time::Duration;

use spillway::{Db, ErrorKind, FamilyOptions, Options, Pinned, merge};

const HOUR: Duration = Duration::from_secs(3600);

fn text(value: Option<Pinned>) -> Option<String> {
    value.map(|value| String::from_utf8(value.to_vec()).unwrap())
}

/// Every way to write and to read shows values as they were given.
#[test]
fn times_of_values_do_not_show() {
    let dir = tempfile::tempdir().unwrap();
    let options = || FamilyOptions::new().ttl(HOUR).merge_operator(merge::StringAppendOperator::new(","));
    let db = Db::open(dir.path().join("db")).unwrap();
    let family = db.family_with("sessions", &options()).unwrap();
    family.put("put", "1").unwrap();
    family.merge("merged", "a").unwrap();
    let mut batch = db.batch();
    batch.put(&family, "batch", "2").merge(&family, "merged", "b");
    batch.commit().unwrap();
    let file = dir.path().join("t.sst");
    let mut table = family.table_writer(&file).unwrap();
    table.put("table", "3").unwrap();
    table.finish().unwrap();
    family.ingest([file]).unwrap();
    let expected = [("batch", "2"), ("merged", "a,b"), ("put", "1"), ("table", "3")];
    let check = |db: &Db| {
        let family = db.family("sessions").unwrap();
        let shown: Vec<_> =
            family.iter().map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect();
        let wanted: Vec<_> =
            expected.iter().map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())).collect();
        assert_eq!(shown, wanted);
        for (key, value) in expected {
            let value = Some(value.to_owned());
            assert_eq!(text(family.get(key).unwrap()), value);
            assert_eq!(text(db.snapshot().get(&family, key).unwrap()), value);
            assert_eq!(text(family.multi_get([key]).unwrap().remove(0)), value);
            assert_eq!(text(db.multi_get_across([(&family, key)]).unwrap().remove(0)), value);
        }
    };
    check(&db);
    family.compact(..).unwrap();
    check(&db);
    drop((family, db));
    // The operator is found by its stored name, the ttl too.
    check(&Db::open(dir.path().join("db")).unwrap());
    check(&Db::open_with(dir.path().join("db"), &Options::new().family("sessions", options().ttl(2 * HOUR))).unwrap());
}

#[test]
fn expired_values_are_hidden_and_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let seconds = |seconds| FamilyOptions::new().ttl(Duration::from_secs(seconds));
    let db = Db::open_with(dir.path(), &Options::new().family("sessions", seconds(1))).unwrap();
    let family = db.family("sessions").unwrap();
    (0u8..50).for_each(|n| family.put([n], "old").unwrap());
    family.flush().unwrap();
    std::thread::sleep(Duration::from_millis(2100)); // a stamp's unit is the second
    family.put([25], "new").unwrap();
    assert!(family.get([1]).unwrap().is_none() && family.contains_key([25]).unwrap());
    assert_eq!((family.iter().count(), family.iter().rev().count()), (1, 1));
    let mut cursor = family.cursor(..).unwrap();
    assert!(cursor.seek([3]).unwrap());
    assert_eq!(cursor.key(), [25]);
    assert!(!cursor.prev().unwrap());
    family.compact(..).unwrap();
    drop((cursor, family, db));
    let db = Db::open_with(dir.path(), &Options::new().family("sessions", seconds(3600))).unwrap();
    assert_eq!(db.family("sessions").unwrap().iter().count(), 1, "compacted away");
}

/// A program that writes past the ttl leaves such values. Iterators and cursors end with what a lookup answers.
#[test]
fn values_without_times_are_errors_of_reads() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.put("c", "12345678").unwrap();
    db.put("e", "xy").unwrap();
    drop(db);
    let timed = || FamilyOptions::new().value_times(true);
    for timed in [timed(), timed().ttl(HOUR)] {
        let db = Db::open_with(dir.path(), &Options::new().default_family(timed)).unwrap();
        db.put("a", "1").unwrap();
        let without_time = |error: spillway::Error| {
            assert!(error.kind() == ErrorKind::Corruption && error.to_string().contains("without a time"), "{error}");
        };
        for key in ["c", "e"] {
            without_time(db.get(key).unwrap_err());
        }
        let mut entries = db.iter();
        assert_eq!(entries.next().unwrap().unwrap().1.as_ref(), b"1");
        without_time(entries.next().unwrap().unwrap_err());
        assert!(entries.next().is_none());
        without_time(db.iter().next_back().unwrap().unwrap_err());
    }
}

#[test]
fn a_ttl_is_for_the_life_of_the_family() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    drop((db.family("plain").unwrap(), db.family_with("sessions", &FamilyOptions::new().ttl(HOUR)).unwrap(), db));
    let later = Options::new().family("plain", FamilyOptions::new().ttl(HOUR));
    let error = Db::open_with(dir.path(), &later).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("plain"), "{error}");
    let back = Options::new().family("sessions", FamilyOptions::new().option("value_ttl_s", "0"));
    let sessions = Db::open_with(dir.path(), &back).unwrap().family("sessions").unwrap();
    sessions.put("k", "v").unwrap();
    drop(sessions);
    // Nothing expires now, but values still end with times: another ttl can be given.
    let again = Options::new().family("sessions", FamilyOptions::new().ttl(HOUR));
    let sessions = Db::open_with(dir.path(), &again).unwrap().family("sessions").unwrap();
    assert_eq!(text(sessions.get("k").unwrap()), Some("v".to_owned()));
}

#[test]
fn times_that_are_noted_are_not_denied() {
    let dir = tempfile::tempdir().unwrap();
    let sessions = || FamilyOptions::new().ttl(HOUR);
    let db = Db::open_with(dir.path(), &Options::new().family("sessions", sessions())).unwrap();
    let no_times = FamilyOptions::new().value_times(false);
    db.family_with("plain", &no_times).unwrap();
    db.family_with("plain", &no_times).unwrap();
    db.family_with("both", &sessions().value_times(false)).expect_err("a contradiction");
    let told = |error: spillway::Error| {
        let text = error.to_string();
        assert!(error.kind() == ErrorKind::InvalidArgument && text.contains("value_times"), "{text}");
        text
    };
    told(db.family_with("sessions", &no_times).unwrap_err());
    drop(db);
    for options in [Options::new(), Options::new().read_only(true)] {
        Db::open_with(dir.path(), &options.clone().family("plain", no_times.clone())).unwrap();
        let text = told(Db::open_with(dir.path(), &options.family("sessions", no_times.clone())).unwrap_err());
        assert!(text.contains("\"sessions\"") && text.contains("leave value_times out"), "{text}");
    }
    let document = format!(
        r#"{{"CFOptions": {{"plain": {{"value_times": false}}}}, "databases": {{"sessions": {{"method": "DB::Open", "params":
            {{"path": {:?}, "column_families": {{"plain": "$plain", "sessions": "$plain"}}}}}}}}}}"#,
        dir.path()
    );
    told(spillway::Config::from_json(&document).and_then(|document| document.open_default()).map(drop).unwrap_err());
}

fn remove_files(dir: &std::path::Path, part: &str) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().contains(part) {
            std::fs::remove_file(path).unwrap();
        }
    }
}

/// The MANIFEST tells it, whatever becomes of the options.
#[test]
fn times_do_not_show_once_the_stored_options_are_lost() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let sessions = db.family_with("sessions", &FamilyOptions::new().ttl(HOUR)).unwrap();
    sessions.put("k", "v").unwrap();
    drop((sessions, db));
    remove_files(dir.path(), "OPTIONS-");
    let db = Db::open_with(dir.path(), &Options::new().ignore_stored_options(true)).unwrap();
    let sessions = db.family("sessions").unwrap();
    assert_eq!(text(sessions.get("k").unwrap()), Some("v".to_owned()));
    sessions.put("l", "w").unwrap();
    assert_eq!(text(sessions.last().unwrap().map(|(_, value)| value)), Some("w".to_owned()));
}

/// A table of another family, or of a program that knows no times.
#[test]
fn ingest_gives_times_to_tables_that_have_none() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let options = FamilyOptions::new().ttl(HOUR).merge_operator(merge::StringAppendOperator::new(","));
    let (sessions, plain) = (db.family_with("sessions", &options).unwrap(), db.family("plain").unwrap());
    let [bare, timed] = ["bare.sst", "timed.sst"].map(|name| dir.path().join(name));
    let mut table = plain.table_writer(&bare).unwrap();
    table.put("a", "of the day").unwrap();
    table.delete("b").unwrap();
    table.merge("c", "operand").unwrap();
    table.delete_range("d".."f").unwrap();
    table.finish().unwrap();
    let mut table = sessions.table_writer(&timed).unwrap();
    table.put("z", "zebra").unwrap();
    table.finish().unwrap();
    for key in ["b", "c", "e"] {
        sessions.put(key, "old").unwrap();
    }
    sessions.ingest([&bare, &timed]).unwrap();
    sessions.compact(..).unwrap();
    let shown: Vec<_> = sessions.iter().map(|entry| entry.map(|(k, v)| (k.to_vec(), v.to_vec())).unwrap()).collect();
    let expected = [("a", "of the day"), ("c", "old,operand"), ("z", "zebra")];
    assert_eq!(shown, expected.map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec())));
    let error = plain.ingest([&timed]).unwrap_err();
    assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("end with times"), "{error}");
}

/// Without the MANIFEST the options tell, and without both the tables.
#[test]
fn repair_finds_that_values_have_times() {
    for lost in [&["MANIFEST-", ".spmanifest"][..], &["MANIFEST-", ".spmanifest", "OPTIONS-"]] {
        let dir = tempfile::tempdir().unwrap();
        let db = Db::open_with(dir.path(), &Options::new().default_family(FamilyOptions::new().ttl(HOUR))).unwrap();
        db.put("k", "v").unwrap();
        db.flush().unwrap();
        drop(db);
        lost.iter().for_each(|part| remove_files(dir.path(), part));
        let options = Options::new().ignore_stored_options(true);
        let report = Db::repair(dir.path(), &options).unwrap();
        let doubt = "whether values end with the times of a ttl is not known, but of \"default\"";
        assert_eq!(report.to_string().contains(doubt), lost.len() == 3, "{report}");
        let db = Db::open_with(dir.path(), &options).unwrap();
        assert_eq!(text(db.get("k").unwrap()), Some("v".to_owned()), "{lost:?}");
    }
}

#[test]
fn what_says_how_values_are_stored_is_not_ignored() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let sessions = db.family_with("sessions", &FamilyOptions::new().ttl(HOUR)).unwrap();
    let counts = db.family_with("counts", &FamilyOptions::new().merge_operator(merge::UInt64AddOperator)).unwrap();
    sessions.put("k", "v").unwrap();
    counts.merge("k", 1u64.to_le_bytes()).unwrap();
    drop((sessions, counts, db));
    for options in [Options::new().ignore_stored_options(true), Options::new()] {
        let db = Db::open_with(dir.path(), &options).unwrap();
        assert_eq!(text(db.family("sessions").unwrap().get("k").unwrap()), Some("v".to_owned()));
        assert_eq!(db.family("counts").unwrap().get("k").unwrap().unwrap(), 1u64.to_le_bytes());
    }
}

#[test]
fn a_document_gives_a_ttl_too() {
    let dir = tempfile::tempdir().unwrap();
    let document = format!(
        r#"{{"CFOptions": {{"short": {{"value_ttl_s": 1}}}}, "databases": {{"sessions": {{"method": "DB::Open", "params":
            {{"path": {:?}, "db_options": {{"create_if_missing": true}}, "cf_options": "$short"}}}}}}}}"#,
        dir.path()
    );
    let db = spillway::Config::from_json(&document).unwrap().open_default().unwrap();
    db.put("k", "v").unwrap();
    assert_eq!(text(db.get("k").unwrap()), Some("v".to_owned()));
    std::thread::sleep(Duration::from_millis(2100));
    assert!(db.get("k").unwrap().is_none());
    db.compact(..).unwrap();
    assert_eq!(db.int_property("rocksdb.estimate-num-keys"), Some(0), "dropped, not only hidden");
}
