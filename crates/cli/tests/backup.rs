//! `backup`: made, listed, verified, restored and deleted; what is damaged is named, and the command fails.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use common::{Place, SPILLWAY};
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
                asked.contains("would delete the database in restored, 6 files: 000") && asked.contains("--yes"),
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
    assert!(place.spillway(&["backup", "list", "--dir", "backups"]).fails().contains("there is no backup in backups"));
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

/// Named from inside the directory, the file has no directory in its name.
#[test]
fn no_table_is_moved_out_of_backups() {
    let place = Place::new();
    load(&place, 100);
    place.spillway(&["compact", "--db", "db"]).ok();
    place.spillway(&["backup", "create", "--db", "db", "--dir", "backups"]).ok();
    let shared = place.path("backups/shared_checksum");
    let table = std::fs::read_dir(&shared).unwrap().next().unwrap().unwrap().path();
    let name = table.file_name().unwrap().to_str().unwrap();
    let other = place.path("other");
    let ingest = ["ingest", name, "--move", "--any-table", "--db", other.to_str().unwrap(), "--create"];
    let ran = place.command(SPILLWAY, &ingest).current_dir(&shared).output().unwrap();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(1) && told.contains("one of the backups in"), "{ran:?}");
    assert!(table.exists());
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

/// As root copies a service's database: a file of root's in it would lock the service out.
#[test]
fn copies_of_another_users_database_only_read_it() {
    let place = Place::new();
    load(&place, 100);
    let db = place.path("db");
    let all = || {
        let entries = std::fs::read_dir(&db).unwrap().map(|entry| entry.unwrap());
        let mut all: Vec<_> = entries.map(|entry| (entry.file_name(), entry.metadata().unwrap())).collect();
        all.sort_by(|(a, _), (b, _)| a.cmp(b));
        let seen =
            |(name, metadata): (_, std::fs::Metadata)| (name, metadata.uid(), metadata.len(), metadata.mtime_nsec());
        all.into_iter().map(seen).collect::<Vec<_>>()
    };
    let chown = |path: &Path| std::os::unix::fs::chown(path, Some(65_534), Some(65_534));
    if chown(&db).is_err() {
        return; // root alone can give files away
    }
    all().iter().for_each(|(name, ..)| chown(&db.join(name)).unwrap());
    let before = all();
    place.spillway(&["backup", "create", "--db", "db", "--dir", "backups"]).ok();
    place.spillway(&["checkpoint", "--verify", "--db", "db", "--to", "copy"]).ok();
    place.spillway(&["export", "--db", "db", "--to", "exported"]).ok();
    assert_eq!(all(), before);
    assert!(!place.path("db.copying").exists());
    place.spillway(&["backup", "restore", "--dir", "backups", "--to", "restored"]).ok();
    for copy in ["copy", "exported", "restored"] {
        assert_eq!(place.spillway(&["get", "00099", "--db", copy]).ok(), "value 99\n", "{copy}");
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
    let unfinished =
        "the restore of backup 1 to restored is unfinished: backup 1 is damaged, and its restore fails again";
    assert!(told.contains(unfinished) && told.contains("there is no other backup"), "{told}");
    let before = common::files(&place.path("restored"));
    let backups = place.path("backups").display().to_string();
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
        assert!(told.contains(&format!("an unfinished restore of backup 1 in {backups}")), "{command:?}: {told}");
        assert!(told.contains("its restore fails again") && !told.contains("spillway repair"), "{command:?}: {told}");
    }
    assert_eq!(common::files(&place.path("restored")), before);
    assert!(!place.path("copy").exists());
    std::fs::write(&table, whole).unwrap();
    place.spillway(&restore).ok();
    assert!(place.spillway(&["scan", "--count", "--db", "restored"]).ok().starts_with("100"));
    assert!(!place.path("restored/INCOMPLETE").exists());
}

/// Backups 1 and 2 of a database that had one key more at the second.
fn with_two_backups() -> Place {
    let place = Place::new();
    for key in ["first", "second"] {
        place.spillway(&["put", key, "1", "--db", "db", "--create"]).ok();
        place.spillway(&["backup", "create", "--db", "db", "--dir", "backups"]).ok();
    }
    place
}

