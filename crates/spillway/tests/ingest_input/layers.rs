//! Files that overlap each other, bounds, and files that hold nothing.

use std::path::PathBuf;

use testkit::engine::TableWriter;

use crate::common::{Contents, Forge, Place, default, numbered, verifying};

#[test]
fn of_files_that_overlap_the_later_is_newer() {
    for options in [default(), verifying()] {
        let place = Place::in_memory();
        let files = [
            place.table("1.sst", 0..50, "first"),
            place.table("2.sst", 100..150, "first"),
            place.table("3.sst", 40..60, "second"),
            place.table_of("4.sst", |table| table.delete_range(b"k00045", b"k00055").unwrap()),
            place.table("5.sst", [50, 101], "last"),
        ];
        let report = place.ingest(&files, &options).unwrap();
        assert_eq!((report.tables, report.last.0 - report.first.0), (5, 3), "four layers, one number each");
        let mut expected = Contents::from([("z".to_owned(), "old".to_owned())]);
        let mut set = |keys: std::ops::Range<u32>, value: &str| {
            expected.extend(keys.map(|key| (numbered(key), value.to_owned())));
        };
        set(0..40, "first");
        set(40..45, "second");
        set(55..60, "second");
        set(100..150, "first");
        set(50..51, "last");
        set(101..102, "last");
        assert!(place.contents() == expected);
        place.db.flush(&[&place.family]).unwrap();
        assert!(place.contents() == expected, "after they were given levels");
    }
}

#[test]
fn files_beside_each_other_are_one_layer_in_any_order() {
    let place = Place::in_memory();
    let mut files: Vec<PathBuf> =
        (0..40).map(|i| place.table(&format!("{i}.sst"), i * 10..i * 10 + 10, "new")).collect();
    files.swap(3, 30);
    files.reverse();
    let report = place.ingest(&files, &default()).unwrap();
    assert_eq!((report.tables, report.first), (40, report.last), "one number for all");
    assert_eq!(place.contents().values().filter(|value| *value == "new").count(), 400);
}

#[test]
fn bounds_hold_the_tombstones() {
    let place = Place::in_memory();
    place.db.set_options(&place.family, &[("merge_ingests_max_bytes", "0")]).unwrap();
    let around = |table: &mut TableWriter| {
        table.put(b"m", b"").unwrap();
        table.delete_range(b"c", b"f").unwrap();
        table.delete_range(b"p", b"s").unwrap();
    };
    place.ingest(&[place.table_of("around.sst", around)], &default()).unwrap();
    let only = |table: &mut TableWriter| table.delete_range(b"t", b"v").unwrap();
    place.ingest(&[place.table_of("only.sst", only)], &default()).unwrap();
    let bounds: Vec<_> = place.db.live_files().into_iter().map(|file| (file.smallest, file.largest)).collect();
    assert!(bounds.contains(&(b"c".to_vec(), b"s".to_vec())), "{bounds:?}");
    assert!(bounds.contains(&(b"t".to_vec(), b"v".to_vec())), "{bounds:?}");
}

#[test]
fn files_that_hold_nothing_are_dropped() {
    let place = Place::in_memory();
    let empty = place.path("empty.sst");
    place.write(&empty, &Forge::new().bytes(&[], &[]));
    let before = (place.listing(), place.contents());
    let report = place.ingest_one(&empty, &verifying()).unwrap();
    assert_eq!((report, place.listing(), place.contents()), (Default::default(), before.0, before.1));
    let report = place.ingest(&[empty, place.table("in.sst", 0..3, "new")], &default()).unwrap();
    assert_eq!(report.tables, 1);
}
