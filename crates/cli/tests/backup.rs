//! `backup`: made, listed, verified, restored and deleted; what is damaged is named, and the command fails.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use common::Place;
use spillway::internal::{Database, OpenOptions, WriteOptions};

fn load(place: &Place, lines: u32) {
    let input: String = (0..lines).map(|i| format!("{i:05}\tvalue {i}\n")).collect();
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], input.as_bytes()).ok();
}

#[test]
fn a_backup_lives_from_its_making_to_its_deletion() {
    let place = Place::new();
    load(&place, 100);
    let made = place.spillway(&["backup", "create", "--db", "db", "--dir", "backups"]).ok();
    assert_eq!(made, "made backup 1 in backups\n");
    load(&place, 300);
    place.spillway(&["backup", "create", "--db", "db", "--dir", "backups", "--flush"]).ok();
    let listed = place.spillway(&["backup", "list", "--dir", "backups"]).ok();
    assert!(
        listed.starts_with("1\t20") && listed.lines().count() == 2 && listed.contains(" UTC\t4 files, "),
        "{listed}"
    );
    let verified = place.spillway(&["backup", "verify", "--dir", "backups"]).ok();
    assert_eq!(verified, "backup 1 is whole\nbackup 2 is whole\n");
    for (id, count) in [(Some("1"), "100"), (None, "300")] {
        let mut restore = vec!["backup", "restore", "--dir", "backups", "--to", "restored"];
        restore.extend(id);
        if id.is_none() {
            let asked = place.spillway(&restore).fails();
            assert!(
                asked.contains("would delete the database in restored, 4 files: 000") && asked.contains("--yes"),
                "{asked}"
            );
            assert!(place.spillway(&["scan", "--count", "--db", "restored"]).ok().starts_with("100"), "nothing went");
            restore.push("--yes");
        }
        place.spillway(&restore).ok();
        assert!(place.spillway(&["scan", "--count", "--db", "restored"]).ok().starts_with(count));
    }
    std::fs::remove_file(place.path("backups/private/2/CURRENT")).unwrap();
    let listed = place.spillway(&["backup", "list", "--dir", "backups"]);
    assert!(
        listed.code == Some(1) && listed.out.contains("2\tdamaged: ") && listed.out.contains("CURRENT"),
        "{listed:?}"
    );
    assert!(place.spillway(&["backup", "verify", "--dir", "backups"]).fails().contains("CURRENT"));
    place.spillway(&["backup", "delete", "2", "--dir", "backups"]).ok();
    place.spillway(&["backup", "purge", "--keep", "0", "--dir", "backups"]).ok();
    assert_eq!(place.spillway(&["backup", "list", "--dir", "backups"]).ok(), "");
    let none = place.spillway(&["backup", "restore", "--dir", "backups", "--to", "restored"]).fails();
    assert!(none.contains("there is no backup to restore"), "{none}");
    assert!(place.spillway(&["backup", "list", "--dir", "nowhere"]).fails().contains("no directory"));
}

#[test]
fn no_database_is_deleted_for_a_backup_that_is_damaged() {
    let place = Place::new();
    load(&place, 100);
    place.spillway(&["compact", "--db", "db"]).ok();
    place.spillway(&["backup", "create", "--db", "db", "--dir", "backups"]).ok();
    let table = std::fs::read_dir(place.path("backups/shared_checksum")).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[10] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let told = place.spillway(&["backup", "restore", "--dir", "backups", "--to", "db", "--yes"]).fails();
    assert!(told.contains("checksum") && told.contains("was not touched"), "{told}");
    assert!(place.spillway(&["scan", "--count", "--db", "db"]).ok().starts_with("100"));
}

/// Another process, this one, has the database open, and goes on writing.
#[test]
fn copies_are_made_beside_a_writer() {
    let place = Place::new();
    load(&place, 100);
    let db = Database::open(place.path("db"), &OpenOptions::default()).unwrap();
    let put = |key: &str| db.put(&db.default_family(), key.as_bytes(), b"logged", &WriteOptions::default()).unwrap();
    put("before");
    place.spillway(&["backup", "create", "--db", "db", "--dir", "backups"]).ok();
    place.spillway(&["checkpoint", "--verify", "--db", "db", "--to", "copy"]).ok();
    place.spillway(&["export", "--db", "db", "--to", "exported"]).ok();
    place.spillway(&["backup", "restore", "--dir", "backups", "--to", "restored"]).ok();
    put("after");
    db.close().unwrap();
    assert!(!place.path("db.copying").exists());
    for copy in ["copy", "exported", "restored", "db"] {
        assert_eq!(place.spillway(&["get", "00099", "--db", copy]).ok(), "value 99\n", "{copy}");
        assert_eq!(place.spillway(&["get", "before", "--db", copy]).ok(), "logged\n", "{copy}");
    }
}

#[test]
fn an_unfinished_restore_passes_for_no_database_and_is_begun_again() {
    let place = Place::new();
    load(&place, 100);
    place.spillway(&["compact", "--db", "db"]).ok();
    place.spillway(&["backup", "create", "--db", "db", "--dir", "backups"]).ok();
    let table = std::fs::read_dir(place.path("backups/shared_checksum")).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&table).unwrap();
    let mut damaged = whole.clone();
    damaged[10] ^= 1;
    std::fs::write(&table, damaged).unwrap();
    let restore = ["backup", "restore", "--dir", "backups", "--to", "restored"];
    let told = place.spillway(&restore).fails();
    assert!(told.contains("the restore of backup 1 to restored is unfinished: restore again"), "{told}");
    let before = common::files(&place.path("restored"));
    let commands: [&[&str]; 12] = [
        &["get", "00001"],
        &["put", "k", "v"],
        &["put", "k", "v", "--create"],
        &["scan"],
        &["scan", "--skip-damaged"],
        &["stats"],
        &["check"],
        &["repair"],
        &["repair", "--adopt"],
        &["compact"],
        &["families", "list"],
        &["checkpoint", "--to", "copy"],
    ];
    for command in commands {
        let told = place.spillway(&[command, &["--db", "restored"]].concat()).fails();
        assert!(told.contains("an unfinished restore of backup 1 in backups"), "{command:?}: {told}");
        assert!(told.contains("restore again") && !told.contains("spillway repair"), "{command:?}: {told}");
    }
    assert_eq!(common::files(&place.path("restored")), before);
    assert!(!place.path("copy").exists());
    std::fs::write(&table, whole).unwrap();
    place.spillway(&restore).ok();
    assert!(place.spillway(&["scan", "--count", "--db", "restored"]).ok().starts_with("100"));
    assert!(!place.path("restored/INCOMPLETE").exists());
}
