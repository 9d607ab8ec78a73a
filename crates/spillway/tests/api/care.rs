use std::time::{Duration, Instant};

use spillway::{Backups, Config, Db, ErrorKind, FamilyOptions, Options};

#[test]
fn a_damaged_database_is_checked_and_repaired() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.put("k", "v").unwrap();
    db.flush().unwrap();
    assert_eq!(Db::repair(dir.path(), &Options::new()).unwrap_err().kind(), ErrorKind::Busy);
    drop(db);
    assert!(Db::check(dir.path(), &Options::new()).unwrap().is_whole());
    std::fs::remove_file(dir.path().join("CURRENT")).unwrap();
    assert!(!Db::check(dir.path(), &Options::new()).unwrap().is_whole());
    let report = Db::repair(dir.path(), &Options::new()).unwrap();
    assert!(report.manifest.is_some() && report.lost.is_empty(), "{report}");
    assert!(Db::open(dir.path()).unwrap().contains_key("k").unwrap());
    assert_eq!(Db::check(dir.path().join("none"), &Options::new()).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn backups_are_made_beside_writes_and_restored() {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    let backups = Backups::open(dir.path().join("backups")).unwrap();
    for n in 0u8..3 {
        db.put([n], "").unwrap();
        assert_eq!(backups.create(&db).unwrap(), u32::from(n) + 1);
    }
    backups.keep_newest(2).unwrap();
    let ids: Vec<_> = backups.list().unwrap().iter().map(|backup| backup.id).collect();
    assert_eq!(ids, [2, 3]);
    assert!(backups.damaged().unwrap().is_empty());
    backups.verify(2).unwrap();
    assert_eq!(backups.restore(2, dir.path().join("db")).unwrap_err().kind(), ErrorKind::Busy, "open");
    backups.restore(2, dir.path().join("restored")).unwrap();
    assert_eq!(Db::open(dir.path().join("restored")).unwrap().iter().count(), 2);
    backups.delete(3).unwrap();
    assert_eq!(backups.restore_latest(dir.path().join("restored")).unwrap(), 2);
    assert_eq!(backups.verify(3).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn documents_describe_databases() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("databases.yaml");
    let text = format!(
        "CFOptions:\n  small:\n    write_buffer_size: 1M\ndatabases:\n  events:\n    method: DB::Open\n    params:\n      path: {:?}\n      \
         db_options: {{create_if_missing: true}}\n      cf_options: $small\n",
        dir.path().join("db")
    );
    std::fs::write(&file, text).unwrap();
    let config = Config::from_file(&file).unwrap();
    assert_eq!(config.names().collect::<Vec<_>>(), ["events"]);
    let db = config.open_default().unwrap();
    assert!(db.default_family().options_text().contains("write_buffer_size=1048576"));
    assert_eq!(config.open("events").unwrap_err().kind(), ErrorKind::Busy);
    let error = config.open("evens").unwrap_err();
    assert!(error.to_string().contains("events"), "{error}");
}

/// Two tables in level 0, too few for a compaction, over one below.
#[test]
fn reads_that_tables_do_not_answer_have_them_compacted() {
    const KEYS: u32 = 2000;
    // Kept answers would spare the tables the same reads.
    let options = Options::new().text("block_based_table_factory={cache_answers=false}");
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open_with(dir.path(), &options).unwrap();
    for step in [1, 10, 20] {
        for n in (0..KEYS).step_by(step) {
            db.put(n.to_be_bytes(), vec![step as u8; 20]).unwrap();
        }
        match step {
            1 => db.compact(..).unwrap(),
            _ => db.flush().unwrap(),
        }
    }
    let newer_tables = || db.default_family().levels()[0].files;
    let read_all = || {
        for n in 0..KEYS {
            let expected = [20, 10, 1].into_iter().find(|step| n % step == 0).unwrap();
            assert_eq!(db.get(n.to_be_bytes()).unwrap().unwrap()[..], [expected as u8; 20]);
        }
    };
    assert_eq!(newer_tables(), 2);
    (0..20).for_each(|_| read_all());
    db.wait_for_compaction().unwrap();
    assert_eq!(newer_tables(), 2, "reads are not counted by default");

    db.default_family().set_options([("read_triggered_compaction_threshold", "0.1")]).unwrap();
    let start = Instant::now();
    while newer_tables() > 0 {
        assert!(start.elapsed() < Duration::from_secs(60), "still {} tables", newer_tables());
        read_all();
    }
    read_all();
}

/// Permissions below a directory, the directories' own included; each with the path.
#[cfg(unix)]
fn modes(dir: &std::path::Path) -> Vec<(std::path::PathBuf, u32)> {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let mut all = vec![(dir.to_owned(), mode(dir))];
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { all.extend(modes(&path)) } else { all.push((path.clone(), mode(&path))) }
    }
    all
}

#[cfg(unix)]
#[test]
fn every_new_file_has_the_permissions_of_file_mode() {
    let folder = tempfile::tempdir().unwrap();
    for (name, mode) in [("own", 0o600), ("group", 0o640), ("all", 0o644)] {
        let dir = folder.path().join(name);
        let family = FamilyOptions::new().memtable(r#"trie:{"convert_to_sst":"kFileMmap"}"#);
        let options = Options::new().wal_dir(dir.join("logs")).family("images", family);
        let options = if name == "own" { options } else { options.file_mode(mode) };
        let db = Db::open_with(&dir, &options).unwrap();
        let images = db.find_family("images").unwrap();
        db.put("k", "v").unwrap();
        images.put("k", "v").unwrap();
        db.flush().unwrap();
        images.put("l", "v").unwrap();
        db.checkpoint(dir.join("copy")).unwrap();
        drop(images);
        drop(db);
        let all = modes(&dir);
        assert!(all.len() > 12, "{all:?}");
        for (path, found) in all {
            let wanted = if path.is_dir() { mode | (mode & 0o444) >> 2 } else { mode };
            assert_eq!(found, wanted, "{}: {found:o}", path.display());
        }
        // The mode is stored: the next open needs none.
        let db = Db::open(&dir).unwrap();
        db.put("again", "v").unwrap();
        assert!(modes(&dir).iter().all(|(path, found)| path.is_dir() || *found == mode));
    }
    let error = Db::open_with(folder.path().join("x"), &Options::new().file_mode(0o400)).unwrap_err().to_string();
    assert!(error.contains("file_mode") && error.contains("0640"), "{error}");
}
