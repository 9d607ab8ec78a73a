//! What options have no effect is told once, and what cannot be passed over is refused.
#![expect(clippy::indexing_slicing, reason = "helpers of tests are tests")]
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, reason = "a test fails where it cannot go on")]

mod common;

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use common::{Place, Ran, SPILLWAY, files, run};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn put(place: &Place, options: &str, more: &[&str]) -> Ran {
    let mut args = vec!["put", "key", "value", "--db", "db", "--create", "--options", options];
    args.extend(more);
    place.spillway(&args)
}

fn lines(ran: &Ran, beginning: &str) -> Vec<String> {
    ran.err.lines().filter(|line| line.starts_with(beginning)).map(str::to_owned).collect()
}

#[test]
fn what_only_changes_how_is_taken_and_told_once() {
    let place = Place::new();
    let options = "use_direct_reads=true;sample_for_compression=7;write_buffer_size=1M";
    let ran = put(&place, options, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = lines(&ran, "warning: ");
    assert_eq!(told.len(), 2, "{ran:?}");
    assert!(told[0].contains("`use_direct_reads=true`") && told[1].contains("`sample_for_compression=7`"), "{told:?}");
    assert_eq!(lines(&ran, "note: the database keeps these options").len(), 1, "{ran:?}");
    assert_eq!(ran.err.lines().count(), 3, "{ran:?}");
    let next = place.spillway(&["put", "key", "value", "--db", "db"]);
    assert_eq!((next.code, next.err.as_str()), (Some(0), ""), "told when they were given");
    let log = std::fs::read_to_string(place.path("db").join("LOG")).unwrap();
    assert!(log.contains("`use_direct_reads=true`") && log.contains("Options.write_buffer_size: 1048576"), "{log}");
}

#[test]
fn what_changes_what_is_kept_is_refused_but_for_those_who_accept_it() {
    for options in ["enable_blob_files=true", "compaction_style=kCompactionStyleNone"] {
        let place = Place::new();
        let refused = put(&place, options, &[]).fails();
        let name = options.split('=').next().unwrap();
        assert!(refused.contains(name), "{refused}");
        assert!(!place.path("db").join("CURRENT").exists());
        if name != "compaction_style" {
            assert!(refused.contains("--ignore-unsupported-options"), "{refused}");
        }
        let accepted = put(&place, options, &["--ignore-unsupported-options"]);
        assert_eq!((accepted.code, lines(&accepted, "warning: ").len()), (Some(0), 1), "{accepted:?}");
        place.spillway(&["get", "key", "--db", "db"]).ok();
        place.spillway(&["delete", "key", "--db", "db"]).ok();
    }
}

#[test]
fn two_names_of_an_option_with_different_values_are_refused() {
    let place = Place::new();
    let refused = put(&place, "memtable=vector;memtable_factory=trie", &[]).fails();
    assert!(refused.contains("`memtable=vector` and `memtable_factory=trie`"), "{refused}");
    assert_eq!(put(&place, "memtable=vector;memtable_factory=vector", &[]).code, Some(0));
}

/// RocksDB's directory, its OPTIONS changed.
fn rocksdbs(from: &str, to: &str) -> Place {
    let place = Place::new();
    place.copy_of(&fixtures().join("db-unflushed"), "db");
    let mut changed = 0;
    for entry in std::fs::read_dir(place.path("db")).unwrap() {
        let path = entry.unwrap().path();
        if path.file_name().unwrap().to_str().unwrap().starts_with("OPTIONS-") {
            let text = std::fs::read_to_string(&path).unwrap();
            changed += usize::from(text.contains(from));
            std::fs::write(&path, text.replace(from, to)).unwrap();
        }
    }
    assert!(changed > 0);
    place
}

#[test]
fn adoption_tells_what_is_done_otherwise_and_that_it_is_done_once_it_is() {
    let place = rocksdbs("sample_for_compression=0", "sample_for_compression=7");
    let ran = place.spillway(&["put", "zzz", "new", "--adopt", "--db", "db"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let told = ran.err.find("sample_for_compression=7").unwrap();
    assert!(told < ran.err.find("was taken over").unwrap(), "{ran:?}");
    let log = std::fs::read_to_string(place.path("db").join("LOG")).unwrap();
    assert!(log.contains("sample_for_compression=7") && log.contains("was taken over"), "{log}");
}

/// RocksDB's directories go on by their style.
#[test]
fn an_adopted_database_keeps_its_compaction_style() {
    for style in ["Universal", "FIFO"] {
        let place =
            rocksdbs("compaction_style=kCompactionStyleLevel", &format!("compaction_style=kCompactionStyle{style}"));
        let ran = place.spillway(&["put", "zzz", "new", "--adopt", "--db", "db"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let log = std::fs::read_to_string(place.path("db").join("LOG")).unwrap();
        assert!(log.contains(&format!("Options.compaction_style: kCompactionStyle{style}")), "{log}");
        assert!(!ran.err.contains("compaction_style"), "{ran:?}");
    }
}

#[test]
fn adoption_asks_where_something_cannot_be_honoured() {
    let place = rocksdbs("enable_blob_files=false", "enable_blob_files=true");
    place.spillway(&["scan", "--db", "db"]).out.lines().next().unwrap();
    let before = names(&place);
    let refused = place.spillway(&["put", "zzz", "new", "--adopt", "--db", "db"]).fails();
    assert_eq!(names(&place), before, "nothing was written, RocksDB's LOG was not put aside");
    assert!(refused.contains("enable_blob_files") && refused.contains("--ignore-unsupported-options"), "{refused}");
    assert!(!refused.contains("was taken over"), "{refused}");
    let args = ["put", "zzz", "new", "--adopt", "--db", "db", "--ignore-unsupported-options"];
    let ran = place.spillway(&args);
    assert!(ran.code == Some(0) && ran.err.contains("enable_blob_files") && ran.err.contains("taken over"), "{ran:?}");
    place.spillway(&["put", "key", "value", "--db", "db"]).ok();
}

fn names(place: &Place) -> Vec<std::ffi::OsString> {
    let mut names: Vec<_> =
        std::fs::read_dir(place.path("db")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.retain(|name| name != "LOCK"); // it is how the directory was looked at alone
    names.sort();
    names
}

#[test]
fn adoption_asks_where_the_options_cannot_be_read_and_names_the_flag_for_values_that_are_not_there() {
    for (from, to, what) in [
        ("write_buffer_size=", "write_buffer_size=x", "is not known"),
        ("compaction_style=kCompactionStyleLevel", "compaction_style=kCompactionStyleNone", "by the user"),
    ] {
        let place = rocksdbs(from, to);
        let refused = place.spillway(&["put", "zzz", "new", "--adopt", "--db", "db"]).fails();
        assert!(refused.contains(what) && refused.contains("--ignore-unsupported-options"), "{refused}");
        assert!(!refused.contains("was taken over"), "{refused}");
        let args = ["put", "zzz", "new", "--adopt", "--db", "db", "--ignore-unsupported-options"];
        assert_eq!(place.spillway(&args).code, Some(0));
    }
}

/// Damage of every kind to an OPTIONS file.
fn damages(text: &str) -> Vec<Vec<u8>> {
    let bytes = text.as_bytes();
    let mut flipped = bytes.to_vec();
    let at = text.find("kCompactionStyleUniversal").unwrap();
    flipped[at] ^= 1;
    let mut not_text = bytes.to_vec();
    not_text[at] = 0xff;
    let digit = text.find("write_buffer_size=").unwrap() + "write_buffer_size=".len();
    let mut other = bytes.to_vec();
    other[digit] ^= 1; // another number, which reads well
    let cut = |end: usize| bytes[..end].to_vec();
    vec![flipped, not_text, other, cut(bytes.len() / 2), cut(bytes.len() - 10), Vec::new(), vec![0; 4096]]
}

#[test]
fn a_damaged_options_file_is_told_and_not_replaced_by_defaults() {
    let place = Place::new();
    place.write("in", "a\t1\nb\t2\n");
    let load = ["load", "in", "--format", "kv", "--db", "db"];
    place.spillway(&[&load[..], &["--options", "compaction_style=kCompactionStyleUniversal"]].concat()).ok();
    let path = place.newest_file("db", "OPTIONS-");
    let whole = std::fs::read_to_string(&path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    for damaged in damages(&whole) {
        std::fs::write(&path, &damaged).unwrap();
        let before = names(&place);
        for args in [
            &["put", "c", "3"][..],
            &["compact"],
            &["delete", "a"],
            &["put", "c", "3", "--options", "compression=kZSTD"],
        ] {
            let refused = place.spillway(&[args, &["--db", "db"]].concat()).fails();
            let place = ["line ", "section"].iter().any(|place| refused.contains(place));
            assert!(refused.contains(&name) && place, "{refused}");
            assert!(refused.contains("--options FILE") && refused.contains("--options defaults"), "{refused}");
        }
        let read = place.spillway(&["get", "a", "--db", "db"]);
        assert!(read.out == "1\n" && read.err.contains(&name) && read.code == Some(0), "{read:?}");
        let checked = place.spillway(&["check", "--json", "--db", "db"]);
        let report: serde_json::Value = serde_json::from_str(&checked.out).unwrap();
        assert!(checked.code == Some(1) && report["whole"] == false, "{checked:?}");
        assert!(report["problems"][0]["file"].as_str().unwrap().ends_with(&name), "{report}");
        assert_eq!((names(&place), std::fs::read(&path).unwrap()), (before, damaged), "nothing is replaced");
    }
    // All options given anew.
    place.write("OPTIONS.ini", &whole);
    let given = place.spillway(&["put", "c", "3", "--options", "OPTIONS.ini", "--db", "db"]);
    assert!(given.code == Some(0) && given.err.contains(&name), "{given:?}");
    let stored = std::fs::read_to_string(place.newest_file("db", "OPTIONS-")).unwrap();
    assert!(stored.contains("kCompactionStyleUniversal"));
    place.spillway(&["check", "--db", "db"]).ok();
}

#[test]
fn a_repair_tells_which_options_it_goes_on_with() {
    let place = Place::new();
    place.write("in", "a\t1\n");
    let style = "compaction_style=kCompactionStyleUniversal";
    place.spillway(&["load", "in", "--format", "kv", "--db", "db", "--options", style]).ok();
    place.spillway(&["put", "b", "2", "--db", "db"]).ok();
    let newest = place.newest_file("db", "OPTIONS-");
    std::fs::write(&newest, "").unwrap();
    let told = place.spillway(&["repair", "db"]);
    let name = newest.file_name().unwrap().to_str().unwrap();
    assert!(told.code == Some(1) && told.out.contains("options: ") && told.out.contains(name), "{told:?}");
    assert!(told.out.contains("are stored now") && !told.out.contains("nothing of it is lost"), "{told:?}");
    let stored = std::fs::read_to_string(place.newest_file("db", "OPTIONS-")).unwrap();
    assert!(stored.contains("kCompactionStyleUniversal"), "the options before them");
    assert!(place.path("db/lost").join(name).exists(), "{told:?}");
    let report = place.path("db/lost/REPORT-OPTIONS");
    let again = place.spillway(&["repair", "db"]);
    assert!(again.code == Some(1) && again.out.contains("move the earlier report away"), "{again:?}");
    assert!(!again.out.contains("nothing of it is lost"), "{again:?}");
    std::fs::remove_file(&report).unwrap();
    assert!(place.spillway(&["repair", "db"]).ok().contains("nothing of it is lost"));
    for entry in std::fs::read_dir(place.path("db")).unwrap().map(Result::unwrap) {
        if entry.file_name().to_str().unwrap().starts_with("OPTIONS-") {
            std::fs::write(entry.path(), "").unwrap();
        }
    }
    let told = place.spillway(&["repair", "db", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(report["options"], "the defaults", "{report}");
    assert!(told.code == Some(1) && report["lost_nothing"] == false, "{told:?}");
}

fn lose_options(place: &Place) {
    for entry in std::fs::read_dir(place.path("db")).unwrap().map(Result::unwrap) {
        if entry.file_name().to_str().unwrap().starts_with("OPTIONS-") {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
}

#[test]
fn lost_options_are_not_replaced_by_defaults_unasked() {
    let place = Place::new();
    let style = "compaction_style=kCompactionStyleUniversal";
    put(&place, style, &[]).ok();
    let stored = || std::fs::read_to_string(place.newest_file("db", "OPTIONS-")).unwrap();
    let whole = stored();
    lose_options(&place);
    for args in [&["put", "c", "3"][..], &["compact"], &["put", "c", "3", "--options", "compression=kZSTD"]] {
        let refused = place.spillway(&[args, &["--db", "db"]].concat()).fails();
        assert!(refused.contains("OPTIONS") && refused.contains("--options defaults"), "{refused}");
    }
    assert_eq!(place.spillway(&["get", "key", "--db", "db"]).ok(), "value\n");
    let checked = place.spillway(&["check", "--db", "db"]);
    assert!(checked.code == Some(1) && checked.out.contains("the last OPTIONS file is missing"), "{checked:?}");
    place.write("OPTIONS.ini", &whole);
    place.spillway(&["put", "c", "3", "--options", "OPTIONS.ini", "--db", "db"]).ok();
    assert!(stored().contains("kCompactionStyleUniversal"));
    lose_options(&place);
    place.spillway(&["put", "c", "3", "--options", "defaults", "--db", "db"]).ok();
    assert!(stored().contains("kCompactionStyleLevel"));
    lose_options(&place);
    let told = place.spillway(&["repair", "db"]);
    assert!(told.code == Some(1) && told.out.contains("OPTIONS file is missing"), "{told:?}");
    assert!(told.out.contains("options: the defaults are stored now"), "{told:?}");
    place.spillway(&["put", "c", "3", "--db", "db"]).ok();
}

/// Each command that the messages name works: the MANIFEST has the directory of the logs, too.
#[test]
fn logs_in_a_directory_of_their_own_are_found_without_the_options() {
    let repair = |options| ["repair", "--options", options];
    for way in [&["put", "c", "3", "--options", "defaults"][..], &repair("wal_dir=logs"), &repair("defaults")] {
        let place = Place::new();
        put(&place, "wal_dir=logs", &[]).ok();
        lose_options(&place);
        let refused = place.spillway(&["put", "c", "3", "--db", "db"]).fails();
        assert!(refused.contains("--options defaults"), "{refused}");
        let whole = format!("wal_dir={}", std::fs::canonicalize(place.path("logs")).unwrap().display());
        assert!(place.spillway(&["repair", "--db", "db"]).fails().contains(&format!("open with {whole}")));
        let checked = place.spillway(&["check", "--options", "defaults", "--db", "db"]);
        assert!(checked.out.contains("1 log read") && checked.out.contains("OPTIONS file is missing"), "{checked:?}");
        place.spillway(&[way, &["--db", "db"]].concat());
        assert_eq!(place.spillway(&["get", "key", "--db", "db"]).ok(), "value\n");
        let stored = std::fs::read_to_string(place.newest_file("db", "OPTIONS-")).unwrap();
        assert!(stored.contains("wal_dir=logs") || stored.contains(&whole), "{stored}");
    }
}

/// Bytes that are not UTF-8 are shown as such in JSON and in a repair's report.
#[test]
fn names_of_families_are_bytes() {
    let place = Place::new();
    place.spillway(&["put", "key", "value", "--db", "db", "--create"]).ok();
    let mut create = place.command(SPILLWAY, &["families", "create", "--db", "db"]);
    create.arg(std::ffi::OsStr::from_bytes(b"f\xfe\n\x7f"));
    run(create, b"").ok();
    let listed = place.spillway(&["families", "list", "--db", "db", "--json"]).ok();
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["families"][1]["name"], "f\\xfe\n\x7f");
    std::fs::write(place.newest_file("db", "MANIFEST-"), "damaged").unwrap();
    let repaired = place.spillway(&["repair", "db"]);
    let report = repaired.out;
    assert!(report.contains(r#"family "f\xfe\n\u{7f}": "#), "{report}{}", repaired.err);
}

/// A wal_dir, say, that is not UTF-8.
#[test]
fn paths_in_options_are_bytes() {
    let place = Place::new();
    let wal_dir = std::ffi::OsStr::from_bytes(b"logs\xff");
    let with = |args: &[&str], last: &[u8]| {
        let mut command = place.command(SPILLWAY, args);
        command.arg(std::ffi::OsStr::from_bytes(last));
        run(command, b"")
    };
    with(&["put", "key", "value", "--db", "db", "--create", "--options"], b"wal_dir=logs\xff").ok();
    let logs = || std::fs::read_dir(place.path("").join(wal_dir)).unwrap().count();
    assert!(logs() > 0);
    assert!(place.spillway(&["check", "db"]).ok().contains("1 log read"));
    with(&["families", "create", "--db", "db", "--with", "write_buffer_size=1M"], b"f\xfe").ok();
    let shown = place.spillway(&["options", "show", "db"]).ok();
    assert!(shown.contains("wal_dir = logs\\xff ") && shown.contains("family \"f\\xfe\"\n"), "{shown}");
    lose_options(&place);
    place.spillway(&["put", "c", "3", "--db", "db", "--options", "defaults"]).ok();
    assert_eq!(place.spillway(&["scan", "--db", "db"]).ok(), "c\t3\nkey\tvalue\n");
    std::fs::copy(place.newest_file("db", "OPTIONS-"), place.path("").join(wal_dir).join("OPTIONS.ini")).unwrap();
    with(&["put", "d", "4", "--db", "db", "--options"], b"logs\xff/OPTIONS.ini").ok();
    let document = format!("databases: {{ d: {{ params: {{ path: {:?} }} }} }}", place.path("plain"));
    place.spillway(&["put", "c", "3", "--db", "plain", "--create"]).ok();
    std::fs::write(place.path("").join(wal_dir).join("app.yaml"), document).unwrap();
    assert_eq!(with(&["get", "c", "--config"], b"logs\xff/app.yaml#d").ok(), "3\n");
    assert!(with(&["options", "check"], b"logs\xff/app.yaml").ok().contains("plain"));
    let destroyed = place.spillway(&["destroy", "--db", "db", "--yes"]);
    assert!(destroyed.code == Some(0) && destroyed.err.contains("its wal_dir, stay"), "{destroyed:?}");
}

#[test]
fn a_database_that_is_to_be_new_is_refused_where_there_is_one() {
    let place = Place::new();
    let new = put(&place, "error_if_exists=true;write_buffer_size=1M", &[]);
    assert!(new.code == Some(0) && new.err.contains("except for error_if_exists"), "{new:?}");
    place.spillway(&["put", "a", "1", "--db", "db"]).ok();
    let again = put(&place, "error_if_exists=true", &[]).fails();
    assert!(again.contains("exists (error_if_exists is true)"), "{again}");
    assert_eq!(place.spillway(&["get", "a", "--db", "db", "--options", "error_if_exists=true"]).ok(), "1\n");
    place.write(
        "app.yaml",
        "DBOptions: { new: { error_if_exists: true } }\ndatabases: { d: { params: { path: db, db_options: new } } }\n",
    );
    let document = place.spillway(&["put", "a", "2", "--config", "app.yaml"]).fails();
    assert!(document.contains("exists (error_if_exists is true)"), "{document}");
}

/// RocksDB's extractor of the whole key is found by its stored name.
#[test]
fn a_database_with_the_whole_key_as_prefix_opens() {
    let place = Place::new();
    put(&place, "prefix_extractor=rocksdb.Noop", &[]).ok();
    place.spillway(&["put", "a", "1", "--db", "db"]).ok();
    place.spillway(&["compact", "--db", "db"]).ok();
    assert_eq!(place.spillway(&["get", "a", "--db", "db"]).ok(), "1\n");
    assert!(place.spillway(&["options", "show", "db"]).ok().contains("rocksdb.Noop"));
}

/// The options before them, of a FIFO family say, could delete tables.
#[test]
fn options_before_the_last_ones_do_not_replace_them_unasked() {
    let place = Place::new();
    put(&place, "write_buffer_size=1M", &[]).ok();
    let again =
        place.spillway(&["put", "a", "1", "--db", "db", "--options", "compaction_style=kCompactionStyleUniversal"]);
    assert_eq!(again.code, Some(0), "{again:?}");
    place.spillway(&["check", "--db", "db"]).ok();
    let newest = place.newest_file("db", "OPTIONS-");
    std::fs::remove_file(&newest).unwrap();
    let (name, before) = (newest.file_name().unwrap().to_str().unwrap(), place.newest_file("db", "OPTIONS-"));
    let before = before.to_str().unwrap();
    let checked = place.spillway(&["check", "--db", "db"]);
    assert!(checked.code == Some(1) && checked.out.contains(name), "{checked:?}");
    for args in [&["put", "a", "2"][..], &["compact"], &["checkpoint", "--to", "copy"]] {
        let refused = place.spillway(&[args, &["--db", "db"]].concat()).fails();
        assert!(refused.contains(name) && refused.contains("--options FILE"), "{refused}");
    }
    assert_eq!(place.spillway(&["get", "a", "--db", "db"]).ok(), "1\n");
    place.spillway(&["put", "a", "2", "--db", "db", "--options", before]).ok();
    place.spillway(&["put", "a", "3", "--db", "db"]).ok();
}

/// Loses the newest OPTIONS file of a database, whose column family "f" the one before lacks.
fn without_options_of_f() -> Place {
    let place = Place::new();
    put(&place, "write_buffer_size=1M", &[]).ok();
    place.spillway(&["families", "create", "f", "--db", "db"]).ok();
    std::fs::remove_file(place.newest_file("db", "OPTIONS-")).unwrap();
    place
}

#[test]
fn a_repair_tells_of_a_family_that_gets_the_defaults() {
    let place = without_options_of_f();
    let told = place.spillway(&["repair", "db"]);
    assert!(told.code == Some(1) && told.out.contains("lacks column family \"f\""), "{told:?}");
    assert!(!told.out.contains("nothing of it is lost"), "{told:?}");
    // So it does where the newest file is damaged.
    let place = without_options_of_f();
    place.write("db/OPTIONS-999999", "");
    let told = place.spillway(&["repair", "db", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&told.out).unwrap();
    assert!(told.code == Some(1) && report["options"].as_str().unwrap().contains("OPTIONS-"), "{told:?}");
    assert!(report["lost_options"][0].as_str().unwrap().contains("OPTIONS-999999"), "{told:?}");
}

#[test]
fn a_repair_tells_of_options_that_came_before_the_last_ones() {
    let place = Place::new();
    put(&place, "write_buffer_size=1M", &[]).ok();
    place.spillway(&["put", "a", "1", "--db", "db"]).ok();
    std::fs::remove_file(place.newest_file("db", "OPTIONS-")).unwrap();
    let told = place.spillway(&["repair", "db"]);
    assert!(told.code == Some(1) && told.out.contains("the last OPTIONS file is missing"), "{told:?}");
    assert!(!told.out.contains("nothing of it is lost"), "{told:?}");
    std::fs::remove_file(place.path("db/lost/REPORT-OPTIONS")).unwrap();
    place.spillway(&["repair", "db"]).ok();
}

/// RocksDB's merge operator, say, is lost with it.
#[test]
fn a_takeover_without_an_options_file_is_told() {
    for args in [&["put", "zzz", "new", "--db", "db", "--adopt"][..], &["repair", "db", "--adopt"]] {
        let place = rocksdbs("", "");
        lose_options(&place);
        assert!(place.spillway(&["check", "--db", "db"]).ok().contains("there is no OPTIONS file"));
        let told = place.spillway(args);
        assert!(told.code == Some(0) && told.err.contains("give others by --options"), "{told:?}");
    }
}

#[test]
fn a_directory_in_the_place_of_the_options_is_one_problem_of_a_check() {
    let place = Place::new();
    put(&place, "write_buffer_size=1M", &[]).ok();
    std::fs::create_dir(place.path("db/OPTIONS-999999")).unwrap();
    let checked = place.spillway(&["check", "--db", "db"]);
    assert!(checked.code == Some(1) && checked.out.contains("1 problem found"), "{checked:?}");
    assert!(checked.out.contains("OPTIONS-999999") && checked.out.contains("1 log read"), "{checked:?}");
    let told = place.spillway(&["repair", "db"]);
    assert!(told.code == Some(1) && place.path("db/lost/OPTIONS-999999").is_dir(), "{told:?}");
    place.spillway(&["check", "--db", "db"]).ok();
}

/// What the database keeps is said once it does.
#[test]
fn a_failed_open_keeps_no_options() {
    let place = Place::new();
    put(&place, "write_buffer_size=1M", &[]).ok();
    let logs = files(&place.path("db")).into_iter().map(|(path, _)| path);
    logs.filter(|path| path.extension().is_some_and(|e| e == "splog"))
        .for_each(|path| std::fs::remove_file(path).unwrap());
    let args = ["put", "a", "1", "--db", "db", "--options", "write_buffer_size=2M"];
    let failed = place.spillway(&args).fails();
    assert!(!failed.contains("keeps these options"), "{failed}");
    let args = ["put", "a", "1", "--db", "other", "--create", "--options", "write_buffer_size=2M"];
    assert!(place.spillway(&args).err.contains("keeps these options"));
}

/// What is asked for one salvage is not done again unasked.
#[test]
fn a_later_command_does_not_salvage() {
    let place = Place::new();
    put(&place, "write_buffer_size=1M", &[]).ok();
    let lose_a_log = || {
        place.spillway(&["put", "a", "1", "--db", "db"]).ok();
        let logs = files(&place.path("db"));
        let logs = logs.into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "splog"));
        for (path, bytes) in logs {
            if bytes.len() > 4096 || bytes.iter().any(|byte| *byte != 0) {
                std::fs::remove_file(path).unwrap();
            }
        }
    };
    lose_a_log();
    place.spillway(&["put", "b", "2", "--db", "db"]).fails();
    let options = "wal_recovery_mode=kSkipAnyCorruptedRecords;best_efforts_recovery=true";
    let salvaged = place.spillway(&["put", "b", "2", "--db", "db", "--options", options]);
    assert!(salvaged.code == Some(1) && salvaged.err.contains("in doubt"), "{salvaged:?}");
    lose_a_log();
    let refused = place.spillway(&["put", "c", "3", "--db", "db"]).fails();
    assert!(refused.contains("is missing"), "{refused}");
}

#[test]
fn a_command_goes_back_to_the_newest_complete_point_when_asked() {
    for lost in ["CURRENT", "MANIFEST-"] {
        let place = Place::new();
        put(&place, "write_buffer_size=1M", &[]).ok();
        place.spillway(&["families", "create", "second", "--db", "db"]).ok();
        place.spillway(&["put", "a", "1", "--family", "second", "--db", "db"]).ok();
        std::fs::remove_file(place.only_file("db", lost)).unwrap();
        place.spillway(&["put", "b", "2", "--db", "db"]).fails();
        let options = "best_efforts_recovery=true";
        let put = place.spillway(&["put", "b", "2", "--db", "db", "--options", options]);
        assert!(put.err.contains("except for the way of recovery") && put.code == Some(0), "{lost}: {put:?}");
        for (family, pair) in [("second", "a\t1\n"), ("default", "b\t2\nkey\tvalue\n")] {
            assert_eq!(place.spillway(&["scan", "--db", "db", "--family", family]).ok(), pair, "{lost}");
        }
    }
}
