//! `check`: a whole database passes, and every kind of damage is named with its file.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Stdio;

use base::checksum::{crc32c, crc32c_append, mask};
use common::{Place, files};

/// A database with tables in level 0 and below, two families, and a log.
fn database() -> Place {
    let place = Place::new();
    for round in 0..3 {
        let input: String = (0..2000).map(|i| format!("{i:05}\tround {round} value {i}\n")).collect();
        let load = ["load", "-", "--db", "db", "--format", "kv", "--options", "write_buffer_size=64K"];
        place.spillway_reading(&load, input.as_bytes()).ok();
    }
    place.spillway(&["families", "create", "second", "--db", "db"]).ok();
    place.spillway(&["compact", "--db", "db"]).ok();
    let input: String = (0..500).map(|i| format!("{i:05}\tin the log\n")).collect();
    place.spillway_reading(&["load", "-", "--db", "db", "--format", "kv"], input.as_bytes()).ok();
    place
}

fn tables(place: &Place) -> Vec<PathBuf> {
    let all = files(&place.path("db")).into_iter().map(|(path, _)| path);
    all.filter(|path| path.extension().is_some_and(|extension| extension == "sst")).collect()
}

fn largest_log(place: &Place) -> PathBuf {
    let logs = files(&place.path("db")).into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "splog"));
    logs.max_by_key(|(_, bytes)| bytes.iter().rposition(|byte| *byte != 0)).unwrap().0
}

