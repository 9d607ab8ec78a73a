//! `repair`: what is left of a database opens again, and what is lost is listed.
#![allow(clippy::disallowed_methods, reason = "tests use the real file system as other programs do")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

mod common;

use common::{Place, files};

/// Two families, tables, and a log.
fn database() -> Place {
    let place = Place::new();
    let load = |input: &str, family: &str| {
        let args = ["load", "-", "--db", "db", "--format", "kv", "--family", family];
        place.spillway_reading(&args, input.as_bytes()).ok();
    };
    let lines: String = (0..2000).map(|i| format!("{i:05}\tvalue {i}\n")).collect();
    load(&lines, "default");
    place.spillway(&["families", "create", "second", "--db", "db"]).ok();
    load("x\ty\n", "second");
    place.spillway(&["compact", "--db", "db"]).ok();
    place.spillway(&["put", "00001", "in the log", "--db", "db"]).ok();
    place
}

fn contents(place: &Place) -> [String; 2] {
    ["default", "second"].map(|family| place.spillway(&["scan", "--db", "db", "--family", family]).ok())
}

#[test]
fn a_database_without_its_manifest_is_as_it_was() {
    let place = database();
    let before = contents(&place);
    std::fs::remove_file(place.only_file("db", "MANIFEST-")).unwrap();
    let refused = place.spillway(&["get", "00001", "--db", "db"]).fails();
    assert!(refused.contains("`spillway repair`"), "{refused}");
    let told = place.spillway(&["repair", "db"]).ok();
    assert!(
        told.contains("MANIFEST: ")
            && told.contains("family \"second\": 0 tables")
            && told.contains("nothing of it is lost"),
        "{told}"
    );
    assert_eq!(contents(&place), before);
    assert!(place.spillway(&["check", "--db", "db"]).ok().ends_with("the database is whole\n"));
}

#[test]
fn what_can_be_read_of_a_damaged_table_is_kept_and_the_rest_listed() {
    let place = database();
    let before = contents(&place);
    let tables = files(&place.path("db")).into_iter().filter(|(path, _)| path.extension().is_some_and(|e| e == "sst"));
    let (largest, mut bytes) = tables.max_by_key(|(_, bytes)| bytes.len()).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&largest, &bytes).unwrap();
    let ran = place.spillway(&["repair", "--db", "db"]);
    let name = largest.file_name().unwrap().to_str().unwrap();
    assert!(
        ran.code == Some(1) && ran.out.contains(&format!("lost: {name} of family \"default\", keys '00000' to '00")),
        "{ran:?}"
    );
    assert_eq!(std::fs::read(place.path(&format!("db/lost/{name}"))).unwrap(), bytes, "nothing is deleted");
    assert!(std::fs::read_to_string(place.path("db/lost/REPORT")).unwrap().contains(name));
    let after = contents(&place);
    assert!(after[0].lines().count() > 1000 && after[0].lines().all(|line| before[0].contains(line)), "{after:?}");
    assert_eq!(after[1], before[1]);
    assert!(place.spillway(&["check", "--db", "db"]).ok().ends_with("the database is whole\n"));
}

#[test]
fn there_must_be_something_to_repair() {
    let place = Place::new();
    assert!(place.spillway(&["repair", "nowhere"]).fails().contains("no directory"));
    std::fs::create_dir(place.path("empty")).unwrap();
    assert!(place.spillway(&["repair", "empty"]).fails().contains("no database to repair"));
}