const VERIFY: [&str; 4] = ["backup", "verify", "--dir", "backups"];
const LIST: [&str; 4] = ["backup", "list", "--dir", "backups"];

#[test]
fn an_older_backup_takes_the_place_of_a_damaged_one_only_by_its_number() {
    let place = with_two_backups();
    let restore = ["backup", "restore", "--dir", "backups", "--to", "restored", "--keep-logs"];
    let commands: [fn(&Place); 2] = [
        |place| std::fs::remove_dir_all(place.path("backups/private/2")).unwrap(),
        |place| place.write("backups/meta/2", ""),
    ];
    for damage in commands {
        damage(&place);
        let told = place.spillway(&restore).fails();
        assert!(told.contains("backup 2 is damaged: "), "{told}");
        assert!(told.contains("`spillway backup restore 1 --dir backups --to restored --keep-logs`"), "{told}");
        assert!(!place.path("restored").exists());
    }
    let told = place.spillway(&["backup", "restore", "--dir", "backups", "--to", "db", "--yes"]).fails();
    assert!(told.contains("backup 2 is damaged: "), "{told}");
    assert_eq!(place.spillway(&["get", "second", "--db", "db"]).ok(), "1\n", "nothing was replaced");
    place.spillway(&["backup", "restore", "1", "--dir", "backups", "--to", "restored"]).ok();
    place.write("backups/meta/1", "");
    let told = place.spillway(&["backup", "restore", "--dir", "backups", "--to", "db", "--yes"]).fails();
    assert!(told.contains("there is no backup to restore") && told.contains("backup 1") && told.contains("backup 2"));
    let told = place.spillway(&VERIFY).fails();
    assert!(told.lines().filter(|line| line.starts_with("error: ")).count() == 2, "each is named: {told}");
}