fn damage(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

/// The problems that a check lists.
#[track_caller]
fn problems(place: &Place) -> Vec<String> {
    let ran = place.spillway(&["check", "--db", "db"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(1), ""), "{ran:?}");
    let problems: Vec<_> =
        ran.out.lines().filter_map(|line| line.strip_prefix("problem: ")).map(str::to_owned).collect();
    assert!(!problems.is_empty(), "{ran:?}");
    problems
}

#[test]
fn a_whole_database_passes_and_is_left_as_it_is() {
    let place = database();
    let before = files(&place.path("db"));
    let report = place.spillway(&["check", "--db", "db"]).ok();
    assert!(report.contains("Spillway's, 2 families"), "{report}");
    assert!(report.contains("500 changes"), "{report}");
    assert!(report.ends_with("the database is whole\n"), "{report}");
    assert_eq!(files(&place.path("db")), before);
}

#[test]
fn a_flipped_bit_in_a_table_is_found_wherever_it_is() {
    let place = database();
    let table = tables(&place).pop().unwrap();
    let whole = std::fs::read(&table).unwrap();
    let name = format!("db/{}", table.file_name().unwrap().to_string_lossy());
    for at in (0..whole.len()).step_by(whole.len() / 40) {
        damage(&table, |bytes| bytes[at] ^= 0x10);
        let found = problems(&place);
        assert!(found.iter().all(|problem| problem.starts_with(&name)), "byte {at}: {found:?}");
        std::fs::write(&table, &whole).unwrap();
    }
}

#[test]
fn missing_cut_and_exchanged_tables_are_found() {
    let place = database();
    let table = tables(&place).pop().unwrap();
    let whole = std::fs::read(&table).unwrap();
    damage(&table, |bytes| bytes.truncate(whole.len() - 100));
    assert!(problems(&place)[0].contains("instead of"), "{:?}", problems(&place));
    std::fs::remove_file(&table).unwrap();
    assert!(problems(&place)[0].ends_with("the table is missing"), "{:?}", problems(&place));
    let refused = place.spillway(&["put", "a", "b", "--db", "db"]).fails();
    assert!(refused.contains("missing") && refused.contains("hint: `spillway check --db db`"), "{refused}");
}

#[test]
fn damage_in_a_complete_log_is_found() {
    let place = database();
    let log = largest_log(&place);
    let whole = std::fs::read(&log).unwrap();
    for at in [0, 9, 200, 5000] {
        damage(&log, |bytes| bytes[at] ^= 1);
        let found = problems(&place);
        assert!(found[0].contains(".splog, byte "), "byte {at}: {found:?}");
        let get = place.spillway(&["get", "00001", "--db", "db"]).fails();
        assert!(get.contains(".splog"), "{get}");
        std::fs::write(&log, &whole).unwrap();
    }
}

#[test]
fn a_damaged_manifest_is_found() {
    let place = database();
    let manifest = place.only_file("db", "MANIFEST-");
    damage(&manifest, |bytes| bytes[20] ^= 1);
    assert!(problems(&place)[0].contains("MANIFEST-"), "{:?}", problems(&place));
    std::fs::remove_file(&manifest).unwrap();
    assert!(problems(&place)[0].contains("CURRENT names a MANIFEST that is not there"));
}

#[test]
fn strangers_files_and_left_overs_are_no_problem() {
    let place = database();
    place.write("db/notes.txt", "mine");
    place.write("db/999999.sst", "left over");
    let report = place.spillway(&["check", "--db", "db"]).ok();
    assert!(report.contains("note: 1 file that nothing refers to"), "{report}");
    place.spillway(&["put", "a", "b", "--db", "db"]).ok();
    assert!(!place.path("db/999999.sst").exists(), "the next open deletes it");
    assert!(place.path("db/notes.txt").exists(), "and leaves alone what is not its own");
}

#[test]
fn a_checkpoint_is_a_database_of_its_own() {
    let place = database();
    let before = place.spillway(&["scan", "--db", "db"]).ok();
    let made = place.spillway(&["checkpoint", "--to", "copy", "--db", "db"]).ok();
    assert!(made.starts_with("made copy, which holds every write through number "), "{made}");
    assert!(place.spillway(&["check", "--db", "copy"]).ok().ends_with("the database is whole\n"));
    place.spillway(&["put", "00001", "changed", "--db", "db"]).ok();
    place.spillway(&["compact", "--force", "--db", "db"]).ok();
    assert_eq!(place.spillway(&["scan", "--db", "copy"]).ok(), before);
    place.spillway(&["put", "00002", "changed in the copy", "--db", "copy"]).ok();
    assert_eq!(place.spillway(&["get", "00002", "--db", "db"]).ok(), "in the log\n");
    let ids = ["db", "copy"].map(|db| std::fs::read_to_string(place.path(db).join("IDENTITY")).unwrap());
    assert_ne!(ids[0], ids[1]);
}

/// Where a byte of a table's first data block is.
const IN_A_BLOCK: usize = 100;

#[test]
fn copies_of_a_database_with_a_damaged_table_are_refused() {
    let place = database();
    let table = tables(&place).pop().unwrap();
    let name = table.file_name().unwrap().to_string_lossy().into_owned();
    damage(&table, |bytes| bytes[IN_A_BLOCK] ^= 1);
    for copy in [
        &["backup", "create", "--db", "db", "--dir", "backups"][..],
        &["export", "--db", "db", "--to", "exported"],
        &["checkpoint", "--verify", "--db", "db", "--to", "copy"],
    ] {
        let refused = place.spillway(copy).fails();
        assert!(refused.contains(&name), "{copy:?}: {refused}");
    }
    let none = place.spillway(&["backup", "list", "--dir", "backups"]).fails();
    assert_eq!(none, "error: there is no backup in backups\n");
    assert!(!place.path("exported").exists() && !place.path("copy").exists());
    let unread = place.spillway(&["checkpoint", "--db", "db", "--to", "copy"]).ok();
    assert!(unread.contains("not read"), "{unread}");
}

#[test]
fn a_check_ends_with_the_commands_that_help() {
    let place = database();
    let table = tables(&place).pop().unwrap();
    damage(&table, |bytes| bytes[IN_A_BLOCK] ^= 1);
    let told = place.spillway(&["check", "--db", "db"]).out;
    for command in [
        "`spillway backup restore --dir BACKUPS --to db`",
        "`spillway repair db`",
        "`spillway scan --skip-damaged --db db`",
    ] {
        assert!(told.contains(command), "{told}");
    }
    std::fs::remove_file(place.path("db/CURRENT")).unwrap();
    let told = place.spillway(&["check", "--db", "db"]).out;
    assert!(told.contains("CURRENT, which names the MANIFEST, is missing") && !told.contains("000000"), "{told}");
    assert!(told.contains("`spillway repair db`") && !told.contains("scan"), "{told}");
    let refused = place.spillway(&["get", "00001", "--db", "db"]).fails();
    assert!(refused.contains("CURRENT is missing from db") && refused.contains("`spillway repair db`"), "{refused}");
}

/// A scan reads the MANIFEST that CURRENT names, and goes by no copy.
#[test]
fn no_scan_is_advised_that_cannot_open_the_database() {
    let place = database();
    std::fs::rename(place.path("db"), place.path("a db")).unwrap();
    let manifest = place.only_file("a db", "MANIFEST-");
    let whole = std::fs::read(&manifest).unwrap();
    for len in [0, 100, whole.len() - 3] {
        std::fs::write(&manifest, &whole[..len]).unwrap();
        let told = place.spillway(&["check", "--db", "a db"]).out;
        assert!(told.contains("`spillway repair 'a db'`") && !told.contains("scan"), "{told}");
    }
}

#[test]
fn no_repair_is_advised_inside_the_files_of_backups() {
    let place = database();
    place.spillway(&["backup", "create", "--db", "db", "--dir", "backups"]).ok();
    let way_out = "`spillway backup restore --dir ";
    let told = place.spillway(&["check", "--db", "backups/private/1"]).out;
    assert!(told.contains(way_out) && told.contains("backup verify") && !told.contains("repair"), "{told}");
    assert!(told.contains("\n0 tables read: 0 B"), "none is there: {told}");
    let tries = [&["repair", "backups/private/1"][..], &["put", "a", "b", "--create", "--db", "backups/private/1"]];
    for args in tries.into_iter().chain([&["get", "a", "--db", "backups/private/1"][..]]) {
        let told = place.spillway(args).fails();
        assert!(told.contains(way_out) && !told.contains("spillway repair"), "{told}");
    }
    assert!(place.spillway(&["backup", "verify", "--dir", "backups"]).ok().contains("backup 1 is whole"));
    std::fs::remove_file(place.path("backups/private/1/CURRENT")).unwrap();
    let told = place.spillway(&["get", "a", "--db", "backups/private/1"]).fails();
    assert!(told.contains(way_out) && !told.contains("spillway repair"), "{told}");
}

#[test]
fn what_is_not_supported_is_not_called_damaged() {
    let place = database();
    let manifest = place.only_file("db", "MANIFEST-");
    // A record of an edit with a blob file (tag 400), as RocksDB frames it.
    let mut record = vec![0x90, 0x03, 0];
    let mut framed = mask(crc32c_append(crc32c(&[1]), &record)).to_le_bytes().to_vec();
    framed.extend([record.len() as u8, 0, 1]);
    framed.append(&mut record);
    damage(&manifest, |bytes| bytes.append(&mut framed));
    let ran = place.spillway(&["check", "--db", "db"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.out.contains("unsupported: ") && !ran.out.contains("problem"), "{ran:?}");
    assert!(ran.out.contains("no damage in the rest") && !ran.out.contains("000000"), "{ran:?}");
}

#[test]
fn a_scan_goes_on_past_damage_and_says_what_it_passed_over() {
    let place = database();
    place.spillway(&["compact", "--force", "--db", "db"]).ok();
    let all = place.spillway(&["scan", "--db", "db"]).ok();
    let table = tables(&place).pop().unwrap();
    let whole = std::fs::read(&table).unwrap();
    damage(&table, |bytes| bytes[IN_A_BLOCK] ^= 1);
    assert!(place.spillway(&["scan", "--db", "db"]).code == Some(1));
    for direction in [&[][..], &["--reverse"]] {
        let ran = place.spillway(&[&["scan", "--skip-damaged", "--db", "db"], direction].concat());
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let kept = ran.out.lines().count();
        assert!(kept > 1000 && kept < 2000, "{kept} keys");
        assert!(ran.out.lines().all(|line| all.contains(line)), "nothing else is shown");
        let name = table.file_name().unwrap().to_string_lossy();
        assert!(ran.err.contains(&*name) && ran.err.contains("from the first key through '0"), "{}", ran.err);
        assert!(ran.err.contains("1 damaged place skipped"), "{}", ran.err);
    }
    // Nobody reads all of it.
    let mut command = place.command(common::SPILLWAY, &["scan", "--skip-damaged", "--db", "db"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ran = child.wait_with_output().unwrap();
    let told = String::from_utf8(ran.stderr).unwrap();
    assert_eq!((ran.status.code(), told.contains("1 damaged place skipped")), (Some(1), true), "{told}");
    std::fs::remove_file(&table).unwrap();
    let ran = place.spillway(&["scan", "--skip-damaged", "--db", "db"]);
    assert!(ran.code == Some(1) && ran.err.contains("through '01999'"), "{ran:?}");
    std::fs::write(&table, &whole).unwrap();
    assert_eq!(place.spillway(&["scan", "--skip-damaged", "--db", "db"]).ok(), all);
}

/// A table that cannot be opened is not called damaged: the cause is another.
#[cfg(unix)]
#[test]
fn what_cannot_be_opened_is_told_with_its_cause() {
    let place = database();
    let table = tables(&place).pop().unwrap();
    std::fs::rename(&table, place.path("aside")).unwrap();
    std::os::unix::fs::symlink(&table, &table).unwrap();
    let found = problems(&place);
    assert!(found.iter().any(|problem| problem.contains("symbolic link")), "{found:?}");
}
