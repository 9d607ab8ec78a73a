use spillway::{CompressionKind, Db, ErrorKind, FamilyOptions, Options, TableOptions};

#[test]
fn only_options_that_are_given_change_what_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let first = Options::new()
        .write_buffer_size(1 << 20)
        .compression(CompressionKind::Zstd)
        .table(TableOptions::new().block_size(16 << 10).bloom_filter(12.0))
        .family("events", FamilyOptions::new().memtable("vector").max_write_buffer_number(5));
    drop(Db::open_with(dir.path(), &first).unwrap());

    let second = Options::new().max_write_buffer_number(7).table(TableOptions::new().block_size(8 << 10));
    let db = Db::open_with(dir.path(), &second).unwrap();
    let text = db.default_family().options_text();
    for part in ["write_buffer_size=1048576", "kZSTD", "block_size=8192", "bloomfilter:12", "max_write_buffer_number=7"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    let events = db.find_family("events").unwrap().options_text();
    assert!(events.contains("memtable_factory=vector") && events.contains("max_write_buffer_number=5"), "{events}");
    db.default_family().set_options([("write_buffer_size", "2M")]).unwrap();
    let error = db.default_family().set_options([("write_buffer_sise", "2M")]).unwrap_err();
    assert!(error.to_string().contains("write_buffer_size"), "the nearest name: {error}");
    drop(db);

    let db = Db::open(dir.path()).unwrap();
    assert!(db.default_family().options_text().contains("write_buffer_size=2097152"), "set at run time, and stored");
    drop(db);
    let db = Db::open_with(dir.path(), &Options::new().ignore_stored_options(true)).unwrap();
    assert!(db.default_family().options_text().contains("write_buffer_size=67108864"));
}