#[test]
fn a_backup_without_its_meta_file_is_named_and_its_number_is_not_given_again() {
    let place = with_two_backups();
    std::fs::remove_file(place.path("backups/meta/2")).unwrap();
    let listed = place.spillway(&LIST).ok();
    assert!(listed.contains("2\tunfinished: backup 2 has no file meta/2") && listed.contains("private/2"), "{listed}");
    let json = place.spillway(&[&LIST[..], &["--json"]].concat()).ok();
    assert!(json.contains(r#""unfinished":[{"id":2,"error":"backup 2 has no file meta/2"#), "{json}");
    let verified = place.spillway(&VERIFY);
    assert_eq!(verified.out, "backup 1 is whole\n");
    assert!(verified.fails().contains("backup 2 has no file meta/2"));
    let restore_2 = ["backup", "restore", "2", "--dir", "backups", "--to", "elsewhere"];
    for args in [&[&VERIFY[..], &["2"]].concat()[..], &restore_2, &[&restore_2[..5], &["--to", "db", "--yes"]].concat()]
    {
        let told = place.spillway(args).fails();
        assert!(told.contains("backup 2 has no file meta/2") && !told.contains("there is no backup 2"), "{told}");
    }
    let restored = place.spillway(&["backup", "restore", "--dir", "backups", "--to", "restored"]);
    assert!(restored.code == Some(0) && restored.out == "restored backup 1 to restored\n", "{restored:?}");
    assert!(restored.err.contains("warning: backup 1 is restored. backup 2 has no file meta/2"), "{restored:?}");
    let made = place.spillway(&["backup", "create", "--db", "db", "--dir", "backups"]);
    assert!(made.code == Some(0) && made.out == "made backup 3 in backups\n", "{made:?}");
    assert!(made.err.contains("backup 2 has no file meta/2"), "{made:?}");
    let verified = place.spillway(&VERIFY);
    assert_eq!(verified.out, "backup 1 is whole\nbackup 3 is whole\n");
    assert!(verified.fails().contains("backup 2 has no file meta/2"), "it may have been finished once");
    place.spillway(&["backup", "delete", "2", "--dir", "backups"]).ok();
    assert!(!place.path("backups/private/2").exists(), "what is left of it goes by its number");
    for meta in ["1", "3"] {
        std::fs::remove_file(place.path("backups/meta").join(meta)).unwrap();
    }
    let told = place.spillway(&VERIFY).fails();
    assert!(told.contains("backup 1 has no file meta/1") && told.contains("backup 3 has no file meta/3"), "{told}");
    let told = place.spillway(&["backup", "restore", "--dir", "backups", "--to", "db", "--yes"]).fails();
    assert!(told.contains("there is no backup to restore, only what cannot be: backup 1 has no file meta/1"), "{told}");
}

#[test]
fn where_there_is_no_backup_a_list_and_a_verification_fail_and_reading_creates_nothing() {
    let place = Place::new();
    std::fs::create_dir(place.path("backups")).unwrap();
    assert_eq!(place.spillway(&VERIFY).fails(), "error: there is no backup in backups\n");
    let json = place.spillway(&[&VERIFY[..], &["--json"]].concat());
    assert_eq!((json.code, json.out.as_str()), (Some(1), "{\"backups\":[]}\n"));
    assert_eq!(place.spillway(&LIST).fails(), "error: there is no backup in backups\n");
    let json = place.spillway(&[&LIST[..], &["--json"]].concat());
    assert_eq!((json.code, json.out.as_str()), (Some(1), "{\"backups\":[],\"damaged\":[],\"unfinished\":[]}\n"));
    place.spillway(&["backup", "restore", "--dir", "backups", "--to", "restored"]).fails();
    assert!(std::fs::read_dir(place.path("backups")).unwrap().next().is_none());
}

#[test]
fn an_unfinished_restore_is_destroyed_if_that_is_confirmed() {
    let place = with_two_backups();
    place.copy_of(&place.path("db"), "part");
    place.write("part/INCOMPLETE", "an unfinished restore of backup 1; restore again\nlogs restored\n");
    let told = place.spillway(&["destroy", "--db", "part"]).fails();
    assert!(told.contains("an unfinished restore of backup 1; restore again") && told.contains("--yes"), "{told}");
    assert!(place.path("part/CURRENT").exists());
    std::fs::remove_file(place.path("part/CURRENT")).unwrap();
    let said = place.spillway(&["destroy", "--db", "part", "--yes"]).ok();
    assert_eq!(said, "deleted what there was in part\n");
    assert!(!place.path("part").exists());
}

#[test]
fn what_a_cut_off_copy_left_beside_its_place_is_named() {
    let place = with_two_backups();
    place.copy_of(&place.path("db"), "copy.tmp");
    place.write("copy.tmp/INCOMPLETE", "an unfinished checkpoint; make it again\n");
    for command in [&["check"][..], &["scan"], &["put", "k", "v"], &["destroy", "--yes"]] {
        let told = place.spillway(&[command, &["--db", "copy"]].concat()).fails();
        assert!(told.contains("no database"), "{command:?}: {told}");
        let beside = "copy.tmp beside it is an unfinished checkpoint; make it again";
        assert!(told.contains(beside), "{command:?}: {told}");
    }
    std::fs::remove_file(place.path("copy.tmp/INCOMPLETE")).unwrap();
    assert!(!place.spillway(&["check", "--db", "copy"]).fails().contains("beside"), "it may be anything");
}

#[test]
fn who_copies_a_repaired_database_is_told_that_the_report_stays_behind() {
    let place = with_two_backups();
    std::fs::create_dir(place.path("db/lost")).unwrap();
    let copies: [&[&str]; 3] =
        [&["checkpoint", "--to", "a"], &["export", "--to", "b"], &["backup", "create", "--dir", "backups"]];
    for (copy, is_told) in copies.into_iter().zip([true, true, true]).chain([(copies[2], false)]) {
        if is_told {
            place.write("db/lost/REPORT.1", "");
        } else {
            std::fs::rename(place.path("db/lost/REPORT.1"), place.path("db/lost/EARLIER-REPORT")).unwrap();
        }
        let copied = place.spillway(&[copy, &["--db", "db"]].concat());
        assert_eq!(copied.code, Some(0), "{copied:?}");
        let note = "note: an earlier repair lost or doubted something";
        let names = copied.err.contains(note) && copied.err.contains("db/lost/REPORT.1");
        assert_eq!(names, is_told, "{copied:?}");
    }
}
