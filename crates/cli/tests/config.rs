//! Databases that a configuration describes.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]

mod common;

use common::Place;

const APP: &str = "\
MemTableRepFactory:
  plain: { class: SkipList, params: { lookahead: 3 } }
CFOptions:
  small: { write_buffer_size: 64K, memtable_factory: \"${plain}\" }
DBOptions:
  new: { create_if_missing: true, create_missing_column_families: true }
databases:
  users: { params: { path: users-dir, db_options: new, column_families: { default: small, archive: small } } }
  look: { method: DB::OpenForReadOnly, params: { path: users-dir } }
open: users
";

#[test]
fn commands_open_what_the_configuration_says() {
    let place = Place::new();
    place.write("app.yaml", APP);
    place.spillway(&["put", "k", "v", "--config", "app.yaml", "--family", "archive"]).ok();
    assert!(place.path("users-dir/CURRENT").exists());
    assert_eq!(place.spillway(&["get", "k", "--config", "app.yaml#look", "--family", "archive"]).ok(), "v\n");
    let listed = place.spillway(&["families", "list", "--config", "app.yaml", "--database", "users"]).ok();
    assert_eq!(listed, "default\narchive\n");
    let stored = std::fs::read_to_string(place.only_file("users-dir", "OPTIONS")).expect("read");
    assert!(
        stored.contains("memtable_factory=skip_list\\:3") && stored.contains("write_buffer_size=65536"),
        "{stored}"
    );

    let refused = place.spillway(&["put", "k", "w", "--config", "app.yaml#look"]).fails();
    assert!(refused.contains("for reading only"), "{refused}");
    let refused = place.spillway(&["get", "k", "--config", "app.yaml#nobody"]).fails();
    assert!(refused.contains("it has: users, look") && refused.contains("app.yaml"), "{refused}");
    let refused = place.spillway(&["get", "k"]).fails();
    assert!(refused.contains("--config FILE"), "{refused}");
    place.spillway(&["destroy", "--config", "app.yaml", "--yes"]).ok();
    assert!(!place.path("users-dir/CURRENT").exists());
}

/// Stored options are lost: a repair stores those of the configuration.
#[test]
fn repair_takes_the_configurations_options() {
    let place = Place::new();
    place.write("app.yaml", APP);
    place.spillway(&["put", "k", "v", "--config", "app.yaml"]).ok();
    let files = std::fs::read_dir(place.path("users-dir")).expect("read").map(|file| file.expect("read").path());
    let is_options = |path: &std::path::PathBuf| path.to_string_lossy().contains("OPTIONS-");
    files.filter(is_options).for_each(|path| std::fs::remove_file(path).expect("removed"));
    assert_eq!(place.spillway(&["repair", "--config", "app.yaml"]).code, Some(1), "the options are lost");
    let stored = std::fs::read_to_string(place.only_file("users-dir", "OPTIONS")).expect("read");
    assert!(stored.contains("write_buffer_size=65536"), "{stored}");
}

#[test]
fn check_shows_what_a_configuration_means() {
    let place = Place::new();
    place.write("app.yaml", APP);
    let shown = place.spillway(&["options", "check", "app.yaml"]).ok();
    let expected = "database users in users-dir
  DBOptions
    create_if_missing=true
    create_missing_column_families=true
  CFOptions \"default\"
    write_buffer_size=65536
    memtable_factory=skip_list\\:3
  CFOptions \"archive\"
    write_buffer_size=65536
    memtable_factory=skip_list\\:3
database look in users-dir, for reading only
  DBOptions
opened where no name is given: users
";
    assert_eq!(shown, expected);
    let one = place.spillway(&["options", "check", "app.yaml#look", "--all"]).ok();
    assert!(one.contains("    max_background_jobs=2\n") && !one.contains("archive"), "{one}");
    assert!(place.spillway(&["options", "write_buffer"]).ok().contains("write_buffer_size"));
}

#[test]
fn errors_and_warnings_name_file_line_and_key() {
    let place = Place::new();
    place.write("bad.yaml", "CFOptions:\n  default:\n    write_bufer_size: 1M\n");
    let refused = place.spillway(&["options", "check", "bad.yaml"]).fails();
    for part in
        ["bad.yaml", "line 3, column 5", "CFOptions.default.write_bufer_size", "did you mean `write_buffer_size`?"]
    {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    place.write("web.json", "{\"http\": {\"listening_ports\": \"2011\"},\n \"databases\": {\"d\": {}}}");
    let shown = place.spillway(&["options", "check", "web.json"]).ok();
    assert!(
        shown.contains("warning: line 1, column 2: http: this has no effect here: there is no web server"),
        "{shown}"
    );
    let told = place.spillway(&["get", "k", "--config", "web.json"]).fails();
    assert!(told.contains("warning: web.json: line 1") && told.contains("there is no database in d"), "{told}");
}

/// A path may have the character that an option has.
#[test]
fn options_of_a_file_with_an_equals_sign_in_its_path_are_read() {
    let place = Place::new();
    std::fs::create_dir(place.path("run=7")).unwrap();
    place.write(
        "run=7/options.ini",
        "[Version]\n  rocksdb_version=11.8.1\n[DBOptions]\n  max_background_jobs=3\n[CFOptions \"default\"]\n",
    );
    place.spillway(&["put", "k", "v", "--db", "db", "--create", "--options", "run=7/options.ini"]).ok();
    let stored = std::fs::read_to_string(place.newest_file("db", "OPTIONS-")).unwrap();
    assert!(stored.contains("max_background_jobs=3"), "{stored}");
}