#[test]
fn what_concerns_one_open_is_not_stored() {
    let dir = tempfile::tempdir().unwrap();
    let missing = Options::new().create_if_missing(false);
    assert_eq!(Db::open_with(dir.path().join("none"), &missing).unwrap_err().kind(), ErrorKind::InvalidArgument);
    drop(Db::open_with(dir.path(), &Options::new().error_if_exists(true)).unwrap());
    drop(Db::open(dir.path()).unwrap());
    drop(Db::open_with(dir.path(), &missing).unwrap());
    drop(Db::open(dir.path()).unwrap());
    let reader = Db::open_with(dir.path(), &Options::new().read_only(true)).unwrap();
    assert_eq!(reader.put("k", "").unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn options_by_text_go_where_they_belong_and_wrong_ones_are_errors_of_the_open() {
    let options = Options::in_memory().text("max_open_files=77;write_buffer_size=1M;compression=kLZ4Compression");
    let db = Db::open_with("/db", &options.option("max_background_jobs", "3")).unwrap();
    assert!(db.default_family().options_text().contains("write_buffer_size=1048576"));
    drop(db);
    for (options, part) in [
        (Options::in_memory().option("write_buffer_sise", "1M"), "write_buffer_size"),
        (Options::in_memory().option("max_backgroud_jobs", "4"), "did you mean `max_background_jobs`"),
        (Options::in_memory().text("max_open_files"), "max_open_files"),
        (Options::in_memory().memtable("tire"), "trie"),
        (Options::in_memory().text("memtable=vector;memtable_factory=trie"), "`memtable=vector`"),
        (Options::in_memory().write_buffer_size(1), "write_buffer_size"),
        (Options::in_memory().family("users", FamilyOptions::new().option("num_levels", "many")), "users"),
    ] {
        let error = Db::open_with("/db", &options).unwrap_err();
        assert!(error.to_string().contains(part), "{part} in: {error}");
    }
}

#[test]
fn damaged_stored_options_are_an_error_with_a_way_on() {
    let dir = tempfile::tempdir().unwrap();
    drop(Db::open(dir.path()).unwrap());
    std::fs::write(
        dir.path().join("OPTIONS-999999"),
        "[DBOptions]\n  max_open_files=many\n[CFOptions \"default\"]\n[TableOptions/BlockBasedTable \"default\"]\n",
    )
    .unwrap();
    let error = Db::open(dir.path()).unwrap_err();
    assert!(error.to_string().contains("OPTIONS-999999") && error.to_string().contains("line 2"), "{error}");
    drop(Db::open_with(dir.path(), &Options::new().ignore_stored_options(true)).unwrap());
    Db::destroy(dir.path()).unwrap();
    assert!(!dir.path().join("CURRENT").exists());
}

#[test]
fn a_changed_byte_of_the_stored_options_is_found_and_survives_a_repair() {
    let dir = tempfile::tempdir().unwrap();
    drop(Db::open_with(dir.path(), &Options::new().write_buffer_size(1 << 20)).unwrap());
    let paths = std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let path = paths.filter(|path| path.to_string_lossy().contains("OPTIONS-")).max().unwrap();
    let damaged =
        std::fs::read_to_string(&path).unwrap().replace("write_buffer_size=1048576", "write_buffer_size=1048577");
    std::fs::write(&path, &damaged).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    for error in [Db::open(dir.path()).unwrap_err(), Db::repair(dir.path(), &Options::new()).unwrap_err()] {
        let told = error.to_string();
        assert!(told.contains(name) && told.contains("line ") && told.contains("ignore_stored_options"), "{told}");
    }
    let report = Db::check(dir.path(), &Options::new()).unwrap();
    assert!(!report.is_whole() && report.problems[0].to_string().contains(name), "{report:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), damaged, "nothing is replaced");
    Db::repair(dir.path(), &Options::new().ignore_stored_options(true)).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(Db::check(dir.path(), &Options::new()).unwrap().is_whole());
}

#[test]
fn a_family_that_was_dropped_stays_dropped() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let (gone, _kept) = (db.family("gone").unwrap(), db.family("kept").unwrap());
    db.drop_family(&gone).unwrap();
    drop((gone, _kept, db));
    let db = Db::open(dir.path()).unwrap();
    assert!(db.find_family("gone").is_none() && db.find_family("kept").is_some());
}

#[test]
fn writes_are_synced_where_the_options_say_so() {
    let db = Db::open_with("/db", &Options::in_memory().sync_writes(true).statistics(true)).unwrap();
    let syncs = || db.statistics().unwrap().count(spillway::Ticker::WalFileSynced);
    let before = syncs();
    db.put("k", "v").unwrap();
    assert_eq!(syncs(), before + 1);
    db.put_with("k", "v", &spillway::WriteOptions::new()).unwrap();
    assert_eq!(syncs(), before + 1, "a write's own options count");
    let mut batch = db.batch();
    batch.put(db.default_family(), "k", "v");
    batch.commit().unwrap();
    assert_eq!(syncs(), before + 2);
}

#[test]
fn options_of_the_database_change_while_it_is_open() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.set_options([("max_background_jobs", "6"), ("delayed_write_rate", "1M"), ("stats_dump_period_sec", "0")])
        .unwrap();
    for wrong in [("max_background_jobs", "0"), ("max_background_jops", "3"), ("max_log_file_size", "10")] {
        let error = db.set_options([("max_subcompactions", "3"), wrong]).unwrap_err();
        assert!(error.kind() == ErrorKind::InvalidArgument && error.to_string().contains("max_"), "{error}");
    }
    let text = db.options_text();
    assert!(text.contains("max_background_jobs=6") && text.contains("max_subcompactions=1;"), "all or none: {text}");
    db.put("k", "v").unwrap();
    db.compact(..).unwrap();
    drop(db);
    let db = Db::open(dir.path()).unwrap();
    assert!(
        db.options_text().contains("max_background_jobs=6") && db.options_text().contains("delayed_write_rate=1048576")
    );
}
